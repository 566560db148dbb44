import { onAbort } from '../base/abort.ts';
import { AppError, type ExitCode, interrupted, isAppError, type Problem } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { type FleetMember, type FleetProgress, type HostOutcome, runFleet } from '../fleet/fleet.ts';
import { hostBlocks } from '../fleet/host-blocks.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { hostWriting, type WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { type MemberWriting, workflowMember } from '../fleet/workflow-member.ts';
import type { Host } from '../host/host.ts';
import type { Warning } from '../host/plan/change.ts';
import { planDocument, planIsEmpty } from '../host/plan/document.ts';
import type { Workflow, WorkflowResult } from '../host/run-workflow.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type NodeClaims, nodeClaims } from '../kubeadm/node-claims.ts';
import { type InterruptionLog, interruptedMessage, interruptionLog, watchForcedExit } from './fleet-interruption.ts';
import { summaryLine } from './fleet-report.ts';
import { progressLog } from './progress-log.ts';
import type { Services } from './services.ts';
import { type PlanRequest, renderPlan } from './show-plan.ts';

export interface HostsRun<Options, Input> {
  readonly workflow: Workflow<Options, Input>;
  readonly targets: readonly HostTarget[];
  readonly cluster: Cluster | null;
  /** In place of `cluster` where each host has its own way to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster | null>;
  readonly workflowOptions: Options;
  readonly plan: PlanRequest;
  /** Null: only new files are written, which no other run changes. Then no rights are needed but those to the directories. */
  readonly writing: WritingRequest | null;
  readonly reporter: Reporter;
  readonly warnings: readonly Warning[];
  readonly dryRun: boolean;
  /** Phases left out by the configuration file. */
  readonly skipPhases: readonly string[];
  readonly onlyPhase?: string;
  /** Something is done for the Nodes of the hosts: all hosts are looked at first, and none is changed whose Node another one claims. */
  readonly oneHostPerNode?: boolean;
}

/** Hosts that are worked on at a time. */
const DEFAULT_PARALLEL = 50;

/**
 * Runs a workflow on the hosts, several at a time, prints the plan (dry run) or what became of them, and gives the exit code. With several hosts one that fails does
 * not keep the others from theirs, what each says stays together, and phases that have nothing to do are told with `-v`.
 */
export async function runOnHosts<Options, Input>(services: Services, run: HostsRun<Options, Input>): Promise<ExitCode> {
  for (const { code, message } of run.warnings) run.reporter.report({ level: 'warning', code, message });
  const several = run.targets.length > 1;
  const writing = run.writing === null ? null : hostWriting(services, run.writing);
  const blocks = hostBlocks(run.reporter, { applies: !run.dryRun });
  const observesFirst = run.oneHostPerNode === true;
  const maxOpen = observesFirst ? Math.max(DEFAULT_PARALLEL, run.targets.length) : DEFAULT_PARALLEL;
  const rules = { canary: 0, serial: DEFAULT_PARALLEL, maxFail: null, parallel: DEFAULT_PARALLEL, maxOpen };
  const claims = nodeClaims();
  const members = await Promise.all(
    run.targets.map(async (target) =>
      memberOf(services, run, { target, claims, writing: run.dryRun || writing === null ? null : await writing(target) }),
    ),
  );
  const log = progressLog(services, run.reporter);
  const interruption = watchInterruption(services, run, members);
  const { outcomes } = await runFleet(
    members,
    { ...rules, dryRun: run.dryRun, proveUnchanged: true, observesFirst },
    {
      signal: services.signal,
      claims,
      reporterOf: (host) => interruption.of(host, log.of(host, several ? blocks.of(host) : run.reporter)),
      begins: async (host) => interruption.began(host),
      ended: async (outcome) => {
        interruption.ended(outcome);
        if (several) blocks.ended(outcome);
      },
      progress: (progress) => {
        interruption.progress(progress);
        log.progress(progress);
      },
    },
  ).finally(() => {
    interruption.close();
    log.close();
  });
  const shown = outcomes.filter(({ plan, error }) => plan !== null && (error === null || run.dryRun));
  const failures = [
    ...new Set(outcomes.filter((outcome) => !shown.includes(outcome)).map(({ error }) => error ?? reasonOfInterruption(services))),
  ];
  if (!several && failures[0] !== undefined) throw failures[0];
  const results = shown.flatMap(({ plan }) => plan ?? []);
  const code = finish(services, run, { results, outcomes });
  if (failures.length === 0) return code;
  throw new AppError(
    failures.flatMap((failure) => failure.problems),
    { exitCode: exitCodeOf(failures, { interrupted: services.signal.aborted, allFailed: results.length === 0 }) },
  );
}

