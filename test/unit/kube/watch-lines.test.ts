import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWatchLines } from '../../../src/kube/watch-lines.ts';

const event = (name: string) => ({ type: 'ADDED', object: { kind: 'ConfigMap', metadata: { name } } });
const encode = (text: string) => new TextEncoder().encode(text);

describe('createWatchLines', () => {
  it('returns events when their lines are complete', () => {
    const lines = createWatchLines();
    const [a, b] = [`${JSON.stringify(event('a'))}\n`, `${JSON.stringify(event('b'))}\n`];
    expect(lines.push(encode(a.slice(0, 10)))).toEqual([]);
    expect(lines.push(encode(a.slice(10) + b.slice(0, 5)))).toEqual([event('a')]);
    expect(lines.push(encode(b.slice(5)))).toEqual([event('b')]);
  });

  it('parses the same events for any chunks', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }), fc.array(fc.nat(), { maxLength: 20 }), (names, cuts) => {
        const bytes = encode(names.map((name) => `${JSON.stringify(event(name))}\n`).join(''));
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((x, y) => x - y), bytes.length];
        const lines = createWatchLines();
        const read = places.slice(1).flatMap((end, index) => lines.push(bytes.subarray(places[index], end)));
        expect(read).toEqual(names.map(event));
      }),
    );
  });

  it('ignores empty lines and accepts CRLF', () => {
    expect(createWatchLines().push(encode(`\n\r\n${JSON.stringify(event('a'))}\r\n`))).toEqual([event('a')]);
  });

  it.each([
    ['<html>\n', 'a line of the watch is not JSON'],
    ['[1]\n', 'a line of the watch is not a valid event'],
    ['{"type":"ADDED"}\n', 'a line of the watch is not a valid event'],
    ['{"object":{}}\n', 'a line of the watch is not a valid event'],
  ])('refuses %j', (text, message) => {
    expect(() => createWatchLines().push(encode(text))).toThrow(message);
  });

  it('limits the length of a line', () => {
    const lines = createWatchLines(100);
    lines.push(encode('x'.repeat(60)));
    expect(() => lines.push(encode('x'.repeat(60)))).toThrow('a line of the watch has more than 100 characters');
  });
});
