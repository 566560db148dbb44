import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { itemsOf, memberOf, textOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';

const NODES = typeOf('v1', 'Node');
const LEASES = typeOf('coordination.k8s.io/v1', 'Lease');
/** Defaults of --node-monitor-period and --node-monitor-grace-period. */
const MONITOR_MS = 5_000;
const GRACE_MS = 50_000;
/** The conditions that a kubelet reports. */
const KUBELET_CONDITIONS = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** The taint of a condition in a state. */
const CONDITION_TAINTS: readonly { readonly type: string; readonly status: string; readonly key: string }[] = [
  { type: 'Ready', status: 'False', key: 'node.kubernetes.io/not-ready' },
  { type: 'Ready', status: 'Unknown', key: 'node.kubernetes.io/unreachable' },
  { type: 'MemoryPressure', status: 'True', key: 'node.kubernetes.io/memory-pressure' },
  { type: 'DiskPressure', status: 'True', key: 'node.kubernetes.io/disk-pressure' },
  { type: 'PIDPressure', status: 'True', key: 'node.kubernetes.io/pid-pressure' },
];

/**
 * Sets the conditions of a Node to Unknown 50 s after the last report of its kubelet, and taints Nodes by their
 * conditions. Does not evict pods and knows no zones.
 * @see kubernetes/kubernetes pkg/controller/nodelifecycle (1.36)
 */
export function startNodeLifecycle(context: ControllerContext): void {
  forEachWritten(context, NODES, (node) => taintByConditions(context, node));
  void monitor(context).catch(() => {});
}

function taintByConditions({ registry }: ControllerContext, node: KubeObject): void {
  const conditions = itemsOf(memberOf(node, 'status'), 'conditions');
  if (!conditions.some(({ type }) => type === 'Ready')) return;
  const keys = CONDITION_TAINTS.flatMap(({ key, ...of }) =>
    conditions.some(({ type, status }) => type === of.type && status === of.status) ? [key] : [],
  );
  const desired = [
    ...keys.map((key) => ({ key, effect: 'NoSchedule' })),
    ...keys
      .filter((key) => CONDITION_TAINTS.some((one) => one.key === key && one.type === 'Ready'))
      .map((key) => ({ key, effect: 'NoExecute' })),
  ];
  const taints = itemsOf(memberOf(node, 'spec'), 'taints');
  const isOwn = ({ key }: JsonObject): boolean => CONDITION_TAINTS.some((one) => one.key === key);
  const kept = taints.filter((taint) => !isOwn(taint) || desired.some((one) => one.key === taint.key && one.effect === taint.effect));
  const added = desired.filter((one) => !kept.some((taint) => taint.key === one.key && taint.effect === one.effect));
  if (added.length === 0 && kept.length === taints.length) return;
  const at = { namespace: '', name: node.metadata.name };
  registry.update(NODES, at, { ...node, spec: { ...memberOf(node, 'spec'), taints: [...kept, ...added] } }, { user: CONTROLLER });
}

/** Uses the time at which the controller saw a report, because the clocks of hosts may differ. */
async function monitor({ store, registry, clock, signal }: ControllerContext): Promise<void> {
  const seen = new Map<string, { readonly report: readonly string[]; readonly atMs: number }>();
  for (; !signal.aborted; await clock.sleep(MONITOR_MS, signal)) {
    const nowMs = clock.now().getTime();
    for (const node of store.list(NODES)) {
      const { name } = node.metadata;
      const conditions = itemsOf(memberOf(node, 'status'), 'conditions');
      const lease = store.get(LEASES, 'kube-node-lease', name);
      const report = [
        textOf(conditions.find(({ type }) => type === 'Ready') ?? {}, 'lastHeartbeatTime'),
        textOf(memberOf(lease ?? {}, 'spec'), 'renewTime'),
      ];
      const last = seen.get(name);
      if (last === undefined || last.report.join() !== report.join()) seen.set(name, { report, atMs: nowMs });
      else if (nowMs - last.atMs > GRACE_MS) {
        const unknown = conditionsOfLostNode(node, clock.now());
        if (unknown === null) continue;
        const status = { ...memberOf(node, 'status'), conditions: unknown };
        registry.update(NODES, { namespace: '', name }, { ...node, status }, { user: CONTROLLER, subresource: 'status' });
      }
    }
  }
}

/** Null: all conditions of the kubelet are Unknown already. */
function conditionsOfLostNode(node: KubeObject, now: Date): readonly JsonObject[] | null {
  const conditions = itemsOf(memberOf(node, 'status'), 'conditions');
  const time = now.toISOString().replace(/\.\d+Z$/, 'Z');
  const missing = KUBELET_CONDITIONS.filter((type) => !conditions.some((one) => one.type === type)).map((type) => ({
    type,
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastHeartbeatTime: node.metadata.creationTimestamp ?? time,
    lastTransitionTime: time,
  }));
  const changed = conditions.map((one) =>
    KUBELET_CONDITIONS.includes(textOf(one, 'type')) && one.status !== 'Unknown'
      ? {
          ...one,
          status: 'Unknown',
          reason: 'NodeStatusUnknown',
          message: 'Kubelet stopped posting node status.',
          lastTransitionTime: time,
        }
      : one,
  );
  const isSame = missing.length === 0 && changed.every((one, index) => one === conditions[index]);
  return isSame ? null : [...changed, ...missing];
}
