import fc, { type Arbitrary } from 'fast-check';
import { maybe, partial } from './arbitraries.ts';
import { clusterConfiguration } from './cluster.ts';
import { resolvConfOf } from './join.ts';
import { kubeletConfiguration } from './kubelet.ts';
import { localAPIEndpoint, nodeRegistration, timeouts } from './node.ts';
import { patches } from './patches.ts';

/** What a cluster was made of, and what is given to `kubeadm join` on one more control plane. */
export interface JoinPlaneInput {
  readonly cluster: Readonly<Record<string, unknown>>;
  /** Its configuration for all kubelets. */
  readonly kubelet: Readonly<Record<string, unknown>>;
  /** Without how the cluster is found and the certificates are opened. */
  readonly join: Readonly<Record<string, unknown>>;
  readonly localAPIEndpoint: unknown;
  readonly patches: Readonly<Record<string, string>>;
}

/** Credentials that an upload of certificates holds: each in a file of its own. */
const externalEtcd = fc.record({
  endpoints: fc.constantFrom(['https://10.0.0.1:2379'], ['https://10.0.0.1:2379', 'https://[fd00::2]:2379']),
  caFile: fc.constantFrom('/etc/etcd/ca.crt', '/srv/etcd/ca.crt', '/etc/kubernetes/pki/etcd/ca.crt'),
  certFile: fc.constantFrom('/etc/etcd/pki/client.crt', '/etc/kubernetes/pki/apiserver-etcd-client.crt'),
  keyFile: fc.constantFrom('/etc/etcd/pki/client.key', '/etc/kubernetes/pki/apiserver-etcd-client.key'),
});

/** Clusters, and control planes that join them. Not every one of these clusters is one that kubeadm makes. */
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
    // kubeadm makes users for it, which a directory has not.
    const { RootlessControlPlane: _, ...gates } = { RootlessControlPlane: false, ...featureGates };
    const local = etcd?.local === undefined ? undefined : { local: etcd.local };
    const chosen = external === undefined ? local : { external };
    const { localAPIEndpoint: endpoint, ...join } = declared;
    return {
      // Authorities that have ended sign nothing; RSA keys take long.
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
