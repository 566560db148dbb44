import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderDocument } from '../../../src/cli/output/show-document.ts';
import { HOSTILE, UNSAFE } from '../../support/hostile-text.ts';

it.each([
  ['json', JSON.parse],
  ['yaml', (text: string) => parse(text, { version: '1.1' })],
] as const)('%s holds nothing that a terminal obeys, and any reader gives it back', (format, read) => {
  const value = { [`k${HOSTILE}`]: [`v${HOSTILE}`, `two\nlines ${HOSTILE}\n`, 'plain', 'on', 'two\nlines\n'] };
  expect(renderDocument(value, format)).not.toMatch(UNSAFE);
  expect(read(renderDocument(value, format))).toEqual(value);
});

it('writes plain YAML if no character needs escaping', () => {
  expect(renderDocument({ a: 'on', b: 'two\nlines\n', c: { d: 'é: 日本' } }, 'yaml')).toBe(
    'a: "on"\nb: |\n  two\n  lines\nc:\n  d: "é: 日本"\n',
  );
});
