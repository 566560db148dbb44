import { Secret } from '../../../base/text/secret.ts';
import { renderTemplate, type Templates } from '../../../codec/render-template.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { KubeconfigServer } from '../../../kube/kubeconfig-render.ts';
import { BOOTSTRAP_CONF } from '../../../kube/well-known.ts';
import type { HostFacts } from '../../../kubelet/facts/host-facts.ts';
import { type BootstrapCredentials, tokenCredentials } from '../../config/bootstrap-credentials.ts';

/** URL of the API server and the CA that verifies it. */
export type ApiServerTarget = Omit<KubeconfigServer, 'clusterName'>;

interface BootstrapTarget extends ApiServerTarget {
  /** `clusterName` of the ClusterConfiguration. */
  readonly clusterName: string;
  /** Path of the CA that signs client certificates (clientCAFile of the kubelet). */
  readonly caPath: string;
  /** First credentials of the kubelet. Null: it already has a client certificate. */
  readonly token: Secret | BootstrapCredentials | null;
}

/**
 * The CA certificate and, for a kubelet without a client certificate, the bootstrap kubeconfig.
 * @see kubeadm 1.36 join kubelet-start: bootstrap-kubelet.conf 0600, then caCertPath 0644; app/cmd/join.go for the names
 */
export function bootstrapFiles(
  templates: Templates,
  { server, caPem, tlsServerName, proxyUrl, clusterName, caPath, token }: BootstrapTarget,
): readonly DesiredFile[] {
  const ca: DesiredFile = { path: caPath, content: caPem, mode: 0o644, owner: 'root:root', onlyIfAbsent: true };
  if (token === null) return [ca];
  const { user, context, namespace, entry } = token instanceof Secret ? tokenCredentials(token) : token;
  const content = renderTemplate(templates, BOOTSTRAP_CONF, {
    caData: Buffer.from(caPem, 'utf8').toString('base64'),
    proxyUrl,
    server,
    tlsServerName,
    clusterName,
    contextName: context,
    namespace,
    user,
    users: [{ name: user, user: entry }],
  });
  return [{ path: BOOTSTRAP_CONF, content, mode: 0o600, owner: 'root:root' }, ca];
}

/** Whether the kubelet has a usable client certificate and needs no bootstrap credentials. */
export function hasIdentity(facts: HostFacts): boolean {
  return facts.identity.state === 'usable';
}
