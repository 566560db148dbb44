import { createHash, createHmac } from 'node:crypto';
import { decodeStrictBase64 } from '../base/text/base64.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import { matchPatternList } from './pattern.ts';
import { HOST_KEY_ALGORITHMS } from './policy.ts';
import { isPublicKeyForm } from './public-key-form.ts';

/** A public key of a host. `blob` is the wire form in base64, which is how known_hosts writes it. */
export interface HostKey {
  /** The type inside the blob: `ssh-ed25519`, `ecdsa-sha2-nistp256`, `ssh-rsa`. */
  readonly type: string;
  readonly blob: string;
}

export interface KnownHostsEntry extends HostKey {
  readonly file: string;
  /** Counts from 1. */
  readonly line: number;
  readonly marker: 'none' | 'revoked' | 'cert-authority';
  /** The first field as written: names, patterns, or one hashed name. */
  readonly hosts: string;
}

/** The names under which a host's keys stand. `fallback` is asked only when nothing stands under `name`. */
export interface KnownHostsNames {
  readonly name: string;
  readonly fallback: string | null;
}

export type HostKeyVerdict =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'mismatch'; readonly entry: KnownHostsEntry }
  | { readonly kind: 'revoked'; readonly entry: KnownHostsEntry };

/** The entries of one or several known_hosts files, ready to be asked for a name. */
export interface KnownHosts {
  /** The entries whose host field covers this name, in file order. */
  find(name: string): readonly KnownHostsEntry[];
}

/**
 * Reads a known_hosts file. What OpenSSH passes over is passed over: comments, lines with an unknown or second marker, keys that do not decode.
 * @param file named in the entries, for messages
 * @see sshd(8) SSH_KNOWN_HOSTS FILE FORMAT, openssh hostfile.c
 */
export function parseKnownHosts(text: string, file: string): readonly KnownHostsEntry[] {
  return text.split('\n').flatMap((line, index) => {
    const entry = parseLine(line, file, index + 1);
    return entry === null ? [] : [entry];
  });
}

const MARKERS: Readonly<Record<string, KnownHostsEntry['marker']>> = { '@revoked': 'revoked', '@cert-authority': 'cert-authority' };

function parseLine(text: string, file: string, line: number): KnownHostsEntry | null {
  const fields = text.split(/[ \t]+/).filter((field, index) => field !== '' || index > 0);
  if (fields[0] === undefined || fields[0].startsWith('#')) return null;
  const marker = fields[0].startsWith('@') ? MARKERS[fields.shift() ?? ''] : 'none';
  const [hosts, type, key] = fields;
  if (marker === undefined || !hosts || hosts.startsWith('@') || !type || !key) return null;
  const bytes = decodeStrictBase64(key);
  // Ssh passes over what is no whole key of a type it knows: such a line says nothing about the host.
  if (bytes === null || hostKeyType(bytes) !== type || !isPublicKeyForm(bytes)) return null;
  return { file, line, marker, hosts, type, blob: bytes.toString('base64') };
}

/** The type a key's wire form begins with; null when these bytes are no key. */
export function hostKeyType(bytes: Uint8Array): string | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < 8) return null;
  const length = buffer.readUInt32BE(0);
  return length > 0 && length <= buffer.length - 4 ? buffer.toString('latin1', 4, 4 + length) : null;
}

/** A key as it came over the wire. Throws RangeError when the bytes are no key. */
export function hostKeyFromBytes(bytes: Uint8Array): HostKey {
  const type = hostKeyType(bytes);
  if (type === null) throw new RangeError('not a public key in SSH wire form');
  return { type, blob: Buffer.from(bytes).toString('base64') };
}

/**
 * The names to look for: `host` on port 22, `[host]:port` on others, with the bare host behind it as ssh does. An alias replaces all of them.
 * Names are lower-cased; the file decides, not the DNS.
 */
export function knownHostsNames(target: {
  readonly hostName: string;
  readonly port: number;
  readonly hostKeyAlias: string | null;
}): KnownHostsNames {
  if (target.hostKeyAlias !== null) return { name: target.hostKeyAlias.toLowerCase(), fallback: null };
  const host = target.hostName.toLowerCase();
  return target.port === 22 ? { name: host, fallback: null } : { name: `[${host}]:${target.port}`, fallback: host };
}

/** Puts entries in order for look-ups: names in a map, patterns and hashes in a list. */
export function indexKnownHosts(entries: readonly KnownHostsEntry[]): KnownHosts {
  const byName = new Map<string, number[]>();
  const others: { readonly index: number; readonly matches: (name: string) => boolean }[] = [];
  for (const [index, { hosts }] of entries.entries()) {
    if (hosts.startsWith('|') || /[*?!]/.test(hosts)) others.push({ index, matches: hostMatcher(hosts) });
    else for (const name of new Set(hosts.toLowerCase().split(','))) addTo(byName, name, index);
  }
  return {
    find: (name) => {
      const found = others.filter(({ matches }) => matches(name)).map(({ index }) => index);
      const all = [...(byName.get(name.toLowerCase()) ?? []), ...found].sort((a, b) => a - b);
      return all.map((index) => entries[index] as KnownHostsEntry);
    },
  };
}

