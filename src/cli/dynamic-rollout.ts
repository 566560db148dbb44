import { onAbort } from '../core/abort.ts';
import { type ConfigSource, describeSource, parseSourceArgument } from '../core/dynamic/config-source.ts';
import type { Backend } from '../core/dynamic/node-config.ts';
import type { RolloutStage } from '../core/dynamic/rollout.ts';
import { AppError, type ExitCode, type Problem } from '../core/errors.ts';
import { namesText } from '../core/fleet/name-ranges.ts';
import { rolloutBlocked, rolloutStopped } from '../core/problems/dynamic.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { RunJournal } from '../ports/run-journals.ts';
import type { Services } from '../ports/services.ts';
import { notThereProblem } from '../workflows/dynamic/assign-config.ts';
import { type RolloutOutcome, type RolloutResult, type RolloutTarget, rollOut } from '../workflows/dynamic/roll-out.ts';
import { minReadyOf, type RolloutWishes } from './dynamic-rules.ts';
import { nodeDocument } from './dynamic-status.ts';
import { rolloutListener } from './dynamic-watch.ts';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';
import { formatOf, renderDocument } from './show-document.ts';

export interface DynamicRollout {
  readonly names: readonly string[];
  /** Null: what they are assigned is taken away. */
  readonly wanted: ConfigSource | null;
  readonly backend: Backend | undefined;
  readonly wishes: RolloutWishes;
  readonly options: CommandOptions;
  readonly reporter: Reporter;
}

/** What the nodes had was proven there: they need not show it for as long again. */
const MIN_READY_BACK_MS = 10_000;

/** What a node had; null: nothing was assigned. */
type Before = ReadonlyMap<string, ConfigSource | null>;

/**
 * Rolls an assignment out, tells of it, and gives nodes back what they had when that is wanted and a node failed.
 * @throws AppError: exit code 4 when only some nodes are there, 5 when all have back what they had or the only node fell back, 3 when none could be begun
 */
export async function performRollout(services: Services, cluster: Cluster, run: DynamicRollout): Promise<ExitCode> {
  const { names, wanted, wishes } = run;
  const memory = names.length > 1 ? await rememberRun(services, cluster, run) : null;
  const before = new Map(memory?.inherited ?? []);
  const ports = portsOf(services, run, { total: names.length, prefix: '' });
  let now: readonly RolloutOutcome[] = [];
  const forget = onAbort(services.signal, () => tellUnderWay(run.reporter, now));
  try {
    const result = await rollOut(
      cluster,
      names.map((name) => ({ name, wanted })),
      {
        ...ports,
        listener: {
          ...ports.listener,
          progress: (nodes) => {
            now = nodes;
            ports.listener.progress?.(nodes);
          },
        },
        rules: wishes.rulesFor(names.length),
        until: wishes.wait === 'good' ? 'good' : 'trial',
        minReadyMs: minReadyOf(wishes, names.length),
        begins: async (name, source) => {
          before.set(name, source);
          await memory?.began(name, source);
        },
      },
    );
    services.output.status?.(null);
    const problems = problemsOf(result, wishes.timeoutMs);
    const failed = result.outcomes.some(({ stage }) => stage === 'failed') || result.blocked.length > 0;
    const touched = [...before.keys()].filter((name) => names.includes(name));
    const reverted =
      failed && wishes.onFailure === 'revert' && touched.length > 0 ? await revert(services, cluster, run, { result, before }) : null;
    showResult(services, run, reverted ?? result);
    const exitCode = exitCodeOf(result, reverted);
    await memory?.ended(exitCode);
    if (exitCode === 0) return 0;
    throw new AppError([...problems, ...(reverted === null ? [] : problemsOf(reverted, wishes.timeoutMs))], { exitCode });
  } finally {
    forget();
    services.output.status?.(null);
    await memory?.close();
  }
}

/** What is assigned is assigned: nodes need nobody who watches. */
function tellUnderWay(reporter: Reporter, nodes: readonly RolloutOutcome[]): void {
  const names = nodes.filter(({ stage }) => stage === 'under-way').map(({ name }) => name);
  if (names.length === 0) return;
  const message = `${namesText(names)} ${names.length === 1 ? 'is' : 'are'} under way, and ${names.length === 1 ? 'goes' : 'go'} on without this`;
  reporter.report({ level: 'warning', code: 'ROLLOUT_INTERRUPTED', message, data: { nodes: names } });
}

/** Points the nodes that were touched back to what they had: those that failed first. */
async function revert(
  services: Services,
  cluster: Cluster,
  run: DynamicRollout,
  { result, before }: { readonly result: RolloutResult; readonly before: Before },
): Promise<RolloutResult> {
  const { reporter, wishes } = run;
  const rank: Readonly<Record<RolloutStage, number>> = { failed: 0, unreached: 1, 'under-way': 2, passed: 3, waiting: 4 };
  const touched = result.outcomes.filter(({ name }) => before.has(name)).toSorted((a, b) => rank[a.stage] - rank[b.stage]);
  const targets: readonly RolloutTarget[] = touched.map(({ name }) => ({ name, wanted: before.get(name) ?? null }));
  const data = { nodes: targets.map(({ name }) => name) };
  reporter.report({ level: 'warning', code: 'ROLLOUT_REVERTING', message: 'giving back to the nodes what they had', data });
  return rollOut(cluster, targets, {
    ...portsOf(services, run, { total: run.names.length, prefix: 'way back, ' }),
    rules: { ...wishes.rulesFor(run.names.length), canary: 0, direction: 'back' },
    until: 'trial',
    minReadyMs: Math.min(minReadyOf({ ...wishes, wait: 'trial' }, run.names.length), MIN_READY_BACK_MS),
  });
}

