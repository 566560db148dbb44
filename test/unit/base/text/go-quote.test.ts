import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoteGo } from '../../../../src/base/text/go-quote.ts';

describe('quoteGo', () => {
  it.each([
    ['', '""'],
    ['--node-ip=10.0.0.1', '"--node-ip=10.0.0.1"'],
    ['x="q r"', '"x=\\"q r\\""'],
    ['a\\b', '"a\\\\b"'],
    ["it's $5 100%", '"it\'s $5 100%"'],
    ['\u0007\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
    ['\0\u001b\u007f', '"\\x00\\x1b\\x7f"'],
    ['\u0080\u009f', '"\\u0080\\u009f"'],
    ['é ü ß 日本 😀', '"é ü ß 日本 😀"'],
    ['\u00a0\u00ad\u200b\u2028\ufeff', '"\\u00a0\\u00ad\\u200b\\u2028\\ufeff"'],
    ['\ue000\u{10ffff}\u{e0001}', '"\\ue000\\U0010ffff\\U000e0001"'],
    ['e\u0301', '"e\u0301"'],
  ])('%j', (text, expected) => {
    expect(quoteGo(text)).toBe(expected);
  });

  it('is one line of printable characters, for any input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(quoteGo(text)).toMatch(/^"[\p{L}\p{M}\p{N}\p{P}\p{S} ]*"$/u);
      }),
    );
  });
});
