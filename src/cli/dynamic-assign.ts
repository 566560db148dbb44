import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Backend } from '../dynamic/node-config.ts';
import { type AssignmentRequest, assignedBy, carryOutAssignment, checkAssignment, planRollout } from '../dynamic/use-cases/assign.ts';
import type { FinalOutcome, FinalStage } from '../dynamic/use-cases/perform-rollout.ts';
import type { PushedFileRequest } from '../dynamic/use-cases/push-file.ts';
import type { ValidationRequest } from '../dynamic/use-cases/require-good-payload.ts';
import type { RolloutOptions } from '../dynamic/use-cases/rollout-options.ts';
import { findNodeNames, type NodeChoice } from '../fleet/use-cases/find-node-names.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import type { ConfigSource } from '../kubelet/config-source.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import { nodeDocument } from './dynamic-status.ts';
import { rolloutListener } from './dynamic-watch.ts';
import { eventReporter } from './event-reporter.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

/** What `dynamic assign` and `dynamic reset` share. */
export interface DynamicResetRequest {
  readonly choice: NodeChoice;
  readonly rollout: RolloutOptions;
  /** Undefined: detected from each Node. */
  readonly backend: Backend | undefined;
  readonly cluster: KubeconfigRequest;
  readonly plan: PlanRequest;
}

export interface DynamicAssignRequest extends DynamicResetRequest {
  readonly assigned: AssignedRequest;
  /** Assign to nodes without a reported status as well. */
  readonly force: boolean;
}

/** The assigned source: a ConfigMap, or a file that is pushed first. */
export type AssignedRequest =
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly validation: ValidationRequest }
  | { readonly kind: 'file'; readonly pushed: PushedFileRequest };

/**
 * `dynamic assign` for nodes by name, selector or group, batch by batch. Exit code 5 when the only node rejected
 * or rolled back the configuration, or all nodes have their previous assignment again; 4 when only some nodes
 * are updated.
 */
export async function runDynamicAssign(services: Services, request: DynamicAssignRequest): Promise<ExitCode> {
  const { assigned, force } = request;
  if (assigned.kind === 'config-map') return assign(services, request, { assigned, force });
  const text = await services.input.readText(assigned.pushed.file);
  return assign(services, request, { assigned: { ...assigned, text }, force });
}

/** `dynamic reset NODE...|--selector L|--group G`. */
export async function runDynamicReset(services: Services, request: DynamicResetRequest): Promise<ExitCode> {
  return assign(services, request, { assigned: null, force: true });
}

async function assign(
  services: Services,
  request: DynamicResetRequest,
  { assigned, force }: Pick<AssignmentRequest, 'assigned' | 'force'>,
): Promise<ExitCode> {
  const { choice, rollout, backend, plan } = request;
  const { verbosity, format } = plan;
  const asEvents = !plan.dryRun && format === 'json';
  const reporter = asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' });
  const opened = await openCluster(services, request.cluster, { dryRun: false, staged: false, writes: reporter });
  const cluster = opened.cluster as Cluster;
  try {
    const names = await findNodeNames(services, cluster, choice);
    const checked = await checkAssignment(services, cluster, { names, backend, assigned, force, reporter });
    if (plan.dryRun) {
      const phase = assigned === null ? 'dynamic-reset' : 'dynamic-assign';
      return showClusterPlan(services, plan, { phase, plans: planRollout(checked, rollout, assignedBy(services)), cluster });
    }
    const { exitCode, problems } = await carryOutAssignment(services, cluster, checked, {
      backend,
      rollout,
      selector: choice.selector,
      reporter,
      listenerFor: ({ total, prefix }) => rolloutListener(services, { reporter, total, verb: 'assigned', prefix }),
      ended: (final) => {
        services.output.status?.(null);
        showResult(services, { format, reporter }, final);
      },
    });
    if (exitCode === 0) return 0;
    throw new AppError(problems, { exitCode });
  } finally {
    services.output.status?.(null);
    await cluster.close();
  }
}

const FINAL_STAGES: readonly (readonly [FinalStage, string])[] = [
  ['updated', 'updated'],
  ['unchanged', 'unchanged'],
  ['rolled-back', 'rolled back'],
  ['not-rolled-back', 'not rolled back'],
  ['failed', 'failed'],
  ['unreachable', 'unreachable'],
  ['replaced', 'assigned by another operator'],
  ['in-progress', 'in progress'],
  ['waiting', 'not started'],
];

/**
 * `12 nodes: 9 updated, 1 failed, 2 not started.`, or the nodes as a document; in event mode the last event.
 */
function showResult(
  services: Services,
  { format, reporter }: { readonly format: PlanRequest['format']; readonly reporter: Reporter },
  final: readonly FinalOutcome[],
): void {
  const count = (stage: FinalStage): number => final.filter((one) => one.stage === stage).length;
  const parts = FINAL_STAGES.flatMap(([stage, word]) => (count(stage) === 0 ? [] : [`${count(stage)} ${word}`]));
  const message = `${final.length} ${final.length === 1 ? 'node' : 'nodes'}: ${parts.join(', ')}.`;
  const items = final.map(({ stage, outcome }) => ({ stage, ...nodeDocument(outcome.validated) }));
  if (format === 'json') reporter.report({ level: 'info', code: 'ROLLOUT_ENDED', message, data: { items } });
  else if (format === 'yaml')
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigList', items }, format));
  else if (final.length > 1) services.output.stdout(`${message}\n`);
}