interface InterruptionWatch extends Omit<InterruptionLog, 'lines'> {
  progress(progress: FleetProgress): void;
  close(): void;
}

/** A first interruption is reported for several hosts: with one, the host itself does it. A second one reports the state of each host. */
function watchInterruption(
  services: Services,
  { dryRun, reporter }: Pick<HostsRun<never, never>, 'dryRun' | 'reporter'>,
  members: readonly FleetMember[],
): InterruptionWatch {
  const hosts = interruptionLog(
    services.clock,
    members.map(({ name }) => name),
  );
  if (dryRun) return { ...hosts, progress: () => undefined, close: () => undefined };
  let changing: readonly string[] = [];
  const forget = onAbort(members.length > 1 ? services.signal : undefined, () =>
    reporter.report({ level: 'warning', code: 'INTERRUPTED', message: interruptedMessage(changing) }),
  );
  const removeExitListener = watchForcedExit(services, hosts, { next: 'Go on: run the same command again.' });
  return {
    ...hosts,
    progress: (progress) => {
      changing = progress.changing;
    },
    close: () => {
      forget();
      removeExitListener();
    },
  };
}

function exitCodeOf(failures: readonly AppError[], { interrupted, allFailed }: { interrupted: boolean; allFailed: boolean }): ExitCode {
  const last = failures.at(-1)?.exitCode ?? 1;
  if (interrupted) return last;
  return allFailed && failures.every(({ exitCode }) => exitCode === last) ? last : 4;
}

/** Why a host was not begun: nothing else stops this run. */
function reasonOfInterruption({ signal }: Services): AppError {
  return isAppError(signal.reason) ? signal.reason : interrupted('SIGINT');
}

function memberOf<Options, Input>(
  services: Services,
  run: HostsRun<Options, Input>,
  { target, claims, writing }: { readonly target: HostTarget; readonly claims: NodeClaims; readonly writing: MemberWriting | null },
): FleetMember {
  const { workflow, workflowOptions, cluster, clusterOf, onlyPhase } = run;
  return workflowMember({
    name: target.address ?? target.rootDir ?? 'localhost',
    workflow,
    options: workflowOptions,
    run: {
      dryRun: run.dryRun,
      skipPhases: [...new Set([...run.plan.skipPhases, ...run.skipPhases])],
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
    },
    connect: () => services.connectHost(target),
    cluster,
    ...(clusterOf === undefined ? {} : { clusterOf }),
    clock: services.clock,
    writing,
    claims,
  });
}

function finish<Options, Input>(
  services: Services,
  run: HostsRun<Options, Input>,
  { results, outcomes }: { readonly results: readonly WorkflowResult[]; readonly outcomes: readonly HostOutcome[] },
): ExitCode {
  const { dryRun } = run;
  const { format, verbosity, showOrigin, failsIfChanged } = run.plan;
  const withOrigins = showOrigin ? results.map(({ host }) => host) : results.map(({ host: { origins: _, ...host } }) => host);
  const plan = planDocument(withOrigins, [...run.warnings, ...results.flatMap((result) => result.warnings)], run.cluster);
  if (dryRun || format !== 'text') {
    const noops = outcomes.length === 1 || verbosity > 0;
    services.output.stdout(renderPlan(plan, format, { noops, verbosity }));
  } else if (outcomes.length > 1) services.output.stdout(`${summaryLine(outcomes)}\n`);
  else if (planIsEmpty(plan)) services.output.stdout('Nothing to do.\n');
  const refusals: readonly Problem[] = results.flatMap((result) => result.refusals);
  if (refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
  return dryRun && failsIfChanged && !planIsEmpty(plan) ? 6 : 0;
}
