import { expect, it } from 'vitest';
import { escapeUnprintable, escapeUnprintableInLine, printable, printableJson } from '../../../../src/base/text/printable.ts';
import { HOSTILE, UNSAFE } from '../../../support/hostile-text.ts';

it.each([
  ['plain text', 'plain text'],
  ['\u001b[31mred\u001b[0m\r\n', '[31mred [0m'],
  ['a\n\n  b\t', 'a b'],
  ['\u202egnp.exe', 'gnp.exe'],
  ['Größe', 'Größe'],
])('prints %j as %j', (text, expected) => expect(printable(text)).toBe(expected));

it('limits the length', () => expect(printable('x'.repeat(300), 5)).toBe('xxxxx…'));

it.each([
  ['Größe, 日本, e\u0301, 👍🏽\n\tas it is', 'Größe, 日本, e\u0301, 👍🏽\n\tas it is'],
  ['\0\r\u009b\ud800\udc00\ud800', '\\x00\\x0d\\x9b\u{10000}\\ud800'],
  ['\u2028\u202e\u{e0020}', '\\u2028\\u202e\\u{e0020}'],
])('escapes characters that a terminal interprets or hides in %j', (text, expected) => {
  expect(escapeUnprintable(text)).toBe(expected);
  expect(escapeUnprintable(escapeUnprintable(text))).toBe(expected);
});

it('escapes newlines and tabs inside a line', () => expect(escapeUnprintableInLine('a\n\tb\u001b')).toBe('a\\x0a\\x09b\\x1b'));

it('prints JSON that every parser decodes, without characters that a terminal interprets or hides', () => {
  const value = { [`k${HOSTILE}`]: `v${HOSTILE}\ud800\n\t` };
  for (const indent of [undefined, 2]) {
    expect(printableJson(value, indent)).not.toMatch(UNSAFE);
    expect(JSON.parse(printableJson(value, indent))).toEqual(value);
  }
});
