import type { Json } from '../../base/json.ts';
import { Secret } from '../../base/text/secret.ts';
import type { KubeconfigContext, KubeconfigUser } from '../../kube/kubeconfig.ts';

/** A user entry of a kubeconfig; what must not be seen is a Secret. */
export interface CredentialEntry {
  readonly [member: string]: Json | Secret | CredentialEntry | readonly (Json | Secret | CredentialEntry)[];
}

/** What the kubelet bootstraps itself with. */
export interface BootstrapCredentials {
  /** Names of the user and the context in the kubeconfig; kubeadm leaves those of a file as they are. */
  readonly user: string;
  readonly context: string;
  readonly namespace?: string;
  readonly entry: CredentialEntry;
}

/** A bootstrap token as credentials. kubeadm 1.36 discovery: these names, whatever the name of the cluster is. */
export function tokenCredentials(token: Secret): BootstrapCredentials {
  return { user: 'tls-bootstrap-token-user', context: 'tls-bootstrap-token-user@kubernetes', entry: { token } };
}

/** What the files hold that a user entry names. */
export interface CredentialFiles {
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly token: string | undefined;
}

/**
 * The credentials of a kubeconfig's user with everything inside, as they can be taken to another machine.
 * @see kubeadm 1.36 util/kubeconfig EnsureAuthenticationInfoAreEmbedded
 */
export function userCredentials(
  user: KubeconfigUser,
  { name: context, namespace }: Pick<KubeconfigContext, 'name' | 'namespace'>,
  files: CredentialFiles,
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
  return { user: user.name, context, ...(namespace === undefined ? {} : { namespace }), entry };
}

function base64(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, 'utf8').toString('base64');
}

function secret(text: string | undefined): Secret | undefined {
  return text === undefined ? undefined : new Secret(text);
}

/** Every text inside hidden: what a plugin is given may be a password. */
function hideTexts(value: Json): CredentialEntry[string] {
  if (typeof value === 'string') return new Secret(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => hideTexts(item) as Json | Secret | CredentialEntry);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideTexts(item as Json)]));
  return value;
}
