import type { ThisProcess } from '../../src/base/this-process.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import type { HoldRun } from '../../src/maintenance/drain/hold.ts';
import { fakeClock } from './fake-clock.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';
import { recordingReporter } from './recording-reporter.ts';

const PODS = resourceOf('v1', 'Pod') as ResourceType;
const NODES = resourceOf('v1', 'Node') as ResourceType;

/** A cluster with a disruption controller, whose deleted pods a scheduler starts again on another node after a while. */
export function drainWorld(objects: readonly KubeObject[], { startMs = 3_000, now = fakeClock() } = {}) {
  const cluster: FakeCluster = fakeCluster({ now: () => now.now() });
  put(cluster, ...objects);
  const self: ThisProcess = { name: 'alice@laptop', id: 7, machine: 'laptop-boot', isRunning: (id) => id === 7 };
  const run: HoldRun = { run: 'run-1', self, clock: now, reason: 'a test' };
  let created = 0;
  cluster.store.subscribe(({ type, resource, object }) => {
    if (type !== 'DELETED' || resource !== PODS || object.metadata.ownerReferences === undefined) return;
    const { uid: _uid, resourceVersion: _version, deletionTimestamp: _deletion, ...metadata } = object.metadata;
    const name = `${object.metadata.name.replace(/-r\d+$/, '')}-r${++created}`;
    const target = cluster.store
      .list(NODES)
      .find((node) => (node.spec as { unschedulable?: boolean }).unschedulable !== true && node.metadata.name !== nodeOf(object))
      ?.metadata.name;
    const spec = { ...(object.spec as object), ...(target === undefined ? {} : { nodeName: target }) };
    const pending = { ...object, metadata: { ...metadata, name } as KubeObject['metadata'], spec, status: { phase: 'Pending' } };
    cluster.store.put(PODS, pending);
    if (target === undefined) return;
    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    now.at(now.elapsedMs + startMs, () => {
      const current = cluster.store.get(PODS, object.metadata.namespace ?? '', name);
      if (current !== null) cluster.store.put(PODS, { ...current, status: ready });
    });
  });
  return { cluster, clock: now, run, reporter: recordingReporter(), signal: new AbortController().signal };
}

function nodeOf(pod: KubeObject): unknown {
  return (pod.spec as { nodeName?: string }).nodeName;
}

/** Stores objects as they are. */
export function put(cluster: FakeCluster, ...objects: readonly KubeObject[]): void {
  for (const object of objects) cluster.store.put(resourceOf(object.apiVersion, object.kind) as ResourceType, object);
}
