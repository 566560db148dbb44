import fc, { type Arbitrary } from 'fast-check';
import { maybe } from './kubeadm-inputs/arbitraries.ts';
import { clusterConfiguration } from './kubeadm-inputs/cluster.ts';
import { flaw, withFlaw } from './kubeadm-inputs/flaws.ts';
import { kubeProxyConfiguration } from './kubeadm-inputs/kube-proxy.ts';
import { kubeletConfiguration } from './kubeadm-inputs/kubelet.ts';
import { initConfiguration } from './kubeadm-inputs/node.ts';
import { patches } from './kubeadm-inputs/patches.ts';

/** Input of `kubeadm init`: documents, and the files of a directory of patches. */
export interface InitInput {
  readonly documents: readonly object[];
  readonly patches: Readonly<Record<string, string>>;
}

const V1BETA4 = 'kubeadm.k8s.io/v1beta4';

/** The same input in v1beta3, without fields that v1beta3 lacks. */
function asV1beta3(document: object): object {
  const { kind, apiServer, featureGates, ...rest } = older(document) as Readonly<Record<string, object | undefined>>;
  const cluster = {
    // The v1beta3 form of encryptionAlgorithm; RSA keys are slow to generate.
    featureGates: { PublicKeysECDSA: true, ...featureGates },
    apiServer: { ...apiServer, timeoutForControlPlane: '4m20s' },
  };
  return { ...rest, kind, ...(String(kind) === 'ClusterConfiguration' && cluster), apiVersion: 'kubeadm.k8s.io/v1beta3' };
}

const NOT_IN_V1BETA3 = new Set(
  'timeouts proxy encryptionAlgorithm certificateValidityPeriod caCertificateValidityPeriod extraEnvs disabled httpEndpoints imagePullSerial'.split(
    ' ',
  ),
);

function older(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(older);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    if (NOT_IN_V1BETA3.has(name)) return [];
    if (!/^(?:extraArgs|kubeletExtraArgs)$/.test(name)) return [[name, older(member)]];
    return [[name, Object.fromEntries((member as { name?: string; value: string }[]).map((each) => [each.name ?? '', each.value]))]];
  });
  return Object.fromEntries(members);
}

/** Configurations of all parts of a control plane; one in five has a flaw. */
export const initInputs: Arbitrary<InitInput> = fc
  .record({
    init: initConfiguration,
    cluster: clusterConfiguration,
    proxy: maybe(kubeProxyConfiguration),
    kubelet: maybe(kubeletConfiguration),
    files: patches,
    wrong: flaw,
    oldKinds: fc.constantFrom('', '', '', '', 'InitConfiguration', 'ClusterConfiguration', 'InitConfiguration ClusterConfiguration'),
    order: fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
  })
  .map(({ init, cluster, proxy, kubelet, files, wrong, oldKinds, order }) => {
    const own = [
      { apiVersion: V1BETA4, kind: 'InitConfiguration', ...init, ...(files.length > 0 && { patches: { directory: '@PATCHES@' } }) },
      { apiVersion: V1BETA4, kind: 'ClusterConfiguration', ...cluster },
    ].map((document) => withFlaw(document, wrong));
    const documents = [
      ...own.map((document) => (oldKinds.split(' ').includes((document as { kind: string }).kind) ? asV1beta3(document) : document)),
      proxy && { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', ...proxy },
      kubelet && { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...kubelet },
    ];
    return {
      documents: order.map((i) => documents[i]).filter((document) => document !== undefined),
      patches: Object.fromEntries(files.map(({ name, text }) => [name, text])),
    };
  });
