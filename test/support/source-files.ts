import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ScannedSource, scanSource } from './scan-source.ts';

/** The directory of the repository. */
export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export interface SourceFile extends ScannedSource {
  /** Relative to the repository, with `/`: `src/base/errors.ts`. */
  readonly path: string;
}

/** All TypeScript files below a folder of the repository. */
export function sourceFiles(folder: string): readonly SourceFile[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => ({ path, ...scanSource(readFileSync(join(REPOSITORY, path), 'utf8')) }));
}

/** The path of a relative import, or null for a package. */
export function resolveImport(from: string, specifier: string): string | null {
  return specifier.startsWith('.') ? join(dirname(from), specifier) : null;
}

/** Every text file of the repository, by path; installed and built files are excluded. */
export function repositoryTexts(): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const visit = (folder: string): void => {
    for (const name of readdirSync(join(REPOSITORY, folder))) {
      const path = join(folder, name);
      if (/^(?:node_modules|dist|coverage|\.git|\.lab|package-lock\.json)$/.test(path)) continue;
      const stat = statSync(join(REPOSITORY, path), { throwIfNoEntry: false });
      if (stat?.isDirectory()) visit(path);
      else if (stat?.isFile()) texts.set(path, readFileSync(join(REPOSITORY, path), 'utf8'));
    }
  };
  visit('.');
  return texts;
}
