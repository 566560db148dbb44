import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const SOURCES = pathToFileURL(join(import.meta.dirname, '../../src/')).href;

/**
 * Bundles a program of the repository into one file that node starts fast: translating all sources again
 * takes longer than most of the programs run.
 * @param entry path of the main module
 * @param directory the directory of the output file
 * @returns the file
 */
export async function bundle(entry: string, directory: string): Promise<string> {
  const outfile = join(directory, 'program.cjs');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    // ssh2 looks for its optional native parts and continues without them.
    external: ['cpu-features', '*.node'],
    // Templates are located relative to the sources.
    define: { 'import.meta.url': JSON.stringify(`${SOURCES}program.ts`) },
    logLevel: 'error',
  });
  return outfile;
}
