import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from '../../base/semantic-version.ts';
import { releaseFacts } from '../config/releases.ts';

export type VersionsByNode = ReadonlyMap<string, readonly string[]>;

/** The versions that run in a cluster. */
export interface RunningVersions {
  readonly apiServers: VersionsByNode;
  readonly controllerManagers: VersionsByNode;
  readonly schedulers: VersionsByNode;
  /** Empty: etcd is external. */
  readonly etcd: VersionsByNode;
  readonly kubelets: VersionsByNode;
  /** Image tag; empty: CoreDNS is not deployed. */
  readonly coredns: string;
}

export interface AvailableUpgrade {
  /** `version in the v1.36 series`, `stable version`, `release candidate version` or `experimental version`. */
  readonly description: string;
  /** The version that runs now, without `v`. */
  readonly from: string;
  /** `v1.36.2` */
  readonly target: string;
  /** Image tags of the target. */
  readonly etcd: string;
  readonly coredns: string;
  /** The version of kubeadm that the upgrade requires. */
  readonly kubeadm: string;
}

interface AvailableUpgradesInput {
  /** The version of the cluster: the newest of its API servers. */
  readonly cluster: SemanticVersion;
  /** The version of kubeadm whose behaviour this is: `v1.36.2`. */
  readonly program: string;
  readonly allowExperimental: boolean;
  readonly allowReleaseCandidates: boolean;
  /** Resolves a label of the release server (`stable`, `stable-1.36`, `latest`) to a version. */
  readonly resolve: (label: string) => Promise<string>;
}

/**
 * The versions that a cluster can be upgraded to, lowest first.
 * @throws errors of `resolve`
 * @see kubeadm 1.36 phases/upgrade/compute.go GetAvailableUpgrades
 */
export async function availableUpgrades(input: AvailableUpgradesInput): Promise<readonly AvailableUpgrade[]> {
  const { cluster, allowExperimental, allowReleaseCandidates } = input;
  const stable = await resolved(input, 'stable');
  const upgrades: AvailableUpgrade[] = [];
  // A branch has no stable release before its first one.
  const patch = isBefore(stable.version, cluster) ? null : await resolved(input, `stable-${cluster.major}.${cluster.minor}`);
  if (patch !== null && isBefore(cluster, patch.version))
    upgrades.push(
      upgradeTo(
        input,
        patch.text,
        `version in the v${cluster.major}.${cluster.minor} series`,
        requiredForPatch(input, patch.text, patch.version),
      ),
    );
  if (isBefore(patch?.version ?? cluster, stable.version)) upgrades.push(upgradeTo(input, stable.text, 'stable version'));
  if (!allowExperimental && !allowReleaseCandidates) return upgrades;
  const latest = await resolved(input, 'latest');
  const previous = await resolved(input, `latest-1.${latest.version.minor - 1}`);
  if (allowReleaseCandidates && previous.version.preRelease.startsWith('rc') && isBefore(cluster, previous.version))
    upgrades.push(upgradeTo(input, previous.text, 'release candidate version'));
  if (allowExperimental && isBefore(cluster, latest.version)) {
    // The first alpha of a branch has less than the beta of the branch before.
    const text = latest.version.preRelease === 'alpha.0' ? previous.text : latest.text;
    upgrades.push(upgradeTo(input, text, 'experimental version'));
  }
  return upgrades;
}

/** The newest version of the API servers; null: none, or one that cannot be read. */
export function newestVersion(versions: VersionsByNode): SemanticVersion | null {
  const parsed = [...versions.keys()].map(parseSemanticVersion);
  if (parsed.some((version) => version === null)) return null;
  const sorted = parsed.filter((version) => version !== null).toSorted(compareSemanticVersions);
  return sorted.at(-1) ?? null;
}

/** `1.36.2-rc.1` */
export function formatVersion({ major, minor, patch, preRelease }: SemanticVersion): string {
  return `${major}.${minor}.${patch}${preRelease === '' ? '' : `-${preRelease}`}`;
}

async function resolved({ resolve }: AvailableUpgradesInput, label: string) {
  const text = await resolve(label);
  const version = parseSemanticVersion(text);
  if (version === null) throw new Error(`${label} was resolved to ${JSON.stringify(text)}`);
  return { text, version };
}

function isBefore(a: SemanticVersion, b: SemanticVersion): boolean {
  return compareSemanticVersions(a, b) < 0;
}

/** A patch release requires no newer kubeadm than the running one. */
function requiredForPatch({ program }: AvailableUpgradesInput, text: string, version: SemanticVersion): string {
  const own = parseSemanticVersion(program);
  return own !== null && !isBefore(own, version) ? program : text;
}

function upgradeTo({ cluster }: AvailableUpgradesInput, target: string, description: string, kubeadm: string = target): AvailableUpgrade {
  const { etcd, coredns } = releaseFacts(target);
  return { description, from: formatVersion(cluster), target, etcd, coredns, kubeadm };
}
