import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { knownHostsUnreadable } from '../core/problems/host.ts';
import type { HostKeyStore } from '../core/ssh/host-key-store.ts';
import {
  type HostKey,
  indexKnownHosts,
  type KnownHosts,
  type KnownHostsEntry,
  knownHostsNames,
  parseKnownHosts,
  pinKnownHosts,
  renderKnownHostsLine,
} from '../core/ssh/known-hosts.ts';
import type { SshTarget } from '../core/ssh/target.ts';

/**
 * The known_hosts files of ssh. A file is read again only when it changed, so that a thousand hosts cost one reading. A missing file is empty,
 * one that cannot be read is an error: AppError HOST_KEY_UNKNOWN.
 */
export function knownHostsStore(): HostKeyStore {
  const files = new Map<string, Promise<ReadFile>>();
  const indexes = new Map<string, Index>();
  let lastAppend: Promise<unknown> = Promise.resolve();
  const readFiles = async (target: SshTarget): Promise<KnownHosts> => {
    const paths = [...target.userKnownHostsFiles, ...target.globalKnownHostsFiles];
    const parts = await Promise.all(paths.map((path) => readCached(files, path).catch((cause) => refuse(target, path, cause))));
    const key = paths.join('\0');
    const cached = indexes.get(key);
    if (cached?.parts.every((part, i) => part === parts[i])) return cached.known;
    const known = indexKnownHosts(parts.flat());
    indexes.set(key, { parts, known });
    return known;
  };
  return {
    knownHosts: async (target) => {
      const known = await readFiles(target);
      const { pinnedHostKeys = [] } = target;
      return pinnedHostKeys.length === 0 ? known : pinKnownHosts(known, pinnedHostKeys);
    },
    remember: async (target, key) => {
      const path = target.userKnownHostsFiles[0];
      if (path === undefined) return null;
      const append = lastAppend.then(() => appendEntry(path, target, key));
      lastAppend = append.catch(() => undefined);
      await append;
      return path;
    },
  };
}

function refuse(target: SshTarget, file: string, cause: unknown): never {
  const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  throw knownHostsUnreadable({ host: target.name, file, why, cause });
}

interface Index {
  readonly parts: readonly (readonly KnownHostsEntry[])[];
  readonly known: KnownHosts;
}

interface ReadFile {
  readonly version: string;
  readonly entries: readonly KnownHostsEntry[];
}

const NOTHING: readonly KnownHostsEntry[] = [];

async function readCached(files: Map<string, Promise<ReadFile>>, path: string): Promise<readonly KnownHostsEntry[]> {
  const version = await fileVersion(path);
  if (version === null) return NOTHING;
  const before = await files.get(path);
  if (before?.version === version) return before.entries;
  // Whoever came first while we looked is reading it already.
  const current = files.get(path);
  if (current !== undefined && (await current).version === version) return (await current).entries;
  const reading = readFile(path, 'utf8').then((text) => ({ version, entries: parseKnownHosts(text, path) }));
  files.set(path, reading);
  try {
    return (await reading).entries;
  } catch (error) {
    files.delete(path);
    throw error;
  }
}

async function fileVersion(path: string): Promise<string | null> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/** One write with O_APPEND: other processes that add a key at the same time do no harm. */
async function appendEntry(path: string, target: SshTarget, key: HostKey): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    const last = Buffer.alloc(1);
    if (size > 0) await file.read(last, 0, 1, size - 1);
    const line = renderKnownHostsLine(knownHostsNames(target).name, key, target.hashKnownHosts ? randomBytes(20) : null);
    await file.write(size > 0 && last[0] !== 0x0a ? `\n${line}` : line);
  } finally {
    await file.close();
  }
}
