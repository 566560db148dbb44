import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { revealText, Secret, SensitiveText } from '../../../../src/base/text/secret.ts';

const secret = new Secret('abcdef.0123456789abcdef');
const text = new SensitiveText(['token: ', secret, '\n']);

describe.each([
  ['Secret', secret, '[secret]'],
  ['SensitiveText', text, 'token: [secret]\n'],
])('%s', (_, value, shown) => {
  it.each([
    ['String()', String(value), shown],
    ['a template', `${value}`, shown],
    ['joining', [value].join(''), shown],
    ['JSON', JSON.stringify({ value }), JSON.stringify({ value: shown })],
  ])('shows nothing in %s', (_how, printed, expected) => {
    expect(printed).toBe(expected);
  });

  it.each([
    ['console.log of an object', inspect({ deep: { value } }, { depth: 9, showHidden: true })],
    ['an error message', inspect(new Error(`cannot use ${value}`))],
    ['its own keys', JSON.stringify(Object.getOwnPropertyDescriptors(value))],
  ])('shows nothing in %s', (_how, printed) => {
    expect(printed).not.toContain('0123456789abcdef');
  });

  it('is revealed only by reveal()', () => {
    expect(value.reveal()).toContain('abcdef.0123456789abcdef');
  });
});

describe('Secret', () => {
  it('compares by value', () => {
    expect(secret.equals(new Secret('abcdef.0123456789abcdef'))).toBe(true);
    expect(secret.equals(new Secret('abcdef.0123456789abcdeg'))).toBe(false);
  });
});

describe('revealText', () => {
  it.each([
    ['plain', 'plain'],
    [text, 'token: abcdef.0123456789abcdef\n'],
    [new SensitiveText([]), ''],
  ])('%s', (given, expected) => {
    expect(revealText(given)).toBe(expected);
  });
});
