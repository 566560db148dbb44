import type { ExitCode } from '../base/errors.ts';
import { releaseOfVersion } from '../base/kubernetes-version.ts';
import { joinLines } from '../base/text/styled.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { openUpgradeApply, type UpgradeApplyRequest } from '../fleet/use-cases/open-upgrade-apply.ts';
import { openUpgradeNode, type UpgradeNodeRequest } from '../fleet/use-cases/open-upgrade-node.ts';
import { isClusterChange } from '../host/plan/change.ts';
import type { PlannedWorkflow } from '../host/run-workflow.ts';
import { isRecovery } from '../kubeadm/workflows/upgrade/recover-upgrade.ts';
import { upgradeDone } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface UpgradeApplyCommandRequest extends UpgradeApplyRequest {
  readonly plan: PlanRequest;
}

export interface UpgradeNodeCommandRequest extends UpgradeNodeRequest {
  readonly plan: PlanRequest;
}

/** `upgrade apply VERSION` and `upgrade apply phase NAME... VERSION`. */
export async function runUpgradeApply(services: Services, request: UpgradeApplyCommandRequest): Promise<ExitCode> {
  const { plan } = request;
  return runOnHosts(services, request, {
    title: 'upgrade apply',
    open: (scope) =>
      openUpgradeApply(services, request, {
        ...scope,
        confirm: (version, planned) => services.confirm(`${question(version, planned)} [y/N] `),
        showConfig: (cluster) => services.output.stdout(encodeYaml(cluster)),
      }),
    afterwards: ({ version, run, left }) => {
      if (run.dryRun || request.run.onlyPhase !== undefined || plan.format !== 'text') return;
      const isComplete = left.length === 0;
      services.output.stdout(services.programName === 'kubeadm' && isComplete ? upgradeDone(version) : upgradeResult(version, left));
    },
  });
}

/** @param left skipped phases without which the control plane is not upgraded or not verified */
export function upgradeResult(version: string, left: readonly string[]): string {
  const release = releaseOfVersion(version);
  if (left.length > 0) return joinLines(['', `This control plane was not completely upgraded to ${release}: skipped ${left.join(', ')}.`]);
  return joinLines([
    '',
    `This control plane was upgraded to ${release}.`,
    'Upgrade the other control planes next, one after the other, then the workers: kubeletadm upgrade node --host HOST',
  ]);
}

/** Names what the plan does, the version and the size of the plan, which --dry-run shows in full. */
function question(version: string, { host }: PlannedWorkflow): string {
  const changes = host.phases.flatMap(({ plan }) => plan.changes);
  const objects = changes.filter(isClusterChange).length;
  const counts = `${changes.length - objects} changes on ${host.name}, ${objects} in the cluster; --dry-run shows them`;
  if (isRecovery(host)) return `Roll back the interrupted upgrade of the control plane? (${counts})`;
  return `Upgrade the control plane to ${releaseOfVersion(version)}? (${counts})`;
}

/** `upgrade node` and `upgrade node phase NAME...`. */
export function runUpgradeNode(services: Services, request: UpgradeNodeCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, { title: 'upgrade node', open: (scope) => openUpgradeNode(services, request, scope) });
}
