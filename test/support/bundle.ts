import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const SOURCES = pathToFileURL(join(import.meta.dirname, '../../src/')).href;

/**
 * Makes a program of the repository one file that node starts at once: to translate all sources anew takes longer than most of what is started so.
 * @param entry path of its main module
 * @param directory where the file goes
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
    // ssh2 looks for its optional native parts and goes on without them.
    external: ['cpu-features', '*.node'],
    // Templates are found from where the sources are.
    define: { 'import.meta.url': JSON.stringify(`${SOURCES}program.ts`) },
    logLevel: 'error',
  });
  return outfile;
}
