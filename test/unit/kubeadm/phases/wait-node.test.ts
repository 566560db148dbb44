import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { planGarbage } from '../../../../src/dynamic/use-cases/collect-config-maps.ts';
import { PUSHED_LABEL } from '../../../../src/dynamic/workflows/push-config.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../../../src/kube/object.ts';
import { agentRights } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import { markControlPlane } from '../../../../src/kubeadm/phases/mark-control-plane.ts';
import { type MarkNodeInput, markNode } from '../../../../src/kubeadm/phases/mark-node.ts';
import { type WaitNodeInput, waitNode } from '../../../../src/kubeadm/phases/wait-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const REF = { apiVersion: 'v1', kind: 'Node', name: 'w1' };
const CNI = 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized';
const condition = (status: string, message = '') => ({
  type: 'Ready',
  status,
  reason: status === 'True' ? 'KubeletReady' : 'KubeletNotReady',
  message,
});
const node = (more: Partial<KubeObject> = {}): KubeObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' }, ...more });

function world(objects: readonly KubeObject[] = [], user?: { name: string; groups: readonly string[] }) {
  const admin = fakeCluster({ objects });
  const cluster = user === undefined ? admin : fakeCluster({ sharedWith: admin, user });
  const clock = fakeClock();
  const reporter = recordingReporter();
  return { admin, cluster, clock, reporter, context: { host: fakeHost({ units: {} }), cluster, clock, reporter } };
}

const WAIT: WaitNodeInput = { nodeName: 'w1', timeoutMs: 30_000, readyMs: null, admin: null };
const BOOTSTRAPPER = { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] };
const wait = (context: PhaseContext, input: Partial<WaitNodeInput> = {}) => applyPhases([waitNode], context, { ...WAIT, ...input }, []);

