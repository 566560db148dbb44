import type { JsonObject } from '../../base/json.ts';
import { parseSemanticVersion } from '../../base/semantic-version.ts';
import { renderTabTable } from '../../base/text/table.ts';
import type { AvailableUpgrade, RunningVersions, VersionsByNode } from './available-upgrades.ts';

/** The version of a component configuration in the cluster. */
export interface ConfigVersion {
  /** `kubelet.config.k8s.io` */
  readonly group: string;
  /** Empty: the cluster has no such configuration. */
  readonly current: string;
  readonly preferred: string;
}

export interface UpgradePlanResult {
  /** The newest version of the API servers, without `v`. */
  readonly clusterVersion: string;
  /** The versions of the labels of the release server (`stable`, `stable-1.36`), in the order of the requests. */
  readonly releases: ReadonlyMap<string, string>;
  readonly running: RunningVersions;
  readonly upgrades: readonly AvailableUpgrade[];
  /** False: the release server did not answer, and later versions than those of `upgrades` may exist. */
  readonly complete: boolean;
  readonly configVersions: readonly ConfigVersion[];
  /** The version of kubeadm whose behaviour this is. */
  readonly program: string;
  readonly etcdUpgrade: boolean;
}

interface Component {
  readonly name: string;
  readonly currentVersion: string;
  readonly newVersion: string;
  readonly nodeName?: string;
}

/**
 * The plan as a document.
 * @see kubeadm 1.36 output.kubeadm.k8s.io/v1alpha3 UpgradePlan
 */
export function upgradePlanDocument(plan: UpgradePlanResult): JsonObject {
  const upgrades = plan.upgrades.map((upgrade) => ({
    description: upgrade.description,
    components: componentsOf(plan, upgrade).map((component) => ({ ...component })),
  }));
  return {
    kind: 'UpgradePlan',
    apiVersion: 'output.kubeadm.k8s.io/v1alpha3',
    ...(upgrades.length === 0 ? {} : { availableUpgrades: upgrades }),
    configVersions: plan.configVersions.map((config) => ({
      group: config.group,
      currentVersion: config.current,
      preferredVersion: config.preferred,
      manualUpgradeRequired: isManual(config),
    })),
  };
}

export const RULE = `${'_'.repeat(69)}\n`;

/**
 * The plan as kubeadm's tables; empty when no upgrade is available.
 * @param options of the command that applies the upgrade, e.g. `--host`, `cp1`
 * @see kubeadm 1.36 cmd/upgrade/plan.go
 */
export function upgradePlanText(plan: UpgradePlanResult, options: readonly string[] = []): string {
  if (plan.upgrades.length === 0) return '';
  return [...plan.upgrades.flatMap((upgrade) => upgradeLines(plan, upgrade, options)), ...configLines(plan.configVersions)]
    .map((line) => `${line}\n`)
    .join('');
}

export const HEADER = ['COMPONENT', 'NODE', 'CURRENT', 'TARGET'] as const;

function upgradeLines(plan: UpgradePlanResult, upgrade: AvailableUpgrade, options: readonly string[]): readonly string[] {
  const components = componentsOf(plan, upgrade);
  const kubelets = components.filter(({ name }) => name === 'kubelet');
  const others = components.filter(({ name }) => name !== 'kubelet' && name !== 'kubeadm');
  return [
    ...(kubelets.length === 0
      ? []
      : ['Kubelets to upgrade by hand after the control plane:', '', ...renderTabTable([HEADER, ...kubelets.map(rowOf)]), '']),
    `Upgrade to ${titleOf(upgrade)}:`,
    '',
    ...renderTabTable([HEADER, ...others.map(rowOf)]),
    '',
    'Apply the upgrade with:',
    '',
    `\t${[`kubeletadm upgrade apply ${upgrade.target}${permissionFor(upgrade.target)}`, ...options].join(' ')}`,
    '',
    RULE,
  ];
}

export function rowOf({ name, nodeName = '', currentVersion, newVersion }: Component): readonly string[] {
  return [name, nodeName, currentVersion, newVersion];
}

/** kubeadm's description; a version of another series than described (a given version) by its name. */
function titleOf({ description, target }: AvailableUpgrade): string {
  const series = /^version in the (v\d+\.\d+) series$/.exec(description)?.[1];
  return series === undefined || target.startsWith(`${series}.`) ? `the latest ${description}` : target;
}

/** The option that an upgrade to a pre-release requires. */
export function permissionFor(target: string): string {
  const preRelease = parseSemanticVersion(target)?.preRelease ?? '';
  if (preRelease === '') return '';
  return preRelease.startsWith('rc') ? ' --allow-release-candidate-upgrades' : ' --allow-experimental-upgrades';
}

function configLines(configs: readonly ConfigVersion[]): readonly string[] {
  return [
    'API versions of the component configurations in the cluster; convert those with "yes" by hand before the upgrade:',
    '',
    ...configTable(configs),
    RULE,
  ];
}

export function configTable(configs: readonly ConfigVersion[]): readonly string[] {
  const rows = configs.map((config) => [config.group, config.current || '-', config.preferred || '-', isManual(config) ? 'yes' : 'no']);
  return renderTabTable([['API GROUP', 'CURRENT VERSION', 'PREFERRED VERSION', 'MANUAL UPGRADE REQUIRED'], ...rows]);
}

function isManual({ current, preferred }: ConfigVersion): boolean {
  return current !== '' && current !== preferred;
}

export function componentsOf({ running, program, etcdUpgrade }: UpgradePlanResult, upgrade: AvailableUpgrade): readonly Component[] {
  const { target, from } = upgrade;
  return [
    ...(canUpgradeKubelets(running.kubelets, target) ? byNode('kubelet', running.kubelets, target) : []),
    ...byNode('kube-apiserver', running.apiServers, target),
    ...byNode('kube-controller-manager', running.controllerManagers, target),
    ...byNode('kube-scheduler', running.schedulers, target),
    { name: 'kube-proxy', currentVersion: from, newVersion: target },
    { name: 'CoreDNS', currentVersion: running.coredns, newVersion: upgrade.coredns },
    { name: 'kubeadm', currentVersion: program, newVersion: upgrade.kubeadm },
    ...(etcdUpgrade ? byNode('etcd', running.etcd, upgrade.etcd) : []),
  ];
}

function canUpgradeKubelets(kubelets: VersionsByNode, target: string): boolean {
  return kubelets.size > 1 || (kubelets.size === 1 && !kubelets.has(target));
}

function byNode(name: string, versions: VersionsByNode, newVersion: string): readonly Component[] {
  const sorted = [...versions].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return sorted.flatMap(([currentVersion, nodes]) => nodes.map((nodeName) => ({ name, currentVersion, newVersion, nodeName })));
}
