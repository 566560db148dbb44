import { isJsonObject, type Json, parseJsonObject } from '../../json.ts';

/** What a token of a ServiceAccount says of itself. Only its signature, which the API server judges, makes it true. */
export interface TokenClaims {
  /** `system:serviceaccount:NAMESPACE:NAME`. */
  readonly subject: string;
  /** Of the account it is bound to: one that was made anew under the same name is another. */
  readonly accountUid: string | null;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** How long a token is asked for: an agent that was away for two thirds of that can still get itself the next one. */
export const TOKEN_SECONDS = 90 * 86_400;

/** Reads a token (RFC 7519); null for what is none, or one without a beginning and an end. */
export function readTokenClaims(token: string): TokenClaims | null {
  const [, payload = '', signature] = token.trim().split('.');
  if (signature === undefined) return null;
  const claims = parseJsonObject(Buffer.from(payload, 'base64url').toString('utf8'));
  if (claims === null || typeof claims.sub !== 'string') return null;
  const { sub, iat, exp } = claims;
  if (typeof iat !== 'number' || typeof exp !== 'number') return null;
  return { subject: sub, accountUid: accountUid(claims), issuedAt: iat * 1000, expiresAt: exp * 1000 };
}

/** The namespace and the name in a subject; null for one that is no ServiceAccount. */
export function accountOf(subject: string): { readonly namespace: string; readonly name: string } | null {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject) ?? [];
  return namespace === undefined || name === undefined ? null : { namespace, name };
}

/** When an agent gets itself the next one: after a third of its life. */
export function renewAt({ issuedAt, expiresAt }: TokenClaims): number {
  return issuedAt + (expiresAt - issuedAt) / 3;
}

/** Whether it is time for another: more than three quarters of its life are over, which an agent that runs does not let come. */
export function isStale({ issuedAt, expiresAt }: TokenClaims, now: number): boolean {
  return now > expiresAt - (expiresAt - issuedAt) / 4;
}

/** @see kubernetes/kubernetes pkg/serviceaccount/claims.go (1.36) */
function accountUid(claims: { readonly [name: string]: Json | undefined }): string | null {
  const { 'kubernetes.io': own } = claims;
  const account = isJsonObject(own) ? own.serviceaccount : undefined;
  return isJsonObject(account) && typeof account.uid === 'string' ? account.uid : null;
}
