import { describe, expect, it } from 'vitest';
import { scanSource } from '../support/scan-source.ts';

describe('scanSource', () => {
  it.each([
    ["import { a, b } from './x.ts';", [{ specifier: './x.ts', line: 1, typeOnly: false, clause: '{ a, b }' }]],
    ["import type { A } from './x.ts';", [{ specifier: './x.ts', line: 1, typeOnly: true, clause: '{ A }' }]],
    ["import {\n  a,\n  type B,\n} from 'yaml';", [{ specifier: 'yaml', line: 1, typeOnly: false, clause: '{\n  a,\n  type B,\n}' }]],
    ["\nimport 'reflect-metadata';", [{ specifier: 'reflect-metadata', line: 2, typeOnly: false, clause: '' }]],
    ["import x, * as y from 'x';", [{ specifier: 'x', line: 1, typeOnly: false, clause: 'x, * as y' }]],
    [
      "export * from './x.ts';\nexport type { B } from './y.ts';",
      [
        { specifier: './x.ts', line: 1, typeOnly: false, clause: '*' },
        { specifier: './y.ts', line: 2, typeOnly: true, clause: '{ B }' },
      ],
    ],
    ["const { a } = await import('./x.ts');", [{ specifier: './x.ts', line: 1, typeOnly: false, clause: '' }]],
    ["// import a from 'b';\n/* import('c') */\nconst s = \"import x from 'y'\";", []],
    [
      'const t = `import x from "y" ${f(await import("./z.ts"))} import("no")`;',
      [{ specifier: './z.ts', line: 1, typeOnly: false, clause: '' }],
    ],
    ["const r = /from '[/]\\/x/; import a from 'b';", [{ specifier: 'b', line: 1, typeOnly: false, clause: 'a' }]],
    ["const half = a / b; const c = 'x'; // from 'd'\nimport e from 'f';", [{ specifier: 'f', line: 2, typeOnly: false, clause: 'e' }]],
    ['export const from = 1;', []],
  ])('finds the imports of %j', (text, imports) => {
    expect(scanSource(text).imports).toEqual(imports);
  });

  it.each([
    ['/** Does. */\nexport function a(): void {}', [['a', true]]],
    ['export function a(): void {}', [['a', false]]],
    [
      '/** Does. */\nexport async function a() {}\nexport function* b() {}',
      [
        ['a', true],
        ['b', false],
      ],
    ],
    ['/* no docstring */\nexport function a() {}', [['a', false]]],
    ['/** Of another. */\nconst x = 1;\nexport function a() {}', [['a', false]]],
    ['/** Does. */\nexport const a = (x: number): string => f(x);', [['a', true]]],
    ['export const a: Check = async ({ b }) => [];', [['a', false]]],
    ['export const a = (1 + 2) * 3;\nexport const b = [() => 1];', []],
    [
      '/** Does. */\nexport function a(x: string): void;\nexport function a(x: number): void;\nexport function a(x: unknown) {}',
      [
        ['a', true],
        ['a', true],
        ['a', true],
      ],
    ],
    ['function a() {}\n  export const s = `\nexport function no() {}\n`;', []],
  ])('finds the exported functions of %j', (text, functions) => {
    expect(scanSource(text).functions.map(({ name, hasDocstring }) => [name, hasDocstring])).toEqual(functions);
  });
});
