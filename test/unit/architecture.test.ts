import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '..', '..');
const PAGE = readFileSync(path.join(ROOT, 'docs', 'architecture.md'), 'utf8');
const TITLE = '## How a value reaches the host';

interface Row {
  readonly name: string;
  readonly file: string;
}

/** The tables of the section, by their titles. */
const TABLES = (PAGE.split(TITLE)[1] ?? '')
  .split(/^## /m)[0]
  ?.split(/^### /m)
  .slice(1)
  .map((text) => ({ title: text.split('\n')[0] ?? '', rows: [...text.matchAll(/^\| `(\w+)` \| `([\w./-]+)` \|/gm)].map(rowOf) }));

function rowOf([, name = '', file = '']: RegExpMatchArray): Row {
  return { name, file };
}

function sourceOf({ file }: Row): string {
  const at = path.join(ROOT, 'src', file);
  return existsSync(at) ? readFileSync(at, 'utf8') : '';
}

describe('the path of a value in docs/architecture.md', () => {
  it('is shown for init and for the agent', () => {
    expect(TABLES?.map(({ rows }) => rows.length > 10)).toEqual([true, true]);
  });

  it('is short', () => {
    expect(TABLES?.map(({ rows }) => rows.length <= 25)).toEqual([true, true]);
  });

  it.each((TABLES ?? []).flatMap(({ title, rows }) => rows.map((row) => ({ title, ...row }))))(
    '$title: $name is exported by $file',
    (row) => {
      expect(sourceOf(row)).toMatch(new RegExp(`^export (?:async )?(?:function|const) ${row.name}\\b`, 'm'));
    },
  );

  it('parses the text once', () => {
    const parsing = (rows: readonly Row[]): readonly string[] =>
      rows.filter((row) => row.name !== 'parseSource' && /\bparseSource\(/.test(sourceOf(row))).map(({ name }) => name);
    const [init, agent] = TABLES ?? [];
    expect(parsing(init?.rows ?? [])).toEqual(['loadConfig']);
    expect(parsing(agent?.rows ?? [])).toEqual(['parseHostFile']);
  });

  it('names every function that calls the next one by name', () => {
    const [init] = TABLES ?? [];
    const names = (init?.rows ?? []).map(({ name }) => name);
    const called = ['designFirstNode', 'readKubeletConfiguration', 'mergeClusterKubeletConfig', 'designObservedNode', 'layerNodeConfig'];
    for (const name of called) {
      const at = names.indexOf(name);
      expect(at).toBeGreaterThan(0);
      expect((init?.rows ?? []).slice(0, at).some((row) => sourceOf(row).includes(`${name}(`))).toBe(true);
    }
  });
});
