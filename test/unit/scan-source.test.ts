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
});
