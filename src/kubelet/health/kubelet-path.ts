import { firstMessage, isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ReportEvent } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';

/** The kubelet of a Node as the API server reaches it, which `kubectl logs`, `kubectl exec` and metrics-server need. */
export interface ReachedKubelet {
  /** The response of `/configz`; null: none, or the kubelet has no such path (`enableDebuggingHandlers: false`). */
  readonly configz: JsonObject | null;
  /** Reason why the kubelet cannot be reached, or access to it is denied, as a clause; null: it answered. */
  readonly issue: string | null;
}

/** Sends a request to the kubelet of a Node through the API server. Only unexpected errors are thrown. */
export async function reachKubelet(cluster: Cluster, nodeName: string): Promise<ReachedKubelet> {
  try {
    return { configz: await cluster.getRaw(configzPath(nodeName)), issue: null };
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (error.code === 'CLUSTER_NOT_FOUND') return { configz: null, issue: null };
    const message = firstMessage(error);
    return { configz: null, issue: NO_CERTIFICATE.test(message) ? `${message}. ${APPROVE}` : message };
  }
}

/** Path of the configz of a Node at the API server. */
export function configzPath(nodeName: string): string {
  return `/api/v1/nodes/${encodeURIComponent(nodeName)}/proxy/configz`;
}

/** A kubelet without a serving certificate ends the handshake with this alert (pkg/kubelet/certificate/kubelet.go, 1.36). */
const NO_CERTIFICATE = /tls: internal error/;
const APPROVE = 'The kubelet has no serving certificate (serverTLSBootstrap): approve its CSR with kubeletadm csr approve';

/** The message for a kubelet that was unreachable before a change, shown with `-v 1`. */
export function pathNotChecked(host: string, issue: string): ReportEvent {
  const message = `the connection from the API server to the kubelet is not checked: ${issue}`;
  return { level: 'info', code: 'KUBELET_PATH_NOT_CHECKED', host, message, verbosity: 1 };
}
