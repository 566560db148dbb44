import type { KubeObject } from '../kubernetes/object.ts';
import type { ConfigIdentity } from './config-source.ts';

/** A kubelet's word that it restarts to use another configuration. */
export interface ConfigEvent {
  readonly at: Date;
  /** Null: the local configuration. */
  readonly identity: ConfigIdentity | null;
  readonly message: string;
}

/** The reason of the Events that kubelets up to 1.23, and the agent, send when the configuration changes. */
export const CONFIG_EVENT_REASON = 'KubeletConfigChanged';

const MESSAGE =
  /\/api\/v1\/namespaces\/([^/\s]+)\/configmaps\/([^/\s,]+), UID: ([^,\s]+), ResourceVersion: ([^,\s]+), KubeletConfigKey: (\S+)$/;

/** Reads such an Event; null for one that says something else or when it was is not told. */
export function readConfigEvent(event: KubeObject): ConfigEvent | null {
  if (event.reason !== CONFIG_EVENT_REASON || typeof event.message !== 'string') return null;
  const at = new Date(String(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp));
  if (Number.isNaN(at.getTime())) return null;
  const { message } = event;
  if (/to use local config$/.test(message)) return { at, identity: null, message };
  const match = MESSAGE.exec(message);
  if (match === null) return null;
  const [, namespace = '', name = '', uid = '', resourceVersion = '', kubeletConfigKey = ''] = match;
  return { at, identity: { namespace, name, uid, resourceVersion, kubeletConfigKey }, message };
}
