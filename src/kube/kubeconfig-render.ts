import { Secret, SensitiveText } from '../base/text/secret.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';

/** The API server of a cluster. */
export interface ClusterServer {
  /** For example `https://10.0.0.1:6443`. */
  readonly server: string;
  readonly caPem: string;
}

export interface KubeconfigServer extends ClusterServer {
  /** Name of the cluster entry; `kubernetes` unless set in the ClusterConfiguration. */
  readonly clusterName: string;
  /** Server name to verify, if different from the address. */
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** Name of the context; default: `USER@CLUSTER`. */
  readonly context?: string;
}

export function tokenKubeconfig(options: KubeconfigServer & { readonly user: string; readonly token: Secret }): SensitiveText {
  return withUser(options, options.user, { token: options.token });
}

/** As kubeadm writes admin.conf and the kubelet.conf of the first control plane. */
export function clientCertificateKubeconfig(
  options: KubeconfigServer & { readonly user: string; readonly certificatePem: string; readonly keyPem: Secret },
): SensitiveText {
  const { user, certificatePem, keyPem } = options;
  return withUser(options, user, {
    'client-certificate-data': base64(certificatePem),
    'client-key-data': new Secret(base64(keyPem.reveal())),
  });
}

/** A kubeconfig with a client key; the certificate and the CA are added later. */
export function keyKubeconfig(
  options: Pick<KubeconfigServer, 'clusterName' | 'server'> & { readonly user: string; readonly keyPem: Secret },
): SensitiveText {
  return withUser({ ...options, caPem: '' }, options.user, { 'client-key-data': new Secret(base64(options.keyPem.reveal())) });
}

/** The PEM of the base64-encoded client key of a kubeconfig; null when the kubeconfig has none. */
export function clientKeyOf(data: Secret | undefined): Secret | null {
  return data === undefined ? null : new Secret(Buffer.from(data.reveal(), 'base64').toString('utf8'));
}

/**
 * With the kubelet's rotating `kubelet-client-current.pem`. @see kubeadm 1.36 kubelet-finalize
 * enable-client-cert-rotation
 */
export function clientCertificateFileKubeconfig(
  options: KubeconfigServer & { readonly user: string; readonly certificateFile: string; readonly keyFile: string },
): string {
  const { user, certificateFile, keyFile } = options;
  return withUser(options, user, { 'client-certificate': certificateFile, 'client-key': keyFile }).reveal();
}

/** In kube-public/cluster-info: one cluster without a name. @see kubeadm 1.36 bootstrap-token cluster-info */
export function clusterInfoKubeconfig({ server, caPem }: ClusterServer): string {
  return encodeYaml({
    apiVersion: 'v1',
    clusters: [{ cluster: { 'certificate-authority-data': base64(caPem), server }, name: '' }],
    contexts: null,
    'current-context': '',
    kind: 'Config',
    users: null,
  });
}

function withUser(
  { clusterName, server, caPem, tlsServerName, proxyUrl, context: name }: KubeconfigServer,
  user: string,
  credentials: Record<string, string | Secret>,
): SensitiveText {
  const context = name ?? `${user}@${clusterName}`;
  const text = encodeYaml({
    apiVersion: 'v1',
    clusters: [
      {
        cluster: {
          ...(caPem === '' ? {} : { 'certificate-authority-data': base64(caPem) }),
          ...(proxyUrl === undefined ? {} : { 'proxy-url': proxyUrl }),
          server,
          ...(tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
        },
        name: clusterName,
      },
    ],
    contexts: [{ context: { cluster: clusterName, user }, name: context }],
    'current-context': context,
    kind: 'Config',
    users: [{ name: user, user: Object.fromEntries(Object.entries(credentials).map(([key, value]) => [key, revealed(value)])) }],
  });
  return maskSecrets(text, credentials);
}

/** Replaces the encoded secrets of a text by Secret parts; each is found after its key. */
function maskSecrets(text: string, credentials: Record<string, string | Secret>): SensitiveText {
  const parts: (string | Secret)[] = [];
  let rest = text;
  for (const [key, value] of Object.entries(credentials).filter(([, each]) => each instanceof Secret)) {
    const [label, scalar] = [`${key}: `, encodeYaml(revealed(value)).trimEnd()];
    const start = rest.lastIndexOf(`${label}${scalar}`) + label.length;
    parts.push(rest.slice(0, start), new Secret(scalar));
    rest = rest.slice(start + scalar.length);
  }
  return new SensitiveText([...parts, rest]);
}

function revealed(value: string | Secret): string {
  return typeof value === 'string' ? value : value.reveal();
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
