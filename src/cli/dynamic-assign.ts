import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { notEnabled, otherNamespace, rolloutBlocked } from '../dynamic/dynamic-problems.ts';
import type { Backend, NodeConfig } from '../dynamic/node-config.ts';
import { planBatches } from '../dynamic/rollout.ts';
import { type AssignedBy, applyAssignment, findPayload, planAssignment } from '../dynamic/workflows/assign-config.ts';
import { readNodes } from '../dynamic/workflows/read-nodes.ts';
import type { PhasePlan } from '../host/plan/change.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type ConfigSource, describeSource, parseSourceArgument } from '../kubelet/config-source.ts';
import type { CommandOptions } from './command.ts';
import { requireGoodPayload } from './dynamic-payload.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import { performPush, planPushedFile } from './dynamic-push.ts';
import { performRollout } from './dynamic-rollout.ts';
import { type RolloutOptions, readRolloutOptions } from './dynamic-rules.ts';
import { findNodeNames, type NodeChoice, readNodeChoice } from './dynamic-targets.ts';
import { eventReporter } from './event-reporter.ts';
import { openCluster } from './open-cluster.ts';
import { flagText, verbosityOf } from './read-options.ts';
import type { Services } from './services.ts';

/**
 * `dynamic assign NODE...|--selector L|--group G --configmap NS/NAME/KEY | --file F`, batch by batch. Exit code 5 when the only node fell back, or all have back what
 * they had; 4 when only some nodes are there.
 */
export async function runDynamicAssign(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const run = beginRun(services, args, options);
  const [argument, file] = [flagText(options, 'configmap'), flagText(options, 'file')];
  if (argument === undefined && file === undefined) throw usageError('dynamic assign: nothing to assign', 'Pass --configmap or --file');
  if (argument !== undefined && file !== undefined)
    throw usageError('dynamic assign: --configmap and --file exclude each other', 'Pass one of them');
  const given = argument === undefined ? null : readSource(argument);
  const text = file === undefined ? null : await services.input.readText(file);
  return withCluster(services, { options, reporter: run.reporter }, async (cluster) => {
    const names = await findNodeNames(services, cluster, run.choice, options);
    const nodes = await readNodes(cluster, names, run.backend);
    if (options.force !== true) requireEnabled(nodes);
    const push =
      file === undefined || text === null ? null : await planPushedFile(services, { file, text, cluster, options, reporter: run.reporter });
    const source = push?.source ?? (given as ConfigSource);
    requireReadable(nodes, source);
    const payload = push === null ? await findPayload(cluster, source) : null;
    if (payload !== null) {
      await requireGoodPayload(payload.text, describeSource(source), { nodes, options, reporter: run.reporter });
      if (!payload.isImmutable) run.reporter.report({ level: 'warning', code: 'DYNAMIC_PAYLOAD_MUTABLE', message: mutable(source) });
    }
    for (const node of nodes) warnOfNode(node, run.reporter);
    if (options.dryRun === true)
      return showPlan(services, options, { cluster, nodes, desired: source, rollout: run.rollout, push: push?.plan });
    if (push !== null) await performPush(cluster, push, run.reporter);
    return perform(services, cluster, { ...run, names, nodes, desired: source, options });
  });
}

/** `dynamic reset NODE...|--selector L|--group G`. */
export async function runDynamicReset(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const run = beginRun(services, args, options);
  return withCluster(services, { options, reporter: run.reporter }, async (cluster) => {
    const names = await findNodeNames(services, cluster, run.choice, options);
    const nodes = await readNodes(cluster, names, run.backend);
    if (options.dryRun === true) return showPlan(services, options, { cluster, nodes, desired: null, rollout: run.rollout });
    // Who never reported will not report that either.
    const silent = nodes.filter(({ status }) => status === null);
    await assignAll(services, cluster, { nodes: silent, desired: null, reporter: run.reporter });
    const others = nodes.filter(({ status }) => status !== null);
    return others.length === 0
      ? 0
      : perform(services, cluster, { ...run, names: others.map(({ name }) => name), nodes: others, desired: null, options });
  });
}

interface Run {
  readonly choice: NodeChoice;
  readonly backend: Backend | undefined;
  readonly rollout: RolloutOptions;
  readonly reporter: Reporter;
}

function beginRun(services: Services, args: readonly string[], options: CommandOptions): Run {
  const choice = readNodeChoice(args, options);
  const verbosity = verbosityOf(options);
  const asEvents = options.dryRun !== true && flagText(options, 'output') === 'json';
  return {
    choice,
    rollout: readRolloutOptions(options),
    backend: flagText(options, 'backend') as Backend | undefined,
    reporter: asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' }),
  };
}

