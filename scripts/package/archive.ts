import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

/** A file or symbolic link of an artefact; paths are absolute and without `..`. */
export type PackagedFile =
  | { readonly path: string; readonly mode: number; readonly content: Buffer; readonly isDocumentation?: boolean }
  | { readonly path: string; readonly target: string };

/** Level 9 takes twice as long and saves 0.2 %. */
const GZIP_LEVEL = 6;

/** Compressed without time and name, so that equal content gives equal bytes. */
export function gzip(content: Buffer): Buffer {
  return gzipSync(content, { level: GZIP_LEVEL });
}

/**
 * A tar archive with the files in the order of their paths, below `./`, and all their parent directories. Owner is
 * root.
 * @param mtime seconds since 1970, of all entries
 * @param directories modes of directories other than 0755, by path, and directories without files
 */
export async function tarOf(
  files: readonly PackagedFile[],
  mtime: number,
  directories: Readonly<Record<string, { readonly mode: number; readonly uid?: number }>> = {},
): Promise<Buffer> {
  const archive = pack();
  const entries = [
    ...files,
    ...[...new Set([...files.flatMap(({ path }) => parentsOf(path)), ...Object.keys(directories)])].map((path) => ({
      path,
      isDirectory: true,
    })),
  ].sort((a, b) => compare(a.path, b.path));
  for (const entry of entries) {
    const header = { mtime: new Date(mtime * 1000), uid: 0, gid: 0, uname: 'root', gname: 'root' };
    if ('isDirectory' in entry) {
      const { mode = 0o755, uid = 0 } = directories[entry.path] ?? {};
      const owner = uid === 0 ? {} : { uid, gid: uid, uname: '', gname: '' };
      archive.entry({ ...header, ...owner, name: `.${entry.path}/`, type: 'directory', mode });
    } else if ('target' in entry)
      archive.entry({ ...header, name: `.${entry.path}`, type: 'symlink', linkname: entry.target, mode: 0o777 });
    else archive.entry({ ...header, name: `.${entry.path}`, mode: entry.mode }, entry.content);
  }
  archive.finalize();
  return buffer(archive);
}

/** `/usr/bin/x` gives `/usr/bin` and `/usr`. */
export function parentsOf(path: string): readonly string[] {
  const parts = path.split('/').slice(1, -1);
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`);
}

/** Byte order, the same in every locale. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
