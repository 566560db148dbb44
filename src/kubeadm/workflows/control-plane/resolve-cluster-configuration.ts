import { AppError, type Problem } from '../../../base/errors.ts';
import { normalizeVersion, parseKubernetesVersion, releaseOfVersion } from '../../../base/kubernetes-version.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { RunSettings } from '../../../host/run-settings.ts';
import { keptPhases } from '../../../host/run-workflow.ts';
import { DEFAULT_MINOR, formatMinor, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { applyClusterDefaults, type DefaultedCluster, mergeClusterConfiguration } from '../../config/defaults.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import type { ObservedNode } from '../node/observe-node.ts';

/** Default Kubernetes version: the release whose manifests this program generates. */
export const NEWEST_RELEASE = 'v1.36.2';
const NEWEST_CONTROL_PLANE = DEFAULT_MINOR;
const OLDEST_CONTROL_PLANE = 35;

export interface ResolveClusterInput {
  /** ClusterConfiguration of an existing cluster, else empty. */
  readonly found: ClusterConfiguration;
  readonly declared: ClusterConfiguration;
  readonly bindPort: number;
  readonly kubelet: ObservedNode['facts']['kubelet'];
  /** Resolves a version label (`stable-1`) at the release server; null: the server does not answer. */
  readonly releaseOf: (label: string, ci: boolean) => Promise<string | null>;
  readonly run: Pick<RunSettings, 'skipPhases'>;
}

export interface ResolvedCluster {
  readonly cluster: DefaultedCluster;
  readonly warnings: readonly Warning[];
}

/**
 * The settings of a new cluster: declared settings merged over existing ones, with a release as version. The default
 * version is that of the kubelet on the host (kubeadm asks the release server for the newest).
 * @throws AppError KUBERNETES_VERSION_UNSUPPORTED, exit code 2
 */
export async function resolveClusterConfiguration(input: ResolveClusterInput): Promise<ResolvedCluster> {
  const { found, declared, bindPort, run } = input;
  const { version, warnings } = await resolveVersion(input);
  const release = releaseOfVersion(version);
  const minor = parseMinor(release) ?? NEWEST_CONTROL_PLANE;
  const unsupported = unsupportedVersion(release);
  if (unsupported !== null) throw new AppError(unsupported, { exitCode: 2 });
  const merged = applyClusterDefaults({ ...mergeClusterConfiguration(found, declared), kubernetesVersion: version }, bindPort);
  const newer: readonly Warning[] =
    minor > NEWEST_CONTROL_PLANE
      ? [
          {
            code: 'KubernetesVersion',
            message: `Kubernetes ${release} is newer than the newest known control plane (${formatMinor(NEWEST_CONTROL_PLANE)})`,
          },
        ]
      : [];
  return { cluster: withoutSkippedAddons(merged, run), warnings: [...warnings, ...newer] };
}

/** As in kubeadm, an add-on whose phase is skipped is disabled. */
export function withoutSkippedAddons(cluster: DefaultedCluster, run: ResolveClusterInput['run']): DefaultedCluster {
  const isKept = keptPhases(run);
  return {
    ...cluster,
    ...(isKept('addon/coredns') ? {} : { dns: { ...cluster.dns, disabled: true } }),
    ...(isKept('addon/kube-proxy') ? {} : { proxy: { ...cluster.proxy, disabled: true } }),
  };
}

async function resolveVersion(input: ResolveClusterInput): Promise<{ version: string; warnings: readonly Warning[] }> {
  const { declared, found, kubelet, releaseOf } = input;
  const written = declared.kubernetesVersion === undefined ? null : parseKubernetesVersion(declared.kubernetesVersion);
  if (written?.kind === 'release') return { version: normalizeVersion(declared.kubernetesVersion ?? ''), warnings: [] };
  const existing = found.kubernetesVersion === undefined ? null : parseKubernetesVersion(found.kubernetesVersion);
  if (existing?.kind === 'release') return { version: normalizeVersion(found.kubernetesVersion ?? ''), warnings: [] };
  if (written === null) return { version: kubeletRelease(kubelet) ?? NEWEST_RELEASE, warnings: [] };
  const inBucket = (version: string): string => `${written.ci ? 'ci/' : ''}${version}`;
  const release = parseKubernetesVersion((await releaseOf(written.label, written.ci)) ?? '');
  if (release?.kind === 'release' && (parseMinor(release.version) ?? 0) <= NEWEST_CONTROL_PLANE)
    return { version: inBucket(release.version), warnings: [] };
  const why =
    release?.kind === 'release'
      ? `${written.label} is ${release.version}, newer than the newest known control plane (${formatMinor(NEWEST_CONTROL_PLANE)})`
      : `cannot resolve ${written.label} at dl.k8s.io`;
  return {
    version: inBucket(NEWEST_RELEASE),
    warnings: [{ code: 'KUBERNETES_VERSION_FALLBACK', message: `${why}: using ${NEWEST_RELEASE}` }],
  };
}

/**
 * The problem of a release that is older than the oldest supported control plane; null for any other text. A pre-release
 * of the oldest supported minor is too old.
 * @see kubeadm 1.36 cmd/kubeadm/app/util/config/common.go NormalizeKubernetesVersion
 */
export function unsupportedVersion(text: string): Problem | null {
  const parsed = parseKubernetesVersion(text);
  const minor = parsed?.kind === 'release' ? parseMinor(parsed.version) : null;
  if (parsed?.kind !== 'release' || minor === null) return null;
  const { version } = parsed;
  const isTooOld = minor < OLDEST_CONTROL_PLANE || (minor === OLDEST_CONTROL_PLANE && /^v1\.\d+\.0-/.test(version));
  if (!isTooOld) return null;
  const message = `Kubernetes ${version}: control planes older than ${formatMinor(OLDEST_CONTROL_PLANE)} are not supported`;
  const hint = `Set another version with --kubernetes-version (kubernetesVersion in the file), or use kubeadm ${version.replace(/^(v?[0-9]+\.[0-9]+)\..*$/, '$1')}`;
  return { code: 'KUBERNETES_VERSION_UNSUPPORTED', message, hint };
}

/** The kubelet's version, if a control plane of this version is supported. */
function kubeletRelease(kubelet: ResolveClusterInput['kubelet']): string | null {
  if (kubelet === null || !('version' in kubelet)) return null;
  const parsed = parseKubernetesVersion(kubelet.version);
  const minor = parseMinor(kubelet.version);
  if (parsed?.kind !== 'release' || minor === null) return null;
  return minor >= OLDEST_CONTROL_PLANE && minor <= NEWEST_CONTROL_PLANE ? parsed.version : null;
}
