import type { KubeObject, ObjectRef } from './object.ts';

interface NodeCondition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastHeartbeatTime?: string;
  readonly lastTransitionTime?: string;
}

export function isNodeReady(node: KubeObject): boolean {
  return conditionsOf(node).some(({ type, status }) => type === 'Ready' && status === 'True');
}

export function conditionOf(node: KubeObject, type: string): NodeCondition | null {
  return conditionsOf(node).find((one) => one.type === type) ?? null;
}

/** Time of the kubelet's last Ready heartbeat; null when the Node has none. */
export function readyHeartbeat(node: KubeObject): string | null {
  return conditionsOf(node).find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? null;
}

/** The Lease that a running kubelet renews every 10 s. */
export function leaseRef(node: string): ObjectRef {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-node-lease', name: node };
}

/**
 * Conditions of KEP-5683, which tell controllers and operators why a node is unavailable.
 * @see kubernetes/enhancements keps/sig-node/5683-lifecycle-conditions
 */
export const LIFECYCLE_CONDITIONS = ['MaintenancePlanned', 'DrainInProgress', 'Drained', 'MaintenanceInProgress'] as const;
export type LifecycleCondition = (typeof LIFECYCLE_CONDITIONS)[number];

/** Conditions about the configuration and about maintenance, not about the health of the node. */
const NOT_ABOUT_THE_NODE: ReadonlySet<string> = new Set(['KubeletConfigOk', ...LIFECYCLE_CONDITIONS]);

/** Ready when it is not True, and others (MemoryPressure, ...) that are True. Empty: healthy. */
export function nodeIssues(node: KubeObject): readonly string[] {
  const conditions = conditionsOf(node).filter(({ type = '' }) => !NOT_ABOUT_THE_NODE.has(type));
  const bad = conditions.filter(({ type, status }) => (type === 'Ready' ? status !== 'True' : status === 'True'));
  const reported = bad.map(({ type, status, reason, message }) =>
    [`${type} is ${status}`, [reason, message].filter(Boolean).join(': ')].filter(Boolean).join(': '),
  );
  return conditions.some(({ type }) => type === 'Ready') ? reported : ['the kubelet has not reported condition Ready', ...reported];
}

function conditionsOf({ status }: KubeObject): readonly NodeCondition[] {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly NodeCondition[] };
  return conditions;
}
