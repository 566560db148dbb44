import { AppError, type Problem } from '../../base/errors.ts';
import { type JsonObject, jsonEqual } from '../../base/json.ts';
import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import type { PhasePlan } from '../../host/plan/change.ts';
import { type FieldChange, formatFieldChange, formatImpact, highestImpact, type Impact, needsDrain } from '../../host/plan/impact.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isControlPlaneNode } from '../../kube/node-place.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { planBatches } from '../../maintenance/next-step.ts';
import { parseStatement, STATEMENT_KEY, statementMismatch } from '../signing/statement.ts';
import { notEnabled, otherNamespace, revertNotSigned, rolloutBlocked, signatureRequired } from '../status/dynamic-problems.ts';
import type { NodeConfig } from '../status/node-config.ts';
import {
  type AssignedBy,
  type AssignmentPatch,
  applyAssignment,
  createAssignmentEvent,
  findPayload,
  planAssignment,
} from '../workflows/assign-config.ts';
import { contentHash, readContentHashes } from '../workflows/config-contents.ts';
import type { PushPlan } from '../workflows/push-config.ts';
import {
  type AssignmentSettings,
  assignedBy,
  mayRevert,
  type RolloutOptions,
  type RolloutPorts,
  rolloutMember,
} from '../workflows/rollout.ts';
import type { RolloutTarget } from '../workflows/rollout-node.ts';
import { type CheckedPayload, type CheckedRisks, checkPodRisks } from './check-pod-risks.ts';
import { type DynamicRollout, performRollout } from './perform-rollout.ts';
import {
  type PushedFileRequest,
  type PushFilePorts,
  performPush,
  planPushedFile,
  requireGoodPayload,
  type ValidationRequest,
} from './push-file.ts';
import { planMissingRights, type RestoredRights, restoreRights } from './restore-agent-rights.ts';

export interface AssignmentRequest extends AssignmentSettings {
  /** A ConfigMap, or a file that is pushed first; or for each node its assignment before a change. Null: the assignment is removed. */
  readonly assigned:
    | { readonly kind: 'previous'; readonly to: string | undefined }
    | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly validation: ValidationRequest }
    | {
        readonly kind: 'file';
        readonly pushed: PushedFileRequest;
        /** The assignment that each node must have. Absent: any. */
        readonly expected?: { readonly source: ConfigSource | null };
      }
    | null;
  /** Assign to nodes without a reported status as well. */
  readonly force: boolean;
}

/** A validated assignment, ready to be planned or executed. */
export interface Assignment {
  readonly nodes: readonly NodeConfig[];
  /** The new assignment of each node. */
  readonly targets: ReadonlyMap<string, RolloutTarget>;
  /** The ConfigMap that is stored first; null: it exists. */
  readonly push: PushPlan | null;
  /**
   * Changed fields of the running configuration, by node; null: that configuration is unknown. Without nodes that run
   * the source already.
   */
  readonly fields: CheckedRisks['fields'];
  /** The RBAC rules of agents that are created first. */
  readonly rights: RestoredRights;
  /** Hashes of the present and of the new content of the nodes, for their history. */
  readonly contents: ReadonlyMap<string, string | null>;
}

/**
 * Checks that nodes accept an assignment. Warnings are reported.
 * @param given.text content of the assigned file; null: no file is assigned
 * @param given.drains nodes are drained before a change that needs it
 * @throws AppError with exit code 2 for an invalid payload, 3 for nodes without dynamic configuration, and for nodes
 *   whose pods the payload would end (PODS_AT_RISK)
 */
