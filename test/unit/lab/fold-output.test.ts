import { describe, expect, it } from 'vitest';
import { foldOutput } from '../../../lab/fold-output.ts';
import { renderText, styled, type Text } from '../../../src/base/text/styled.ts';

function fold(lines: number, { head, tail }: { readonly head: number; readonly tail: number }): readonly string[] {
  const shown: string[] = [];
  const add = (text: Text): void => void shown.push(renderText(text, false));
  const folded = foldOutput({ stdout: add, stderr: add, document: add, prose: add }, { head, tail });
  for (let i = 1; i <= lines; i++) folded.output[i % 2 === 0 ? 'stdout' : 'stderr'](`line ${i}\n\n`);
  expect(shown).toHaveLength(Math.min(lines, head));
  folded.end();
  return shown.map((line) => line.trimEnd());
}

describe('the folded output of a command', () => {
  it('shows the first lines at once and the last ones at the end, without empty lines', () => {
    expect(fold(9, { head: 2, tail: 2 })).toEqual(['line 1', 'line 2', '  … 5 more lines', 'line 8', 'line 9']);
  });

  it('hides no single line', () => {
    expect(fold(5, { head: 2, tail: 2 })).toHaveLength(5);
    expect(fold(3, { head: 1, tail: 0 })).toEqual(['line 1', '  … 2 more lines']);
  });

  it('keeps styles, continues a long line, and gives the complete output', () => {
    const shown: Text[] = [];
    const add = (text: Text): void => void shown.push(text);
    const { output, printed } = foldOutput({ stdout: add, stderr: add, document: add, prose: add }, { head: 9, tail: 0 });
    output.stdout(['a ', styled('red', 'b'), '\nc\n']);
    output.stdout(`${'word '.repeat(40)}\n`);
    output.prose?.([styled('red', 'red'), ` ${'word '.repeat(40)}end\n`]);
    expect(shown[0]).toContainEqual({ style: 'red', text: 'b' });
    expect(shown.slice(0, 2).map((text) => renderText(text, false))).toEqual(['a b\n', 'c\n']);
    expect(renderText(shown[2] ?? '', false)).toMatch(/^(?:word ){22,23}word\n {6}(?:word )+\n$/);
    expect(shown[3]).toContainEqual({ style: 'red', text: 'red' });
    expect(renderText(shown[3] ?? '', false)).toMatch(/^red (?:word ){21,22}word\n {2}(?:word )+end\n$/);
    output.stderr('e\n');
    expect(printed()).toEqual({ stdout: `a b\nc\n${'word '.repeat(40)}\nred ${'word '.repeat(40)}end\n`, stderr: 'e\n' });
  });

  it('continues a long line of a table, with all its spaces', () => {
    const shown: Text[] = [];
    const add = (text: Text): void => void shown.push(text);
    const { output } = foldOutput({ stdout: add, stderr: add, document: add, prose: add }, { head: 9, tail: 0 });
    const row = `a    b  ${'word '.repeat(40)}end`;
    output.stdout(`${row}\n${'x'.repeat(300)}\n`);
    const [first, second] = shown.map((text) => renderText(text, false).trimEnd().split('\n'));
    expect(first?.[0]).toMatch(/^a {4}b {2}word /);
    expect(first?.map((line) => line.replace(/^ {6}/, '')).join(' ')).toBe(row);
    expect(second?.map((line) => line.trim()).join('')).toBe('x'.repeat(300));
    for (const line of [first, second].flat()) expect(line?.length).toBeLessThanOrEqual(118);
  });
});
