import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/**
 * Content of a disk after a power cut: `all`: every change; `names`: all names, but only flushed content (a
 * rename without a flush leaves an empty file); `flushed`: only flushed data, names with their directory and
 * content with its file.
 */
export type DiskModel = 'all' | 'names' | 'flushed';

export const DISK_MODELS: readonly DiskModel[] = ['all', 'names', 'flushed'];

interface Entry {
  readonly inode: string;
  readonly kind: string;
  readonly mode: number;
  readonly changedAt: string;
}

/**
 * The data that is certainly on a host's disk while its shell runs, derived from copies made before each of
 * its calls.
 */
export class FlushedDisk {
  /** The path of the last flushed content, by inode. */
  readonly #contents = new Map<string, { readonly changedAt: string; readonly copy: string }>();
  /** The last flushed names in a directory, by its inode. */
  readonly #names = new Map<string, ReadonlyMap<string, Entry>>();
  readonly #modes = new Map<string, number>();

  /** Marks the complete copy as flushed. */
  flushAll(copy: string): void {
    for (const path of listOf(copy).keys()) this.#flush(copy, path);
  }

  /**
   * Records a finished call of `sync`.
   * @param copy made just before the call, with its `.list`
   * @param root the host's directory, which prefixes each path
   */
  sync(copy: string, root: string, words: readonly string[]): void {
    const paths = words.filter((word) => word !== '--');
    if (paths.length === 0) this.flushAll(copy);
    for (const path of paths) this.#flush(copy, `.${path.slice(root.length).replace(/\/$/, '')}`);
  }

  #flush(copy: string, path: string): void {
    const list = listOf(copy);
    const own = list.get(path);
    if (own === undefined) return;
    if (own.kind !== 'd') {
      this.#contents.set(own.inode, { changedAt: own.changedAt, copy: join(copy, path) });
      return;
    }
    const names = [...list].filter(([other]) => other.startsWith(`${path}/`) && !other.slice(path.length + 1).includes('/'));
    this.#modes.set(own.inode, own.mode);
    this.#names.set(own.inode, new Map(names.map(([other, entry]) => [other.slice(path.length + 1), entry])));
  }

  /** Creates a directory with the remaining data of the host when the power is cut at this copy. */
  afterPowerCut(copy: string, model: DiskModel, target: string): void {
    if (model === 'flushed') {
      this.#build((listOf(copy).get('.') as Entry).inode, target, copy);
      return;
    }
    cpSync(copy, target, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    if (model === 'all') return;
    for (const [path, { inode, kind, changedAt }] of listOf(copy))
      if (kind === 'f' && this.#contents.get(inode)?.changedAt !== changedAt) truncateSync(join(target, path));
  }

  #build(directory: string, target: string, copy: string): void {
    mkdirSync(target);
    for (const [name, { inode, kind, mode }] of this.#names.get(directory) ?? []) {
      const path = join(target, name);
      const flushed = this.#contents.get(inode);
      if (kind === 'd') {
        this.#build(inode, path, copy);
        chmodSync(path, this.#modes.get(inode) ?? mode);
      } else if (kind === 'l') symlinkSync(flushed === undefined ? linkOf(copy, inode) : readlinkSync(flushed.copy), path);
      else if (flushed === undefined) writeFileSync(path, '', { mode });
      else cpSync(flushed.copy, path, { preserveTimestamps: true });
    }
  }
}

/** A link's target is flushed with its name. */
function linkOf(copy: string, inode: string): string {
  const path = [...listOf(copy)].find(([, entry]) => entry.inode === inode)?.[0];
  return path === undefined ? 'gone' : readlinkSync(join(copy, path));
}

const lists = new Map<string, ReadonlyMap<string, Entry>>();

function listOf(copy: string): ReadonlyMap<string, Entry> {
  const known = lists.get(copy);
  if (known !== undefined) return known;
  const lines = readFileSync(`${copy}.list`, 'utf8').split('\n').filter(Boolean);
  const list = new Map(
    lines.map((line): [string, Entry] => {
      const [inode = '', kind = '', mode = '', changedAt = '', ...path] = line.split(' ');
      return [path.join(' '), { inode, kind, mode: Number.parseInt(mode, 8), changedAt }];
    }),
  );
  lists.set(copy, list);
  return list;
}

/** Every entry below a directory by path: kind, mode, and content or target. */
export function everythingIn(directory: string, isOurs: (path: string) => boolean = () => false): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = (path: string): void => {
    for (const name of readdirSync(join(directory, path)).sort()) {
      const own = path === '' ? name : `${path}/${name}`;
      if (isOurs(own)) continue;
      const at = join(directory, own);
      const stat = lstatSync(at);
      const mode = (stat.mode & 0o7777).toString(8);
      if (stat.isSymbolicLink()) found[own] = `-> ${readlinkSync(at)}`;
      else if (stat.isDirectory()) {
        found[own] = `${mode} directory`;
        visit(own);
      } else found[own] = `${mode} ${readFileSync(at, 'utf8')}`;
    }
  };
  visit('');
  return found;
}
