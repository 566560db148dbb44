import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import type { FakeCluster } from './fake-cluster.ts';

const PODS = resourceOf('v1', 'Pod') as ResourceType;

export interface FakePod {
  readonly name: string;
  readonly namespace?: string;
  readonly nodeName?: string;
  /** The API server shows it as a mirror pod. */
  readonly isStatic?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly status?: JsonObject;
}

/** A pod of Node w1 in namespace default, running unless `status` is given. */
export function fakePod({
  name,
  namespace = 'default',
  nodeName = 'w1',
  isStatic = false,
  labels = {},
  status = RUNNING,
}: FakePod): KubeObject {
  const annotations = isStatic ? { 'kubernetes.io/config.mirror': 'hash' } : {};
  const spec = { nodeName, containers: [{ name: 'main', image: 'example.org/main:1' }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels, annotations }, spec, status };
}

export const RUNNING: JsonObject = {
  phase: 'Running',
  containerStatuses: [{ name: 'main', restartCount: 0, state: { running: { startedAt: '2030-01-01T00:00:00Z' } } }],
};

/** Status of a pod whose container waits. */
export function waitingPod(reason: string, message = '', phase = 'Pending'): JsonObject {
  return { phase, containerStatuses: [{ name: 'main', restartCount: 0, state: { waiting: { reason, message } } }] };
}

/** Sets the status of a pod, like its kubelet. */
export function setPodStatus({ store }: FakeCluster, name: string, status: JsonObject, namespace = 'default'): void {
  const pod = store.get(PODS, namespace, name);
  if (pod === null) throw new Error(`no pod ${namespace}/${name}`);
  store.put(PODS, { ...pod, status });
}

/** Removes a pod at once. */
export function removePod({ store }: FakeCluster, name: string, namespace = 'default'): void {
  store.remove(PODS, namespace, name);
}

/** The pods of the cluster. */
export function podsIn({ store }: FakeCluster): readonly KubeObject[] {
  return store.list(PODS);
}

/**
 * Acts as the kubelet of a node for pods created through the API server.
 * @param statusOf the status of a new pod; null: the kubelet does not report the pod
 */
export function startPods({ store }: FakeCluster, nodeName: string, statusOf: (pod: KubeObject) => JsonObject | null): void {
  store.subscribe(({ type, resource, object }) => {
    if (type !== 'ADDED' || resource !== PODS || (object.spec as JsonObject).nodeName !== nodeName) return;
    const status = statusOf(object);
    if (status !== null) store.put(PODS, { ...object, status });
  });
}
