import { AppError, declined, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { FinalOutcome } from '../dynamic/use-cases/perform-rollout.ts';
import { type AssignToNodesRequest, assignToNodes, type NodesRequest, type PlannedAssignment } from '../fleet/use-cases/assign-to-nodes.ts';
import type { GateRecord } from '../maintenance/gates/batch-gates.ts';
import { outcomesText } from '../maintenance/member-outcome.ts';
import { watchRollout } from './dynamic-watch.ts';
import { eventReporter } from './event-reporter.ts';
import { nodeDocument } from './node-document.ts';
import { hostsText } from './output/fold-problems.ts';
import { formatSeconds } from './output/live-view.ts';
import type { Services } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import { type PlanRequest, requireTerminal, showClusterPlan, type WithPlan } from './output/show-plan.ts';
import type { PageFlags } from './page-options.ts';
import { gateSummary, showUnfinished } from './recap.ts';
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

export interface DynamicUndoRequest extends DynamicResetRequest, Pick<AssignToNodesRequest, 'allowPodLoss'> {
  /** As of `decideNodeUndos`. */
  readonly to: string | undefined;
  readonly yes: boolean;
}

/** `dynamic undo NODE...|--selector L|--group G`: as `dynamic assign`, after a question. */
export async function runDynamicUndo(services: Services, { to, yes, ...request }: DynamicUndoRequest): Promise<ExitCode> {
  const asks = !yes && !request.run.dryRun;
  if (asks) requireTerminal(services, request.plan, 'dynamic undo');
  return assign(services, { ...request, assigned: { kind: 'previous', to }, force: false }, { asks });
}

/** `edit NODE`: as `dynamic assign`, after a question. */
export async function runDynamicEdit(
  services: Services,
  request: Omit<DynamicAssignRequest, keyof PageFlags>,
  { asks }: { readonly asks: boolean },
): Promise<ExitCode> {
  return assign(services, { ...request, report: undefined, serve: undefined }, { asks });
}

async function assign(services: Services, request: DynamicAssignRequest, { asks = false } = {}): Promise<ExitCode> {
  const phase = request.assigned === null ? 'dynamic-reset' : request.assigned.kind === 'previous' ? 'dynamic-undo' : 'dynamic-assign';
  const command = phase.replace('-', ' ');
  const { report, serve, reason } = request;
  const run = async (page: RunPage | null) => ({
    failure: null,
    exitCode: await assignAndPrint(services, request, { command, phase, page, asks }),
  });
  return (await withPage(services, { command, subject: '', reason, report, serve }, run)).exitCode;
}

async function assignAndPrint(
  services: Services,
  request: DynamicAssignRequest,
  {
    command,
    phase,
    page,
    asks,
  }: { readonly command: string; readonly phase: string; readonly page: RunPage | null; readonly asks: boolean },
): Promise<ExitCode> {
  const { plan } = request;
  const { verbosity, format } = plan;
  const asEvents = !request.run.dryRun && format === 'json';
  const shown = asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' });
  const reporter = page === null ? shown : page.namingCluster(shown);
  let watch: ReturnType<typeof watchRollout> | null = null;
  const watching = () => (watch ??= watchRollout(services, { reporter, title: command, rollout: request.rollout, asEvents, page }));
  // The live display would cover the question.
  if (!asks) watching();
  const { exitCode, problems } = await assignToNodes(services, request, {
    reporter,
    decide: asks || request.run.dryRun ? (planned) => decide(services, request, { command, phase, ...planned }) : undefined,
    listenerFor: (part) => watching().listenerFor(part),
    ended: (final) => {
      const { startedAt, gates, ended, close } = watching();
      ended(final);
      close();
      const elapsedMs = services.clock.now().getTime() - startedAt;
      showResult(services, { format, reporter, elapsedMs, gates: gates() }, final);
    },
  }).finally(() => watch?.close());
  if (problems.length === 0) return exitCode;
  throw new AppError(problems, { exitCode });
}

/** Shows the plan, and unless it is a dry run asks whether to apply it. Without changes nothing is asked. */
async function decide(
  services: Services,
  { run, plan }: DynamicAssignRequest,
  { command, ...planned }: PlannedAssignment & { readonly phase: string; readonly command: string },
): Promise<ExitCode | null> {
  if (run.dryRun) return showClusterPlan(services, plan, planned);
  if (planned.plans.every(({ changes }) => changes.length === 0)) return null;
  showClusterPlan(services, plan, planned);
  if ((await services.confirm('Apply these changes? [y/N] ')) !== true) throw declined(command);
  return null;
}

/**
 * `12 nodes: 9 changed, 1 failed, 2 not started.`, or the nodes as a document; in event mode the last event.
 */
function showResult(
  services: Services,
  {
    format,
    reporter,
    elapsedMs,
    gates,
  }: {
    readonly format: PlanRequest['format'];
    readonly reporter: Reporter;
    readonly elapsedMs: number;
    readonly gates: readonly GateRecord[];
  },
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
    services.output.stdout(`${[message, ...gateSummary(gates)].join('\n')}\n`);
    services.output.stderr(`took ${formatSeconds(elapsedMs)}\n`);
  }
}
