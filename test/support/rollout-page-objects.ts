import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION, formatSourceAnnotation } from '../../src/kubelet/layers/config-source.ts';
import { readRollout } from '../../src/rollouts/api/rollout.ts';
import type { ListedNode, RolloutStatus } from '../../src/rollouts/api/schema.ts';
import { revisionOf } from '../../src/rollouts/controller/revision.ts';
import type { RolloutObjects } from '../../src/rollouts/use-cases/watch-rollouts.ts';

const NAMESPACE = 'kubeletadm-system';
const TIME = '2026-11-30T10:00:00Z';

/** A Node of a pool; `map`: the ConfigMap that is assigned to it. */
export function poolNode(name: string, pool: string, { isReady = true, map = '', labels = {} } = {}): KubeObject {
  const source = formatSourceAnnotation({ namespace: NAMESPACE, name: map, kubeletConfigKey: 'kubelet' });
  const annotations: Readonly<Record<string, string>> = map === '' ? {} : { [CONFIG_SOURCE_ANNOTATION]: source };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { pool, ...labels }, annotations, creationTimestamp: TIME },
    status: { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  };
}

/** A rollout for the nodes of the pool of its name, whose payload sets maxPods. */
export function poolRollout(
  name: string,
  status: RolloutStatus & { readonly message?: string },
  spec: JsonObject = {},
  maxPods = 200,
): KubeObject {
  const object = {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'KubeletConfigRollout',
    metadata: { name, uid: `uid-${name}`, generation: 1, creationTimestamp: TIME },
    spec: { nodeSelector: { matchLabels: { pool: name } }, payload: { overlay: { maxPods } }, ...spec },
  };
  const read = readRollout(object);
  if (!('rollout' in read)) throw new Error(read.errors.join());
  const revision = revisionOf(read.rollout, NAMESPACE);
  const { message = '', ...more } = status;
  const { phase = 'Progressing' } = status;
  const isTrue = phase === 'Complete' ? 'Ready' : ['Failed', 'Refused', 'Reverted'].includes(phase) ? 'Stalled' : 'Reconciling';
  const conditions = [{ type: isTrue, status: 'True', lastTransitionTime: TIME, reason: 'Test', message }];
  const current = phase === 'Complete' ? { currentRevision: revision.name } : {};
  const revisions = { updateRevision: revision.name, updateConfigMap: { ...revision.source }, ...current };
  return { ...object, status: { observedGeneration: 1, conditions, ...revisions, ...more } as unknown as JsonObject };
}

