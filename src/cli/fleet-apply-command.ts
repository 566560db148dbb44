import { type Command, Option } from 'commander';
import { type AppError, type ExitCode, formatProblem } from '../base/errors.ts';

import { joinLines } from '../base/text/styled.ts';
import type { ApplyFleetRequest, NothingToApply } from '../fleet/use-cases/apply-fleet.ts';
import type { PlanToApprove } from '../fleet/use-cases/approve-plan.ts';
import type { RetriedHosts } from '../fleet/use-cases/run-journal.ts';
import { ALLOW_POD_LOSS, allowText, IMPACT_NOTES } from './allow-options.ts';
import type { On } from './command.ts';
import { addRunOptions, addSignerOptions, fleetRunRequest, type RunTexts, signerFiles } from './fleet-options.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { TAKE_OVER } from './options.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import { shownBefore } from './output/shown-before.ts';
import { DIFF_OF_PLAN, diffOption, outputOption } from './output-options.ts';
import { addPageOptions, type PageFlags, pageFlags } from './page-options.ts';
import type { RunPage } from './report/run-page.ts';
import { withPage } from './report/with-page.ts';
import { outputRequest } from './request-parts.ts';
import { addOrderOption, addRolloutOptions, canaryOption } from './rollout-options.ts';
import { addConfirmOptions, addReasonOption } from './writing-options.ts';

/** `apply`, `fleet apply`. */
export function defineApply(apply: Command, on: On): void {
  apply.argument('[plan]', 'saved plan; a host that changed since the plan was saved is refused (default: apply the fleet file)');
  addRolloutOptions(apply, {
    canary: canaryOption('1, or the canary of the saved plan'),
    maxUnavailable: 'that of the saved plan, otherwise the value of --parallel',
  });
  addOrderOption(apply, 'that of the fleet file, or of the saved plan');
  addOptionGroup(apply, HEADINGS.rollout, (rollout) =>
    rollout
      .option(
        '--replan',
        'for a host that changed since the plan was saved: show the difference and apply a new plan (default: refuse the host)',
      )
      .option('--again', 'reapply a saved plan to hosts that differ from it again after it was applied (default: refuse them)')
      .option(
        '--no-inspect-first',
        'with --yes: do not inspect all hosts before the first is changed; refused hosts are skipped (default: if a reachable host is refused, no host is changed, unless --max-fail permits the number of refused hosts)',
      )
      .addOption(new Option('--retry <result>', 'apply only to the hosts that failed in the last run').choices(['failed'])),
  );
  apply.option(
    '-y, --yes',
    'apply a fleet file without asking (default: show the plan and ask). Without a terminal, this option is required. A saved plan is always applied without asking',
  );
  addSignerOptions(apply);
  apply.addOption(diffOption(DIFF_OF_PLAN));
  addPageOptions(apply.addOption(outputOption(['text', 'json'], 'output format; json: one event per line')));
  on(
    addReasonOption(addConfirmOptions(addRunOptions(apply, APPLY_TEXTS))),
    ([planFile], options): FleetApplyRequest => ({
      ...fleetRunRequest(options),
      planFile,
      isApproved: options.yes === true,
      signers: signerFiles(options),
      inspectsFirst: options.inspectFirst !== false,
      retriesFailed: options.retry !== undefined,
      output: outputRequest(options),
      ...pageFlags(options),
    }),
    runFleetApply,
  );
  addSections(apply, { notes: APPLY_NOTES, examples: APPLY_EXAMPLES });
}

const APPLY_TEXTS: RunTexts = {
  takeOver: TAKE_OVER,
  bundle: 'file made by kubeletadm bundle create; images and files that a host lacks are copied from it',
  allow: allowText('new-pods-only; for a saved plan, the class that the plan was made with'),
  allowPodLoss: ALLOW_POD_LOSS,
  parallel: 'maximum number of hosts inspected or changed at once',
};

const APPLY_NOTES = `Unreachable hosts are reported at the end and do not delay other hosts. After Ctrl-C, the hosts in progress are finished and no other host is changed; a run of one host stops after its current changes and rolls back what is unconfirmed.\n\n${IMPACT_NOTES}`;

const APPLY_EXAMPLES = `  kubeletadm apply -f fleet.yaml --max-unavailable 10% --max-fail 2
  kubeletadm apply plan.json
  kubeletadm apply plan.json --require-signature allowed_signers`;

interface FleetApplyRequest extends ApplyFleetRequest, PageFlags {
  /** JSON: one event per line. */
  readonly output: OutputRequest;
}

