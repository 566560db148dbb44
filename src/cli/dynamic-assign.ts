import { type ConfigIdentity, type ConfigSource, describeSource, parseSourceArgument } from '../core/dynamic/config-source.ts';
import type { Backend, NodeConfig } from '../core/dynamic/node-config.ts';
import { AppError, type ExitCode, usageError } from '../core/errors.ts';
import { notEnabled } from '../core/problems/dynamic.ts';
import { parseGoDuration } from '../core/text/go-duration.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { Services } from '../ports/services.ts';
import {
  type Assignment,
  applyAssignment,
  findPayload,
  outcomeProblem,
  planAssignment,
  waitForConfig,
} from '../workflows/dynamic/assign-config.ts';
import { type JudgedNode, readNodes } from '../workflows/dynamic/read-nodes.ts';
import { requireGoodPayload } from './dynamic-payload.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import { performPush, planPushedFile } from './dynamic-push.ts';
import { nodeDocument } from './dynamic-status.ts';
import { openCluster } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagText, verbosityOf } from './read-options.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `dynamic assign NODE... --configmap NS/NAME/KEY | --file F`. Exit code 5 when a node fell back. */
export async function runDynamicAssign(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const run = beginRun(services, args, options);
  const [argument, file] = [flagText(options, 'configmap'), flagText(options, 'file')];
  if ((argument === undefined) === (file === undefined))
    throw usageError('what to assign is not clear', 'Give either --configmap or --file');
  const given = argument === undefined ? null : readSource(argument);
  const text = file === undefined ? null : await services.input.readText(file);
  return withCluster(services, options, async (cluster) => {
    const nodes = await readNodes(cluster, run.names, run.backend);
    if (options.force !== true) requireEnabled(nodes);
    const push =
      file === undefined || text === null ? null : await planPushedFile(services, { file, text, cluster, options, reporter: run.reporter });
    const source = push?.source ?? (given as ConfigSource);
    const payload = push === null ? await findPayload(cluster, source) : null;
    if (payload !== null) {
      await requireGoodPayload(payload.text, describeSource(source), { nodes, options, reporter: run.reporter });
      if (!payload.isImmutable) run.reporter.report({ level: 'warning', code: 'DYNAMIC_PAYLOAD_MUTABLE', message: mutable(source) });
    }
    for (const node of nodes) warnOfNode(node, run.reporter);
    const changes = nodes.map((node) => ({ node, change: planAssignment(node, source) }));
    if (run.dryRun)
      return showClusterPlan(services, options, {
        phase: 'dynamic-assign',
        plans: [...(push === null ? [] : [push.plan]), ...plansOf(changes)],
      });
    if (push !== null) await performPush(cluster, push, run.reporter);
    const identity = payload?.identity ?? (await findPayload(cluster, source)).identity;
    await perform(cluster, changes, source, run.reporter);
    return settle(services, cluster, { ...run, options, wanted: identity });
  });
}

/** `dynamic reset NODE...`. */
export async function runDynamicReset(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const run = beginRun(services, args, options);
  return withCluster(services, options, async (cluster) => {
    const nodes = await readNodes(cluster, run.names, run.backend);
    const changes = nodes.map((node) => ({ node, change: planAssignment(node, null) }));
    if (run.dryRun) return showClusterPlan(services, options, { phase: 'dynamic-reset', plans: plansOf(changes) });
    await perform(cluster, changes, null, run.reporter);
    const reporting = nodes.filter(({ status }) => status !== null).map(({ name }) => name);
    return settle(services, cluster, { ...run, names: reporting, options, wanted: null });
  });
}

interface Run {
  readonly names: readonly string[];
  readonly dryRun: boolean;
  readonly backend: Backend | undefined;
  readonly reporter: Reporter;
}

function beginRun(services: Services, args: readonly string[], options: CommandOptions): Run {
  const names = [...new Set(args)];
  if (names.length === 0) throw usageError('no node was named', 'kubectl get nodes lists them');
  timeoutOf(options);
  return {
    names,
    dryRun: options.dryRun === true,
    backend: flagText(options, 'backend') as Backend | undefined,
    reporter: services.reporter({ verbosity: verbosityOf(options), format: 'text' }),
  };
}

