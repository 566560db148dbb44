import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { encodeKyaml } from '../../../src/codec/kyaml-encode.ts';
import { HOSTILE, UNSAFE } from '../../support/hostile-text.ts';

describe('KYAML', () => {
  it('has braces, quoted strings and trailing commas', () => {
    expect(encodeKyaml({ kind: 'Images', count: 2, none: null, images: ['a', 'b'], empty: [], nothing: {} })).toBe(
      '---\n{\n  kind: "Images",\n  count: 2,\n  none: null,\n  images: [\n    "a",\n    "b",\n  ],\n  empty: [],\n  nothing: {},\n}\n',
    );
  });

  it('has the brackets of a list of objects next to those of the objects', () => {
    expect(encodeKyaml({ items: [{ a: 1 }, { b: true }] })).toBe('---\n{\n  items: [{\n    a: 1,\n  }, {\n    b: true,\n  }],\n}\n');
  });

  it('quotes keys that readers take for another type', () => {
    const keys = ['plain', 'a.b/c-d', 'on', 'null', '1e3', '1:30', '-x', 'with space', ''];
    const lines = encodeKyaml(Object.fromEntries(keys.map((key) => [key, 0])))
      .split('\n')
      .slice(2, -2);
    expect(lines.map((line) => line.trim())).toEqual([
      'plain: 0,',
      'a.b/c-d: 0,',
      '"on": 0,',
      '"null": 0,',
      '"1e3": 0,',
      '"1:30": 0,',
      '"-x": 0,',
      '"with space": 0,',
      '"": 0,',
    ]);
  });

  it('folds strings of several lines', () => {
    expect(encodeKyaml({ text: 'one\n  two\n' })).toBe('---\n{\n  text: "\\\n     one\\n\\\n    \\  two\\n\\\n    ",\n}\n');
  });

  it.each(['one\n  two\n', 'a\nb', '\n\nx', 'tab\tcell', 'quote " and \\', HOSTILE, `two\nlines ${HOSTILE}\n`])(
    'reads back as %j',
    (text) => {
      const encoded = encodeKyaml({ [text]: [text] });
      expect(parse(encoded)).toEqual({ [text]: [text] });
      expect(encoded).not.toMatch(UNSAFE);
    },
  );
});
