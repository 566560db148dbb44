import { renderTabTable } from '../../base/text/table.ts';
import type { AvailableUpgrade } from './available-upgrades.ts';
import { componentsOf, configTable, HEADER, permissionFor, RULE, rowOf, type UpgradePlanResult } from './upgrade-plan.ts';

/**
 * The plan as kubeadm prints it, behind the lines about the health checks.
 * @see kubeadm 1.36 cmd/upgrade/plan.go, phases/upgrade/compute.go
 */
export function kubeadmPlanText(plan: UpgradePlanResult): string {
  const lines = [
    '[upgrade] Fetching available versions to upgrade to',
    `[upgrade/versions] Cluster version: ${plan.clusterVersion}`,
    `[upgrade/versions] kubeadm version: ${plan.program}`,
    ...[...plan.releases].map(([label, version]) => `[upgrade/versions] ${titleOf(label)}: ${version}`),
    '',
    ...plan.upgrades.flatMap((upgrade) => upgradeLines(plan, upgrade)),
    ...(plan.upgrades.length === 0 ? [] : [...CONFIG_NOTES, ...configTable(plan.configVersions), RULE]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function titleOf(label: string): string {
  if (label === 'stable') return 'Target version';
  if (label === 'latest') return 'Latest experimental version';
  const series = /^stable-(.*)$/.exec(label)?.[1];
  return series === undefined ? 'Latest previous version' : `Latest version in the v${series} series`;
}

function upgradeLines(plan: UpgradePlanResult, upgrade: AvailableUpgrade): readonly string[] {
  const components = componentsOf(plan, upgrade);
  const kubelets = components.filter(({ name }) => name === 'kubelet');
  const others = components.filter(({ name }) => name !== 'kubelet' && name !== 'kubeadm');
  const isOther = plan.program !== upgrade.kubeadm;
  return [
    "Components that must be upgraded manually after you have upgraded the control plane with 'kubeadm upgrade apply':",
    ...renderTabTable([HEADER, ...kubelets.map(rowOf)]),
    '',
    `Upgrade to the latest ${upgrade.description}:`,
    '',
    ...renderTabTable([HEADER, ...others.map(rowOf)]),
    '',
    'You can now apply the upgrade by executing the following command:',
    '',
    `\tkubeadm upgrade apply ${upgrade.target}${permissionFor(upgrade.target)}`,
    '',
    ...(isOther ? [`Note: Before you can perform this upgrade, you have to update kubeadm to ${upgrade.kubeadm}.`, ''] : []),
    RULE,
  ];
}

const CONFIG_NOTES = [
  '',
  'The table below shows the current state of component configs as understood by this version of kubeadm.',
  'Configs that have a "yes" mark in the "MANUAL UPGRADE REQUIRED" column require manual config upgrade or',
  'resetting to kubeadm defaults before a successful upgrade can be performed. The version to manually',
  'upgrade to is denoted in the "PREFERRED VERSION" column.',
  '',
];
