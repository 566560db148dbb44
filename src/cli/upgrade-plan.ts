import type { ExitCode } from '../base/errors.ts';
import { diffUpgrade, type PlanClusterUpgradeRequest, planClusterUpgrade } from '../fleet/use-cases/plan-cluster-upgrade.ts';
import { kubeadmPlanText } from '../kubeadm/upgrade/kubeadm-plan-text.ts';
import { upgradePlanDocument, upgradePlanText } from '../kubeadm/upgrade/upgrade-plan.ts';
import { readsClusterConfig } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderKubeadmDocument } from './output/show-document.ts';

export interface UpgradePlanRequest extends PlanClusterUpgradeRequest {
  readonly output: { readonly format: ReadFormat; readonly verbosity: number };
}

const UP_TO_DATE = 'The cluster is up to date: no later version is available.\n';
const UNKNOWN =
  'kubeletadm cannot determine whether a later version is available: dl.k8s.io does not answer. Plan one version with: kubeletadm upgrade plan VERSION\n';

/** `upgrade plan`. */
export async function runUpgradePlan(services: Services, request: UpgradePlanRequest): Promise<ExitCode> {
  const { format, verbosity } = request.output;
  const reporter = services.reporter({ verbosity, format: 'text' });
  const { plan, configuration } = await planClusterUpgrade(services, request, reporter);
  if (format !== 'text') {
    services.output.document(renderKubeadmDocument(upgradePlanDocument(plan), format));
    return 0;
  }
  if (services.programName === 'kubeadm') {
    const checks = `[preflight] Running pre-flight checks.\n${readsClusterConfig('upgrade/config')}[upgrade] Running cluster health checks\n`;
    services.output.stdout(`${checks}${configuration === null ? '' : usedConfig(configuration)}${kubeadmPlanText(plan)}`);
  } else {
    const config = configuration === null ? '' : `${configuration.trimEnd()}\n\n`;
    services.output.stdout(`${config}${upgradePlanText(plan)}`);
  }
  if (plan.upgrades.length === 0) services.output.stderr(plan.complete ? UP_TO_DATE : UNKNOWN);
  return 0;
}

/** @see kubeadm 1.36 cmd/upgrade/common.go printConfiguration */
function usedConfig(configuration: string): string {
  return `[upgrade/config] Configuration used:\n${configuration.replace(/^(?=.)/gm, '\t')}`;
}

export interface UpgradeDiffRequest extends PlanClusterUpgradeRequest {
  readonly verbosity: number;
}

/**
 * `upgrade diff`. kubeadm shows three unchanged lines only with the option: its default is that of a missing field.
 * @see kubeadm 1.36 cmd/upgrade/diff.go
 */
export async function runUpgradeDiff(services: Services, request: UpgradeDiffRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  const isKubeadm = services.programName === 'kubeadm';
  const diff = await diffUpgrade(services, { ...request, contextLines: isKubeadm ? 0 : 3 }, reporter);
  services.output.stdout(`${isKubeadm ? readsClusterConfig('upgrade/diff') : ''}${diff}`);
  return 0;
}
