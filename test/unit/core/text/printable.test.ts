import { expect, it } from 'vitest';
import { printable } from '../../../../src/core/text/printable.ts';

it.each([
  ['plain text', 'plain text'],
  ['\u001b[31mred\u001b[0m\r\n', '[31mred [0m'],
  ['a\n\n  b\t', 'a b'],
  ['\u202egnp.exe', 'gnp.exe'],
  ['Größe', 'Größe'],
])('prints %j as %j', (text, expected) => expect(printable(text)).toBe(expected));

it('has an end', () => expect(printable('x'.repeat(300), 5)).toBe('xxxxx…'));
