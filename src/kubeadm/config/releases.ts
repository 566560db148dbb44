import { parseSemanticVersion } from '../../base/semantic-version.ts';

/** What a control plane of one minor runs in addition to the Kubernetes images, and the feature gates of its kubeadm. */
export interface ReleaseFacts {
  readonly minor: number;
  /** Image tags. */
  readonly etcd: string;
  readonly coredns: string;
  readonly pause: string;
  /** Feature gates of kubeadm, not of the components. */
  readonly featureGates: readonly string[];
  /** The mode that kubeadm writes into a KubeProxyConfiguration without a mode; null: it leaves the mode unset. */
  readonly kubeProxyMode: string | null;
  /** kubeadm warns about a KubeProxyConfiguration with the mode ipvs, which Kubernetes deprecated in 1.35. */
  readonly warnsOfIpvs: boolean;
  /** kubeadm has the patch target `kubeproxydaemonset`. */
  readonly patchesKubeProxy: boolean;
  /** The addresses on which the port of a component must be free: all of the host, or those that it listens on. */
  readonly portCheck: 'all-addresses' | 'listen-addresses';
  /**
   * Facts that no source of this minor confirms: those of the minor before. `manifests` includes the objects of the
   * cluster.
   */
  readonly assumed: readonly ('pause image' | 'manifests')[];
}

/** The images that kubeadm 1.36.2 uses. */
const IMAGES = { etcd: '3.6.8-0', coredns: 'v1.14.2', pause: '3.10.2' } as const;

const V1_36: ReleaseFacts = {
  minor: 36,
  ...IMAGES,
  featureGates: ['NodeLocalCRISocket', 'PublicKeysECDSA', 'RootlessControlPlane'],
  kubeProxyMode: null,
  warnsOfIpvs: false,
  patchesKubeProxy: false,
  portCheck: 'all-addresses',
  assumed: [],
};

/**
 * The minors of control planes that the program creates and upgrades, in ascending order. A new minor is a new row.
 * @see kubeadm 1.36.2 constants.go (images, SupportedEtcdVersion), features.go
 * @see release notes of 1.37.0-rc.0: #140333 (etcd), #140497 (CoreDNS), #136016 and #138645 (feature gates), #139777
 *   and #139067 (mode of kube-proxy), #138090 (patch target), #138250 (port checks). etcd 3.7.0 accepts all flags of the
 *   manifest of 1.36
 */
export const RELEASES: readonly [ReleaseFacts, ...ReleaseFacts[]] = [
  { ...V1_36, minor: 35 },
  V1_36,
  {
    minor: 37,
    etcd: '3.7.0-0',
    coredns: 'v1.14.6',
    pause: V1_36.pause,
    featureGates: ['RootlessControlPlane'],
    kubeProxyMode: 'iptables',
    warnsOfIpvs: true,
    patchesKubeProxy: true,
    portCheck: 'listen-addresses',
    assumed: ['pause image', 'manifests'],
  },
];

/**
 * The facts of a version. An older or newer minor than those known gets the facts of the nearest one, as kubeadm does for
 * etcd.
 * @param version `v1.36.2`, also after `ci/`
 */
export function releaseFacts(version: string): ReleaseFacts {
  const minor = parseSemanticVersion(version.replace(/^ci\//, ''))?.minor ?? V1_36.minor;
  return RELEASES.findLast((facts) => facts.minor <= minor) ?? RELEASES[0];
}

/** The facts of the newest release that the program was tested with. */
export const NEWEST_RELEASE_FACTS: ReleaseFacts = V1_36;
