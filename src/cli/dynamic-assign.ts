import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { FinalOutcome } from '../dynamic/use-cases/perform-rollout.ts';
import { type AssignToNodesRequest, assignToNodes, type NodesRequest } from '../fleet/use-cases/assign-to-nodes.ts';
import { outcomesText } from '../maintenance/member-outcome.ts';
import { watchRollout } from './dynamic-watch.ts';
import { eventReporter } from './event-reporter.ts';
import { nodeDocument } from './node-document.ts';
import { hostsText } from './output/fold-problems.ts';
import { formatSeconds } from './output/live-view.ts';
import type { Services } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import { type PlanRequest, showClusterPlan, type WithPlan } from './output/show-plan.ts';
import type { PageFlags } from './page-options.ts';
import { showUnfinished } from './recap.ts';
import type { RunPage } from './report/run-page.ts';
import { withPage } from './report/with-page.ts';

export type DynamicAssignRequest = WithPlan<AssignToNodesRequest> & PageFlags;

export type DynamicResetRequest = WithPlan<NodesRequest> & PageFlags;

/**
 * `dynamic assign` for nodes by name, selector or group, batch by batch. Exit code 5 when the only node rejected
 * or rolled back the configuration, or all nodes have their previous assignment again; 4 when only some nodes
 * are updated.
 */
export async function runDynamicAssign(services: Services, request: DynamicAssignRequest): Promise<ExitCode> {
  return assign(services, request);
}

/** `dynamic reset NODE...|--selector L|--group G`. */
export async function runDynamicReset(services: Services, request: DynamicResetRequest): Promise<ExitCode> {
  return assign(services, { ...request, assigned: null, force: true, allowPodLoss: false });
}

async function assign(services: Services, request: DynamicAssignRequest): Promise<ExitCode> {
  const command = request.assigned === null ? 'dynamic reset' : 'dynamic assign';
  const { report, serve, reason } = request;
  const run = async (page: RunPage | null) => ({ failure: null, exitCode: await assignAndPrint(services, request, { command, page }) });
  return (await withPage(services, { command, subject: '', reason, report, serve }, run)).exitCode;
}

async function assignAndPrint(
  services: Services,
  request: DynamicAssignRequest,
  { command, page }: { readonly command: string; readonly page: RunPage | null },
): Promise<ExitCode> {
  const { assigned, plan } = request;
  const { verbosity, format } = plan;
  const asEvents = !request.run.dryRun && format === 'json';
  const shown = asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' });
  const reporter = page === null ? shown : page.namingCluster(shown);
  const watch = watchRollout(services, { reporter, title: command, rollout: request.rollout, asEvents, page });
  const result = await assignToNodes(services, request, {
    reporter,
    listenerFor: watch.listenerFor,
    ended: (final) => {
      watch.ended(final);
      watch.close();
      showResult(services, { format, reporter, elapsedMs: services.clock.now().getTime() - watch.startedAt }, final);
    },
  }).finally(() => watch.close());
  if (result.kind === 'planned')
    return showClusterPlan(services, plan, { phase: assigned === null ? 'dynamic-reset' : 'dynamic-assign', ...result });
  const { exitCode, problems } = result.end;
  if (exitCode === 0) return 0;
  throw new AppError(problems, { exitCode });
}

/**
 * `12 nodes: 9 changed, 1 failed, 2 not started.`, or the nodes as a document; in event mode the last event.
 */
function showResult(
  services: Services,
  { format, reporter, elapsedMs }: { readonly format: PlanRequest['format']; readonly reporter: Reporter; readonly elapsedMs: number },
  final: readonly FinalOutcome[],
): void {
  const outcomes = final.map(({ stage }) => stage);
  const message = `${outcomesText(outcomes, 'node')}.`;
  const items = final.map(({ stage, outcome }) => ({ stage, ...nodeDocument(outcome.validated) }));
  if (format === 'json') reporter.report({ level: 'info', code: 'ROLLOUT_ENDED', message, data: { items } });
  else if (format === 'yaml')
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigList', items }, format));
  else if (final.length > 1) {
    const unfinished = final.filter(({ stage }) => stage !== 'changed' && stage !== 'unchanged');
    // The reasons follow as errors.
    showUnfinished(
      services.output,
      unfinished.map(({ stage, outcome: { name } }) => ({ status: stage, name })),
      (nodes) =>
        hostsText(
          nodes.map(({ name }) => name),
          'nodes',
        ),
    );
    services.output.stdout(`${message}\n`);
    services.output.stderr(`took ${formatSeconds(elapsedMs)}\n`);
  }
}
