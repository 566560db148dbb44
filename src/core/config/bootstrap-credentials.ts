import type { Json } from '../json.ts';
import { Secret } from '../text/secret.ts';

/** A user entry of a kubeconfig; what must not be seen is a Secret. */
export interface CredentialEntry {
  readonly [member: string]: Json | Secret | CredentialEntry | readonly (Json | Secret | CredentialEntry)[];
}

/** What the kubelet bootstraps itself with. */
export interface BootstrapCredentials {
  /** Name of the user in the kubeconfig. */
  readonly user: string;
  readonly entry: CredentialEntry;
}

/** A bootstrap token as credentials. kubeadm 1.36 discovery: user `tls-bootstrap-token-user`. */
export function tokenCredentials(token: Secret): BootstrapCredentials {
  return { user: 'tls-bootstrap-token-user', entry: { token } };
}

/** The same, with every text inside hidden: what a plugin is given may be a password. */
export function hideTexts(value: Json): CredentialEntry[string] {
  if (typeof value === 'string') return new Secret(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => hideTexts(item) as Json | Secret | CredentialEntry);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideTexts(item as Json)]));
  return value;
}
