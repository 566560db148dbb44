import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KubeObject } from '../../src/kube/object.ts';
import { resourceOf } from '../../src/kube/resources.ts';
import { KUBE_SYSTEM } from '../../src/kube/well-known.ts';
import { entriesOf, textOf } from './members.ts';
import { unauthorized } from './status.ts';
import type { Store } from './store.ts';

/** The authenticated user of a request. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** The subject of a client certificate that the server's CA signed. */
export interface ClientCertificate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Hex of the SHA-256 of the certificate. */
  readonly sha256: string;
}

/**
 * The credentials of a request. `certificate` is null for none; `invalid` for one that is expired or from
 * another CA.
 */
export interface Credentials {
  readonly certificate: ClientCertificate | 'invalid' | null;
  /** The Authorization header, empty when absent. */
  readonly authorization: string;
}

export interface Authenticator {
  /**
   * Authenticates a request; `system:anonymous` without credentials.
   * @throws StatusError 401 for invalid credentials
   */
  authenticate(credentials: Credentials): UserInfo;
  /** Creates a bearer token for a service account. `expires` is its expiration time. */
  issueServiceAccountToken(account: KubeObject, expires: Date): string;
  /** The user of a bearer token, or null. */
  userOfToken(token: string): UserInfo | null;
}

export interface AuthenticatorOptions {
  readonly store: Store;
  readonly now: () => Date;
  /** Static bearer tokens. */
  readonly tokens?: Readonly<Record<string, { readonly user: string; readonly groups: readonly string[] }>>;
}

const AUTHENTICATED = 'system:authenticated';
const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id';
const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'], extra: {} };

/**
 * Authenticates client certificates, static tokens, service account tokens, bootstrap tokens, and anonymous
 * requests.
 */
export function createAuthenticator({ store, now, tokens = {} }: AuthenticatorOptions): Authenticator {
  const signingKey = randomBytes(32);
  const userOfToken = (token: string): UserInfo | null => {
    const known = Object.entries(tokens).find(([each]) => sameText(each, token))?.[1];
    if (known) return userOf(known.user, known.groups);
    return userOfServiceAccountToken(token, signingKey, store, now()) ?? userOfBootstrapToken(token, store, now());
  };
  return {
    authenticate: ({ certificate, authorization }) => {
      if (certificate !== null && certificate !== 'invalid' && certificate.commonName !== '') return userOfCertificate(certificate);
      const token = /^Bearer +(\S+)\s*$/i.exec(authorization)?.[1];
      const user = token === undefined ? null : userOfToken(token);
      if (user) return user;
      if (token !== undefined || certificate === 'invalid') throw unauthorized();
      return ANONYMOUS;
    },
    issueServiceAccountToken: (account, expires) => {
      const claims = {
        iss: 'https://kubernetes.default.svc',
        sub: serviceAccountUser(account),
        'kubernetes.io': {
          namespace: account.metadata.namespace ?? '',
          serviceaccount: { name: account.metadata.name, uid: account.metadata.uid ?? '' },
        },
        iat: Math.floor(now().getTime() / 1000),
        exp: Math.floor(expires.getTime() / 1000),
      };
      const signed = `${encode({ alg: 'HS256' })}.${encode(claims)}`;
      return `${signed}.${createHmac('sha256', signingKey).update(signed).digest('base64url')}`;
    },
    userOfToken,
  };
}

/** A user with the group of all authenticated users. */
export function userOf(name: string, groups: readonly string[], extra: UserInfo['extra'] = {}, uid?: string): UserInfo {
  const all = groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED];
  return { name, groups: all, extra, uid };
}

function userOfCertificate({ commonName, organizations, sha256 }: ClientCertificate): UserInfo {
  return userOf(commonName, organizations, { [CREDENTIAL_ID]: [`X509SHA256=${sha256}`] });
}

function serviceAccountUser({ metadata }: KubeObject): string {
  return `system:serviceaccount:${metadata.namespace ?? ''}:${metadata.name}`;
}

function userOfServiceAccountToken(token: string, key: Uint8Array, store: Store, now: Date): UserInfo | null {
  const [header, payload, signature, ...more] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) return null;
  if (!sameText(createHmac('sha256', key).update(`${header}.${payload}`).digest('base64url'), signature)) return null;
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as ServiceAccountClaims;
  const { uid } = claims['kubernetes.io'].serviceaccount;
  const [, , namespace = '', name = ''] = claims.sub.split(':');
  const accounts = resourceOf('v1', 'ServiceAccount');
  const account = accounts ? store.get(accounts, namespace, name) : null;
  if (account?.metadata.uid !== uid || claims.exp * 1000 <= now.getTime()) return null;
  return userOf(claims.sub, ['system:serviceaccounts', `system:serviceaccounts:${namespace}`], {}, uid);
}

/** @see kubernetes/kubernetes pkg/serviceaccount/claims.go (1.36) */
interface ServiceAccountClaims {
  readonly sub: string;
  readonly exp: number;
  readonly 'kubernetes.io': { readonly serviceaccount: { readonly uid: string } };
}

/** @see kubernetes/kubernetes plugin/pkg/auth/authenticator/token/bootstrap (1.36) */
function userOfBootstrapToken(token: string, store: Store, now: Date): UserInfo | null {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(token) ?? [];
  const secrets = resourceOf('v1', 'Secret');
  if (id === undefined || secret === undefined || !secrets) return null;
  const stored = bootstrapTokenOf(store.get(secrets, KUBE_SYSTEM, `bootstrap-token-${id}`), now);
  if (
    !stored ||
    stored.id !== id ||
    !sameText(stored.secret, secret) ||
    !stored.usages.includes('authentication') ||
    stored.groups === null
  ) {
    return null;
  }
  return userOf(`system:bootstrap:${id}`, stored.groups);
}

/** The content of a bootstrap token Secret. */
export interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
  readonly usages: readonly ('authentication' | 'signing')[];
  /** Sorted, with `system:bootstrappers`; null when one of them is not allowed. */
  readonly groups: readonly string[] | null;
}

/** The token in a Secret, or null when the Secret contains none, is being deleted, or expired. */
export function bootstrapTokenOf(secret: KubeObject | null, now: Date): BootstrapToken | null {
  if (secret === null || textOf(secret, 'type') !== 'bootstrap.kubernetes.io/token' || secret.metadata.deletionTimestamp) return null;
  const data = new Map(entriesOf(secret, 'data').map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
  const expires = expiryOf(secret);
  if (expires !== null && !(expires.getTime() > now.getTime())) return null;
  const extra = (data.get('auth-extra-groups') ?? '').split(',').filter((group) => group !== '');
  const allowed = extra.every((group) => /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/.test(group));
  return {
    id: data.get('token-id') ?? '',
    secret: data.get('token-secret') ?? '',
    usages: (['authentication', 'signing'] as const).filter((usage) => data.get(`usage-bootstrap-${usage}`) === 'true'),
    groups: allowed ? [...new Set(['system:bootstrappers', ...extra])].sort() : null,
  };
}

/** Expiration of a bootstrap token: null for never; a token with an invalid date counts as expired. */
export function expiryOf(secret: KubeObject): Date | null {
  const text = entriesOf(secret, 'data').find(([key]) => key === 'expiration')?.[1] ?? '';
  return text === '' ? null : new Date(Buffer.from(text, 'base64').toString('utf8'));
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url');
}
