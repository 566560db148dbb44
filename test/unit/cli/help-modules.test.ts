import { build, type Metafile } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { REPOSITORY } from '../../support/source-files.ts';

/** Modules that help may load in addition to light sources of this program; others slow it down measurably. */
const ALLOWED = /^(?:commander|package\.json|node:(?:fs|fs\/promises|os|path|timers\/promises|worker_threads))$/;
/** Sources that take long to load, or that lead to large data and packages. */
const HEAVY =
  /^src\/(?:kubelet\/(?:load-)?catalogue|codec\/(?:source|render-template|yaml-encode)|template-files|.*\/(?:workflows\/|phases\/))/;
/** In bytes of TypeScript, for each command, without the program itself. The largest has 95,000. */
const MOST_BYTES = 145_000;

type Inputs = Metafile['inputs'];

/** The inputs of both programs, without the content of packages. Type imports are removed. */
async function readInputs(): Promise<Inputs> {
  const { metafile } = await build({
    entryPoints: ['src/bin.ts', 'src/agent-bin.ts'],
    absWorkingDir: REPOSITORY,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    outdir: 'dist',
    write: false,
    metafile: true,
    logLevel: 'error',
  });
  return metafile.inputs;
}

/** The modules that a module loads when it is imported, each with the path of imports that leads to it. */
function loadedBy(inputs: Inputs, start: string): ReadonlyMap<string, string> {
  const found = new Map([[start, start]]);
  for (const [path, trail] of found)
    for (const { path: next, kind } of inputs[path]?.imports ?? [])
      if (kind === 'import-statement' && !found.has(next)) found.set(next, `${trail} → ${next}`);
  return found;
}

function dynamicImports(inputs: Inputs, path: string): readonly string[] {
  return (inputs[path]?.imports ?? []).filter(({ kind }) => kind === 'dynamic-import').map((one) => one.path);
}

/** The modules that define options: buildProgram loads one of them for a command and its subcommands. */
function definitions(inputs: Inputs): readonly string[] {
  return [...new Set(['src/cli/commands.ts', 'src/cli/agent-commands.ts'].flatMap((list) => dynamicImports(inputs, list)))];
}

describe('the modules loaded for help', async () => {
  const inputs = await readInputs();

  it('are those of all commands', () => {
    expect(definitions(inputs).length).toBeGreaterThan(15);
    expect(definitions(inputs).filter((path) => !path.endsWith('-command.ts'))).toEqual([]);
  });

  it.each(['src/bin.ts', 'src/agent-bin.ts', ...definitions(inputs)])('are light: %s', (start) => {
    const loaded = loadedBy(inputs, start);
    const heavy = [...loaded].filter(([path]) => HEAVY.test(path) || !(path.startsWith('src/') || ALLOWED.test(path)));
    expect(heavy.map(([, trail]) => trail)).toEqual([]);
    const program = loadedBy(inputs, 'src/bin.ts');
    const own = [...loaded.keys()].filter((path) => start.endsWith('bin.ts') || !program.has(path));
    expect(own.reduce((sum, path) => sum + (inputs[path]?.bytes ?? 0), 0)).toBeLessThan(MOST_BYTES);
  });
});
