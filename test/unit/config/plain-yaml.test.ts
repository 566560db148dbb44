import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePlainSource } from '../../../src/core/config/plain-source.ts';
import { parseAnySource, parseSource, type Source, sourceToJson } from '../../../src/core/config/source.ts';
import type { Json } from '../../../src/core/json.ts';
import { within } from '../../support/within.ts';

/** Everything a reader can tell of a text, with the place of one character in five. */
function told({ documents, problems }: Source, text: string): string {
  const roots = documents.map(({ file, index, root }) => ({ file, index, root }));
  const offsets = Array.from({ length: text.length / 5 + 1 }, (_, i) => i * 5);
  const positions = documents.slice(0, 1).map(({ positionAt }) => offsets.map(positionAt));
  return JSON.stringify({ roots, positions, problems }, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
}

/** Compares the two readers; tells whether the text is plain. */
function readsAlike(text: string): boolean {
  const plain = parsePlainSource(text, 'f.yaml');
  if (plain === null || plain.problems.length > 0) return false;
  expect(told(plain, text)).toBe(told(parseAnySource(text, 'f.yaml'), text));
  return true;
}

describe('readPlainYaml', () => {
  it.each<[string, Json | undefined]>([
    ['a: 1\nb:\n  c: true\n  d: x y # comment\n', { a: 1, b: { c: true, d: 'x y' } }],
    ['# head\n\na:\n# in between\n\n  - b\n  # more\n  - c\n', { a: ['b', 'c'] }],
    ['a:\n- b\n-  c: 1\n   d: 2\n- - e\n  - f\n-\n- \n  g: 3\n', { a: ['b', { c: 1, d: 2 }, ['e', 'f'], null, { g: 3 }] }],
    ['a: "x: # y"\nb: \'z\'\nc: ""\n', { a: 'x: # y', b: 'z', c: '' }],
    ['a:\nb: ~\nc: # nothing\nd:\n  e:\n', { a: null, b: null, c: null, d: { e: null } }],
    ['a: []\nb: {}\nc: [1, "2", x]\nd: {e: -1, f: {g: h}}\n', { a: [], b: {}, c: [1, '2', 'x'], d: { e: -1, f: { g: 'h' } } }],
    ['a: http://b/c#d\ne: a:b\nf: x#y\n', { a: 'http://b/c#d', e: 'a:b', f: 'x#y' }],
    ['{"a": [1,\n  {"b": null}],\n"c":{}}\n', { a: [1, { b: null }], c: {} }],
    ['---\na: 1\n', { a: 1 }],
    ['a: 1\na: 2\n', { a: 2 }],
    ['- 1\n- 2', [1, 2]],
    ['', undefined],
    ['\n# only a comment\n', undefined],
  ])('reads %j', (text, value) => {
    expect(readsAlike(text)).toBe(true);
    const root = parsePlainSource(text, 'f.yaml')?.documents[0]?.root;
    expect(root ? sourceToJson(root) : undefined).toEqual(value);
  });

  it('reads several documents', () => {
    const text = '# head\n---\na: 1\n---\n# nothing\n---\n- b\n---\n';
    expect(readsAlike(text)).toBe(true);
    expect(parsePlainSource(text, 'f.yaml')?.documents.map(({ root }) => root?.kind)).toEqual(['map', undefined, 'list', undefined]);
  });

  it.each([
    'a: &x 1\n',
    'a: *x\n',
    'a: !!str 1\n',
    'a: |\n  b\n',
    'a: >-\n  b\n',
    'a: "\\n"\n',
    "a: 'it''s'\n",
    'a:\tb\n',
    'a: 1\r\n',
    '\ufeffa: 1\n',
    'a: b\n  c\n',
    'a: "b\n  c"\n',
    '? a\n: b\n',
    '<<: {a: 1}\n',
    'yes: 1\n',
    'null: 1\n',
    '1: a\n',
    'a: b: c\n',
    'a: b:\n',
    'a\n',
    'a:b\n',
    '  a: 1\n b: 2\n',
    'a:\n    b: 1\n  c: 2\n',
    'a: 1\n- b\n',
    '- a\nb: 1\n',
    '- a\n  - b\n',
    'a: [1\n',
    'a: [1,\n  2]\n',
    'a: [1, ]\n',
    'a: {b}\n',
    'a: {b:1}\n',
    'a: [b: 1]\n',
    'a: [] b\n',
    'a: "b"c\n',
    'a: "b"#c\n',
    '{"a": 1} # comment\n',
    'a: .inf\n',
    'a: @b\n',
    'a: %b\n',
    'a: - b\n',
    'a: -\n',
    '--- a\n',
    'a: 1\n...\n',
    '%YAML 1.1\n---\na: 1\n',
  ])('leaves %j to the general reader', (text) => {
    expect(parsePlainSource(text, 'f.yaml')).toBeNull();
  });

  it('reads what it reads as the general reader does, whatever it is given', () => {
    const piece = fc.constantFrom(
      ...[
        'a',
        'b: ',
        'a:',
        '- ',
        '-',
        ' ',
        '  ',
        '\n',
        '\n',
        '\n  ',
        '\n- ',
        '\n  - ',
        ': ',
        '#',
        ' #c',
        '"',
        '"x"',
        "'y'",
        "''",
        '[',
        ']',
      ],
      ...['{', '}', ',', ', ', '1', 'true', 'y', 'null', '~', '-1', '---\n', '---', '...', 'x y', '0x1f', 'é', '.', '|', '&a', '*a', '!t'],
      ...['?', '? ', '%', '@', '`', '\\', '<<: ', 'a-b', '.5', '1.5e3', '\n    ', 'a: b\n', 'c: d\n', '  e: f\n', '- g\n', '"k": '],
      ...['{"a": 1}', '[1, 2]', ':', '::', 'a:b'],
    );
    let plain = 0;
    const property = fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
      if (readsAlike(pieces.join(''))) plain++;
    });
    fc.assert(property, { numRuns: 3_000 });
    expect(plain).toBeGreaterThan(150);
  });

  it('reads trees in all the ways people write them', () => {
    const blank = fc.constantFrom('', '', '', '\n', '# c\n', '    # c: d\n', '\n\n');
    const end = fc.constantFrom('\n', '\n', ' # c\n', '  \n');
    const name = fc.constantFrom('a', 'maxPods', 'x-y', 'memory.available', 'k8s.io/b', '_z', 'no1');
    const value = fc.constantFrom(
      '1',
      '-5',
      'true',
      'x',
      '10%',
      '"a b"',
      "'c'",
      '0s',
      '100Mi',
      '[]',
      '{}',
      '[a, 1]',
      '{a: b}',
      '~',
      'é ü',
      '',
    );
    type Lines = (indent: number) => string;
    const { node } = fc.letrec<{ node: Lines; map: Lines; list: Lines; member: Lines; item: Lines }>((tie) => ({
      node: fc.oneof({ maxDepth: 3 }, tie('map'), tie('list')),
      map: fc
        .array(tie('member'), { minLength: 1, maxLength: 4 })
        .map((members) => (indent) => members.map((each) => each(indent)).join('')),
      list: fc.array(tie('item'), { minLength: 1, maxLength: 3 }).map((items) => (indent) => items.map((each) => each(indent)).join('')),
      member: fc.oneof(
        fc.tuple(blank, name, value, end).map(
          ([before, key, text, after]): Lines =>
            (n) =>
              `${before}${' '.repeat(n)}${key}: ${text}${after}`,
        ),
        fc.tuple(blank, name, end, tie('node'), fc.constantFrom(1, 2, 4)).map(
          ([before, key, after, child, step]): Lines =>
            (n) =>
              `${before}${' '.repeat(n)}${key}:${after}${child(n + step)}`,
        ),
        fc.tuple(blank, name, end, tie('list')).map(
          ([before, key, after, list]): Lines =>
            (n) =>
              `${before}${' '.repeat(n)}${key}:${after}${list(n)}`,
        ),
      ),
      item: fc.oneof(
        fc.tuple(blank, value, end).map(
          ([before, text, after]): Lines =>
            (n) =>
              `${before}${' '.repeat(n)}- ${text}${after}`,
        ),
        fc.tuple(blank, tie('map')).map(
          ([before, map]): Lines =>
            (n) =>
              `${before}${' '.repeat(n)}- ${map(n + 2).replace(/^(?: *(?:#.*)?\n)* */, '')}`,
        ),
      ),
    }));
    fc.assert(
      fc.property(node, (lines) => {
        expect(readsAlike(lines(0))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

/** What once took, or could take, time or memory out of proportion. Each is cut to what is read at all. */
const HOSTILE: Readonly<Record<string, string>> = {
  'many items': '- a\n'.repeat(260_000),
  'many collections in brackets': `[${'[],'.repeat(340_000)}]`,
  'many mappings': 'a: {b: 1}\n'.repeat(100_000),
  'many documents': 'a: 1\n---\n'.repeat(100_000),
  'empty documents': '---\n'.repeat(260_000),
  'many anchors': 'a: &a 1\n'.repeat(100_000),
  'many aliases of one anchor': `a: &a 1\nb: [${'*a, '.repeat(14_000)}1]`,
  'aliases as keys': `a: &a x\n${'*a : 1\n'.repeat(8_000)}`,
  'unknown aliases': 'a: *a\n'.repeat(10_000),
  'merges of one mapping': `a: &a {b: 1}\n${'<<: *a\n'.repeat(9_000)}`,
  quotes: '"'.repeat(1_000_000),
  colons: ': '.repeat(500_000),
  'question marks': '? a\n'.repeat(250_000),
  directives: '%\n'.repeat(400_000),
  tabs: '\t'.repeat(1_000_000),
  'dashes that end in something else': `${'- '.repeat(150)}a: &a 1`,
  'deep mappings': Array.from({ length: 190 }, (_, i) => `${' '.repeat(i)}k:`).join('\n'),
  'deep brackets': `${'['.repeat(190)}1${']'.repeat(190)}`,
  'a long name': `${'x'.repeat(1_000_000)}: a`,
  'a long text': `a: "${'x\\n'.repeat(300_000)}"`,
  'a long block': `a: |\n${'  x\n'.repeat(250_000)}`,
};

describe('parseSource', () => {
  it.each(Object.entries(HOSTILE))('reads %s in seconds', async (_, text) => {
    for (const part of [text, text.slice(0, 1024 * 1024), text.slice(0, 64 * 1024)]) {
      const { problems } = await within(5_000, () => parseSource(part, 'f.yaml'));
      expect(problems.length).toBeLessThanOrEqual(50);
    }
  });

  it('says of a file that is large and not plain that it is too large', () => {
    const [problem] = parseSource(`a: &a 1\n${'b: 1\n'.repeat(20_000)}`, 'f.yaml').problems;
    expect(problem).toMatchObject({
      code: 'CONFIG_TOO_LARGE',
      message: 'the file has 100008 characters, more than 65536, and is not plain YAML or JSON',
    });
  });

  it('says one thing of a document that is no YAML', () => {
    expect(parseSource('['.repeat(700), 'f.yaml').problems).toHaveLength(1);
    expect(parseSource('a: [1\n---\nb: [2\n', 'f.yaml').problems).toHaveLength(2);
  });
});
