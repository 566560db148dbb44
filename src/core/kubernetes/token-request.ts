import { isJsonObject, type JsonObject } from '../json.ts';
import { Secret } from '../text/secret.ts';

/** The token in the answer to a TokenRequest, and the end of its life; null when there is none in it. */
export function issuedToken({ status }: JsonObject): { readonly token: Secret; readonly expiresAt: Date } | null {
  if (!isJsonObject(status) || typeof status.token !== 'string' || typeof status.expirationTimestamp !== 'string') return null;
  const expiresAt = new Date(status.expirationTimestamp);
  return status.token === '' || Number.isNaN(expiresAt.getTime()) ? null : { token: new Secret(status.token), expiresAt };
}
