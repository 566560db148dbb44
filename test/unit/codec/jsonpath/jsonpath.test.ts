import { describe, expect, it } from 'vitest';
import { applyJsonPath } from '../../../../src/codec/jsonpath/apply.ts';
import { parseJsonPath } from '../../../../src/codec/jsonpath/parse.ts';

/** The input of the page https://kubernetes.io/docs/reference/kubectl/jsonpath/. */
const LIST = {
  kind: 'List',
  items: [
    {
      kind: 'None',
      metadata: { name: '127.0.0.1', labels: { 'kubernetes.io/hostname': '127.0.0.1' } },
      status: { capacity: { cpu: '4' }, addresses: [{ type: 'LegacyHostIP', address: '127.0.0.1' }] },
    },
    {
      kind: 'None',
      metadata: { name: '127.0.0.2' },
      status: {
        capacity: { cpu: '8' },
        addresses: [
          { type: 'LegacyHostIP', address: '127.0.0.2' },
          { type: 'another', address: '127.0.0.3' },
        ],
      },
    },
  ],
  users: [
    { name: 'myself', user: {} },
    { name: 'e2e', user: { username: 'admin', password: 'secret' } },
  ],
};
const PLAIN = {
  numbers: [0, 1, 2, 3, 4, 5],
  nested: [
    [1, 2],
    [3, 4],
  ],
  rows: [
    { name: 'a', size: 1, ready: true, note: null },
    { name: 'b', size: 12, ready: false },
    { name: 'c d', size: 3.5, ready: true },
  ],
  labels: { 'a.b/c': 'x', plain: 'y' },
  empty: [],
};
const apply = (template: string, document: object = LIST): string =>
  applyJsonPath(parseJsonPath(template), JSON.parse(JSON.stringify(document)));

