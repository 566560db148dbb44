import { AppError, type ExitCode, type Problem } from '../core/errors.ts';
import type { Warning } from '../core/plan/change.ts';
import { planDocument, planIsEmpty } from '../core/plan/document.ts';
import type { Workflow, WorkflowResult, WorkflowRun } from '../engine/run-workflow.ts';
import { runWorkflow } from '../engine/run-workflow.ts';
import { tellingHost } from '../engine/telling-host.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import type { CommandOptions } from './program.ts';
import { flagList, flagText } from './read-options.ts';
import { type PlanFormat, renderPlan } from './show-plan.ts';

export interface HostsRun<Options, Input> {
  readonly workflow: Workflow<Options, Input>;
  readonly targets: readonly HostTarget[];
  readonly cluster: Cluster | null;
  /** In place of `cluster` where each host has its own way to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster>;
  readonly workflowOptions: Options;
  readonly options: CommandOptions;
  readonly reporter: Reporter;
  readonly warnings: readonly Warning[];
  readonly dryRun: boolean;
  /** Phases left out by the configuration file. */
  readonly skipPhases: readonly string[];
  readonly onlyPhase?: string;
}

/**
 * Runs a workflow on each host in turn, prints the plan (dry run) or what was done, and gives the exit code. With several hosts one that fails does not keep
 * the others from theirs.
 */
export async function runOnHosts<Options, Input>(services: Services, run: HostsRun<Options, Input>): Promise<ExitCode> {
  for (const { code, message } of run.warnings) run.reporter.report({ level: 'warning', code, message });
  const results: WorkflowResult[] = [];
  const failures: AppError[] = [];
  for (const target of run.targets) {
    try {
      results.push(await runOnHost(services, run, target));
    } catch (error) {
      if (run.targets.length === 1 || !(error instanceof AppError)) throw error;
      failures.push(error);
      if (services.signal.aborted) break;
    }
  }
  const code = finish(services, run, results);
  if (failures.length === 0) return code;
  throw new AppError(
    failures.flatMap((failure) => failure.problems),
    { exitCode: exitCodeOf(failures, { interrupted: services.signal.aborted, allFailed: results.length === 0 }) },
  );
}

function exitCodeOf(failures: readonly AppError[], { interrupted, allFailed }: { interrupted: boolean; allFailed: boolean }): ExitCode {
  const last = failures.at(-1)?.exitCode ?? 1;
  if (interrupted) return last;
  return allFailed && failures.every(({ exitCode }) => exitCode === last) ? last : 4;
}

async function runOnHost<Options, Input>(services: Services, run: HostsRun<Options, Input>, target: HostTarget): Promise<WorkflowResult> {
  const host = tellingHost(await services.connectHost(target), run.reporter);
  let own: Cluster | null = null;
  try {
    own = (await run.clusterOf?.(host)) ?? null;
    const context = { host, cluster: own ?? run.cluster, clock: services.clock, reporter: run.reporter, signal: services.signal };
    const workflowRun: WorkflowRun = {
      dryRun: run.dryRun,
      skipPhases: [...new Set([...flagList(run.options, 'skipPhases'), ...run.skipPhases])],
      ...(run.onlyPhase === undefined ? {} : { onlyPhase: run.onlyPhase }),
    };
    return await runWorkflow(run.workflow, context, run.workflowOptions, workflowRun);
  } finally {
    await own?.close();
    await host.close();
  }
}

function finish<Options, Input>(services: Services, run: HostsRun<Options, Input>, results: readonly WorkflowResult[]): ExitCode {
  const { options, dryRun } = run;
  const withOrigins =
    options.showOrigin === true ? results.map(({ host }) => host) : results.map(({ host: { origins: _, ...host } }) => host);
  const plan = planDocument(withOrigins, [...run.warnings, ...results.flatMap((result) => result.warnings)]);
  const format = (flagText(options, 'output') ?? 'text') as PlanFormat;
  if (dryRun || format !== 'text') services.output.stdout(renderPlan(plan, format, services.output.colour));
  else if (planIsEmpty(plan)) services.output.stdout('Nothing to do.\n');
  const refusals: readonly Problem[] = results.flatMap((result) => result.refusals);
  if (refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
  return dryRun && options.exitCode === true && !planIsEmpty(plan) ? 6 : 0;
}
