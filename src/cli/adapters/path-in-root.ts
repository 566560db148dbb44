import { lstat, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError } from '../../base/errors.ts';

/** As Linux. */
const MAX_LINKS = 40;

/**
 * The path on the local host of a path in another root directory: symbolic links, also absolute ones, and `..` never lead
 * out of the root, as after chroot(2).
 * @param path relative paths begin at the root
 * @param followLast whether a link as the last part is followed. Default: true
 * @returns a path without links, except a last part that is not followed; parts that do not exist are kept
 * @throws AppError INPUT_UNREADABLE (exit code 2) after 40 links
 */
export async function pathInRoot(root: string, path: string, { followLast = true } = {}): Promise<string> {
  const left = partsOf(path);
  let found = '/';
  for (let links = 0; left.length > 0; ) {
    const part = left.shift() as string;
    if (part === '..') {
      found = dirname(found);
      continue;
    }
    const next = join(found, part);
    const target = left.length === 0 && !followLast ? null : await targetOf(join(root, next));
    if (target === null) {
      found = next;
      continue;
    }
    if (++links > MAX_LINKS) throw tooManyLinks(root, path);
    if (target.startsWith('/')) found = '/';
    left.unshift(...partsOf(target));
  }
  return join(root, found);
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

/** The target of a symbolic link; null: the path is no link, or does not exist. */
async function targetOf(path: string): Promise<string | null> {
  const info = await lstat(path).catch(() => null);
  return info?.isSymbolicLink() === true ? readlink(path) : null;
}

function tooManyLinks(root: string, path: string): AppError {
  const message = `cannot read ${path} in ${root}: too many symbolic links`;
  return new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Check the path' }, { exitCode: 2 });
}