describe('kubelet-wait-bootstrap/node', () => {
  it('waits until the Node is registered', async () => {
    const { context, clock, admin, reporter } = world();
    clock.at(12_000, () => void admin.create(node()));
    await wait(context);
    expect(clock.elapsedMs).toBe(12_000);
    expect(reporter.messages('WAITING')).toEqual([
      'waiting for Node w1 to be registered, 5 s',
      'waiting for Node w1 to be registered, 10 s',
    ]);
  });

  it('lets the requests of other hosts go first after its first one', async () => {
    const { context, clock, admin } = world();
    clock.at(2_000, () => void admin.create(node()));
    const read: string[] = [];
    const counted = (name: string): Cluster => ({
      ...admin,
      get: (ref) => {
        read.push(name);
        return admin.get(ref);
      },
    });
    await wait({ ...context, cluster: { ...counted('step'), forPolls: counted('poll') } });
    // The first request, the repeated ones, and the inspection of the phase after the wait.
    expect([read[0], new Set(read.slice(1, -1)), read.at(-1)]).toEqual(['step', new Set(['poll']), 'step']);
  });

  it('reports that the Node was not registered in time', async () => {
    const { context } = world();
    await expect(wait(context)).rejects.toMatchObject({
      problems: [{ code: 'NODE_NOT_REGISTERED', message: expect.stringContaining('Node w1 is not registered after 30s') }],
    });
  });

  it('includes the error of the kubelet', async () => {
    const { context, reporter } = world();
    const commands = { journalctl: () => ({ stdout: 'Unable to register node "w1" with API server: no route to host\n' }) };
    await expect(wait({ ...context, host: fakeHost({ units: {}, commands }) })).rejects.toMatchObject({
      problems: [
        { code: 'NODE_NOT_REGISTERED', message: expect.stringContaining('Node w1 is not registered after 30s: no route to host') },
      ],
    });
    expect(reporter.messages('WAITING')[0]).toBe('waiting for Node w1 to be registered, 5 s: no route to host');
  });

  it('with --wait-ready waits until the Node is Ready, and reports the reason', async () => {
    const { context, clock, admin, reporter } = world([node({ status: { conditions: [condition('False', CNI)] } })]);
    clock.at(7_000, () => void admin.patch(REF, 'merge', { status: { conditions: [condition('True')] } }, { subresource: 'status' }));
    await wait(context, { readyMs: 60_000 });
    expect(clock.elapsedMs).toBe(7_000);
    expect(reporter.messages('WAITING')).toEqual([`waiting for Node w1 to be Ready, 5 s: Ready is False: KubeletNotReady: ${CNI}`]);
  });

  it('with --wait-ready does not accept a condition Ready that the kubelet of an earlier join has reported', async () => {
    const reported = (time: string) => ({ status: { conditions: [{ ...condition('True'), lastHeartbeatTime: time }] } });
    const { context, clock, admin, reporter } = world([node(reported('2029-12-31T23:59:30Z'))]);
    const start = Date.parse('2030-01-01T00:00:00Z') / 1000;
    const host = fakeHost({ units: { kubelet: fakeUnit({ activeState: 'active', startedAt: start }) } });
    clock.at(7_000, () => void admin.patch(REF, 'merge', reported('2030-01-01T00:00:00Z'), { subresource: 'status' }));
    await wait({ ...context, host }, { readyMs: 60_000 });
    expect(clock.elapsedMs).toBe(7_000);
    expect(reporter.messages('WAITING')[0]).toBe('waiting for Node w1 to be Ready, 5 s: the kubelet has not reported since its start');
  });

  it('with --wait-ready does not accept a condition Ready while a crashing kubelet waits for its next start', async () => {
    const { context, clock } = world([
      node({ status: { conditions: [{ ...condition('True'), lastHeartbeatTime: '2029-12-31T23:59:30Z' }] } }),
    ]);
    const host = fakeHost({
      units: { kubelet: fakeUnit({ activeState: 'activating', subState: 'auto-restart', startedAt: null, restarts: 3 }) },
    });
    await expect(wait({ ...context, host }, { readyMs: 20_000 })).rejects.toMatchObject({ exitCode: 1 });
    expect(clock.elapsedMs).toBeGreaterThan(0);
  });

  it('reports why the Node is not Ready, with a hint for a missing network plugin', async () => {
    const pressure = { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' };
    const { context } = world([node({ status: { conditions: [pressure, condition('False', CNI)] } })]);
    await expect(wait(context, { readyMs: 20_000 })).rejects.toMatchObject({
      problems: [
        {
          code: 'NODE_NOT_READY',
          message: expect.stringMatching(
            /not Ready after 20s: DiskPressure is True: .*; Ready is False: KubeletNotReady: container runtime/,
          ),
          hint: expect.stringContaining('Install a CNI network plugin'),
        },
      ],
    });
  });

  it('waits for a temporarily unreachable API server, and reports its error on timeout', async () => {
    const { context, clock, cluster, reporter, admin } = world();
    let away = true;
    const error = new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'cannot reach the API server: connection refused' });
    const flaky = { ...cluster, get: async (ref: ObjectRef) => (away ? Promise.reject(error) : cluster.get(ref)) };
    clock.at(6_000, () => {
      away = false;
    });
    clock.at(8_000, () => void admin.create(node()));
    await wait({ ...context, cluster: flaky });
    expect(clock.elapsedMs).toBe(8_000);
    expect(reporter.messages('WAITING')).toEqual(['waiting for Node w1, 5 s: cannot reach the API server: connection refused']);
    away = true;
    await expect(wait({ ...context, cluster: flaky })).rejects.toBe(error);
    expect(clock.elapsedMs).toBe(38_000);
  });

  it('does not fail when its token expires', async () => {
    const { context, cluster } = world();
    const error = new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: 'Unauthorized' });
    const expired = { ...cluster, get: async () => Promise.reject(error) };
    const [done] = await wait({ ...context, cluster: expired });
    expect(done?.plan.noop).toContain('not waiting for Node');
    await expect(wait(context, { admin: expired })).rejects.toBe(error);
  });

  it('does not wait for an unreadable Node, unless --wait-ready is set', async () => {
    const { context, admin, clock } = world([], BOOTSTRAPPER);
    const [done] = await wait(context);
    expect(done?.plan.noop).toBe('not waiting for Node w1: the credentials are not allowed to read the Node');
    await expect(wait(context, { readyMs: 1 })).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
    clock.at(clock.elapsedMs + 3_000, () => void admin.create(node()));
    await wait(context, { admin });
  });

  it('does not wait when systemd does not run', async () => {
    const { context } = world();
    await wait({ ...context, host: fakeHost({ units: null }) });
  });
});

