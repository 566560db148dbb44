import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/base/json.ts';
import { parseSource, sourceToJson } from '../../../src/codec/source.ts';
import { encodeYaml } from '../../../src/codec/yaml-encode.ts';
import { numberOfRuns } from '../../support/thorough.ts';

/** Recorded from sigs.k8s.io/yaml 1.6. */
const GOLDEN = JSON.parse(readFileSync(path.join(import.meta.dirname, 'golden', 'yaml-encode.json'), 'utf8')) as [Json, string][];

function read(text: string): Json {
  const { documents, problems } = parseSource(text, 'y.yaml');
  expect(problems).toEqual([]);
  const root = documents[0]?.root;
  return root ? sourceToJson(root) : null;
}

describe('encodeYaml', () => {
  it.each(GOLDEN.map(([value, text]) => ({ name: JSON.stringify(value).slice(0, 60), value, text })))(
    'prints $name as Kubernetes does',
    ({ value, text }) => {
      expect(encodeYaml(value)).toBe(text);
      expect(read(text)).toEqual(value);
    },
  );

  it.each<[string, string]>([
    ['\0\x07\b\t\v\f\r\x1b', '"\\0\\a\\b\\t\\v\\f\\r\\e"'],
    ['\x7f\u0080', '"\\x7F\\x80"'],
    ['a\u0085b', '"a\\Nb"'],
    ['a\u2028b\u2029', '"a\\Lb\\P"'],
    ['\u{1f600}', '"\\U0001F600"'],
    ['a\ufeff', '"a\\uFEFF"'],
    ['\ufeffa', '"\\uFEFF\\x61"'],
    ['\u00a0é中', '\u00a0é中'],
    ['echo "\\n"\r', '"echo \\"\\\\n\\"\\r"'],
  ])('escapes %j', (text, expected) => {
    expect(encodeYaml(text)).toBe(`${expected}\n`);
  });

  it('prints integers of any size', () => {
    expect(encodeYaml({ a: 9223372036854775807n, b: [-1n] })).toBe('a: 9223372036854775807\nb:\n- -1\n');
  });

  it('does not depend on the order of keys', () => {
    const keys = ['9yes', '02?', '0x1\r', 'a1', 'a01', 'A', '', '-'];
    const map = (order: readonly string[]) => encodeYaml(Object.fromEntries(order.map((key) => [key, 1])));
    expect(map(keys.toReversed())).toBe(map(keys));
  });

  it('quotes the key of a merge, but not that text as a value', () => {
    const value = { a: [{ '<<': '<<', b: { '<<': false } }] };
    expect(encodeYaml(value)).toBe('a:\n- "<<": <<\n  b:\n    "<<": false\n');
    expect(read(encodeYaml(value))).toEqual(value);
  });

  it('treats keys of Object.prototype as data', () => {
    expect(encodeYaml(JSON.parse('{"__proto__": {"constructor": 1}}') as Json)).toBe('__proto__:\n  constructor: 1\n');
  });

  it('prints text that reads as the same value', () => {
    // The parser rejects a raw U+FFFD as a sign of invalid UTF-8.
    const text = fc.oneof(
      fc.string({ unit: 'binary' }).filter((s) => !s.includes('\ufffd')),
      fc.string({ unit: fc.constantFrom(...'ab01 -:#?\'"\n\t,[]{}&*!|>%@`.~yn_eE+') }),
    );
    const { value } = fc.letrec<{ value: Json; scalar: Json }>((tie) => ({
      scalar: fc.oneof(
        text,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n)),
        fc.boolean(),
        fc.constant(null),
      ),
      value: fc.oneof(
        { depthSize: 'small' },
        tie('scalar'),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(text, tie('value'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(value, (json) => {
        expect(read(encodeYaml(json))).toEqual(json);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });
});
