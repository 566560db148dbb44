import fc from 'fast-check';
import { maybe, partial } from './arbitraries.ts';
import { kubeletConfiguration } from './kubelet.ts';
import { nodeRegistration } from './node.ts';
import { patches } from './patches.ts';

/** What is given to `kubeadm join`, and what the cluster says. */
export interface JoinInput {
  /** Without its discovery, which is that of the API server at hand. */
  readonly document: object;
  readonly discovery: 'token' | 'other token' | 'file';
  readonly patches: Readonly<Record<string, string>>;
  /** Of `kubelet-config`. */
  readonly kubelet: object;
  /** Of `kubeadm-config`. */
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

/** Workers that join, of all sorts. */
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

/** With the path of systemd-resolved the first node's, which is not there, would be taken for this one's: that is corrected, unlike by kubeadm. */
export function resolvConfOf({ resolvConf }: Readonly<Record<string, unknown>>): object {
  return resolvConf === '/run/systemd/resolve/resolv.conf' ? { resolvConf: '/srv/resolv.conf' } : {};
}