/** `fleet apply [PLAN]`, `apply [PLAN]`. */
async function runFleetApply(services: Services, request: FleetApplyRequest): Promise<ExitCode> {
  const { fleetFileOf } = await import('../fleet/use-cases/load-fleet.ts');
  const subject = request.planFile ?? fleetFileOf(request.file);
  const { report, serve, writing } = request;
  const page = { command: 'apply', subject, reason: writing.note?.reason, report, serve };
  const { failure } = await withPage(services, page, async (shown) => ({
    failure: await applyAndPrint(services, request, { page: shown }),
  }));
  if (failure !== null) throw failure;
  return 0;
}

/**
 * @param run.approved called after the operator has approved the plan, before a host is changed
 * @param run.page shows the run
 */
export async function applyAndPrint(
  services: Services,
  request: Omit<FleetApplyRequest, keyof PageFlags>,
  { approved, page = null }: { readonly approved?: () => Promise<void>; readonly page?: RunPage | null },
): Promise<AppError | null> {
  const [{ applyFleet }, { retryLine, withoutCluster }, { watchRun }] = await Promise.all([
    import('../fleet/use-cases/apply-fleet.ts'),
    import('./fleet-report.ts'),
    import('./watch-run.ts'),
  ]);
  const { output } = request;
  const shown = shownBefore();
  let approving = (): void => undefined;
  const asks = request.planFile === undefined && !request.isApproved;
  return applyFleet(services, request, {
    warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
    nothing: (work) => {
      if (output.format !== 'json') services.output.stdout(nothingToDo(work, retryLine));
    },
    approval: {
      obstacle: output.format === 'json' ? '-o json prints only events' : services.canAsk ? null : 'standard input is not a terminal',
      planning: (hosts) => {
        const own = page === null ? null : { of: page, command: 'apply', state: 'planning' as const, hosts, canary: 0 };
        const watch = watchRun(services, output, { title: 'plan', reads: true, events: true, page: own });
        approving = watch.showApproval;
        const { ports, reporter } = watch;
        return {
          ...watch,
          reporter: shown.record(asks ? withoutCluster(reporter) : reporter),
          ports: { ...ports, reporterOf: (host) => shown.record(ports.reporterOf(host)) },
        };
      },
      approve: async (plan) => {
        approving();
        const isApproved = await approve(services, plan, output);
        if (isApproved) await approved?.();
        return isApproved;
      },
    },
    begin: (run) => {
      const title = ['apply', request.planFile ?? request.file ?? ''].join(' ').trim();
      if (run.plan !== null) page?.usePlan(run.plan);
      const own = page === null ? null : { of: page, command: 'apply', state: 'changing' as const, hosts: run.hosts, canary: run.canary };
      const watch = watchRun(services, output, { title, events: true, interruption: run, page: own });
      const ports = { ...watch.ports, reporterOf: (host: string) => shown.omit(watch.ports.reporterOf(host)) };
      return { ...watch, reporter: shown.omit(watch.reporter), ports, done: watch.showEnd };
    },
  });
}

/** Shows the folded plan with its counts, and asks. */
async function approve(services: Services, { outcomes, canary, batches, access }: PlanToApprove, output: OutputRequest): Promise<boolean> {
  const [{ problemsOf }, { canaryLine, clusterLine, foldedLines, orderLine, planSummary }, { showPlanText }] = await Promise.all([
    import('../fleet/run/fleet-failure.ts'),
    import('./fleet-report.ts'),
    import('./output/show-plan.ts'),
  ]);
  const problems = problemsOf(outcomes).map((problem) => `not changed: ${formatProblem(problem)}`);
  const lines = foldedLines(outcomes, output);
  showPlanText(
    services.output,
    joinLines([...clusterLine(access), ...lines, ...problems, ...canaryLine(canary), ...orderLine(batches), planSummary(outcomes)]),
    output,
  );
  return (await services.confirm('Apply these changes? [y/N] ')) === true;
}

/** Limits the summary to hosts that the saved plan and the selection cover. */
function nothingToDo({ unplanned, unchanged, retry }: NothingToApply, retryLine: (retry: RetriedHosts) => string): string {
  if (retry === null && unplanned.length === 0) return 'Nothing to do.\n';
  if (retry === null)
    return unchanged.length === 0
      ? ''
      : `Nothing to do on the ${unchanged.length === 1 ? '1 host' : `${unchanged.length} hosts`} that were planned.\n`;
  return `${retryLine(retry)}\n`;
}
