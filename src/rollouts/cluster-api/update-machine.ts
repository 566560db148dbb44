import type { Clock } from '../../base/clock.ts';
import { isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Reporter } from '../../base/reporter.ts';
import { appendHash } from '../../dynamic/signing/config-map-hash.ts';
import { assessNodeConfig, assessProgress } from '../../dynamic/status/assess-node-config.ts';
import { type NodeConfig, readNodeConfig } from '../../dynamic/status/node-config.ts';
import { applyAssignment, createAssignmentEvent, planAssignment } from '../../dynamic/workflows/assign-config.ts';
import { applyPush, planPush } from '../../dynamic/workflows/push-config.ts';
import { applyClusterChange } from '../../host/apply.ts';
import { exceeds, type Impact } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { planAgentRights } from '../../kubeadm/phases/agent-rights.ts';
import type { ClusterConnections } from '../../kubeadm/ports.ts';
import { parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { type ConfigSource, DEFAULT_CONFIG_KEY, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { checkPayload } from '../controller/check-nodes.ts';
import { overlayData } from '../controller/revision.ts';
import { type DesiredObjects, notUpdated, readMachine, readWorkloadKubeconfig, type StoredMachine } from './machine.ts';

export interface UpdatePorts extends Pick<ClusterConnections, 'connectCluster'> {
  readonly management: Cluster;
  readonly clock: Clock;
  readonly reporter: Reporter;
}

export interface UpdateSettings {
  /** The highest class of change on a running node. */
  readonly allow: Impact;
  /** Namespace of the ConfigMaps in workload clusters, which the agents may read. */
  readonly namespace: string;
}

/** `retryAfterSeconds` 0: the node is updated. */
interface UpdateProgress {
  readonly message: string;
  readonly retryAfterSeconds: number;
}

/** The beginning of the names of ConfigMaps. */
const NAME = 'cluster-api';

/**
 * Takes the next step of the update of a machine in place: assigns its kubelet patches as an overlay to its Node, or reads the
 * progress of the agent of the node. May be repeated at any time, also by several processes.
 * @throws AppError MACHINE_NOT_UPDATED, and the errors of the API servers and of the kubeconfig
 */
export async function updateMachine(ports: UpdatePorts, desired: DesiredObjects, settings: UpdateSettings): Promise<UpdateProgress> {
  const machine = await readMachine(ports.management, desired);
  const kubeconfig = await readWorkloadKubeconfig(ports.management, machine);
  const workload = await ports.connectCluster({ kubeconfig });
  try {
    return await updateNode(ports, workload, machine, settings);
  } catch (error) {
    // Another update created the same ConfigMap, or another client changed the Node.
    const isRace = ['CLUSTER_ALREADY_EXISTS', 'CLUSTER_CONFLICT', 'ASSIGNMENT_REPLACED'].some((code) => isAppError(error, code));
    if (!isRace) throw error;
    return { message: `Node ${machine.nodeName} is being changed`, retryAfterSeconds: 2 };
  } finally {
    await workload.close();
  }
}

async function updateNode(
  ports: UpdatePorts,
  workload: Cluster,
  machine: StoredMachine,
  settings: UpdateSettings,
): Promise<UpdateProgress> {
  const node = await readNode(workload, machine);
  const data = overlayData(machine.fields);
  const desired = { namespace: settings.namespace, name: appendHash({ name: NAME, data }), kubeletConfigKey: DEFAULT_CONFIG_KEY };
  const { source } = node;
  if (source.issue !== null) throw notUpdated(`the assignment of Node ${node.name} is invalid: ${source.issue}`);
  if (sameSource(source.source, desired)) return progressOf(ports, node, desired);
  if (source.source !== null && !isOwn(source.source, settings))
    throw notUpdated(
      `Node ${node.name} is assigned ${describeSource(source.source)}, which is not a ConfigMap of this extension`,
      `Remove the assignment: kubeletadm dynamic reset ${node.name}`,
    );
  const payload = { source: desired, text: data[DEFAULT_CONFIG_KEY] ?? '', data };
  const { checks, fields } = await checkPayload(workload, { onFailure: 'Stop', strategy: { allow: 'unsafe' } }, payload, [node]);
  const changes = fields.get(node.name);
  if (changes === null) throw notUpdated(`the running configuration of the kubelet of Node ${node.name} cannot be read`);
  if (changes?.length === 0 && source.source === null)
    return { message: `Node ${node.name} runs this configuration`, retryAfterSeconds: 0 };
  const above = (changes ?? []).filter(({ impact }) => exceeds(impact, settings.allow)).map(({ field, impact }) => `${field} (${impact})`);
  if (above.length > 0) throw notUpdated(`the changes on Node ${node.name} exceed --allow ${settings.allow}: ${above.join(', ')}`);
  const refusal = checks.get(node.name)?.refusal ?? null;
  if (refusal !== null) throw notUpdated(`Node ${node.name}: ${refusal}`);
  if (node.backend !== 'agent' || node.status === null)
    throw notUpdated(`no agent runs on Node ${node.name}`, `Install it: kubeletadm dynamic enable ${node.name}`);
  await assign(ports, workload, { node, machine, desired, data });
  return { message: `Node ${node.name} is assigned ${describeSource(desired)}`, retryAfterSeconds: ASSIGNED_SECONDS };
}

const ASSIGNED_SECONDS = 10;
const TRIAL_SECONDS = 30;

async function readNode(workload: Cluster, { nodeName, providerId, version }: StoredMachine): Promise<NodeConfig> {
  const object = await workload.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
  if (object === null) throw notUpdated(`the workload cluster has no Node ${nodeName}`);
  const own = (object.spec as JsonObject | undefined)?.providerID;
  if (providerId !== undefined && own !== undefined && own !== providerId)
    throw notUpdated(`Node ${nodeName} and its Machine have different values of spec.providerID`);
  const node = readNodeConfig(object);
  if (node.minor === null || node.minor !== parseMinor(version))
    throw notUpdated(`the kubelet of Node ${nodeName} is ${node.kubeletVersion}, and spec.version of its Machine is ${version}`);
  return node;
}

function isOwn({ namespace, name }: ConfigSource, settings: UpdateSettings): boolean {
  return namespace === settings.namespace && /^cluster-api-[a-z0-9]{10}$/.test(name);
}

/** A configuration in trial may still be rolled back, and Cluster API does not come back to an updated machine. */
function progressOf({ clock }: Pick<UpdatePorts, 'clock'>, node: NodeConfig, desired: ConfigSource): UpdateProgress {
  const now = clock.now();
  const verdict = assessNodeConfig(node, null, now);
  const elapsedMs = now.getTime() - (node.assigner?.at ?? now).getTime();
  const progress = assessProgress(node, verdict, { desired, until: 'good' }, elapsedMs);
  const what = `Node ${node.name} with ${describeSource(desired)}`;
  if (progress === 'updated') return { message: `${what}: updated`, retryAfterSeconds: 0 };
  if (progress === 'failed') throw notUpdated(`${what}: ${verdict.state}: ${verdict.why ?? ''}`, verdict.hint ?? undefined);
  return { message: `${what}: ${verdict.state}`, retryAfterSeconds: verdict.state === 'trial' ? TRIAL_SECONDS : ASSIGNED_SECONDS };
}

async function assign(
  { clock, reporter }: UpdatePorts,
  workload: Cluster,
  {
    node,
    machine,
    desired,
    data,
  }: {
    readonly node: NodeConfig;
    readonly machine: StoredMachine;
    readonly desired: ConfigSource;
    readonly data: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { namespace } = desired;
  // The agent of a machine whose image contains it has no rights before.
  for (const change of await planAgentRights(workload, { nodeName: node.name, namespace })) await applyClusterChange(workload, change);
  const input = { namespace, name: NAME, key: DEFAULT_CONFIG_KEY, appendHash: true, inPlace: false };
  await applyPush(workload, await planPush(workload, input, data));
  const recorded = { id: desired.name, command: 'assign', sha256Of: () => null } as const;
  const reason = `Machine ${machine.namespace}/${machine.name}`;
  const by = { by: 'kubeletadm controller cluster-api', at: clock.now(), allowPodLoss: false, reason, recorded };
  const change = planAssignment(node, desired, by);
  if (change === null) return;
  await applyAssignment(workload, node, change, { desired, by });
  reporter.report({ level: 'info', code: 'DYNAMIC_ASSIGNED', host: node.name, message: `${reason}: assigned ${describeSource(desired)}` });
  await createAssignmentEvent(workload, node.name, desired, by);
}
