import { describe, expect, it } from 'vitest';
import { followAssignment } from '../../../../src/dynamic/agent/follow-assignment.ts';
import type { AssignedObject } from '../../../../src/dynamic/agent/prepare-assigned.ts';
import type { AgentEvent } from '../../../../src/dynamic/agent/state.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type ConfigSource, describeSource, parseSourceArgument } from '../../../../src/kubelet/layers/config-source.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

const CANDIDATE = {
  identity: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' },
  hash: null,
  changes: [],
};
const ASSIGNED: AgentEvent = { kind: 'assigned', candidate: CANDIDATE, refusal: null, retry: null };

function source(text: string): ConfigSource {
  return parseSourceArgument(text).source as ConfigSource;
}
const A = source('kube-system/a/kubelet');
const node = (annotation: string | null, more: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', annotations: annotation === null ? {} : { 'kubeletadm.dev/config-source': annotation } },
  ...more,
});
const assigned = ({ namespace, name, kubeletConfigKey }: ConfigSource, more: Partial<KubeObject> = {}): KubeObject =>
  node(JSON.stringify({ configMap: { namespace, name, kubeletConfigKey } }), more);
const version = (resourceVersion: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', uid: 'u', resourceVersion },
});

function world({ spreadMs = 0 } = {}) {
  const clock = fakeClock();
  const followed: { readonly source: string; readonly signal: AbortSignal }[] = [];
  const prepared: string[] = [];
  const world = {
    clock,
    followed,
    prepared,
    fails: false,
    follower: null as unknown as ReturnType<typeof followAssignment>,
    now: () => clock.now().getTime(),
  };
  world.follower = followAssignment({
    namespace: 'kube-system',
    spreadMs,
    clock,
    random: () => 0.5,
    signal: new AbortController().signal,
    follow: (which, signal) => void followed.push({ source: describeSource(which), signal }),
    prepare: async ({ object, node }: AssignedObject) => {
      if (world.fails) throw new Error('the disk is full');
      prepared.push(`${object.metadata.resourceVersion}${node.isCordoned ? ' cordoned' : ''}`);
      return ASSIGNED;
    },
  });
  return world;
}

describe('followAssignment', () => {
  it('watches the ConfigMap that a Node names, and prepares each version once while its inputs are unchanged', async () => {
    const { follower, followed, prepared } = world();
    expect(await follower.handle({ kind: 'node', node: assigned(A) })).toBeNull();
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toEqual({ ...ASSIGNED, nodeUid: null });
    expect(await follower.handle({ kind: 'node', node: assigned(A) })).toBeNull();
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toBeNull();
    expect(await follower.handle({ kind: 'node', node: assigned(A, { spec: { unschedulable: true } }) })).toEqual({
      ...ASSIGNED,
      nodeUid: null,
    });
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('2') })).toEqual({ ...ASSIGNED, nodeUid: null });
    expect(prepared).toEqual(['1', '1 cordoned', '2 cordoned']);
    expect(followed).toHaveLength(1);
  });

  it('watches one ConfigMap at a time, and ignores events of the previous one', async () => {
    const { follower, followed, prepared } = world();
    const other = source('kube-system/b/kubelet');
    await follower.handle({ kind: 'node', node: assigned(A) });
    await follower.handle({ kind: 'node', node: assigned(other) });
    expect(followed.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toBeNull();
    expect(await follower.handle({ kind: 'config-map-issue', source: A, error: new Error('gone') })).toBeNull();
    expect(await follower.handle({ kind: 'node', node: node(null) })).toEqual({ kind: 'unassigned' });
    expect(followed[1]?.signal.aborted).toBe(true);
    expect(prepared).toEqual([]);
  });

  it.each([
    ['{', 'UNKNOWN_SOURCE'],
    ['{}', 'UNKNOWN_SOURCE'],
    [JSON.stringify({ configMap: { namespace: 'default', name: 'a', kubeletConfigKey: 'kubelet' } }), 'DOWNLOAD_FAILED'],
  ])('reports why the annotation %s is invalid, and ignores the previous ConfigMap', async (annotation, code) => {
    const { follower, followed, prepared } = world();
    await follower.handle({ kind: 'node', node: assigned(A) });
    expect(await follower.handle({ kind: 'node', node: node(annotation) })).toMatchObject({ kind: 'unavailable', issue: { code } });
    expect(followed[0]?.signal.aborted).toBe(true);
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toBeNull();
    expect(prepared).toEqual([]);
  });

  it('reports a ConfigMap that is available again, and reports nothing before the first response', async () => {
    const { follower, prepared } = world();
    await follower.handle({ kind: 'node', node: assigned(A) });
    await follower.handle({ kind: 'config-map', source: A, object: version('1') });
    const lost = await follower.handle({ kind: 'config-map-issue', source: A, error: new Error('forbidden') });
    expect(lost).toMatchObject({ kind: 'unavailable', issue: { code: 'DOWNLOAD_FAILED', cause: expect.stringContaining('forbidden') } });
    expect(await follower.handle({ kind: 'node', node: assigned(A) })).toBeNull();
    expect(await follower.handle({ kind: 'config-map', source: A, object: null })).toMatchObject({ kind: 'unavailable' });
    expect(await follower.handle({ kind: 'node', node: assigned(A) })).toBeNull();
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toEqual({ ...ASSIGNED, nodeUid: null });
    expect(prepared).toEqual(['1', '1']);
  });

  it('delays an edit, also one made while the API server was unreachable, and never an assignment', async () => {
    const { follower, clock, now } = world({ spreadMs: 10_000 });
    await follower.handle({ kind: 'node', node: assigned(A) });
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toEqual({ ...ASSIGNED, nodeUid: null });
    await follower.handle({ kind: 'config-map-issue', source: A, error: new Error('away') });
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('2') })).toBeNull();
    expect(follower.wakeAt).toBe(now() + 5_000);
    expect(await follower.handle({ kind: 'wake' })).toBeNull();
    await clock.sleep(5_000);
    expect(await follower.handle({ kind: 'wake' })).toEqual({ ...ASSIGNED, nodeUid: null });
  });

  it('retries a failed preparation, and periodically repeats a successful one', async () => {
    const one = world();
    const { follower, clock, now, prepared } = one;
    one.fails = true;
    await follower.handle({ kind: 'node', node: assigned(A) });
    expect(await follower.handle({ kind: 'config-map', source: A, object: version('1') })).toEqual({
      kind: 'unavailable',
      issue: { code: 'SYNC_INTERNAL_FAILURE', cause: 'the disk is full' },
    });
    one.fails = false;
    expect(follower.wakeAt).toBe(now() + 10_000);
    await clock.sleep(10_000);
    expect(await follower.handle({ kind: 'wake' })).toEqual({ ...ASSIGNED, nodeUid: null });
    expect((follower.wakeAt ?? 0) - now()).toBe(1_350_000);
    await clock.sleep(1_350_000);
    expect(await follower.handle({ kind: 'wake' })).toEqual({ ...ASSIGNED, nodeUid: null });
    expect(prepared).toEqual(['1', '1']);
  });
});