export async function checkAssignment(
  ports: PushFilePorts,
  cluster: Cluster,
  request: Pick<AssignmentRequest, 'rollout' | 'force' | 'allowPodLoss'> & {
    readonly assigned: Exclude<AssignmentRequest['assigned'], { readonly kind: 'previous' }>;
  },
  {
    nodes,
    text,
    reporter,
    drains,
  }: { readonly nodes: readonly NodeConfig[]; readonly text: string | null; readonly reporter: Reporter } & Pick<CheckedPayload, 'drains'>,
): Promise<Assignment> {
  const { rollout, assigned, force, allowPodLoss } = request;
  const expected = assigned?.kind === 'file' ? assigned.expected?.source : undefined;
  const targetsOf = (desired: ConfigSource | null) => new Map(nodes.map(({ name }) => [name, { name, desired, expected }]));
  const present = nodes.map(({ source }) => source.source);
  if (assigned === null) {
    const contents = await readContentHashes(cluster, present);
    return { nodes, targets: targetsOf(null), push: null, fields: new Map(), rights: new Map(), contents };
  }
  if (!force) requireEnabled(nodes);
  const isReverted = mayRevert(rollout);
  const irreversible = nodes.filter(({ report, source }) => isReverted && report?.requiresSignature === true && source.source !== null);
  if (irreversible.length > 0) throw new AppError(revertNotSigned(irreversible.map(({ name }) => name)), { exitCode: 3 });
  const push =
    assigned.kind === 'file'
      ? await planPushedFile(ports, cluster, assigned.pushed, { text: text ?? '', nodeNames: nodes.map(({ name }) => name), reporter })
      : null;
  const desired = assigned.kind === 'config-map' ? assigned.source : (push as PushPlan).source;
  refuse(unreadableProblems(nodes, desired));
  let data = push?.data ?? {};
  if (assigned.kind === 'config-map') {
    const payload = await findPayload(cluster, desired);
    data = payload.data;
    await requireGoodPayload(payload.text, describeSource(desired), nodes, assigned.validation, reporter);
    if (!payload.isImmutable) reporter.report({ level: 'warning', code: 'DYNAMIC_PAYLOAD_MUTABLE', message: mutable(desired) });
  }
  refuse(unsignedProblems(nodes, { source: desired, data }));
  const { skipValidation } = assigned.kind === 'file' ? assigned.pushed.validation : assigned.validation;
  const fields = await requirePodsKept(cluster, { nodes, source: desired, data, drains }, { allowPodLoss, skipValidation }, reporter);
  for (const node of nodes) warnOfNode(node, reporter);
  // The present assignment and its namespace may be forged by the node: no agent gets the right to read another one because of it.
  const isNamed = expected === undefined || desired.namespace === AGENT_NAMESPACE;
  const rights = isNamed ? await planMissingRights(cluster, { nodes, namespace: desired.namespace, reporter }) : new Map();
  const contents = new Map([...(await readContentHashes(cluster, present)), [describeSource(desired), contentHash({ data })]]);
  return { nodes, targets: targetsOf(desired), push, fields, rights, contents };
}

/**
 * The planned changes, grouped by the batches of a successful rollout.
 * @throws AppError with exit code 3 when no node could start, as in a real run
 */
export function planRollout(
  { nodes, targets, push, fields, rights }: Assignment,
  rollout: RolloutOptions,
  by: AssignedBy,
): readonly PhasePlan[] {
  const changes = new Map(
    nodes.map((node) => [node.name, withFields(planAssignment(node, desiredOf(targets, node), by), fields.get(node.name))]),
  );
  const stages = nodes.map((node) => rolloutMember(node, changes.get(node.name) === null ? 'changed' : 'queued'));
  const { batches, blocked } = planBatches(stages, rollout.rulesFor(nodes.length));
  if (blocked.length > 0)
    throw new AppError(rolloutBlocked([...changes.values()].filter((change) => change !== null).length, blocked), { exitCode: 3 });
  const noops = nodes.flatMap(({ name }) =>
    changes.get(name) === null ? [{ changes: [], noop: `${name} already has this assignment` }] : [],
  );
  const planned = batches.map(({ names, isCanary, isDown }, i): PhasePlan => {
    const which = `batch ${i + 1}${isCanary ? ', canary' : isDown ? ', down now' : ''}`;
    const inBatch = names.flatMap((name) => changes.get(name) ?? []);
    return { changes: nodes.length === 1 ? inBatch : inBatch.map((change) => ({ ...change, reason: `${which}: ${change.reason}` })) };
  });
  return [...[...rights.values()].map((restored) => ({ changes: restored })), ...(push === null ? [] : [push.plan]), ...noops, ...planned];
}

/** The nodes whose assignment needs a drained node. */
export function nodesToDrain({ nodes, targets, fields }: Assignment): readonly string[] {
  const changed = nodes.filter((node) => !sameSource(node.source.source, desiredOf(targets, node)));
  return changed.map(({ name }) => name).filter((name) => needsDrain(impactOn(fields, name)));
}

/** Null: no field of the running configuration changes, or the configuration is unknown. */
function impactOn(fields: Assignment['fields'], name: string): Impact | null {
  return highestImpact((fields.get(name) ?? []).map(({ impact }) => impact));
}

/**
 * Executes an assignment: batch by batch, or with `wait: none` on all nodes at once.
 * @returns the result of the rollout; with `wait: none` a success
 */
