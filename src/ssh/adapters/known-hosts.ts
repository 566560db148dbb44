import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemErrorText } from '../../base/system-error.ts';
import { knownHostsUnreadable, revokedKeysUnusable } from '../../host/host-problems.ts';
import type { HostKeyStore } from '../host-keys.ts';
import {
  type HostKey,
  indexKnownHosts,
  type KnownHosts,
  type KnownHostsEntry,
  knownHostsNames,
  parseKnownHosts,
  parseRevokedKeys,
  pinKnownHosts,
  type RevokedKeys,
  renderKnownHostsLine,
} from '../known-hosts.ts';
import { USE_OPENSSH } from '../policy.ts';
import type { SshTarget } from '../target.ts';

/**
 * The known_hosts files of ssh, and the files of RevokedHostKeys, whose keys are revoked for all hosts. A
 * file is read again only when it changed, so that a thousand hosts cost one read. A missing known_hosts file
 * is empty. An unreadable known_hosts file, and a file of revoked keys that is missing, malformed or binary,
 * is an error: AppError HOST_KEY_UNKNOWN.
 */
export function knownHostsStore(): HostKeyStore {
  const files = new Map<string, Promise<ReadFile<readonly KnownHostsEntry[]>>>();
  const revoked = new Map<string, Promise<ReadFile<RevokedKeys>>>();
  const indexes = new Map<string, { readonly parts: readonly (readonly KnownHostsEntry[])[]; readonly known: KnownHosts }>();
  let lastAppend: Promise<unknown> = Promise.resolve();
  const readFiles = async (target: SshTarget): Promise<KnownHosts> => {
    const paths = [...target.userKnownHostsFiles, ...target.globalKnownHostsFiles];
    const revokedPaths = target.revokedHostKeysFiles ?? [];
    const parts = await Promise.all([
      ...paths.map(
        async (path) => (await readCached(files, path, parseKnownHosts).catch((cause) => refuse(target, path, cause))) ?? NOTHING,
      ),
      ...revokedPaths.map((path) => readRevoked(revoked, target, path)),
    ]);
    const key = [...paths, '', ...revokedPaths].join('\0');
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
    save: async (target, key) => {
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
  throw knownHostsUnreadable({ host: target.name, file, why: systemErrorText(cause), cause });
}

async function readRevoked(
  files: Map<string, Promise<ReadFile<RevokedKeys>>>,
  target: SshTarget,
  file: string,
): Promise<readonly KnownHostsEntry[]> {
  const host = target.name;
  const hint = 'Check the file named by RevokedHostKeys in ssh_config';
  const revoked = await readCached(files, file, parseRevokedKeys).catch((cause: unknown) => {
    throw revokedKeysUnusable({ host, file, why: `cannot read the revoked keys in ${file}: ${systemErrorText(cause)}`, hint, cause });
  });
  switch (revoked?.kind) {
    case undefined:
      throw revokedKeysUnusable({ host, file, why: `cannot read the revoked keys in ${file}: no such file`, hint });
    case 'krl':
      throw revokedKeysUnusable({
        host,
        file,
        why: `RevokedHostKeys names ${file}, a binary key revocation list (KRL), which the built-in client cannot read`,
        hint: `List the revoked keys in a text file, or ${USE_OPENSSH}`,
      });
    case 'malformed':
      throw revokedKeysUnusable({ host, file, line: revoked.line, why: 'this line of RevokedHostKeys is not a public key', hint });
    case 'keys':
      return revoked.entries;
  }
}

interface ReadFile<T> {
  readonly version: string;
  readonly content: T;
}

const NOTHING: readonly KnownHostsEntry[] = [];

/** The parsed content of a file; null when the file does not exist. */
async function readCached<T>(
  files: Map<string, Promise<ReadFile<T>>>,
  path: string,
  parse: (text: string, path: string) => T,
): Promise<T | null> {
  const version = await fileVersion(path);
  if (version === null) return null;
  const before = await files.get(path);
  if (before?.version === version) return before.content;
  // A concurrent call may already have started reading it.
  const current = files.get(path);
  if (current !== undefined && (await current).version === version) return (await current).content;
  const reading = readFile(path, 'utf8').then((text) => ({ version, content: parse(text, path) }));
  files.set(path, reading);
  try {
    return (await reading).content;
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

/** One write with O_APPEND, so that concurrent writers do not corrupt the file. */
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