/** The ControllerRevisions of a rollout, one for each value of maxPods. */
export function poolRevisions(name: string, maxPods: readonly number[]): readonly KubeObject[] {
  return maxPods.map((value, i) => {
    const { metadata, spec } = poolRollout(name, {}, {}, value);
    const read = readRollout({ apiVersion: '', kind: '', metadata, spec: spec ?? null });
    if (!('rollout' in read)) throw new Error(read.errors.join());
    return {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name: revisionOf(read.rollout, NAMESPACE).name,
        namespace: NAMESPACE,
        labels: { 'kubeletadm.dev/rollout-name': name },
        ownerReferences: [{ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', name, uid: `uid-${name}` }],
        creationTimestamp: `2026-11-${String(10 + i).padStart(2, '0')}T10:00:00Z`,
      },
      data: { spec: { payload: { overlay: { maxPods: value } } } },
      revision: i + 1,
    };
  });
}

/** The counts of a status. */
export function countsOf(selected: number, counts: Partial<NonNullable<RolloutStatus['counts']>>): NonNullable<RolloutStatus['counts']> {
  return { selected, updated: 0, inProgress: 0, pending: 0, failed: 0, unavailable: 0, notEnabled: 0, ...counts };
}

export function rolloutObjects(found: Partial<RolloutObjects>): RolloutObjects {
  return { rollouts: [], nodes: [], revisions: [], issues: [], isControllerAlive: true, ...found };
}

/** Three nodes: one updated, one in progress, one failed. */
export function smallRollout(): RolloutObjects {
  const nodes = ['edge-1', 'edge-2', 'edge-3'].map((name) => poolNode(name, 'edge', { isReady: name !== 'edge-3' }));
  const listed: ListedNode[] = [
    { name: 'edge-3', state: 'Failed', since: TIME, message: 'rolled back: the kubelet did not become Ready within 120 s' },
    { name: 'edge-2', state: 'InProgress', since: TIME },
  ];
  const gate = { name: 'error-rate', batch: 1, state: 'Passed', generation: 1, attempts: 2, startedAt: TIME } as const;
  const status = {
    phase: 'Progressing',
    message: '1 of 3 nodes updated, 1 in progress, 1 failed',
    counts: countsOf(3, { updated: 1, inProgress: 1, failed: 1 }),
    nodes: listed,
    batch: { number: 2, startedAt: TIME },
    gates: [{ ...gate, endedAt: '2026-11-30T10:01:05Z', answer: '0.2, at most 0.5' }],
  } as const;
  const prometheus = { address: 'http://prometheus.monitoring:9090', query: 'x', thresholdRange: { max: 0.5 } };
  const strategy = { maxFailures: 1, gates: [{ name: 'error-rate', prometheus }] };
  return rolloutObjects({
    rollouts: [poolRollout('edge', { ...status, nodes: listed, gates: [...status.gates] } as RolloutStatus, { strategy })],
    nodes,
    revisions: poolRevisions('edge', [110, 150, 200]),
  });
}

/** 5,000 nodes: a rollout of 4,000 that has failed, a paused one, a complete one, and nodes of no rollout. */
export function largeRollouts(): RolloutObjects {
  const name = (prefix: string, i: number): string => `${prefix}-${String(i).padStart(4, '0')}`;
  const failed = (i: number): ListedNode => ({
    name: name('edge', i),
    state: i % 2 === 0 ? 'Failed' : 'Unreachable',
    since: TIME,
    message: i % 2 === 0 ? 'rolled back: the kubelet did not become Ready within 120 s' : 'not updated after 900 s',
  });
  const edge = poolRollout(
    'edge',
    {
      phase: 'Failed',
      message: '6 of 4000 nodes failed, and no further node is changed: 1794 of 4000 nodes updated, 20 in progress, 6 failed',
      counts: countsOf(4_000, { updated: 1_794, inProgress: 20, pending: 2_180, failed: 6 }),
      nodes: [
        ...Array.from({ length: 6 }, (_, i) => failed(1_700 + i)),
        ...Array.from({ length: 20 }, (_, i) => ({ name: name('edge', 1_800 + i), state: 'InProgress' as const, since: TIME })),
        ...Array.from({ length: 224 }, (_, i) => ({ name: name('edge', 1_820 + i), state: 'Pending' as const })),
      ],
      omittedNodes: 1_956,
    },
    { strategy: { maxUnavailable: '1%', maxFailures: 5, canary: { count: 10 } } },
  );
  const mapOf = ({ status }: KubeObject): string => ((status as JsonObject).updateConfigMap as { readonly name: string }).name;
  const gpu = poolRollout('gpu', { phase: 'Complete', message: '500 of 500 nodes updated', counts: countsOf(500, { updated: 500 }) });
  const web = poolRollout(
    'web',
    {
      phase: 'Paused',
      message: 'paused: 2 of 300 nodes updated',
      counts: countsOf(300, { updated: 2, pending: 298 }),
      nodes: Array.from({ length: 250 }, (_, i) => ({ name: name('web', 2 + i), state: 'Pending' as const })),
      omittedNodes: 48,
    },
    { paused: true, strategy: { canary: { count: 2, nodeSelector: { matchLabels: { canary: 'yes' } } } } },
  );
  const nodesOf = (pool: string, count: number, updated: number, map: string): readonly KubeObject[] =>
    Array.from({ length: count }, (_, i) =>
      poolNode(name(pool, i), pool, { map: i < updated ? map : '', labels: pool === 'web' && i < 2 ? { canary: 'yes' } : {} }),
    );
  return rolloutObjects({
    rollouts: [edge, gpu, web],
    nodes: [
      ...nodesOf('edge', 4_000, 1_800, mapOf(edge)),
      ...nodesOf('gpu', 500, 500, mapOf(gpu)),
      ...nodesOf('web', 300, 2, mapOf(web)),
      ...nodesOf('other', 200, 0, ''),
    ],
    revisions: [...poolRevisions('edge', [110, 200]), ...poolRevisions('gpu', [200]), ...poolRevisions('web', [100, 200])],
  });
}
