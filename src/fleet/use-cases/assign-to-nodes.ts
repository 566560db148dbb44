import { type ExitCode, isAppError, usageError } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { ConfigSigner } from '../../dynamic/signing/statement.ts';
import {
  type Assignment,
  type AssignmentRequest,
  checkAssignment,
  executeAssignment,
  nodesToDrain,
  planRollout,
} from '../../dynamic/use-cases/assign.ts';
import type { DynamicRollout } from '../../dynamic/use-cases/perform-rollout.ts';
import { checkUndo } from '../../dynamic/use-cases/undo-assignment.ts';
import { readNodes } from '../../dynamic/workflows/read-nodes.ts';
import { assignedBy, type RolloutPorts } from '../../dynamic/workflows/rollout.ts';
import type { PhasePlan } from '../../host/plan/change.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import { knownRollouts, rolloutOfNode } from '../../rollouts/use-cases/find-rollouts.ts';
import { hostMatcher, patternOf } from '../file/select.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { drainingOf, forecastDrains } from './draining.ts';
import { findNodeNames, type NodeChoice } from './named-hosts.ts';
import { chooseRollout, type GatesRequest, openGates } from './open-gates.ts';

/** The nodes of `dynamic assign`, `dynamic reset` and `dynamic undo`, and their assignment. */
export interface AssignToNodesRequest extends AssignmentRequest {
  readonly choice: NodeChoice;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
  /** Absent: no gates and windows. */
  readonly gates?: GatesRequest | undefined;
}

/**
 * The options of a rollout, with the canaries that `--canary` names: by the name of a Node, or of a host or group of the fleet
 * file, or by a label of the Nodes.
 * @throws AppError USAGE (exit code 2) if no selected node has the name or label
 */
async function withNamedCanaries(
  services: NodeCommandPorts,
  { rollout, choice }: Pick<AssignToNodesRequest, 'rollout' | 'choice'>,
  { cluster, nodes, targets }: { readonly cluster: Cluster } & Pick<Assignment, 'nodes' | 'targets'>,
): Promise<AssignmentRequest['rollout']> {
  const { canaryNodes } = rollout;
  if (canaryNodes === undefined) return rollout;
  const selected = new Set(nodes.map(({ name }) => name));
  const named = async (text: string): Promise<readonly string[]> => {
    const isNamed = hostMatcher(patternOf(text).name);
    const found = nodes.filter(({ name }) => isNamed({ name, groups: [] })).map(({ name }) => name);
    if (found.length > 0 || choice.kind === 'selector') return found;
    const ofChoice = choice.kind === 'names' ? { ...choice, names: [text] } : { ...choice, selection: { limit: [text], groups: [] } };
    // An unknown name is reported below, as one of --canary.
    const names = await findNodeNames(services, cluster, ofChoice, { changes: true }).catch((error: unknown) => {
      if (isAppError(error, 'USAGE')) return [];
      throw error;
    });
    return names.filter((name) => selected.has(name));
  };
  const wanted =
    'matches' in canaryNodes
      ? [[canaryNodes.text, nodes.filter(({ labels }) => canaryNodes.matches(labels)).map(({ name }) => name)] as const]
      : await Promise.all(canaryNodes.map(async (text) => [text, await named(text)] as const));
  for (const [text, found] of wanted)
    if (found.length === 0)
      throw usageError(`--canary ${text}: no selected node has this name or label`, 'List the nodes: kubectl get nodes --show-labels');
  const canaryOrder = [...new Set(wanted.flatMap(([, found]) => found))];
  // Nodes that have the assignment count as successful canaries, but replace none that is named.
  const has = ({ name, source }: Assignment['nodes'][number]): boolean =>
    source.issue === null && sameSource(source.source, targets.get(name)?.desired ?? null);
  const others = nodes.filter((node) => !canaryOrder.includes(node.name) && has(node));
  const canary = nodes.length === 1 ? 0 : canaryOrder.length + others.length;
  return { ...rollout, rulesFor: (total) => ({ ...rollout.rulesFor(total), canary, canaryOrder }) };
}

/** What these commands share. */
export type NodesRequest = Omit<AssignToNodesRequest, 'assigned' | 'force' | 'allowPodLoss'>;