describe('a template of the Kubernetes documentation', () => {
  it.each([
    ['kind is {.kind}', 'kind is List'],
    ["{.kind}{.['kind']}{['kind']}", 'ListListList'],
    ['{..name}', '127.0.0.1 127.0.0.2 myself e2e'],
    ['{.items[*].metadata.name}', '127.0.0.1 127.0.0.2'],
    ['{.users[0].name}', 'myself'],
    ["{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}'],
    ['{.users[?(@.name=="e2e")].user.password}', 'secret'],
    ['{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}', '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] '],
    ['{range .items[*]}{.metadata.name}{"\\t"}{.status.capacity.cpu}{\'\\n\'}{end}', '127.0.0.1\t4\n127.0.0.2\t8\n'],
    ['{.items[*].metadata.labels.kubernetes\\.io/hostname}', '127.0.0.1'],
    ["{.items[0].metadata.labels['kubernetes\\.io/hostname']}", '127.0.0.1'],
    ['{.items[-1].metadata.name}', '127.0.0.2'],
    ['{.items[?(@.metadata.labels)].metadata.name}', '127.0.0.1'],
    [
      '{range .items[*]}{.metadata.name}:{range .status.addresses[*]} {.type}{end};{end}',
      '127.0.0.1: LegacyHostIP;127.0.0.2: LegacyHostIP another;',
    ],
  ])('%s', (template, expected) => {
    expect(apply(template)).toBe(expected);
  });
});

describe('a template', () => {
  it.each([
    ['{.numbers[1:3]}', '1 2'],
    ['{.numbers[:2]}', '0 1'],
    ['{.numbers[4:]}', '4 5'],
    ['{.numbers[-2:]}', '4 5'],
    ['{.numbers[::2]}', '0 2 4'],
    ['{.numbers[1:5:2]}', '1 3'],
    ['{.numbers[0,2,-1]}', '0 2 5'],
    ['{.numbers[2:2]}', ''],
    ['{.nested[*][0]}', '1 3'],
    ['{.nested}', '[[1,2],[3,4]]'],
    ['{.rows[?(@.size>3)].name}', 'b c d'],
    ['{.rows[?(@.size <= 3.5)].name}', 'a c d'],
    ['{.rows[?(@.ready==true)].name}', 'a c d'],
    ['{.rows[?(@.name!="a")].size}', '12 3.5'],
    ["{.rows[?(@.name=='c d')].size}", '3.5'],
    ['{.rows[?(@.name==")]")].size}', ''],
    ['{.rows[?(@.note=="x")].name}', ''],
    ['{.rows[?(@.size>"1")].name}', ''],
    ['{.rows[0].note}', 'null'],
    ['{.missing.field}|{.rows[*].missing}', '|'],
    ["{.labels['a.b/c']} {.labels.a\\.b/c} {.labels.*}", 'x x x y'],
    ['{.labels["plain"]}', 'y'],
    ['{$.labels.plain}{@.labels.plain}', 'yy'],
    ['{range .empty[*]}x{end}{.empty[*]}', ''],
    ['{.rows[*].constructor}', ''],
    ['{range .rows[0:2]}{@.name}={$.size},{end}', 'a=1,b=12,'],
    ['{"{"}{.rows[0].name}{"}"}', '{a}'],
    ['{ .rows[0].name }', 'a'],
    ['{1}{true}{"\\u"}', '1trueu'],
  ])('%s', (template, expected) => {
    expect(apply(template, PLAIN)).toBe(expected);
  });

  it('prints the whole document', () => {
    expect(apply('{.}', { a: 1 })).toBe('{"a":1}');
    expect(apply('{@}', { a: 1 })).toBe('{"a":1}');
  });

  it.each([
    ['.items[*].name', 'the template has no expression in braces, such as {.items}', 0],
    ['{.items[*].name', 'this { is not closed', 0],
    ['x{.a}{.b', 'this { is not closed', 5],
    ['{.items[0}', 'unexpected "}" in brackets', 9],
    ['{.items[x]}', 'expected an index, a slice or a quoted key', 8],
    ['{.items[]}', 'expected an index, a slice or a quoted key', 8],
    ['{.items[::0]}', 'the step of a slice must be at least 1', 8],
    ['{.items[?(@.a~"x")]}', 'unexpected value or word after a path', 14],
    ['{.items[?(@.a=="x"]}', 'unexpected character "]"', 18],
    ['{.items[?(@.a=~"x")]}', 'unknown operator; use ==, !=, <, <=, > or >=', 13],
    ['{.items[?(@.a=="x)]}', 'this quote is not closed', 15],
    ['{.items[?()]}', 'a filter compares two values', 7],
    ['{items}', 'unknown word "items"; a field begins with a dot: .items', 1],
    ['{range .items[*]}{.a}', '{range} without {end}', 0],
    ['{.a}{end}', '{end} without {range}', 4],
    ['{end .a}', '{end} without {range}', 0],
    ['{..}{.[}', 'expected an index, a slice or a quoted key', 7],
    ['{%}', 'unexpected character "%"', 1],
  ])('is refused: %s', (template, message, offset) => {
    expect(() => parseJsonPath(template)).toThrow(expect.objectContaining({ message: expect.stringContaining(message), offset }));
  });

  it.each([
    ['{.numbers[6]}', 'index 6 is out of bounds: the list has 6 entries', 9],
    ['{.numbers[-7]}', 'index -7 is out of bounds', 10],
    ['{.empty[0]}', 'index 0 is out of bounds: the list has 0 entries', 8],
    ['{.labels[0]}', 'an object is not a list', 9],
    ['{.rows[0].name[0]}', 'the string a is not a list', 15],
    ['{.labels[?(@.a)]}', 'an object is not a list', 8],
    ['{.rows[?(@..*=="x")]}', 'a filter compares one value with one value', 6],
  ])('cannot be applied: %s', (template, message) => {
    expect(() => apply(template, PLAIN)).toThrow(message);
  });

  it('is parsed and applied quickly, however long', () => {
    expect(() => parseJsonPath('{'.repeat(100_000))).toThrow();
    expect(apply(`{.numbers[0]}${'x{.numbers[1]}'.repeat(20_000)}`, PLAIN)).toHaveLength(40_001);
  });
});
