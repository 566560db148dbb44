import { describe, expect, it } from 'vitest';
import { parseEach, parseEqualTextsOnce } from '../../../../src/host/facts/parse-text.ts';

const counter = () => {
  const texts: string[] = [];
  return { texts, parse: (text: string) => texts.push(text) };
};

describe('parseEqualTextsOnce', () => {
  it('parses each text once per parser', () => {
    const [a, b] = [counter(), counter()];
    const parseText = parseEqualTextsOnce();
    const results = ['x', 'y', 'x'].map((text) => parseText(text, a.parse));
    expect(results).toEqual([1, 2, 1]);
    expect(parseText('x', b.parse)).toBe(1);
    expect([a.texts, b.texts]).toEqual([['x', 'y'], ['x']]);
  });

  it('keeps results that are null or undefined', () => {
    const parseText = parseEqualTextsOnce();
    let calls = 0;
    const parse = () => {
      calls++;
      return undefined;
    };
    parseText('x', parse);
    parseText('x', parse);
    expect(calls).toBe(1);
  });

  it('parses again after an error', () => {
    const parseText = parseEqualTextsOnce();
    let calls = 0;
    const parse = () => {
      if (++calls === 1) throw new Error('no');
      return calls;
    };
    expect(() => parseText('x', parse)).toThrow('no');
    expect(parseText('x', parse)).toBe(2);
  });

  it('keeps the given number of results', () => {
    const { texts, parse } = counter();
    const parseText = parseEqualTextsOnce(2);
    for (const text of ['a', 'b', 'c', 'a']) parseText(text, parse);
    expect(texts).toEqual(['a', 'b', 'c', 'a']);
  });

  it('shares nothing between runs', () => {
    const { texts, parse } = counter();
    parseEqualTextsOnce()('x', parse);
    parseEqualTextsOnce()('x', parse);
    parseEach('x', parse);
    expect(texts).toEqual(['x', 'x', 'x']);
  });
});