export async function executeAssignment(
  ports: RolloutPorts,
  cluster: Cluster,
  assignment: Assignment,
  run: Omit<DynamicRollout, 'targets'>,
): ReturnType<typeof performRollout> {
  const { nodes, targets, push, fields, rights } = assignment;
  const { reporter, rollout } = run;
  reportImpact(fields, reporter);
  await restoreRights(cluster, rights, reporter);
  if (push !== null) await performPush(cluster, push, reporter);
  // A node that never reported will not report the removal of its assignment either.
  const silent = nodes.filter((node) => node.status === null && desiredOf(targets, node) === null);
  await assignAll(ports, cluster, { nodes: silent, targets }, run);
  const others = nodes.filter((node) => !silent.includes(node));
  if (others.length === 0) return { exitCode: 0, problems: [] };
  const impactOf = (name: string): Impact | null | undefined => (fields.get(name) ? impactOn(fields, name) : undefined);
  const controlPlanes = new Set(nodes.flatMap(({ name, labels }) => (isControlPlaneNode(labels) ? [name] : [])));
  const isControlPlane = (name: string): boolean => controlPlanes.has(name);
  const draining =
    run.draining === undefined ? undefined : { ...run.draining, toDrain: nodesToDrain(assignment), impactOf, isControlPlane };
  if (rollout.wait !== 'none')
    return performRollout(ports, cluster, { ...run, draining, targets: others.flatMap(({ name }) => targets.get(name) ?? []) });
  await assignAll(ports, cluster, { nodes: others, targets }, run);
  return { exitCode: 0, problems: [] };
}

function desiredOf(targets: Assignment['targets'], { name }: NodeConfig): ConfigSource | null {
  return targets.get(name)?.desired ?? null;
}

/** Assigns to all nodes at once, without waiting for the results. */
async function assignAll(
  ports: RolloutPorts,
  cluster: Cluster,
  { nodes, targets }: Pick<Assignment, 'nodes' | 'targets'>,
  run: Pick<DynamicRollout, 'reporter' | 'allowPodLoss' | 'reason' | 'recorded'>,
): Promise<void> {
  const { reporter } = run;
  for (const node of nodes) {
    const desired = desiredOf(targets, node);
    const by = assignedBy(ports, run);
    const change = planAssignment(node, desired, by);
    if (change !== null) {
      await applyAssignment(cluster, node, change, { desired, by });
      const unannounced = await createAssignmentEvent(cluster, node.name, desired, by);
      if (unannounced !== null) reporter.report(assignmentEventNotCreated(node.name, unannounced));
    }
    const what = desired === null ? 'reset' : `assigned ${describeSource(desired)}`;
    const message = change === null ? `unchanged: already ${what}` : what;
    reporter.report({ level: 'info', code: 'DYNAMIC_ASSIGNED', host: node.name, message });
  }
}

/** The message for a missing Event of an assignment, shown with `-v 1`. */
export function assignmentEventNotCreated(node: string, error: AppError): ReportEvent {
  const message = `cannot create an Event for Node ${node}: ${error.message}`;
  return { level: 'warning', code: 'EVENT_NOT_CREATED', host: node, message, verbosity: 1 };
}

/**
 * Refuses nodes that could not start with the payload, and nodes whose pods it would end. Nodes that already run the payload are not checked.
 * @returns the changed fields of the checked nodes
 */
async function requirePodsKept(
  cluster: Cluster,
  { nodes, source, data, drains }: CheckedPayload,
  { allowPodLoss, skipValidation }: { readonly allowPodLoss: boolean; readonly skipValidation: boolean },
  reporter: Reporter,
): Promise<CheckedRisks['fields']> {
  const changed = nodes.filter(({ status }) => !sameSource(status?.active ?? null, source));
  const { refusals, losses, warnings, fields } = await checkPodRisks(cluster, { nodes: changed, source, data, drains });
  if (refusals.length > 0 && !skipValidation) throw new AppError(refusals, { exitCode: 3 });
  if (losses.length > 0 && !allowPodLoss) throw new AppError(losses, { exitCode: 3 });
  for (const { host, code, message } of [...refusals, ...losses, ...warnings]) reporter.report({ level: 'warning', code, message, host });
  return fields;
}

function requireEnabled(nodes: readonly NodeConfig[]): void {
  const off = nodes.filter(({ status }) => status === null);
  if (off.length > 0)
    throw new AppError(
      off.map(({ name, backend, kubeletVersion }) => notEnabled(name, backend, kubeletVersion)),
      { exitCode: 3 },
    );
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new AppError(problems, { exitCode: 3 });
}

/**
 * Nodes whose agent may not read the namespace. The node itself reports the namespace; a forged value only causes
 * a rejection.
 */
