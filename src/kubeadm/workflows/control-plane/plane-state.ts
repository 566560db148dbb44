import { isAppError } from '../../../base/errors.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { Host } from '../../../host/host.ts';
import { observe } from '../../../host/observe.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../../kube/node-marks.ts';
import { BOOTSTRAP_CONF } from '../../../kube/well-known.ts';
import { clientIdentity } from '../../../kubelet/facts/kubelet-identity.ts';
import { manifestPath } from '../../control-plane/paths.ts';

/** How far a host is on its way to be a control plane. */
export type ControlPlaneState =
  /** It has no static pod of an API server. */
  | 'none'
  /** It has one, and whoever made it did not come to the end: the kubelet is no node yet, or the Node is not marked. */
  | 'unfinished'
  | 'present';

const API_SERVER = manifestPath('kube-apiserver');
const FACTS = combineFacts({ identity: clientIdentity, files: fileFacts([API_SERVER, BOOTSTRAP_CONF]) });

/**
 * Whether a host is a control plane of the cluster, in the order in which kubeadm 1.36 makes one: manifests, kubelet, etcd, credentials of the kubelet, marks of the Node.
 * Credentials that may not look at Nodes leave it at what the host has.
 * @throws what `host.ask` and `Cluster.get` throw
 */
export async function observeControlPlaneState(host: Host, cluster: Cluster, signal?: AbortSignal): Promise<ControlPlaneState> {
  const { identity, files } = await observe(host, FACTS, signal);
  const exists = (path: string): boolean => (files.get(path) ?? null) !== null;
  if (!exists(API_SERVER)) return 'none';
  if (identity.state === 'missing' || exists(BOOTSTRAP_CONF)) return 'unfinished';
  const [, name] = /^system:node:(.+)$/.exec(identity.commonName ?? '') ?? [];
  if (name !== undefined) return (await isMarked(cluster, name)) ? 'present' : 'unfinished';
  // Credentials that are no certificate name nobody; a certificate that cannot be read was never there.
  return identity.state === 'usable' ? 'present' : 'unfinished';
}

/** The same over a connection of its own. */
export async function controlPlaneStateOver(
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
