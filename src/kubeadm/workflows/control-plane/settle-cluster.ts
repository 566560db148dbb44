import { AppError } from '../../../base/errors.ts';
import { keptVersion, parseKubernetesVersion, releaseOfVersion } from '../../../base/kubernetes-version.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { formatMinor, parseMinor } from '../../../kubelet/catalogue.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../../config/defaults.ts';
import { mergeClusterConfiguration } from '../../config/merge-cluster.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import type { ObservedNode } from '../observe-node.ts';

/** What control planes are made of where nobody says otherwise: the version whose manifests these are. */
export const NEWEST_RELEASE = 'v1.36.2';
const NEWEST_CONTROL_PLANE = 36;
const OLDEST_CONTROL_PLANE = 35;

export interface SettleClusterInput {
  /** What the cluster says, where there is one. */
  readonly found: ClusterConfiguration;
  readonly declared: ClusterConfiguration;
  readonly bindPort: number;
  readonly kubelet: ObservedNode['facts']['kubelet'];
  /** Asks the release server what a label (`stable-1`) stands for; null: it does not say. */
  readonly releaseOf: (label: string, ci: boolean) => Promise<string | null>;
  readonly skips: (phase: string) => boolean;
}

export interface SettledCluster {
  readonly cluster: DefaultedCluster;
  readonly warnings: readonly Warning[];
}

/**
 * The settings of a cluster that is being made: what was declared over what is there, with a release for a version. Without a declared version it is the one of
 * the kubelet on the host (kubeadm asks the release server for the newest). An add-on whose phase is left out counts as disabled, as with kubeadm.
 * @throws AppError KUBERNETES_VERSION_UNSUPPORTED, exit code 2
 */
export async function settleCluster(input: SettleClusterInput): Promise<SettledCluster> {
  const { found, declared, bindPort, skips } = input;
  const { version, warnings } = await settleVersion(input);
  const release = releaseOfVersion(version);
  const minor = parseMinor(release) ?? NEWEST_CONTROL_PLANE;
  if (isTooOld(release, minor)) throw tooOld(release);
  const merged = applyClusterDefaults({ ...mergeClusterConfiguration(found, declared), kubernetesVersion: version }, bindPort);
  const off = (addon: string): boolean => skips(`addon/${addon}`);
  const cluster = {
    ...merged,
    ...(off('coredns') ? { dns: { ...merged.dns, disabled: true } } : {}),
    ...(off('kube-proxy') ? { proxy: { ...merged.proxy, disabled: true } } : {}),
  };
  const newer: readonly Warning[] =
    minor > NEWEST_CONTROL_PLANE
      ? [
          {
            code: 'KubernetesVersion',
            message: `Kubernetes ${release} is newer than the control planes this program knows (${formatMinor(NEWEST_CONTROL_PLANE)})`,
          },
        ]
      : [];
  return { cluster, warnings: [...warnings, ...newer] };
}

async function settleVersion(input: SettleClusterInput): Promise<{ version: string; warnings: readonly Warning[] }> {
  const { declared, found, kubelet, releaseOf } = input;
  const written = declared.kubernetesVersion === undefined ? null : parseKubernetesVersion(declared.kubernetesVersion);
  if (written?.kind === 'release') return { version: keptVersion(declared.kubernetesVersion ?? ''), warnings: [] };
  const existing = found.kubernetesVersion === undefined ? null : parseKubernetesVersion(found.kubernetesVersion);
  if (existing?.kind === 'release') return { version: keptVersion(found.kubernetesVersion ?? ''), warnings: [] };
  if (written === null) return { version: kubeletRelease(kubelet) ?? NEWEST_RELEASE, warnings: [] };
  const inBucket = (version: string): string => `${written.ci ? 'ci/' : ''}${version}`;
  const release = parseKubernetesVersion((await releaseOf(written.label, written.ci)) ?? '');
  if (release?.kind === 'release' && (parseMinor(release.version) ?? 0) <= NEWEST_CONTROL_PLANE)
    return { version: inBucket(release.version), warnings: [] };
  const why =
    release?.kind === 'release'
      ? `${written.label} is ${release.version}, newer than the control planes this program knows`
      : `what ${written.label} stands for could not be asked at dl.k8s.io`;
  return {
    version: inBucket(NEWEST_RELEASE),
    warnings: [{ code: 'KUBERNETES_VERSION_FALLBACK', message: `${why}: ${NEWEST_RELEASE} is taken` }],
  };
}

/** A pre-release of the oldest comes before it. */
function isTooOld(release: string, minor: number): boolean {
  return minor < OLDEST_CONTROL_PLANE || (minor === OLDEST_CONTROL_PLANE && /^v1\.\d+\.0-/.test(release));
}

/** Its version, where it is one of a control plane that can be made. */
function kubeletRelease(kubelet: SettleClusterInput['kubelet']): string | null {
  if (kubelet === null || !('version' in kubelet)) return null;
  const parsed = parseKubernetesVersion(kubelet.version);
  const minor = parseMinor(kubelet.version);
  if (parsed?.kind !== 'release' || minor === null) return null;
  return minor >= OLDEST_CONTROL_PLANE && minor <= NEWEST_CONTROL_PLANE ? parsed.version : null;
}

function tooOld(version: string): AppError {
  const message = `Kubernetes ${version}: control planes older than ${formatMinor(OLDEST_CONTROL_PLANE)} are not supported`;
  const hint = `Set another version with --kubernetes-version (kubernetesVersion in the file), or use kubeadm ${version.replace(/^(v?[0-9]+\.[0-9]+)\..*$/, '$1')}`;
  return new AppError({ code: 'KUBERNETES_VERSION_UNSUPPORTED', message, hint }, { exitCode: 2 });
}
