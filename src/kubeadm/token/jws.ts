import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../base/text/secret.ts';

/**
 * Signs a text with a bootstrap token: the detached compact JWS (HS256) stored as `jws-kubeconfig-<id>` in
 * kube-public/cluster-info.
 * @param tokenId the six characters before the dot
 * @param tokenSecret the sixteen characters after the dot; their ASCII bytes are the key
 * @param payload the exact text, e.g. the `kubeconfig` value; not part of the result
 * @returns `<header>..<signature>`, both base64url without padding
 * @see RFC 7515 appendix F; k8s.io/cluster-bootstrap token/jws (1.36)
 */
export function signDetached(tokenId: string, tokenSecret: Secret, payload: string): string {
  const header = base64url(JSON.stringify({ alg: 'HS256', kid: tokenId }));
  const signature = createHmac('sha256', tokenSecret.reveal())
    .update(`${header}.${base64url(payload)}`)
    .digest('base64url');
  return `${header}..${signature}`;
}

/**
 * Whether a signature belongs to this token and text. The signature is recomputed and compared as a whole in
 * constant time, so that no part of it, such as its algorithm, is trusted.
 */
export function isSignedBy(signature: string, tokenId: string, tokenSecret: Secret, payload: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(signature), digest(signDetached(tokenId, tokenSecret, payload)));
}

function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
