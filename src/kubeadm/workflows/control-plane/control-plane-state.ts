import { isAppError } from '../../../base/errors.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../../kube/node-marks.ts';
import { BOOTSTRAP_CONF } from '../../../kube/well-known.ts';
import { clientIdentity } from '../../../kubelet/facts/kubelet-identity.ts';
import { manifestPath } from '../../control-plane/paths.ts';

/** Progress of a host towards a control plane. */
type ControlPlaneState =
  /** The host has no static Pod manifest of an API server. */
  | 'none'
  /** An interrupted run left the manifest: the kubelet has not joined, or the Node lacks the control plane label. */
  | 'unfinished'
  | 'present';

const API_SERVER = manifestPath('kube-apiserver');
const FACTS = combineFacts({ identity: clientIdentity, files: fileFacts([API_SERVER, BOOTSTRAP_CONF]) });

/**
 * Whether a host is a control plane of the cluster. Checks follow the order of kubeadm 1.36: manifests, kubelet, etcd,
 * kubelet credentials, label of the Node. The label is assumed if the credentials may not read Nodes.
 * @throws the errors of `host.query` and `Cluster.get`
 */
export async function observeControlPlaneState(host: Host, cluster: Cluster, signal?: AbortSignal): Promise<ControlPlaneState> {
  const { identity, files } = await observe(host, FACTS, signal);
  const exists = (path: string): boolean => (files.get(path) ?? null) !== null;
  if (!exists(API_SERVER)) return 'none';
  if (identity.state === 'missing' || exists(BOOTSTRAP_CONF)) return 'unfinished';
  const [, name] = /^system:node:(.+)$/.exec(identity.commonName ?? '') ?? [];
  if (name !== undefined) return (await isMarked(cluster, name)) ? 'present' : 'unfinished';
  // A token names no Node; an unreadable certificate is treated as missing.
  return identity.state === 'usable' ? 'present' : 'unfinished';
}

/** Connects, calls `observeControlPlaneState` and closes the connection. */
export async function connectAndObserveControlPlane(
  connect: () => Promise<Host>,
  cluster: Cluster,
  signal?: AbortSignal,
): Promise<ControlPlaneState> {
  const host = await connect();
  try {
    return await observeControlPlaneState(host, cluster, signal);
  } finally {
    await host.close();
  }
}

async function isMarked(cluster: Cluster, name: string): Promise<boolean> {
  try {
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name });
    return CONTROL_PLANE_LABEL in (node?.metadata.labels ?? {});
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return true;
    throw error;
  }
}