/** The shown plan of an assignment. */
export interface PlannedAssignment {
  readonly plans: readonly PhasePlan[];
  readonly cluster: Cluster;
  /** Null: no node is drained, or the drains are not known. */
  readonly drainForecast: DrainForecastDocument | null;
}

/**
 * Assigns a configuration to nodes, batch by batch.
 * @param view.decide shows the plan. Null: it is applied; an exit code: the command ends. Absent: every plan is applied
 * @throws the errors of `openCluster`, `findNodeNames`, `checkAssignment` and `checkUndo`
 */
export async function assignToNodes(
  services: NodeCommandPorts & RolloutPorts & ConfigSigner,
  given: AssignToNodesRequest,
  view: Pick<DynamicRollout, 'reporter' | 'listenerFor' | 'ended'> & {
    readonly decide?: ((planned: PlannedAssignment) => Promise<ExitCode | null>) | undefined;
  },
): ReturnType<typeof executeAssignment> {
  const chosen = await chooseRollout(services, given.gates, { declared: null, reverts: true });
  const gatesRevert = chosen?.gates.some(({ onFailure }) => onFailure === 'revert') === true;
  const request = { ...given, rollout: { ...given.rollout, gatesRevert } };
  const { choice, assigned, backend } = request;
  const { reporter } = view;
  const command = assigned === null ? 'reset' : assigned.kind === 'previous' ? 'undo' : 'assign';
  const text = assigned?.kind === 'file' ? await services.input.readText(assigned.pushed.file) : null;
  const assign = async (cluster: Cluster) => {
    const names = await findNodeNames(services, cluster, choice, { changes: true });
    const drains = request.run.drain?.isAllowed === true && request.rollout.wait !== 'none';
    const gates = openGates(services, { rollout: chosen, cluster, reporter });
    const nodes = await readNodes(cluster, names, { backend });
    await warnOfRollouts(cluster, nodes, reporter);
    const checked =
      assigned?.kind === 'previous'
        ? await checkUndo(services, cluster, { ...request, to: assigned.to }, { nodes, reporter, drains })
        : await checkAssignment(services, cluster, { ...request, assigned }, { nodes, text, reporter, drains });
    const rollout = await withNamedCanaries(services, request, { cluster, ...checked });
    const sha256Of = (source: ConfigSource): string | null => checked.contents.get(describeSource(source)) ?? null;
    const recorded = { id: await services.newId(), command, sha256Of } as const;
    if (view.decide !== undefined) {
      const plans = planRollout(checked, rollout, assignedBy(services, { ...request, recorded }));
      const drained = drains ? nodesToDrain(checked) : [];
      const drainForecast = await forecastDrains(services, cluster, { names: drained, run: request.run, reporter });
      const exitCode = await view.decide({ plans, cluster, drainForecast });
      if (exitCode !== null) return { exitCode, problems: [] };
    }
    const selector = choice.kind === 'selector' ? choice.selector.text : undefined;
    const { policy, planned } = (await drainingOf(services, request.run, names.length)) ?? {};
    const draining = policy && planned && { policy, planned };
    return executeAssignment(services, cluster, checked, { ...request, ...view, rollout, recorded, selector, draining, gates });
  };
  return withCluster(services, request.cluster, assign, reporter);
}

/** The controller of a rollout assigns its own configuration again. */
async function warnOfRollouts(cluster: Cluster, nodes: Assignment['nodes'], reporter: Reporter): Promise<void> {
  const rollouts = await knownRollouts(cluster);
  const byRollout = groupBy(nodes, ({ labels }) => rolloutOfNode(rollouts, labels)?.name ?? '');
  for (const [name, members] of byRollout) {
    if (name === '') continue;
    const [first, ...more] = members.map((node) => node.name);
    const who = more.length === 0 ? `${first} belongs` : `${first} and ${more.length} more belong`;
    const message = `${who} to the rollout ${name}, whose controller assigns its own configuration again. To change it, use kubeletadm rollout undo, or kubectl edit kcr ${name}`;
    reporter.report({ level: 'warning', code: 'NODE_IN_ROLLOUT', message });
  }
}
