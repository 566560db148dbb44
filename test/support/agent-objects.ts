import { ALLOW_POD_LOSS_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';

const NAMESPACE = 'kubeletadm-system';

/**
 * A cluster with one Node, the agent's namespace and one immutable ConfigMap per payload, with the key
 * `kubelet`.
 */
export async function clusterWithPayloads(node: string, payloads: Readonly<Record<string, string>>): Promise<FakeCluster> {
  const cluster = fakeCluster({
    objects: [
      { apiVersion: 'v1', kind: 'Node', metadata: { name: node } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    ],
  });
  for (const [name, kubelet] of Object.entries(payloads)) {
    const metadata = { name, namespace: NAMESPACE };
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { kubelet }, immutable: true });
  }
  return cluster;
}

/**
 * Assigns one of these ConfigMaps to the Node, with the permission to end pods; null removes the assignment.
 */
export async function assignPayload(cluster: FakeCluster, node: string, name: string | null): Promise<void> {
  const text = name === null ? null : JSON.stringify({ configMap: { namespace: NAMESPACE, name, kubeletConfigKey: 'kubelet' } });
  const allowed = name === null ? null : `${NAMESPACE}/${name}/kubelet`;
  const metadata = { annotations: { [CONFIG_SOURCE_ANNOTATION]: text, [ALLOW_POD_LOSS_ANNOTATION]: allowed } };
  await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: node }, 'merge', { metadata });
}
