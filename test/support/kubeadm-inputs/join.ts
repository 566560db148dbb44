import fc from 'fast-check';
import { maybe, partial } from './arbitraries.ts';
import { kubeletConfiguration } from './kubelet.ts';
import { nodeRegistration } from './node.ts';
import { patches } from './patches.ts';

/** Input of `kubeadm join`, and the content of the cluster. */
export interface JoinInput {
  /** Without discovery, which depends on the API server of the test. */
  readonly document: object;
  readonly discovery: 'token' | 'other token' | 'file';
  readonly patches: Readonly<Record<string, string>>;
  /** Content of `kubelet-config`. */
  readonly kubelet: object;
  /** Content of `kubeadm-config`. */
  readonly cluster: object;
}

const V1BETA4 = 'kubeadm.k8s.io/v1beta4';

const cluster = partial({
  clusterName: fc.constantFrom('kubernetes', 'lab', 'my cluster: 1'),
  certificatesDir: fc.constantFrom('/etc/kubernetes/pki', '/srv/pki'),
  kubernetesVersion: fc.constantFrom('v1.36.2', 'v1.35.4', 'ci/v1.36.2-10+abcdef'),
  networking: fc.constantFrom(
    { serviceSubnet: '10.96.0.0/12', dnsDomain: 'cluster.local' },
    { serviceSubnet: 'fd03::/112,10.96.0.0/16', dnsDomain: 'lab.local' },
  ),
  featureGates: maybe(fc.constantFrom({ NodeLocalCRISocket: false }, { NodeLocalCRISocket: true }), 1),
});

/** Joining workers of all kinds. */
export const joinInputs: fc.Arbitrary<JoinInput> = fc
  .record({
    node: nodeRegistration,
    caCertPath: maybe(fc.constantFrom('/etc/kubernetes/pki/ca.crt', '/srv/pki/own.crt'), 1),
    discovery: fc.constantFrom('token', 'token', 'other token', 'file'),
    files: patches,
    kubelet: kubeletConfiguration,
    cluster,
  })
  .map(({ node, caCertPath, discovery, files, kubelet, cluster: settings }) => ({
    discovery: discovery as JoinInput['discovery'],
    document: {
      apiVersion: V1BETA4,
      kind: 'JoinConfiguration',
      nodeRegistration: node,
      ...(caCertPath !== undefined && { caCertPath }),
      ...(files.length > 0 && { patches: { directory: '@PATCHES@' } }),
    },
    patches: Object.fromEntries(files.map(({ name, text }) => [name, text])),
    kubelet: { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...kubelet, ...resolvConfOf(kubelet) },
    cluster: { apiVersion: V1BETA4, kind: 'ClusterConfiguration', ...settings },
  }));

/**
 * Avoids the path of systemd-resolved: unlike kubeadm, kubeletadm corrects it on a node where it does not
 * exist.
 */
export function resolvConfOf({ resolvConf }: Readonly<Record<string, unknown>>): object {
  return resolvConf === '/run/systemd/resolve/resolv.conf' ? { resolvConf: '/srv/resolv.conf' } : {};
}
