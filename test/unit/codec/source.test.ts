import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/base/json.ts';
import { entryOf, parseSource, type SourceDocument, type SourceNode, sourceToJson } from '../../../src/codec/source.ts';
import { numberOfRuns } from '../../support/thorough.ts';

function read(text: string): readonly (Json | undefined)[] {
  const { documents, problems } = parseSource(text, 'f.yaml');
  expect(problems).toEqual([]);
  return documents.map(({ root }) => (root === null ? undefined : sourceToJson(root)));
}

function problemsOf(text: string): readonly string[] {
  return parseSource(text, 'f.yaml').problems.map(
    ({ code, message, position }) => `${position?.line}:${position?.column} ${code} ${message}`,
  );
}

describe('parseSource', () => {
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
    expect(read(text)).toEqual(value === undefined ? [] : [value]);
  });

  /** Verified with kubectl 1.32, which parses YAML with the library of kubelet and kubeadm. */
  it.each<[string, string, Json]>([
    ['an anchor', 'a: &x {b: 1}\nc: *x\n', { a: { b: 1 }, c: { b: 1 } }],
    ['a redefined anchor', 'a: &x 1\nb: *x\nc: &x 2\nd: *x\n', { a: 1, b: 1, c: 2, d: 2 }],
    ['a merge under own keys', 'd: &d {a: 1, b: 1}\ne:\n  <<: *d\n  a: 2\n', { d: { a: 1, b: 1 }, e: { a: 2, b: 1 } }],
    ['a merge after own keys, which it replaces', 'e:\n  a: 2\n  <<: {a: 1, b: 1}\n', { e: { a: 1, b: 1 } }],
    [
      'a merge of several, the first wins',
      'p: &p {a: 1, b: 1}\nq: &q {b: 2, c: 2}\nr:\n  <<: [*p, *q]\n  c: 3\n',
      { p: { a: 1, b: 1 }, q: { b: 2, c: 2 }, r: { a: 1, b: 1, c: 3 } },
    ],
    ['a quoted merge key, which is a key like others', '"<<": {a: 1}\n', { '<<': { a: 1 } }],
    ['a duplicate key', '{a: 1, a: 2}\n', { a: 2 }],
    ['keys that are not strings', '1: a\ntrue: b\n1.5: c\n0x10: d\nno: e\n', { 1: 'a', true: 'b', '1.5': 'c', 16: 'd', false: 'e' }],
    ['an explicit key', '? a\n: b\n', { a: 'b' }],
    [
      'tags',
      'a: !!str 1\nb: !!int "5"\nc: !!float 3\nd: !!bool "yes"\ne: !!null ""\nf: ! 12\ng: !mine 12\n',
      { a: '1', b: 5, c: 3, d: true, e: null, f: '12', g: '12' },
    ],
    [
      'block scalars',
      'a: |\n  x\n   y\n\nb: >\n  x\n  y\n\n  z\nc: |-\n  x\nd: >+\n  x\n\ne: 1\n',
      { a: 'x\n y\n', b: 'x y\nz\n', c: 'x', d: 'x\n\n', e: 1 },
    ],
    ['escapes', "a: \"x\\u00e9\\n\\x41\\\n  y\"\nb: 'it''s'\n", { a: 'xé\nAy', b: "it's" }],
    ['empty values', 'a:\nb: ""\nc: {d: }\n', { a: null, b: '', c: { d: null } }],
    ['a plain scalar over lines', 'a: multi\n  line\n', { a: 'multi line' }],
    ['CRLF', 'a: 1\r\nb: |\r\n  x\r\n', { a: 1, b: 'x\n' }],
    ['a byte order mark', '\ufeffa: 1\n', { a: 1 }],
    ['JSON', '{"a": [1, "2", null, true, 1.5e3], "b": {}}', { a: [1, '2', null, true, 1500], b: {} }],
    ['a list at the top', '- 1\n- - 2\n', [1, [2]]],
    ['a scalar at the top', 'hello', 'hello'],
  ])('reads %s', (_, text, expected) => {
    expect(read(text)).toEqual([expected]);
  });

  it.each<[string, readonly (Json | undefined)[]]>([
    ['a: 1\n---\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['---\na: 1\n...\n---\n# nothing\n---\nb: 2\n', [{ a: 1 }, undefined, { b: 2 }]],
    ['# only a comment\n', []],
    ['', []],
    ['---\n', [undefined]],
  ])('splits %j into documents', (text, expected) => {
    expect(read(text)).toEqual(expected);
    expect(parseSource(text, 'f').documents.map(({ index }) => index)).toEqual(expected.map((_, i) => i));
  });

  it.each([
    ['a tab for indentation', 'a:\n\tb: 1\n', /^2:\d+ CONFIG_SYNTAX not valid YAML: /],
    ['a line of a tab alone', 'a: 1\n\t\nb: 2\n', /^2:1 CONFIG_SYNTAX not valid YAML: a line must not begin with a tab$/],
    ['a tab at the end', 'a: {b: 1}\n\t', /^2:1 CONFIG_SYNTAX not valid YAML: a line must not begin with a tab$/],
    ['a tab before a comment', 'a: [1,\n\t\n 2]\n\t # c\r\nb: 1', /^4:1 CONFIG_SYNTAX not valid YAML: a line must not begin with a tab$/],
    ['an open bracket', 'a: [1\nb: 2\n', /^1:4 CONFIG_SYNTAX not valid YAML: the \[ is not closed with \]/],
    [
      'an open brace after a closed one',
      'a: {}\nb:\n  c: {d: {}\ne: 1\n',
      /^3:6 CONFIG_SYNTAX not valid YAML: the \{ is not closed with \}/,
    ],
    ['an open quotation mark', 'a: "x\n', /CONFIG_SYNTAX not valid YAML: the quotation mark " that opens the value is not closed$/],
    ['two mappings in one line', 'a: b: c\n', /^1:\d+ CONFIG_SYNTAX not valid YAML: the value contains ": "\. /],
    [
      'a line that is indented too far',
      'a: 1\n  b: 2\n',
      /^1:4 CONFIG_SYNTAX not valid YAML: the next line \(2\) is indented more than this line, so it is read as a part of this value$/,
    ],
    ['text after a list', '[a]\nb\n', /^2:1 CONFIG_SYNTAX not valid YAML: unexpected text after a complete value$/],
    [
      'unequal indentation',
      'a:\n  b: 1\n c: 2\n',
      /^3:1 CONFIG_SYNTAX not valid YAML: lines of the same level must have the same indentation$/,
    ],
    ['a reserved character', 'a: @x\n', /^1:4 CONFIG_SYNTAX not valid YAML: a value that begins with @ must be quoted$/],
    ['a bracket too many', 'a: {b: 1}}\n', /^1:10 CONFIG_SYNTAX not valid YAML: unexpected "\}"$/],
    ['an unknown alias', 'a: *b\n', /^1:4 CONFIG_SYNTAX .*\*?b/],
    ['an object as key', '? {a: 1}\n: b\n', /CONFIG_SYNTAX .*must be a string/],
    ['a null key', 'x: 1\n~: a\n', /^2:1 CONFIG_SYNTAX .*not null/],
    ['a merge of a scalar', 'a:\n  <<: 1\n', /^2:\d+ CONFIG_SYNTAX .*<</],
    ['a merge of a list with a scalar in it', 'a:\n  <<: [{b: 1}, 2]\n', /^2:\d+ CONFIG_SYNTAX .*<</],
    ['a tag that does not match the value', 'a: !!int x\n', /^1:\d+ CONFIG_SYNTAX .*"x" cannot be read as !!int/],
    ['a number without a JSON form', 'a: .inf\n', /^1:4 CONFIG_SYNTAX .*\.inf/],
    ['UTF-16', 'a\0:\0', /^1:2 CONFIG_NOT_TEXT the file contains a NUL byte/],
    ['Latin-1 that was decoded', 'a: 1\nb: \ufffd\n', /^2:4 CONFIG_NOT_TEXT the file is not valid UTF-8/],
    ['a control character', 'a: x\u0007\n', /^1:5 CONFIG_NOT_TEXT the file contains a control character \(0x07\)/],
    ['too much text', `a: ${'x'.repeat(1024 * 1024)}`, /^1:1 CONFIG_TOO_LARGE/],
    ['unclosed brackets', '['.repeat(50_000), /^1:1 CONFIG_TOO_LARGE the document is nested deeper/],
    ['flow nesting just over the limit', `${'['.repeat(300)}${']'.repeat(300)}`, /CONFIG_TOO_LARGE/],
    ['deep block lists', `${'- '.repeat(5_000)}a`, /CONFIG_TOO_LARGE/],
    ['deep block mappings', Array.from({ length: 400 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), /CONFIG_TOO_LARGE/],
    [
      'aliases that multiply',
      `a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(10)}]\n`).join('')}`,
      /CONFIG_TOO_LARGE/,
    ],
    ['an alias to itself', 'a: &a [*a]\n', /CONFIG_/],
  ])('refuses %s', (_, text, expected) => {
    expect(problemsOf(text)[0]).toMatch(expected);
  });

  it('accepts tabs in quotes and flow collections', () => {
    for (const text of ['"x\n\t\n y"\n', "'x\n\t\n y'\n", 'a: {b: 1,\n\t\n c: 2}\n', '[1,\n\t# c\n2]', 'a:\t1\t\n'])
      expect(parseSource(text, 'f').problems, text).toEqual([]);
  });

  it('reports all problems of a file', () => {
    expect(problemsOf('a: *x\n---\nb: *y\n')).toHaveLength(2);
  });

  it('knows the position of each value and key', () => {
    const document = parseSource('# head\na:\n  b: [1, {c: 2}]\n', 'f.yaml').documents[0] as SourceDocument;
    const place = (node: { readonly offset: number }): string => {
      const { line, column, file } = document.positionAt(node.offset);
      return `${file}:${line}:${column}`;
    };
    const a = entryOf(document.root, 'a');
    const b = entryOf(a?.value ?? null, 'b');
    expect(document.positionAt(b?.keyOffset as number)).toEqual({ file: 'f.yaml', line: 3, column: 3 });
    expect(place(b?.value as SourceNode)).toBe('f.yaml:3:6');
    const item = b?.value.kind === 'list' ? (b.value.items[1] as SourceNode) : null;
    expect(place(entryOf(item, 'c')?.value as SourceNode)).toBe('f.yaml:3:14');
  });

  it('terminates for any input', () => {
    const piece = fc.constantFrom(
      'a: ',
      '- ',
      '&x ',
      '*x',
      '{',
      '}',
      '[',
      ']',
      '"',
      "'",
      '|',
      '\n',
      '  ',
      '---\n',
      '!!int ',
      '<<: ',
      '? ',
      '#',
      '1',
      ',',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const { documents, problems } = parseSource(pieces.join(''), 'f');
        expect(problems.length > 0 || documents.every(({ root }) => root === null || sourceToJson(root) !== undefined)).toBe(true);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });

  it('reads back any JSON', () => {
    const json = fc
      .jsonValue({ maxDepth: 4 })
      .filter((value) => !/[\u0000-\u001f\u007f-\u009f\ufffd-\uffff\ud800-\udfff]/.test(JSON.stringify(value)));
    fc.assert(
      fc.property(json, (value) => {
        expect(read(JSON.stringify(value, null, 2))).toEqual([JSON.parse(JSON.stringify(value))]);
      }),
    );
  });
});

describe('entryOf', () => {
  it('is the last entry of the key', () => {
    const { root } = parseSource('a: 1\nb: 2\na: 3\n', 'f').documents[0] as SourceDocument;
    expect(entryOf(root, 'a')?.value).toMatchObject({ text: '3' });
  });

  it.each([['[1]'], ['x']])('is undefined in %s', (text) => {
    expect(entryOf((parseSource(text, 'f').documents[0] as SourceDocument).root, 'a')).toBeUndefined();
  });

  it('is undefined without a document', () => {
    expect(entryOf(null, 'a')).toBeUndefined();
  });
});
