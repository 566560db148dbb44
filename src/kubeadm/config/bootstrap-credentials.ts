import type { Json } from '../../base/json.ts';
import { Secret } from '../../base/text/secret.ts';
import type { KubeconfigContext, KubeconfigUser } from '../../kube/kubeconfig.ts';

/** A user entry of a kubeconfig; sensitive values are Secrets. */
interface CredentialEntry {
  readonly [member: string]: Json | Secret | CredentialEntry | readonly (Json | Secret | CredentialEntry)[];
}

/** Credentials for the TLS bootstrap of the kubelet. */
export interface BootstrapCredentials {
  /** Names of the user and the context in the kubeconfig; kubeadm keeps those of a file. */
  readonly user: string;
  readonly context: string;
  readonly namespace?: string | undefined;
  readonly entry: CredentialEntry;
}

/** Credentials from a bootstrap token. kubeadm 1.36 discovery uses these names for any cluster name. */
export function tokenCredentials(token: Secret): BootstrapCredentials {
  return { user: 'tls-bootstrap-token-user', context: 'tls-bootstrap-token-user@kubernetes', entry: { token } };
}

/**
 * The credentials of a kubeconfig user with all files embedded, for use on another host.
 * @see kubeadm 1.36 util/kubeconfig EnsureAuthenticationInfoAreEmbedded
 */
export function userCredentials(
  user: KubeconfigUser,
  { name: context, namespace }: Pick<KubeconfigContext, 'name' | 'namespace'>,
  files: { readonly [K in 'certificate' | 'key' | 'token']: string | undefined },
): BootstrapCredentials {
  const members: Readonly<Record<string, CredentialEntry[string] | undefined>> = {
    'client-certificate-data': user.certData ?? base64(files.certificate),
    'client-key-data': user.keyData ?? secret(base64(files.key)),
    token: user.token ?? secret(files.token?.trim()),
    username: user.username,
    password: user.password,
    exec: user.exec && hideTexts(user.exec),
    'auth-provider': user.authProvider && hideTexts(user.authProvider),
  };
  const entry = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as CredentialEntry;
  return { user: user.name, context, namespace, entry };
}

function base64(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, 'utf8').toString('base64');
}

function secret(text: string | undefined): Secret | undefined {
  return text === undefined ? undefined : new Secret(text);
}

/** Hides every nested string: plugin arguments may contain passwords. */
function hideTexts(value: Json): CredentialEntry[string] {
  if (typeof value === 'string') return new Secret(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => hideTexts(item) as Json | Secret | CredentialEntry);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideTexts(item as Json)]));
  return value;
}
