import { AppError, type Problem } from '../../../base/errors.ts';
import { parseSemanticVersion } from '../../../base/semantic-version.ts';
import { entryOf } from '../../../codec/source.ts';
import type { ClusterContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { RunSettings } from '../../../host/run-settings.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../../../kube/well-known.ts';
import { KUBE_PROXY_CONFIG_KEY } from '../../addons/kube-proxy.ts';
import { KUBELET_CONFIG_KEY } from '../../cluster-objects/kubelet-config-map.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { availableUpgrades, formatVersion, newestVersion, type RunningVersions } from '../../upgrade/available-upgrades.ts';
import type { ConfigVersion, UpgradePlanResult } from '../../upgrade/upgrade-plan.ts';
import { checkUpgradeVersions, kubeletVersionsOf } from '../../upgrade/version-policy.ts';
import { NEWEST_RELEASE } from '../control-plane/resolve-cluster-configuration.ts';
import { readConfigMapDocument } from '../node/cluster-baseline.ts';
import { type CheckedCluster, checkUpgrade, componentVersions } from './checks.ts';

interface PlanUpgradeOptions {
  /** Of kubeadm-config. */
  readonly cluster: ClusterConfiguration;
  /** `v1.36.2`; null: the release server is asked. */
  readonly target: string | null;
  readonly allowExperimental: boolean;
  readonly allowReleaseCandidates: boolean;
  readonly etcdUpgrade: boolean;
  readonly run: RunSettings;
  /** Resolves a label of the release server; null: it does not answer. */
  readonly releaseOf: (label: string) => Promise<string | null>;
}

/**
 * Checks a cluster, and finds the versions that it can be upgraded to.
 * @throws the errors of `checkUpgrade`; AppError UPGRADE_VERSION_INVALID when the version of an API server cannot be read
 * @see kubeadm 1.36 upgrade plan
 */
export async function planUpgrade(
  context: ClusterContext,
  options: PlanUpgradeOptions,
): Promise<{
  readonly plan: UpgradePlanResult;
  readonly warnings: readonly Warning[];
  /** Not empty: the cluster cannot be upgraded now. */
  readonly refusals: readonly Problem[];
}> {
  const { cluster, reporter } = context;
  const { target, allowExperimental, allowReleaseCandidates, etcdUpgrade } = options;
  reporter.report({ level: 'info', code: 'PROGRESS', message: 'checking the health of the cluster' });
  const { found, ...checked } = await checkUpgrade(context, { ...options, versions: null });
  const none: UpgradePlanResult = {
    clusterVersion: '',
    releases: new Map(),
    running: NOTHING,
    upgrades: [],
    complete: true,
    configVersions: [],
    program: NEWEST_RELEASE,
    etcdUpgrade,
  };
  if (checked.refusals.length > 0) return { plan: none, ...checked };
  const running = await runningVersions(cluster, found);
  const version = newestVersion(running.apiServers) ?? parseSemanticVersion(await cluster.version());
  if (version === null) throw unreadable(running);
  const clusterVersion = formatVersion(version);
  reporter.report({ level: 'info', code: 'PROGRESS', message: `the cluster runs v${clusterVersion}` });
  const labels = labelResolver(options);
  const permissions = { allowExperimental, allowReleaseCandidates };
  const releases = new Map<string, string>();
  const resolve = async (label: string): Promise<string> => {
    const release = await labels.resolve(label);
    releases.set(label, release);
    return release;
  };
  const upgrades = await availableUpgrades({ cluster: version, program: NEWEST_RELEASE, ...permissions, resolve });
  const verdict =
    target === null ? null : checkUpgradeVersions({ target, clusterVersion, kubeletVersions: running.kubelets, ...permissions });
  const refusedByApply = [...(verdict?.mandatory ?? []), ...(verdict?.skippable ?? [])];
  return {
    plan: {
      ...none,
      ...{ clusterVersion, releases, running, upgrades },
      complete: labels.warnings().length === 0,
      configVersions: await configVersions(cluster),
    },
    warnings: [
      ...checked.warnings,
      ...severalVersions(running),
      ...labels.warnings(),
      ...refusedByApply.map(({ code, message }) => ({ code, message: `upgrade apply would refuse this version: ${message}` })),
      ...(verdict?.warnings ?? []),
    ],
    refusals: [],
  };
}

const NOTHING: RunningVersions = {
  apiServers: new Map(),
  controllerManagers: new Map(),
  schedulers: new Map(),
  etcd: new Map(),
  kubelets: new Map(),
  coredns: '',
};

async function runningVersions(cluster: Cluster, { nodes, coredns }: CheckedCluster): Promise<RunningVersions> {
  const [apiServers, controllerManagers, schedulers, etcd] = await Promise.all([
    componentVersions(cluster, 'kube-apiserver'),
    componentVersions(cluster, 'kube-controller-manager'),
    componentVersions(cluster, 'kube-scheduler'),
    componentVersions(cluster, 'etcd'),
  ]);
  return { apiServers, controllerManagers, schedulers, etcd, kubelets: kubeletVersionsOf(nodes), coredns: coredns ?? '' };
}

function unreadable({ apiServers }: RunningVersions): AppError {
  const found = [...apiServers].map(([version, nodes]) => `${JSON.stringify(version)} on ${nodes.join(', ')}`).join('; ');
  const message = `an API server has an image tag that is not a semantic version: ${found}`;
  return new AppError({ code: 'UPGRADE_VERSION_INVALID', message, hint: 'Set the image tag of kube-apiserver to a release like v1.36.2' });
}

function severalVersions({ apiServers }: RunningVersions): readonly Warning[] {
  if (apiServers.size <= 1) return [];
  const found = [...apiServers].map(([version, nodes]) => `${version} on ${nodes.join(', ')}`).join('; ');
  const message = `API servers run different versions: ${found}. Upgrade all control planes to one version`;
  return [{ code: 'UPGRADE_MIXED_VERSIONS', message }];
}

/**
 * Resolves version labels. A given version stands for all labels, as in kubeadm. A version of a later minor than the program's is
 * not offered. Once the release server does not answer, the program's own version is used without further requests.
 */
function labelResolver({ target, releaseOf }: PlanUpgradeOptions): {
  readonly resolve: (label: string) => Promise<string>;
  readonly warnings: () => readonly Warning[];
} {
  const own = parseSemanticVersion(NEWEST_RELEASE);
  let silent: string | null = null;
  const resolve = async (label: string): Promise<string> => {
    if (target !== null) return target;
    if (silent !== null) return NEWEST_RELEASE;
    const text = await releaseOf(label);
    const found = text === null ? null : parseSemanticVersion(text);
    if (text === null || found === null) {
      silent = label;
      return NEWEST_RELEASE;
    }
    const isLater = own !== null && found.major === own.major && found.minor > own.minor;
    return isLater ? resolve(`stable-${own.major}.${own.minor}`) : text;
  };
  return {
    resolve,
    warnings: () =>
      silent === null
        ? []
        : [
            {
              code: 'KUBERNETES_VERSION_FALLBACK',
              message: `cannot read https://dl.k8s.io/release/${silent}.txt within 10s: releases later than ${NEWEST_RELEASE} are not listed. To avoid this request, pass a version to the command`,
            },
          ],
  };
}

const CONFIGS = [
  { group: 'kubeproxy.config.k8s.io', name: 'kube-proxy', key: KUBE_PROXY_CONFIG_KEY, preferred: 'v1alpha1' },
  { group: 'kubelet.config.k8s.io', name: KUBELET_CONFIG_NAME, key: KUBELET_CONFIG_KEY, preferred: 'v1beta1' },
] as const;

function configVersions(cluster: Cluster): Promise<readonly ConfigVersion[]> {
  return Promise.all(
    CONFIGS.map(async ({ group, name, key, preferred }) => {
      const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name });
      if (found === null) return { group, current: '', preferred };
      const apiVersion = entryOf(readConfigMapDocument(found, key).root, 'apiVersion')?.value;
      const text = apiVersion?.kind === 'scalar' ? apiVersion.text : '';
      return { group, current: text.slice(text.lastIndexOf('/') + 1), preferred };
    }),
  );
}
