import { createHash, createHmac } from 'node:crypto';
import { decodeStrictBase64 } from '../base/text/base64.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import { isPublicKeyForm } from './key-format.ts';
import { matchPatternList } from './pattern.ts';
import { HOST_KEY_ALGORITHMS } from './policy.ts';

/** A public key of a host. `blob` is the wire format in base64, as in known_hosts. */
export interface HostKey {
  /** The type inside the blob: `ssh-ed25519`, `ecdsa-sha2-nistp256`, `ssh-rsa`. */
  readonly type: string;
  readonly blob: string;
}

export interface KnownHostsEntry extends HostKey {
  readonly file: string;
  readonly line: number;
  readonly marker: 'none' | 'revoked' | 'cert-authority';
  /** The first field, unchanged: names, patterns, or one hashed name. */
  readonly hosts: string;
}

/** The names of a host in known_hosts. `fallback` is used only when `name` has no entry. */
interface KnownHostsNames {
  readonly name: string;
  readonly fallback: string | null;
}

export type HostKeyVerdict =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'mismatch'; readonly entry: KnownHostsEntry }
  | { readonly kind: 'revoked'; readonly entry: KnownHostsEntry };

/** The entries of known_hosts files, indexed for lookups. */
export interface KnownHosts {
  /** The entries whose host field matches this name, in file order. */
  find(name: string): readonly KnownHostsEntry[];
}

/**
 * Parses a known_hosts file. Ignores the same lines as OpenSSH: comments, lines with an unknown or second
 * marker, keys that do not decode.
 * @param file its name in the entries, for messages
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
  // Ssh ignores keys that are incomplete or of an unknown type.
  if (bytes === null || hostKeyType(bytes) !== type || !isPublicKeyForm(bytes)) return null;
  return { file, line, marker, hosts, type, blob: bytes.toString('base64') };
}

/** The key type at the start of the wire format; null for other bytes. */
export function hostKeyType(bytes: Uint8Array): string | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < 8) return null;
  const length = buffer.readUInt32BE(0);
  return length > 0 && length <= buffer.length - 4 ? buffer.toString('latin1', 4, 4 + length) : null;
}

/** A key in wire format. Throws RangeError for other bytes. */
export function hostKeyFromBytes(bytes: Uint8Array): HostKey {
  const type = hostKeyType(bytes);
  if (type === null) throw new RangeError('not a public key in SSH wire form');
  return { type, blob: Buffer.from(bytes).toString('base64') };
}

/**
 * The names to look up: `host` on port 22, `[host]:port` on others, with the bare host as fallback as in ssh.
 * An alias replaces them. Names are lower-cased; DNS is not used.
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

/** Indexes entries for lookups: names in a map, patterns and hashes in a list. */
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

/** Replaces the known keys of one host by the given keys; keys revoked in the files stay revoked. */
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
 * Checks the key that a host presents. A key of an unknown type, when a key of another type is known, counts
 * as a changed key, as in ssh. `@cert-authority` lines are ignored for plain keys.
 */
export function checkHostKey(known: KnownHosts, names: KnownHostsNames, key: HostKey): HostKeyVerdict {
  const verdict = validateUnderName(known, names.name, key);
  if (verdict.kind !== 'unknown' || names.fallback === null) return verdict;
  const second = validateUnderName(known, names.fallback, key);
  // Another port of the same host may have another key.
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
 * The algorithms to offer, first those with a known key: a host with several keys then presents the known
 * one. As in ssh, only entries for the name with its port are used, because another port may have other keys.
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

/** `ED25519 key SHA256:…`. */
export function describeHostKey(key: HostKey): string {
  return `${hostKeyTypeName(key.type)} key ${hostKeyFingerprint(key)}`;
}

/** The short name of a key type: `ED25519`, `ECDSA`, `RSA`. */
export function hostKeyTypeName(type: string): string {
  return type
    .replace(/^ssh-/, '')
    .replace(/^ecdsa-.*/, 'ecdsa')
    .toUpperCase();
}

/**
 * The known_hosts line of a key.
 * @param salt 20 random bytes to hash the name (HashKnownHosts), or null for a plain name
 */
export function renderKnownHostsLine(name: string, key: HostKey, salt: Uint8Array | null): string {
  if (salt === null) return `${name} ${key.type} ${key.blob}\n`;
  const hash = createHmac('sha1', salt).update(name).digest('base64');
  return `|1|${Buffer.from(salt).toString('base64')}|${hash} ${key.type} ${key.blob}\n`;
}

/**
 * The content of a RevokedHostKeys file: keys, each revoked for every host, or the reason why the file is
 * unusable.
 */
export type RevokedKeys =
  | { readonly kind: 'keys'; readonly entries: readonly KnownHostsEntry[] }
  | { readonly kind: 'krl' }
  | { readonly kind: 'malformed'; readonly line: number };

const KRL_MAGIC = 'SSHKRL\n\0';

/**
 * Parses a RevokedHostKeys file: public keys, one per line, with comments. A binary key revocation list (KRL)
 * and an invalid line are reported: as in ssh, no host key may be accepted then.
 * @param file its name in the entries, for messages
 * @see ssh_config(5) RevokedHostKeys, openssh authfile.c sshkey_check_revoked
 */
export function parseRevokedKeys(text: string, file: string): RevokedKeys {
  if (text.startsWith(KRL_MAGIC)) return { kind: 'krl' };
  const entries: KnownHostsEntry[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.replace(/^[ \t]+/, '');
    if (line === '' || line.startsWith('#')) continue;
    const [type = '', key = ''] = line.split(/[ \t]+/);
    const bytes = decodeStrictBase64(key);
    if (bytes === null || hostKeyType(bytes) !== type || !isPublicKeyForm(bytes)) return { kind: 'malformed', line: index + 1 };
    entries.push({ file, line: index + 1, marker: 'revoked', hosts: '*', type, blob: bytes.toString('base64') });
  }
  return { kind: 'keys', entries };
}
