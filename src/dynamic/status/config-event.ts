import type { KubeObject } from '../../kube/object.ts';
import type { ConfigIdentity } from '../../kubelet/layers/config-source.ts';

/** Event of a kubelet that restarts to use another configuration. */
export interface ConfigEvent {
  readonly at: Date;
  /** Null: the local configuration. */
  readonly identity: ConfigIdentity | null;
  readonly message: string;
}

/** Reason of the Events that kubelets up to 1.23 and the agent send when the configuration changes. */
export const CONFIG_EVENT_REASON = 'KubeletConfigChanged';

/** Reason of the Event of an assignment by an operator. */
export const ASSIGNED_EVENT_REASON = 'KubeletadmAssigned';

const MESSAGE =
  /^\/api\/v1\/namespaces\/([^/\s]+)\/configmaps\/([^/\s,]+), UID: ([^,\s]+), ResourceVersion: ([^,\s]+), KubeletConfigKey: (\S+)$/;

/** Prefix of the reasons of all Events that an agent sends. */
const REASON_PREFIX = 'KubeletConfig';

export interface ConfigHistoryEntry {
  readonly at: Date;
  /** `KubeletConfigChanged`, another reason of the agent, or `KubeletadmAssigned`. */
  readonly reason: string;
  /** The new configuration; null: the local configuration, or the Event is not about a change. */
  readonly identity: ConfigIdentity | null;
  readonly message: string;
}

/** Reads an Event about a node's configuration; null for other Events. */
export function readHistoryEntry(event: KubeObject): ConfigHistoryEntry | null {
  const { reason, message } = event;
  if (typeof reason !== 'string' || typeof message !== 'string') return null;
  if (!reason.startsWith(REASON_PREFIX) && reason !== ASSIGNED_EVENT_REASON) return null;
  const at = timeOf(event);
  return Number.isNaN(at.getTime()) ? null : { at, reason, identity: readConfigEvent(event)?.identity ?? null, message };
}

function timeOf(event: KubeObject): Date {
  return new Date(String(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp));
}

/** Reads an Event about a configuration change; null for other Events and for Events without a time. */
export function readConfigEvent(event: KubeObject): ConfigEvent | null {
  if (event.reason !== CONFIG_EVENT_REASON || typeof event.message !== 'string') return null;
  const at = timeOf(event);
  if (Number.isNaN(at.getTime())) return null;
  const { message } = event;
  if (/to use local config$/.test(message)) return { at, identity: null, message };
  const match = MESSAGE.exec(message.slice(message.lastIndexOf('/api/v1/namespaces/')));
  if (match === null) return null;
  const [, namespace = '', name = '', uid = '', resourceVersion = '', kubeletConfigKey = ''] = match;
  return { at, identity: { namespace, name, uid, resourceVersion, kubeletConfigKey }, message };
}
