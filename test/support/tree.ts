import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * Every file below a directory by path: mode and content. `mask` replaces parts that every run generates
 * (keys, certificates).
 */
export function readTree(
  directory: string,
  mask: (path: string, content: string) => string = (_, content) => content,
): Readonly<Record<string, string>> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map((entry): [string, string] => {
    const path = join(entry.parentPath, entry.name);
    const name = relative(directory, path);
    return [name, `${(statSync(path).mode & 0o777).toString(8)} ${mask(name, readFileSync(path, 'utf8'))}`];
  });
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
}