/** What would be done, and in which batches when every node gets there. */
function showPlan(
  services: Services,
  options: CommandOptions,
  {
    cluster,
    nodes,
    desired,
    rollout,
    push,
  }: {
    readonly cluster: Cluster;
    readonly nodes: readonly NodeConfig[];
    readonly desired: ConfigSource | null;
    readonly rollout: RolloutOptions;
    readonly push?: PhasePlan | undefined;
  },
): ExitCode {
  const phase = desired === null ? 'dynamic-reset' : 'dynamic-assign';
  const changes = new Map(nodes.map((node) => [node.name, planAssignment(node, desired, assignedBy(services))]));
  const stages = nodes.map(({ name, isReady }) => ({
    name,
    isReady,
    stage: changes.get(name) === null ? ('passed' as const) : ('waiting' as const),
  }));
  const { batches, blocked } = planBatches(stages, rollout.rulesFor(nodes.length));
  // As the run itself would say.
  if (blocked.length > 0)
    throw new AppError(rolloutBlocked([...changes.values()].filter((change) => change !== null).length, blocked), { exitCode: 3 });
  const noops = nodes.flatMap(({ name }) => (changes.get(name) === null ? [{ changes: [], noop: `${name} is assigned this` }] : []));
  const planned = batches.map(({ names, isCanary, isDown }, i): PhasePlan => {
    const which = `batch ${i + 1}${isCanary ? ', canary' : isDown ? ', down now' : ''}`;
    const inBatch = names.flatMap((name) => changes.get(name) ?? []);
    return { changes: nodes.length === 1 ? inBatch : inBatch.map((change) => ({ ...change, reason: `${which}: ${change.reason}` })) };
  });
  return showClusterPlan(services, options, { phase, plans: [...(push === undefined ? [] : [push]), ...noops, ...planned], cluster });
}

interface Performed extends Run {
  readonly names: readonly string[];
  readonly nodes: readonly NodeConfig[];
  readonly desired: ConfigSource | null;
  readonly options: CommandOptions;
}

async function perform(services: Services, cluster: Cluster, run: Performed): Promise<ExitCode> {
  if (run.rollout.wait !== 'none') return performRollout(services, cluster, run);
  await assignAll(services, cluster, run);
  return 0;
}

/** All at once, whatever becomes of it. */
async function assignAll(
  services: Services,
  cluster: Cluster,
  { nodes, desired, reporter }: Pick<Performed, 'nodes' | 'desired' | 'reporter'>,
): Promise<void> {
  for (const node of nodes) {
    const change = planAssignment(node, desired, assignedBy(services));
    if (change !== null) await applyAssignment(cluster, node, change, desired);
    const what = desired === null ? 'reset' : `assigned ${describeSource(desired)}`;
    const message = change === null ? `nothing to do: it is ${what} already` : what;
    reporter.report({ level: 'info', code: 'DYNAMIC_ASSIGNED', host: node.name, message });
  }
}

function assignedBy({ self, clock }: Services): AssignedBy {
  return { by: self.name, at: clock.now() };
}

function readSource(argument: string): ConfigSource {
  const { source, issue } = parseSourceArgument(argument);
  if (source !== null) return source;
  throw usageError(`--configmap ${argument}: ${issue ?? ''}`, 'Write it as dynamic push prints it: NAMESPACE/NAME/KEY');
}

function requireEnabled(nodes: readonly NodeConfig[]): void {
  const off = nodes.filter(({ status }) => status === null);
  if (off.length > 0)
    throw new AppError(
      off.map(({ name, backend, kubeletVersion }) => notEnabled(name, backend, kubeletVersion)),
      { exitCode: 3 },
    );
}

/** A node may have changed what it says of its agent: that only ever leads to a refusal. */
function requireReadable(nodes: readonly NodeConfig[], source: ConfigSource): void {
  const unreadable = nodes.flatMap(({ name, agentNamespace }) =>
    agentNamespace === null || agentNamespace === source.namespace ? [] : [otherNamespace(name, source, agentNamespace)],
  );
  if (unreadable.length > 0) throw new AppError(unreadable, { exitCode: 3 });
}

/** What a node that is not well makes of an assignment is not to be told from what it had before. */
function warnOfNode({ name, isReady, issues }: NodeConfig, reporter: Reporter): void {
  if (isReady) return;
  const message = `it is not well before anything was changed: ${issues.join('; ')}`;
  reporter.report({ level: 'warning', code: 'NODE_NOT_READY', host: name, message });
}

function mutable(source: ConfigSource): string {
  return `ConfigMap ${source.namespace}/${source.name} is not immutable: any write to it, a label too, restarts every node that uses it, all at once. dynamic push makes immutable ones`;
}

async function withCluster(
  services: Services,
  { options, reporter }: { readonly options: CommandOptions; readonly reporter: Reporter },
  use: (cluster: Cluster) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { cluster } = await openCluster(services, options, { dryRun: false, staged: false, writes: reporter });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}
