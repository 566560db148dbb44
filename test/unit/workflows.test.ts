import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const WORKFLOWS = join(ROOT, '.github/workflows');

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly uses?: string; readonly run?: string }[] }>>;
}

const workflows = readdirSync(WORKFLOWS).map((name) => [name, parse(readFileSync(join(WORKFLOWS, name), 'utf8')) as Workflow] as const);

describe.each(workflows)('.github/workflows/%s', (_, { permissions, jobs }) => {
  it('runs only existing scripts', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const lines = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run = '' }) => run));
    const used = lines.flatMap((line) => [...line.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script as string));
    expect(used.filter((script) => scripts[script] === undefined)).toEqual([]);
  });

  it('gives jobs that run code of the repository no right to write to it', () => {
    expect(permissions).toEqual({ contents: 'read' });
    const writers = Object.values(jobs).filter((job) => JSON.stringify(job).includes('"contents":"write"'));
    expect(writers.filter(({ steps }) => steps.some(({ uses = '' }) => uses.startsWith('actions/checkout')))).toEqual([]);
  });
});

describe('CHANGELOG.md', () => {
  it('describes the version of package.json under its own heading', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
    const headings = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').match(/^## \S+/gm);
    expect(headings?.slice(0, 2)).toEqual(['## Unreleased', `## ${version}`]);
  });
});
