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
  /** The minor that the facts are taken from, because this minor was not released yet; null: known facts. */
  readonly assumedFrom: number | null;
}

/** The images that kubeadm 1.36.2 uses. */
const IMAGES = { etcd: '3.6.8-0', coredns: 'v1.14.2', pause: '3.10.2' } as const;

const V1_36: ReleaseFacts = {
  minor: 36,
  ...IMAGES,
  featureGates: ['NodeLocalCRISocket', 'PublicKeysECDSA', 'RootlessControlPlane'],
  assumedFrom: null,
};

/**
 * The minors of control planes that the program creates and upgrades, in ascending order. A new minor is a new row.
 * @see kubeadm 1.36.2 constants.go (images, SupportedEtcdVersion), features.go
 */
export const RELEASES: readonly [ReleaseFacts, ...ReleaseFacts[]] = [
  { ...V1_36, minor: 35 },
  V1_36,
  { ...V1_36, minor: 37, assumedFrom: 36 },
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
