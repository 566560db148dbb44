import type { KubeObject } from './object.ts';

interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastHeartbeatTime?: string;
}

/** Whether the Node's condition Ready is True. */
export function isNodeReady(node: KubeObject): boolean {
  return conditionsOf(node).some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** When the kubelet last said whether it is Ready; null where that is not told. */
export function readyHeartbeat(node: KubeObject): string | null {
  return conditionsOf(node).find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? null;
}

/** What the conditions of a Node say against it: Ready when it is not True, and the troubles (MemoryPressure, ...) that are. Empty: nothing. */
export function nodeTroubles(node: KubeObject): readonly string[] {
  const conditions = conditionsOf(node);
  const bad = conditions.filter(({ type, status }) => (type === 'Ready' ? status !== 'True' : status === 'True'));
  const said = bad.map(({ type, status, reason, message }) =>
    [`${type} is ${status}`, [reason, message].filter(Boolean).join(': ')].filter(Boolean).join(': '),
  );
  return conditions.some(({ type }) => type === 'Ready') ? said : ['the kubelet has not said whether it is Ready', ...said];
}

function conditionsOf({ status }: KubeObject): readonly Condition[] {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
  return conditions;
}
