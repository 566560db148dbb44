import { type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { normaliseRfc3339 } from '../../base/text/rfc3339.ts';
import { Secret } from '../../base/text/secret.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import { partsOfToken } from '../../kube/bootstrap-token.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import type { DefaultedBootstrapToken } from '../config/defaults.ts';
import type { BootstrapToken } from '../config/model.ts';

const TYPE = 'bootstrap.kubernetes.io/token';
const USAGE = 'usage-bootstrap-';

export const TOKEN_SECRETS = { apiVersion: 'v1', kind: 'Secret', namespace: KUBE_SYSTEM } as const;
export const TOKEN_SELECTOR = `type=${TYPE}`;

export interface StoredToken {
  readonly id: string;
  readonly token: Secret;
  /** Empty: none. */
  readonly description: string;
  /** RFC 3339 as written; null: never expires. */
  readonly expires: string | null;
  readonly usages: readonly string[];
  readonly groups: readonly string[];
}

export function tokenSecretRef(id: string): ObjectRef {
  return { ...TOKEN_SECRETS, name: `bootstrap-token-${id}` };
}

/**
 * The Secret that makes a bootstrap token known to the API server.
 * @param now start of its `ttl`; with a `ttl` of 0 the token never expires
 * @see kubeadm 1.36 apis/bootstraptoken/v1: keys and values of the Secret
 */
export function tokenSecret(written: DefaultedBootstrapToken, now: Date): KubeObject {
  const parts = partsOfToken(written.token);
  if (parts === null) throw new Error('not a valid bootstrap token');
  const expiration = expirationOf(written, now);
  const data: Readonly<Record<string, string>> = {
    'token-id': parts.id,
    'token-secret': parts.secret.reveal(),
    ...(written.description ? { description: written.description } : {}),
    ...(expiration === null ? {} : { expiration }),
    ...Object.fromEntries(written.usages.map((usage) => [`${USAGE}${usage}`, 'true'])),
    ...(written.groups.length === 0 ? {} : { 'auth-extra-groups': written.groups.join(',') }),
  };
  const { name, namespace, ...type } = tokenSecretRef(parts.id);
  return { ...type, metadata: { name, namespace: namespace ?? '' }, type: TYPE, data: encodeData(data) };
}

function expirationOf({ ttl, expires }: BootstrapToken, now: Date): string | null {
  if (expires !== undefined) return normaliseRfc3339(expires);
  const nanoseconds = ttl === undefined ? 0n : (parseGoDuration(ttl) ?? 0n);
  if (nanoseconds <= 0n) return null;
  return `${new Date(now.getTime() + Number(nanoseconds / 1_000_000n)).toISOString().slice(0, 19)}Z`;
}

/**
 * Reads the bootstrap token in a Secret.
 * @returns the reason, as a clause, when the Secret contains no valid token. The reason quotes only the
 *   name of the Secret
 * @see kubeadm 1.36 BootstrapTokenFromSecret: `token list` skips invalid Secrets
 */
export function readTokenSecret(secret: KubeObject): StoredToken | string {
  const { name } = secret.metadata;
  const data = decodeData(secret);
  const id = data.get('token-id') ?? '';
  if (id === '') return `Secret ${name} has no token-id`;
  if (name !== `bootstrap-token-${id}`) return `Secret ${name} contains the token of another id`;
  const token = new Secret(`${id}.${data.get('token-secret') ?? ''}`);
  if (partsOfToken(token) === null) return `Secret ${name} contains no valid bootstrap token`;
  const expires = data.get('expiration') || null;
  if (expires !== null && normaliseRfc3339(expires) === null) return `Secret ${name} has an invalid expiration`;
  const usages = [...data].filter(([key, value]) => key.startsWith(USAGE) && value === 'true').map(([key]) => key.slice(USAGE.length));
  const groups = data.get('auth-extra-groups') ?? '';
  return {
    id,
    token,
    description: data.get('description') ?? '',
    expires,
    usages: usages.toSorted(),
    groups: groups === '' || groups.startsWith(',') ? [] : groups.split(','),
  };
}

/** Milliseconds until a token expires: negative when expired, null when it never expires. */
export function remainingMs({ expires }: Pick<StoredToken, 'expires'>, now: Date): number | null {
  return expires === null ? null : Date.parse(normaliseRfc3339(expires) ?? '') - now.getTime();
}

function encodeData(data: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]));
}

function decodeData({ data }: KubeObject): ReadonlyMap<string, string> {
  const entries = Object.entries((data ?? {}) as Readonly<Record<string, string>>);
  return new Map(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
}

/**
 * The change from the existing Secret of a token to the desired one. The TTL counts from the creation of the
 * token: a run does not extend a valid token.
 * @param desired as returned by `tokenSecret`
 * @param options `hasAbsoluteExpiry`: the expiration was declared as a time; `now`: current time for expiration
 */
export function diffToken(
  found: KubeObject | null,
  desired: KubeObject,
  options: { readonly hasAbsoluteExpiry: boolean; readonly now: Date },
): ClusterChange | null {
  if (found === null) return { kind: 'create-object', object: desired, reason: 'does not exist' };
  const reason = differenceOf(readTokenSecret(found), readTokenSecret(desired) as StoredToken, options);
  return reason === null ? null : { kind: 'update-object', object: { ...found, data: desired.data ?? {} }, before: found, reason };
}

function differenceOf(
  found: StoredToken | string,
  desired: StoredToken,
  { hasAbsoluteExpiry, now }: { readonly hasAbsoluteExpiry: boolean; readonly now: Date },
): string | null {
  if (typeof found === 'string') return 'the existing Secret is not a bootstrap token';
  const left = remainingMs(found, now);
  if (left !== null && left <= 0) return 'it has expired';
  const sameEnd = hasAbsoluteExpiry ? found.expires === desired.expires : (found.expires === null) === (desired.expires === null);
  const different = [
    ...(found.token.equals(desired.token) ? [] : ['secret']),
    ...(jsonEqual(found.usages, desired.usages) ? [] : ['usages']),
    ...(jsonEqual(found.groups, desired.groups) ? [] : ['groups']),
    ...(found.description === desired.description ? [] : ['description']),
    ...(sameEnd ? [] : ['expiration']),
  ];
  return different.length === 0 ? null : `differs in ${different.join(', ')}`;
}

const TOKEN_ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * Generates a bootstrap token.
 * @param randomInt returns uniformly distributed, unpredictable integers from 0 to below `limit` (no modulo bias)
 */
export function generateToken(randomInt: (limit: number) => number): Secret {
  const characters = (count: number): string =>
    Array.from({ length: count }, () => TOKEN_ALPHABET.charAt(randomInt(TOKEN_ALPHABET.length))).join('');
  return new Secret(`${characters(6)}.${characters(16)}`);
}
