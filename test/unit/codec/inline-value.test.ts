import { describe, expect, it } from 'vitest';
import { renderTable, truncate } from '../../../src/base/text/table.ts';
import { wrapText } from '../../../src/base/text/wrap-line.ts';
import { inlineValue } from '../../../src/codec/inline-value.ts';

describe('inlineValue', () => {
  it.each([
    [50, '50'],
    ['50', '"50"'],
    ['5%', '5%'],
    ['10.96.0.10', '10.96.0.10'],
    ['1.5', '"1.5"'],
    ['true', '"true"'],
    [true, 'true'],
    ['', '""'],
    [null, 'null'],
    [undefined, 'unset'],
    ['unset', '"unset"'],
    ['a: b', '"a: b"'],
    ['unix:///run/x.sock', 'unix:///run/x.sock'],
    ['\u001b[31m', '"\\u001b[31m"'],
    ['\u009b', '"\\u009b"'],
    [['a', 1], '[a, 1]'],
    [{ 'memory.available': '100Mi', 'x,y': [] }, '{memory.available: 100Mi, "x,y": []}'],
  ])('%j is %s', (value, text) => {
    expect(inlineValue(value)).toBe(text);
  });
});

describe('renderTable', () => {
  it('aligns columns, without trailing spaces', () => {
    expect(
      renderTable([
        ['a', 'bb', ''],
        ['ccc', 'd', 'e'],
      ]),
    ).toEqual(['a    bb', 'ccc  d   e']);
  });

  it('truncates long cells', () => {
    expect(renderTable([['a', 'long text']], 8)).toEqual(['a  long…']);
    expect(truncate('abc', 3)).toBe('abc');
  });
});

describe('wrapText', () => {
  it('breaks at spaces, not inside long words', () => {
    expect(wrapText('one two  three extraordinarily', 7)).toEqual(['one two', 'three', 'extraordinarily']);
    expect(wrapText('', 7)).toEqual([]);
  });
});
