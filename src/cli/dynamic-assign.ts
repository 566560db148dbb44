import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { notEnabled, otherNamespace, rolloutBlocked } from '../dynamic/dynamic-problems.ts';
import type { Backend, NodeConfig } from '../dynamic/node-config.ts';
import { planBatches } from '../dynamic/rollout.ts';
import { type AssignedBy, applyAssignment, findPayload, planAssignment } from '../dynamic/workflows/assign-config.ts';
import type { PushPlan } from '../dynamic/workflows/push-config.ts';
import { readNodes } from '../dynamic/workflows/read-nodes.ts';
import type { PhasePlan } from '../host/plan/change.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import { type ConfigSource, describeSource } from '../kubelet/config-source.ts';
import { requireGoodPayload, type ValidationRequest } from './dynamic-payload.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import { type PushedFileRequest, performPush, planPushedFile } from './dynamic-push.ts';
import { performRollout } from './dynamic-rollout.ts';
import type { RolloutOptions } from './dynamic-rules.ts';
import { findNodeNames, type NodeChoice } from './dynamic-targets.ts';
import { eventReporter } from './event-reporter.ts';
import type { Services } from './services.ts';
import type { DocumentFormat } from './show-document.ts';
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

/** `dynamic assign`. */
export interface DynamicAssignRequest extends DynamicResetRequest {
  readonly assigned: AssignedRequest;
  /** Assign to nodes without a reported status as well. */
  readonly force: boolean;
}

/** What is assigned: a ConfigMap, or a file that is pushed first. */
export type AssignedRequest =
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly validation: ValidationRequest }
  | { readonly kind: 'file'; readonly pushed: PushedFileRequest };

/**
 * `dynamic assign NODE...|--selector L|--group G --configmap NS/NAME/KEY | --file F`, batch by batch. Exit code 5 when the only node fell back, or all have back what
 * they had; 4 when only some nodes are there.
 */
export async function runDynamicAssign(services: Services, request: DynamicAssignRequest): Promise<ExitCode> {
  const { assigned, force, plan } = request;
  const run = beginRun(services, request);
  const text = assigned.kind === 'file' ? await services.input.readText(assigned.pushed.file) : '';
  return withCluster(services, { request, reporter: run.reporter }, async (cluster) => {
    const names = await findNodeNames(services, cluster, request.choice);
    const nodes = await readNodes(cluster, names, run.backend);
    if (!force) requireEnabled(nodes);
    const push =
      assigned.kind === 'file' ? await planPushedFile(services, { pushed: assigned.pushed, text, cluster, reporter: run.reporter }) : null;
    const source = assigned.kind === 'config-map' ? assigned.source : (push as PushPlan).source;
    requireReadable(nodes, source);
    if (assigned.kind === 'config-map') {
      const payload = await findPayload(cluster, source);
      await requireGoodPayload(payload.text, describeSource(source), { nodes, validation: assigned.validation, reporter: run.reporter });
      if (!payload.isImmutable) run.reporter.report({ level: 'warning', code: 'DYNAMIC_PAYLOAD_MUTABLE', message: mutable(source) });
    }
    for (const node of nodes) warnOfNode(node, run.reporter);
    if (plan.dryRun) return showPlan(services, plan, { cluster, nodes, desired: source, rollout: run.rollout, push: push?.plan });
    if (push !== null) await performPush(cluster, push, run.reporter);
    return perform(services, cluster, { ...run, names, nodes, desired: source });
  });
}

/** `dynamic reset NODE...|--selector L|--group G`. */
export async function runDynamicReset(services: Services, request: DynamicResetRequest): Promise<ExitCode> {
  const { plan } = request;
  const run = beginRun(services, request);
  return withCluster(services, { request, reporter: run.reporter }, async (cluster) => {
    const names = await findNodeNames(services, cluster, request.choice);
    const nodes = await readNodes(cluster, names, run.backend);
    if (plan.dryRun) return showPlan(services, plan, { cluster, nodes, desired: null, rollout: run.rollout });
    // Who never reported will not report that either.
    const silent = nodes.filter(({ status }) => status === null);
    await assignAll(services, cluster, { nodes: silent, desired: null, reporter: run.reporter });
    const others = nodes.filter(({ status }) => status !== null);
    return others.length === 0
      ? 0
      : perform(services, cluster, { ...run, names: others.map(({ name }) => name), nodes: others, desired: null });
  });
}

interface Run {
  readonly backend: Backend | undefined;
  readonly rollout: RolloutOptions;
  readonly selector: string | undefined;
  readonly format: DocumentFormat;
  readonly reporter: Reporter;
}

function beginRun(services: Services, { choice, rollout, backend, plan }: DynamicResetRequest): Run {
  const { dryRun, format, verbosity } = plan;
  const asEvents = !dryRun && format === 'json';
  return {
    rollout,
    backend,
    selector: choice.selector,
    format,
    reporter: asEvents ? eventReporter(services, verbosity) : services.reporter({ verbosity, format: 'text' }),
  };
}

/** What would be done, and in which batches when every node gets there. */
function showPlan(
  services: Services,
  plan: PlanRequest,
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
  return showClusterPlan(services, plan, { phase, plans: [...(push === undefined ? [] : [push]), ...noops, ...planned], cluster });
}

interface Performed extends Run {
  readonly names: readonly string[];
  readonly nodes: readonly NodeConfig[];
  readonly desired: ConfigSource | null;
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
  { request, reporter }: { readonly request: DynamicResetRequest; readonly reporter: Reporter },
  use: (cluster: Cluster) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { cluster } = await openCluster(services, request.cluster, { dryRun: false, staged: false, writes: reporter });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}