describe('mark-node', () => {
  const MARK: MarkNodeInput = {
    nodeName: 'w1',
    labels: { 'node-role.kubernetes.io/worker': '', pool: 'edge' },
    taints: [{ key: 'gpu', value: 'a', effect: 'NoSchedule' }],
    saved: null,
    admin: null,
    check: null,
  };
  const plan = async (context: ReturnType<typeof world>['context'], input: Partial<MarkNodeInput> = {}) =>
    (await planPhases([markNode], context, { ...MARK, ...input }))[0]?.plan;

  it('adds missing marks, keeps existing ones, and plans no changes again', async () => {
    const spec = { taints: [{ key: 'other', effect: 'NoExecute' }] };
    const { admin, context } = world([node({ metadata: { name: 'w1', labels: { pool: 'edge', mine: 'x' } }, spec })], BOOTSTRAPPER);
    await applyPhases([markNode], context, { ...MARK, admin }, []);
    const found = await admin.get(REF);
    expect(found?.metadata.labels).toEqual({ pool: 'edge', mine: 'x', 'node-role.kubernetes.io/worker': '' });
    expect(found?.spec).toMatchObject({ taints: expect.arrayContaining([spec.taints[0], MARK.taints[0]]) });
    expect((await plan(context, { admin }))?.noop).toBe('the labels and taints of Node w1 are unchanged');
  });

  it('without an administrator warns about missing marks of a registered Node', async () => {
    const { context } = world([node({ metadata: { name: 'w1', labels: { 'node-role.kubernetes.io/worker': '' } } })]);
    const found = await plan(context);
    expect(found).toMatchObject({ changes: [], warnings: [{ code: 'NODE_NOT_MARKED' }] });
    expect(found?.warnings?.[0]?.message).toContain('lacks label pool=edge, taint gpu=a:NoSchedule');
  });

  it('makes no claim about the age of a Node without a taint: a new Node gets it by register-with-taints', async () => {
    const { context } = world([node({ metadata: { name: 'w1' } })]);
    const warning = (await plan(context, { labels: {} }))?.warnings?.[0]?.message;
    expect(warning).toBe(
      'Node w1 lacks taint gpu=a:NoSchedule: the kubelet cannot change the labels and taints of a registered Node. Pass an administrator kubeconfig with --kubeconfig',
    );
  });

  it('sends no request when nothing is declared', async () => {
    const { context, cluster } = world();
    expect((await plan(context, { labels: {}, taints: [] }))?.noop).toBe('no labels or taints were declared');
    expect(cluster.calls).toEqual([]);
  });

  it('is deferred until the Node is registered', async () => {
    const { context, admin } = world();
    expect((await plan(context, { admin }))?.deferred).toBe('sets the labels and taints after Node w1 is registered');
  });

  describe('with previously applied marks', () => {
    const NONE = { labels: {}, taints: [] };
    const TAINT = { key: 'gpu', value: 'a', effect: 'NoSchedule' } as const;
    const POOL = { labels: { pool: 'edge' }, taints: [TAINT] };
    const otherTaint = { key: 'other', effect: 'NoExecute' };
    const RECORD_REF = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name: 'node-marks-w1' };
    const marked = (annotations: Readonly<Record<string, string>> = {}) =>
      node({ metadata: { name: 'w1', labels: { pool: 'edge', mine: 'x' }, annotations }, spec: { taints: [TAINT, otherTaint] } });
    const inFleet = (admin: Cluster, more: Partial<MarkNodeInput> = {}): MarkNodeInput => ({
      ...MARK,
      ...NONE,
      saved: NONE,
      admin,
      ...more,
    });
    const apply = ({ admin, context }: ReturnType<typeof world>, more: Partial<MarkNodeInput> = {}) =>
      applyPhases([markNode], context, inFleet(admin, more), []);
    const found = async ({ admin }: Pick<ReturnType<typeof world>, 'admin'>) => {
      const { metadata, spec } = (await admin.get(REF)) as KubeObject;
      const { taints = [] } = (spec ?? {}) as { taints?: readonly { key: string }[] };
      return { labels: metadata.labels, taints: taints.filter(({ key }) => !key.startsWith('node.kubernetes.io/')) };
    };
    const recordOf = async ({ admin }: Pick<ReturnType<typeof world>, 'admin'>): Promise<unknown> => {
      const data = (await admin.get(RECORD_REF))?.data as Readonly<Record<string, string>> | undefined;
      return data === undefined ? null : JSON.parse(data['marks.json'] ?? '');
    };
    const EDGE = { labels: [{ key: 'pool', value: 'edge' }], taints: [TAINT] };

    it('removes recorded marks that are no longer declared, and plans no changes again', async () => {
      const w = world([node({ metadata: { name: 'w1', labels: { mine: 'x' } }, spec: { taints: [otherTaint] } })], BOOTSTRAPPER);
      await apply(w, POOL);
      expect([await found(w), await recordOf(w)]).toEqual([{ labels: { pool: 'edge', mine: 'x' }, taints: [otherTaint, TAINT] }, EDGE]);
      expect((await plan(w.context, inFleet(w.admin, POOL)))?.noop).toBe('the labels and taints of Node w1 are unchanged');
      await apply(w);
      expect([await found(w), await recordOf(w)]).toEqual([
        { labels: { mine: 'x' }, taints: [otherTaint] },
        { labels: [], taints: [] },
      ]);
      expect((await plan(w.context, inFleet(w.admin)))?.noop).toBe('no labels or taints were declared');
    });

    it('sets the Node as the owner of its record', async () => {
      const w = world([node()], BOOTSTRAPPER);
      await apply(w, POOL);
      const { uid } = ((await w.admin.get(REF)) as KubeObject).metadata;
      expect((await w.admin.get(RECORD_REF))?.metadata.ownerReferences).toEqual([{ apiVersion: 'v1', kind: 'Node', name: 'w1', uid }]);
    });

    it('ignores an annotation and a file of the host: a quarantine taint stays', async () => {
      const forged = { labels: { pool: 'edge' }, taints: [{ key: 'quarantine', effect: 'NoExecute' }] } as const;
      const quarantined = node({
        metadata: { name: 'w1', labels: { pool: 'edge' }, annotations: { 'kubeletadm.dev/last-applied-marks': JSON.stringify(forged) } },
        spec: { taints: [{ key: 'quarantine', effect: 'NoExecute' }] },
      });
      const w = world([quarantined], BOOTSTRAPPER);
      expect((await plan(w.context, inFleet(w.admin, { saved: forged })))?.changes).toEqual([]);
      await apply(w, { saved: forged });
      expect(await found(w)).toEqual({ labels: { pool: 'edge' }, taints: [{ key: 'quarantine', effect: 'NoExecute' }] });
      await apply(w, { saved: forged, labels: { zone: 'a' } });
      await apply(w, { saved: forged });
      expect(await found(w)).toEqual({ labels: { pool: 'edge' }, taints: [{ key: 'quarantine', effect: 'NoExecute' }] });
    });

    it('protects its record from all nodes, even from a node with an agent', async () => {
      const w = world([node()], BOOTSTRAPPER);
      await apply(w, POOL);
      const rights = agentRights({ nodeName: 'w1', nodeUid: null, namespace: 'kubeletadm-system' });
      for (const object of rights) await w.admin.create(object);
      const kubelet = fakeCluster({ sharedWith: w.admin, user: { name: 'system:node:w1', groups: ['system:nodes'] } });
      const record = (await kubelet.get(RECORD_REF)) as KubeObject;
      await expect(kubelet.update({ ...record, data: {} })).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
      await expect(kubelet.patch(RECORD_REF, 'merge', { data: {} })).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
      await expect(kubelet.delete(RECORD_REF)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
      await expect(
        kubelet.create({ ...record, metadata: { name: 'node-marks-w2', namespace: 'kubeletadm-system' } }),
      ).rejects.toMatchObject({
        code: 'CLUSTER_FORBIDDEN',
      });
    });

    it('keeps its record when dynamic gc deletes payloads', async () => {
      const w = world([node()], BOOTSTRAPPER);
      await apply(w, POOL);
      const namespace = 'kubeletadm-system';
      const labels = { [PUSHED_LABEL]: 'true' };
      await w.admin.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'payload', namespace, labels } });
      expect(await planGarbage(w.admin, namespace, Date.parse('2100-01-01'))).toMatchObject([{ ref: { name: 'payload' } }]);
    });

    it('warns about marks recorded only on the host', async () => {
      const w = world([marked()], BOOTSTRAPPER);
      const [warning] = (await plan(w.context, inFleet(w.admin, { saved: POOL })))?.warnings ?? [];
      expect(warning).toMatchObject({
        code: 'NODE_MARKS_NOT_REMOVED',
        message: expect.stringContaining('label pool=edge, taint gpu=a:NoSchedule'),
      });
      expect((await plan(w.context, inFleet(w.admin, { ...POOL, saved: POOL })))?.warnings).toBeUndefined();
    });

    it('records existing marks of a Node, but removes no earlier ones', async () => {
      const w = world([marked()], BOOTSTRAPPER);
      expect((await plan(w.context, inFleet(w.admin, { labels: { pool: 'edge' } })))?.changes).toMatchObject([
        { kind: 'mark-node', patch: {} },
      ]);
      await apply(w, { labels: { pool: 'edge' } });
      expect([await found(w), await recordOf(w)]).toEqual([
        { labels: { pool: 'edge', mine: 'x' }, taints: [TAINT, otherTaint] },
        { labels: [{ key: 'pool', value: 'edge' }], taints: [] },
      ]);
    });

    it('keeps marks whose value was changed by others', async () => {
      const w = world([node()], BOOTSTRAPPER);
      await apply(w, POOL);
      const changed = { metadata: { labels: { pool: 'core' } }, spec: { taints: [{ ...TAINT, value: 'b' }] } };
      await w.admin.patch(REF, 'merge', changed);
      await apply(w);
      expect(await found(w)).toEqual({ labels: { pool: 'core' }, taints: [{ ...TAINT, value: 'b' }] });
    });

    it.each([
      [
        'of an earlier Node of the same name',
        { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'w1', uid: 'earlier' }] },
        JSON.stringify(EDGE),
      ],
      ['without an owner', {}, JSON.stringify(EDGE)],
      ['that is not JSON', null, '{'],
      ['of another format', null, JSON.stringify({ labels: ['pool'], taints: {} })],
    ])('removes nothing because of a record %s, and replaces the record', async (_, metadata, text) => {
      const w = world([marked()], BOOTSTRAPPER);
      const { uid } = ((await w.admin.get(REF)) as KubeObject).metadata;
      const own = { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'w1', uid: uid as string }] };
      await w.admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
      const { namespace, name } = RECORD_REF;
      await w.admin.create({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name, ...(metadata ?? own) },
        data: { 'marks.json': text },
      });
      await apply(w);
      await apply(w, { labels: { zone: 'a' } });
      expect(await found(w)).toEqual({ labels: { pool: 'edge', mine: 'x', zone: 'a' }, taints: [TAINT, otherTaint] });
      expect(await recordOf(w)).toEqual({ labels: [{ key: 'zone', value: 'a' }], taints: [] });
      expect((await w.admin.get(RECORD_REF))?.metadata.ownerReferences).toEqual(own.ownerReferences);
    });

    /** The same API server for a run that is interrupted before its nth write. */
    const killedAt = (admin: Cluster, nth: number): Cluster => {
      let writes = 0;
      const write = async <T>(work: () => Promise<T>): Promise<T> => {
        writes++;
        if (writes >= nth) throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'killed' });
        return work();
      };
      return {
        ...admin,
        create: (object) => write(() => admin.create(object)),
        update: (object) => write(() => admin.update(object)),
        patch: (...args) => write(() => admin.patch(...args)),
      };
    };
    const CORE = { labels: { pool: 'core' }, taints: [] };

    it.each([
      [1, 1],
      [2, 1],
      [3, 1],
      [3, 2],
      [3, 3],
      [9, 1],
      [9, 2],
      [9, 3],
    ])('after interruptions at write %i and at write %i keeps its records and the marks of others', async (first, second) => {
      const w = world([node({ metadata: { name: 'w1', labels: { mine: 'x' } }, spec: { taints: [otherTaint] } })], BOOTSTRAPPER);
      const run = (admin: Cluster, more: Partial<MarkNodeInput>) => applyPhases([markNode], w.context, inFleet(admin, more), []);
      await run(killedAt(w.admin, first), POOL).catch(() => undefined);
      await expect(run(killedAt(w.admin, second), CORE)).rejects.toThrow('killed');
      await run(w.admin, CORE);
      expect([await found(w), await recordOf(w)]).toEqual([
        { labels: { pool: 'core', mine: 'x' }, taints: [otherTaint] },
        { labels: [{ key: 'pool', value: 'core' }], taints: [] },
      ]);
      await apply(w);
      expect(await found(w)).toEqual({ labels: { mine: 'x' }, taints: [otherTaint] });
    });

    it('keeps a taint that is added during its own write', async () => {
      const quarantine = { key: 'quarantine', effect: 'NoExecute' };
      const w = world([node()], BOOTSTRAPPER);
      let isAdded = false;
      const racing: Cluster = {
        ...w.admin,
        patch: async (ref, ...rest) => {
          if (!isAdded) {
            isAdded = true;
            await w.admin.patch(REF, 'merge', { spec: { taints: [quarantine] } });
          }
          return w.admin.patch(ref, ...rest);
        },
      };
      await applyPhases([markNode], w.context, inFleet(racing, POOL), []);
      expect((await found(w)).taints).toEqual([quarantine, TAINT]);
    });

    it('fails after five conflicts', async () => {
      const w = world([node()], BOOTSTRAPPER);
      const conflict = new AppError({ code: 'CLUSTER_CONFLICT', message: 'changed' });
      let tries = 0;
      const racing: Cluster = {
        ...w.admin,
        patch: async () => {
          tries++;
          throw conflict;
        },
      };
      await expect(applyPhases([markNode], w.context, inFleet(racing, POOL), [])).rejects.toMatchObject({
        code: 'CLUSTER_CONFLICT',
        cause: conflict,
      });
      expect(tries).toBe(5);
    });

    it('creates the namespace once for hosts that are changed concurrently', async () => {
      const w = world([node(), node({ metadata: { name: 'w2' } })], BOOTSTRAPPER);
      await Promise.all([apply(w, POOL), apply(w, { ...POOL, nodeName: 'w2' })]);
      expect(await recordOf(w)).toEqual(EDGE);
    });

    it('keeps a taint that is added concurrently to a control plane', async () => {
      const w = world([node()]);
      const racing: Cluster = {
        ...w.admin,
        patch: async (...args) => {
          if (!w.admin.calls.includes('patch Node w1')) await w.admin.patch(REF, 'merge', { spec: { taints: [otherTaint] } });
          return w.admin.patch(...args);
        },
      };
      const input = { nodeName: 'w1', taints: [TAINT], timeoutMs: 1 };
      await applyPhases([markControlPlane], { ...w.context, cluster: racing }, input, []);
      expect((await found(w)).taints).toEqual([otherTaint, TAINT]);
    });
  });
});
