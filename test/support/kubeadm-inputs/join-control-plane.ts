import fc, { type Arbitrary } from 'fast-check';
import { maybe, partial } from './arbitraries.ts';
import { clusterConfiguration } from './cluster.ts';
import { resolvConfOf } from './join.ts';
import { kubeletConfiguration } from './kubelet.ts';
import { localAPIEndpoint, nodeRegistration, timeouts } from './node.ts';
import { patches } from './patches.ts';

/** A cluster's configuration, and the input of `kubeadm join` for an additional control plane. */
export interface JoinPlaneInput {
  readonly cluster: Readonly<Record<string, unknown>>;
  /** The cluster's configuration for all kubelets. */
  readonly kubelet: Readonly<Record<string, unknown>>;
  /** Without discovery and certificate key. */
  readonly join: Readonly<Record<string, unknown>>;
  readonly localAPIEndpoint: unknown;
  readonly patches: Readonly<Record<string, string>>;
}

/** Credentials in an upload of certificates, each in a separate file. */
const externalEtcd = fc.record({
  endpoints: fc.constantFrom(['https://10.0.0.1:2379'], ['https://10.0.0.1:2379', 'https://[fd00::2]:2379']),
  caFile: fc.constantFrom('/etc/etcd/ca.crt', '/srv/etcd/ca.crt', '/etc/kubernetes/pki/etcd/ca.crt'),
  certFile: fc.constantFrom('/etc/etcd/pki/client.crt', '/etc/kubernetes/pki/apiserver-etcd-client.crt'),
  keyFile: fc.constantFrom('/etc/etcd/pki/client.key', '/etc/kubernetes/pki/apiserver-etcd-client.key'),
});

/** Clusters, and control planes that join them. kubeadm would not create all of these clusters. */
export const joinPlaneInputs: Arbitrary<JoinPlaneInput> = fc
  .record({
    cluster: clusterConfiguration,
    external: maybe(externalEtcd, 2),
    controlPlaneEndpoint: fc.constantFrom('api.lab.example:6443', 'api.lab.example', '[fd00::1]:7443', '10.0.0.5'),
    kubelet: kubeletConfiguration,
    declared: partial({ localAPIEndpoint, nodeRegistration, timeouts }),
    files: patches,
  })
  .map(({ cluster, external, controlPlaneEndpoint, kubelet, declared, files }) => {
    const { etcd, featureGates, ...rest } = cluster as { etcd?: { local?: unknown }; featureGates?: object };
    // kubeadm creates users for this gate, which is impossible in a directory.
    const { RootlessControlPlane: _, ...gates } = { RootlessControlPlane: false, ...featureGates };
    const local = etcd?.local === undefined ? undefined : { local: etcd.local };
    const chosen = external === undefined ? local : { external };
    const { localAPIEndpoint: endpoint, ...join } = declared;
    return {
      // Expired CAs cannot sign; RSA keys are slow to generate.
      cluster: {
        ...rest,
        caCertificateValidityPeriod: '87600h',
        featureGates: gates,
        controlPlaneEndpoint,
        ...(chosen && { etcd: chosen }),
      },
      kubelet: { ...kubelet, ...resolvConfOf(kubelet) },
      join: { ...join, ...(files.length > 0 && { patches: { directory: '@PATCHES@' } }) },
      localAPIEndpoint: endpoint,
      patches: Object.fromEntries(files.map(({ name, text }) => [name, text])),
    };
  });