/** Keys given for one host in place of what the files say of it; what they revoke stays revoked. */
export function pinKnownHosts(known: KnownHosts, keys: readonly KnownHostsEntry[]): KnownHosts {
  return { find: (name) => [...known.find(name).filter(({ marker }) => marker === 'revoked'), ...keys] };
}

function addTo(map: Map<string, number[]>, name: string, index: number): void {
  const list = map.get(name);
  if (list === undefined) map.set(name, [index]);
  else list.push(index);
}

function hostMatcher(hosts: string): (name: string) => boolean {
  if (!hosts.startsWith('|')) {
    const patterns = hosts.toLowerCase().split(',');
    return (name) => matchPatternList(name.toLowerCase(), patterns);
  }
  const [, salt, hash] = /^\|1\|([^|]+)\|([^|]+)$/.exec(hosts) ?? [];
  if (salt === undefined || hash === undefined) return () => false;
  const key = decodeStrictBase64(salt);
  if (key?.length !== 20) return () => false;
  return (name) => createHmac('sha1', key).update(name).digest('base64') === hash;
}

/**
 * Judges a key a host has shown. A host that shows a key of a type we do not know, while we know one of another type, counts as changed, as it
 * does for ssh. `@cert-authority` lines say nothing about plain keys.
 */
export function checkHostKey(known: KnownHosts, names: KnownHostsNames, key: HostKey): HostKeyVerdict {
  const verdict = validateUnderName(known, names.name, key);
  if (verdict.kind !== 'unknown' || names.fallback === null) return verdict;
  const second = validateUnderName(known, names.fallback, key);
  // Another key on another port of the same machine is nothing to wonder about.
  return second.kind === 'mismatch' ? verdict : second;
}

function validateUnderName(known: KnownHosts, name: string, key: HostKey): HostKeyVerdict {
  const entries = known.find(name);
  const revoked = entries.find((entry) => entry.marker === 'revoked' && sameKey(entry, key));
  if (revoked !== undefined) return { kind: 'revoked', entry: revoked };
  const plain = entries.filter((entry) => entry.marker === 'none');
  if (plain.some((entry) => sameKey(entry, key))) return { kind: 'known' };
  const offending = plain.find((entry) => entry.type === key.type) ?? plain[0];
  return offending === undefined ? { kind: 'unknown' } : { kind: 'mismatch', entry: offending };
}

function sameKey(a: HostKey, b: HostKey): boolean {
  return a.type === b.type && a.blob === b.blob;
}

/**
 * The algorithms to offer, those first that lead to a key we know: a host with several keys then shows that one, and is not taken for another. As with ssh,
 * only what stands under the name with its port counts: what another port shows says nothing about this one.
 */
export function orderHostKeyAlgorithms(
  known: KnownHosts,
  names: KnownHostsNames,
  algorithms: readonly string[] = HOST_KEY_ALGORITHMS,
): readonly string[] {
  const entries = known.find(names.name);
  const revoked = entries.filter(({ marker }) => marker === 'revoked');
  const usable = entries.filter((entry) => entry.marker === 'none' && !revoked.some((other) => sameKey(entry, other)));
  const isKnown = (algorithm: string): boolean => usable.some(({ type }) => type === keyTypeOf(algorithm));
  return [...algorithms.filter(isKnown), ...algorithms.filter((algorithm) => !isKnown(algorithm))];
}

function keyTypeOf(algorithm: string): string {
  return algorithm.startsWith('rsa-sha2-') ? 'ssh-rsa' : algorithm;
}

/** `SHA256:…` as ssh and ssh-keygen -l print it. */
export function hostKeyFingerprint(key: { readonly blob: string }): string {
  const digest = createHash('sha256').update(Buffer.from(key.blob, 'base64')).digest('base64');
  return `SHA256:${trimTrailing(digest, '=')}`;
}

/** The short name of a key's type: `ED25519`, `ECDSA`, `RSA`. */
export function hostKeyTypeName(type: string): string {
  return type
    .replace(/^ssh-/, '')
    .replace(/^ecdsa-.*/, 'ecdsa')
    .toUpperCase();
}

/**
 * The line that makes a key known.
 * @param salt 20 random bytes to hide the name behind a hash (HashKnownHosts), or null to write it plainly
 */
export function renderKnownHostsLine(name: string, key: HostKey, salt: Uint8Array | null): string {
  if (salt === null) return `${name} ${key.type} ${key.blob}\n`;
  const hash = createHmac('sha1', salt).update(name).digest('base64');
  return `|1|${Buffer.from(salt).toString('base64')}|${hash} ${key.type} ${key.blob}\n`;
}