export function unreadableProblems(nodes: readonly NodeConfig[], source: ConfigSource): readonly Problem[] {
  return nodes.flatMap(({ name, agentNamespace }) =>
    agentNamespace === null || agentNamespace === source.namespace ? [] : [otherNamespace(name, source, agentNamespace)],
  );
}

/** Nodes that accept only signed ConfigMaps, without a signature for them. Only the node knows the accepted keys. */
export function unsignedProblems(
  nodes: readonly NodeConfig[],
  { source, data }: Pick<CheckedPayload, 'source' | 'data'>,
): readonly Problem[] {
  const statement = parseStatement(data[STATEMENT_KEY] ?? '');
  return nodes.flatMap(({ name, report }) => {
    if (report?.requiresSignature !== true) return [];
    const issue = statement === null ? 'the ConfigMap is not signed' : statementMismatch(statement, { source, data, nodeName: name });
    return issue === null ? [] : [signatureRequired(name, issue)];
  });
}

/**
 * Warns about a NotReady node, because the effect of the assignment cannot be distinguished from the existing
 * issue.
 */
function warnOfNode({ name, isReady, issues }: NodeConfig, reporter: Reporter): void {
  if (isReady) return;
  const message = `NotReady before the assignment: ${issues.join('; ')}`;
  reporter.report({ level: 'warning', code: 'NODE_NOT_READY', host: name, message });
}

function mutable(source: ConfigSource): string {
  return `ConfigMap ${source.namespace}/${source.name} is not immutable. Any write to it, even of a label, restarts the kubelets of all nodes with this ConfigMap at the same time. Use dynamic push, which creates immutable ConfigMaps`;
}

/**
 * An assignment with its effect on the kubelet of the node.
 * @param change null: the node has the assignment already
 * @param fields the changed fields; null: unknown; undefined: the kubelet does not change, or the assignment is removed
 */
function withFields(change: AssignmentPatch | null, fields: readonly FieldChange[] | null | undefined): AssignmentPatch | null {
  if (change === null || fields === undefined) return change;
  if (fields === null) return { ...change, fields };
  // A kubelet is restarted with every new configuration.
  return { ...change, fields, impact: highestImpact(fields.map(({ impact }) => impact)) ?? 'safe' };
}

/** Reports the changed fields of all nodes with their impact, one event for each field, then the highest impact. */
export function reportImpact(fields: CheckedRisks['fields'], reporter: Reporter): void {
  if (fields.size === 0) return;
  const report = (message: string, data: JsonObject): void => reporter.report({ level: 'info', code: 'DYNAMIC_IMPACT', message, data });
  const groups = groupByField(fields);
  for (const { change, nodes, isSame } of groups) {
    const { field, impact, before, after } = change;
    const what = isSame ? formatFieldChange(change) : `${field}: values differ by node`;
    const values = isSame ? { before, after } : {};
    report(`${what} (${formatImpact(change)})${fields.size === 1 ? '' : ` on ${count(nodes.length)}`}`, {
      field,
      impact,
      nodes: [...nodes],
      ...values,
    });
  }
  const highest = highestImpact(groups.map(({ change }) => change.impact));
  if (highest !== null) report(`highest impact: ${highest}`, { highestImpact: highest });
  const unknown = [...fields].flatMap(([name, changed]) => (changed === null ? [name] : []));
  const shown = `${unknown.slice(0, SHOWN).join(', ')}${unknown.length > SHOWN ? ` and ${unknown.length - SHOWN} more` : ''}`;
  if (unknown.length > 0)
    report(`impact unknown for ${shown}, because the running configuration cannot be read`, { impact: null, nodes: unknown });
}

/** Number of nodes with unknown impact that are named. */
const SHOWN = 5;

/** `isSame`: all nodes have the same values. */
function groupByField(fields: CheckedRisks['fields']) {
  const groups = new Map<string, { readonly change: FieldChange; readonly nodes: readonly string[]; readonly isSame: boolean }>();
  for (const [node, changes] of fields)
    for (const change of changes ?? []) {
      const { field, before, after } = change;
      const key = `${field} ${change.impact}`;
      const group = groups.get(key) ?? { change, nodes: [], isSame: true };
      const isSame = group.isSame && jsonEqual(group.change.before, before) && jsonEqual(group.change.after, after);
      groups.set(key, { ...group, nodes: [...group.nodes, node], isSame });
    }
  return [...groups.values()].sort((a, b) => (a.change.field < b.change.field ? -1 : 1));
}

function count(nodes: number): string {
  return nodes === 1 ? '1 node' : `${nodes} nodes`;
}