function portsOf(
  services: Services,
  { reporter, backend, wishes, options }: DynamicRollout,
  { total, prefix }: { readonly total: number; readonly prefix: string },
) {
  return {
    clock: services.clock,
    random: () => services.random(),
    signal: services.signal,
    backend,
    labelSelector: flagText(options, 'selector'),
    timeoutMs: wishes.timeoutMs,
    listener: rolloutListener(services, { reporter, total, verb: 'assigned', prefix }),
  };
}

function exitCodeOf({ outcomes, blocked }: RolloutResult, reverted: RolloutResult | null): ExitCode {
  const isFine = (result: RolloutResult): boolean => result.outcomes.every(({ stage }) => stage === 'passed');
  if (reverted !== null) return isFine(reverted) ? 5 : 4;
  if (outcomes.every(({ stage }) => stage === 'passed')) return 0;
  if (blocked.length > 0 && outcomes.every(({ isTouched }) => !isTouched)) return 3;
  const [only, ...others] = outcomes;
  if (others.length > 0 || only === undefined) return 4;
  if (only.error !== null) return only.error.exitCode;
  return only.judged.verdict.state === 'fell-back' ? 5 : 1;
}

/** A line for each node that is not there, and one for those that were not begun. */
function problemsOf({ outcomes, blocked }: RolloutResult, timeoutMs: number): readonly Problem[] {
  const lost = outcomes.filter(({ stage }) => stage === 'failed' || stage === 'unreached');
  const left = outcomes.filter(({ stage }) => stage === 'waiting');
  const failed = outcomes.filter(({ stage }) => stage === 'failed').map(({ name }) => name);
  return [
    ...lost.flatMap(
      ({ name, error, judged }) => error?.problems.map((one) => ({ host: name, ...one })) ?? [notThereProblem(judged, timeoutMs)],
    ),
    ...(blocked.length > 0 ? [rolloutBlocked(left.length, blocked)] : left.length > 0 ? [rolloutStopped(left.length, failed)] : []),
  ];
}

/** `12 nodes: 9 there, 1 failed, 2 not begun.`, or the nodes as a document; of events the last. */
function showResult(services: Services, { options, reporter, names }: DynamicRollout, { outcomes }: RolloutResult): void {
  const format = formatOf(options);
  const words: readonly (readonly [RolloutStage, string])[] = [
    ['passed', 'there'],
    ['failed', 'failed'],
    ['unreached', 'not reached'],
    ['waiting', 'not begun'],
  ];
  const count = (stage: RolloutStage): number => outcomes.filter((one) => one.stage === stage).length;
  const parts = words.flatMap(([stage, word]) => (count(stage) === 0 ? [] : [`${count(stage)} ${word}`]));
  const message = `${outcomes.length} ${outcomes.length === 1 ? 'node' : 'nodes'}: ${parts.join(', ')}.`;
  const items = outcomes.map(({ stage, judged }: RolloutOutcome) => ({ stage, ...nodeDocument(judged) }));
  if (format === 'json') reporter.report({ level: 'info', code: 'ROLLOUT_ENDED', message, data: { items } });
  else if (format === 'yaml')
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigList', items }, format));
  else if (names.length > 1) services.output.stdout(`${message}\n`);
}

interface RunMemory {
  /** What nodes had before an earlier run of the same that did not come to its end touched them. */
  readonly inherited: Before;
  began(name: string, before: ConfigSource | null): Promise<void>;
  ended(exitCode: ExitCode): Promise<void>;
  close(): Promise<void>;
}

const LOCAL = 'local';

/** Writes a run down, and takes over what the last one of the same left: it may have to be given back. */
async function rememberRun(services: Services, cluster: Cluster, { names, wanted }: DynamicRollout): Promise<RunMemory> {
  const journals = await services.runJournals();
  const what = wanted === null ? 'nothing' : describeSource(wanted);
  const subject = `dynamic assign ${what} ${cluster.server}`;
  const last = await journals.latest(subject);
  const inherited = new Map(last === null || last.exitCode === 0 || last.exitCode === 5 ? [] : [...last.before].flatMap(readBefore));
  const started = services.clock.now();
  const journal: RunJournal = await journals.begin(started);
  const time = (): string => services.clock.now().toISOString();
  const began = (host: string, before: ConfigSource | null): Promise<void> =>
    journal.write({ event: 'host-began', time: time(), host, before: before === null ? LOCAL : describeSource(before) });
  await journal.write({ event: 'run-started', time: started.toISOString(), command: 'dynamic assign', subject, hosts: [...names] });
  for (const [host, before] of inherited) await began(host, before);
  return {
    inherited,
    began,
    ended: (exitCode) => journal.write({ event: 'run-ended', time: time(), exitCode }),
    close: () => journal.close(),
  };
}

function readBefore([host, text]: readonly [string, string]): readonly (readonly [string, ConfigSource | null])[] {
  if (text === LOCAL) return [[host, null]];
  const { source } = parseSourceArgument(text);
  return source === null ? [] : [[host, source]];
}