interface Planned {
  readonly node: NodeConfig;
  readonly change: Assignment | null;
}

function plansOf(changes: readonly Planned[]) {
  return changes.map(({ node, change }) =>
    change === null ? { changes: [], noop: `${node.name} is assigned this` } : { changes: [change] },
  );
}

async function perform(cluster: Cluster, changes: readonly Planned[], wanted: ConfigSource | null, reporter: Reporter): Promise<void> {
  for (const { node, change } of changes) {
    if (change !== null) await applyAssignment(cluster, node, change, wanted);
    const what = wanted === null ? 'reset' : `assigned ${describeSource(wanted)}`;
    const message = change === null ? `nothing to do: it is ${what} already` : what;
    reporter.report({ level: 'info', code: 'DYNAMIC_ASSIGNED', host: node.name, message });
  }
}

interface Settle extends Run {
  readonly options: CommandOptions;
  readonly wanted: ConfigIdentity | null;
}

/** Waits as `--wait` says, prints where the nodes are, and says what is wrong with the others. */
async function settle(services: Services, cluster: Cluster, { names, options, wanted, reporter, backend }: Settle): Promise<ExitCode> {
  const wait = flagText(options, 'wait') ?? 'trial';
  if (wait === 'none' || names.length === 0) return 0;
  const timeoutMs = timeoutOf(options) ?? (wait === 'good' ? 900_000 : 180_000);
  const outcomes = await waitForConfig(cluster, names, {
    clock: services.clock,
    signal: services.signal,
    timeoutMs,
    backend,
    wanted,
    until: wait === 'good' ? 'good' : 'trial',
    onState: (node) => reporter.report({ level: 'info', code: 'DYNAMIC_STATE', host: node.config.name, message: stateLine(node) }),
  });
  const format = formatOf(options);
  if (format !== 'text') {
    const items = outcomes.map(({ node }) => nodeDocument(node));
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigList', items }, format));
  }
  const failed = outcomes.filter(({ reached }) => !reached);
  if (failed.length === 0) return 0;
  const fellBack = failed.some(({ node }) => node.verdict.state === 'fell-back');
  throw new AppError(
    failed.map((outcome) => outcomeProblem(outcome, timeoutMs)),
    { exitCode: fellBack ? 5 : 1 },
  );
}

function stateLine({ verdict }: JudgedNode): string {
  return `${verdict.state}${verdict.why === null ? '' : `: ${verdict.why}`}`;
}

function readSource(argument: string): ConfigSource {
  const { source, trouble } = parseSourceArgument(argument);
  if (source !== null) return source;
  throw usageError(`--configmap ${argument}: ${trouble ?? ''}`, 'Write it as dynamic push prints it: NAMESPACE/NAME/KEY');
}

function requireEnabled(nodes: readonly NodeConfig[]): void {
  const off = nodes.filter(({ status }) => status === null);
  if (off.length > 0)
    throw new AppError(
      off.map(({ name, backend, kubeletVersion }) => notEnabled(name, backend, kubeletVersion)),
      { exitCode: 3 },
    );
}

/** What a node that is not well makes of an assignment is not to be told from what it had before. */
function warnOfNode({ name, isReady, troubles }: NodeConfig, reporter: Reporter): void {
  if (isReady) return;
  const message = `it is not well before anything was changed: ${troubles.join('; ')}`;
  reporter.report({ level: 'warning', code: 'NODE_NOT_READY', host: name, message });
}

function mutable(source: ConfigSource): string {
  return `ConfigMap ${source.namespace}/${source.name} is not immutable: any write to it, a label too, restarts every node that uses it, all at once. dynamic push makes immutable ones`;
}

function timeoutOf(options: CommandOptions): number | null {
  const text = flagText(options, 'timeout');
  if (text === undefined) return null;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds <= 0n) throw usageError(`--timeout ${text}: no duration`, 'Write it like 90s or 5m');
  return Number(nanoseconds / 1_000_000n);
}

async function withCluster(services: Services, options: CommandOptions, use: (cluster: Cluster) => Promise<ExitCode>): Promise<ExitCode> {
  const { cluster } = await openCluster(services, options, { dryRun: false, staged: false });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}
