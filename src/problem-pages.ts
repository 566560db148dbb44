import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProblemPage } from './base/problem-entries.ts';

const DOCS = fileURLToPath(new URL('../docs', import.meta.url));

/** The pages of the documentation that explain codes. `npm run build` replaces this module with their texts. */
export async function loadProblemPages(): Promise<readonly ProblemPage[]> {
  const names = (await readdir(DOCS)).filter((name) => /^(?:troubleshooting|problems-.*)\.md$/.test(name)).sort();
  return Promise.all(names.map(async (name) => ({ name, text: await readFile(join(DOCS, name), 'utf8') })));
}
