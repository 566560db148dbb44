import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { LAST_APPLIED_MARKS } from '../../../src/core/kubernetes/node-marks.ts';
import type { KubeObject, ObjectRef } from '../../../src/core/kubernetes/object.ts';
import { applyPhases, planPhases } from '../../../src/engine/run-workflow.ts';
import { type MarkNodeInput, markNode } from '../../../src/phases/mark-node.ts';
import { type WaitNodeInput, waitNode } from '../../../src/phases/wait-node.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

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
const NOBODY = { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] };
const wait = (context: ReturnType<typeof world>['context'], input: Partial<WaitNodeInput> = {}) =>
  applyPhases([waitNode], context, { ...WAIT, ...input }, []);

describe('kubelet-wait-bootstrap/node', () => {
  it('waits until the Node is there', async () => {
    const { context, clock, admin, reporter } = world();
    clock.at(12_000, () => void admin.create(node()));
    await wait(context);
    expect(clock.elapsedMs).toBe(12_000);
    expect(reporter.messages('WAITING')).toEqual(['waiting for Node w1 to appear, 5 s', 'waiting for Node w1 to appear, 10 s']);
  });

  it('says so when it does not come', async () => {
    const { context } = world();
    await expect(wait(context)).rejects.toMatchObject({
      problems: [{ code: 'NODE_NOT_REGISTERED', message: expect.stringContaining('no Node w1 after 30s') }],
    });
  });

  it("gives the kubelet's word for it", async () => {
    const { context, reporter } = world();
    const commands = { journalctl: () => ({ stdout: 'Unable to register node "w1" with API server: no route to host\n' }) };
    await expect(wait({ ...context, host: fakeHost({ units: {}, commands }) })).rejects.toMatchObject({
      problems: [{ code: 'NODE_NOT_REGISTERED', message: expect.stringContaining('no Node w1 after 30s: no route to host') }],
    });
    expect(reporter.messages('WAITING')[0]).toBe('waiting for Node w1 to appear, 5 s: no route to host');
  });

  it('with --wait-ready waits until it is Ready, and tells what it waits for', async () => {
    const { context, clock, admin, reporter } = world([node({ status: { conditions: [condition('False', CNI)] } })]);
    clock.at(7_000, () => void admin.patch(REF, 'merge', { status: { conditions: [condition('True')] } }, { subresource: 'status' }));
    await wait(context, { readyMs: 60_000 });
    expect(clock.elapsedMs).toBe(7_000);
    expect(reporter.messages('WAITING')).toEqual([`waiting for Node w1 to be Ready, 5 s: Ready is False: KubeletNotReady: ${CNI}`]);
  });

  it('says why it is not Ready, and what to do about a missing network plugin', async () => {
    const pressure = { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' };
    const { context } = world([node({ status: { conditions: [pressure, condition('False', CNI)] } })]);
    await expect(wait(context, { readyMs: 20_000 })).rejects.toMatchObject({
      problems: [
        {
          code: 'NODE_NOT_READY',
          message: expect.stringMatching(
            /not Ready after 20s: DiskPressure is True: .*; Ready is False: KubeletNotReady: container runtime/,
          ),
          mend: expect.stringContaining('Install a network plugin'),
        },
      ],
    });
  });

  it('waits for an API server that is away for a while, and says why it gives up on one', async () => {
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

  it('does not fail when the token it looks with expires', async () => {
    const { context, cluster } = world();
    const error = new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: 'Unauthorized' });
    const expired = { ...cluster, get: async () => Promise.reject(error) };
    const [done] = await wait({ ...context, cluster: expired });
    expect(done?.plan.noop).toContain('nobody waited for it');
    await expect(wait(context, { admin: expired })).rejects.toBe(error);
  });

  it('waits for nothing it may not see, unless it is told to', async () => {
    const { context, admin, clock } = world([], NOBODY);
    const [done] = await wait(context);
    expect(done?.plan.noop).toBe('the credentials may not look at Node w1: nobody waited for it');
    await expect(wait(context, { readyMs: 1 })).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
    clock.at(clock.elapsedMs + 3_000, () => void admin.create(node()));
    await wait(context, { admin });
  });

  it('waits for nothing where systemd does not run', async () => {
    const { context } = world();
    await wait({ ...context, host: fakeHost({ units: null }) });
  });
});

describe('mark-node', () => {
  const MARK: MarkNodeInput = {
    nodeName: 'w1',
    labels: { 'node-role.kubernetes.io/worker': '', pool: 'edge' },
    taints: [{ key: 'gpu', value: 'a', effect: 'NoSchedule' }],
    remembered: null,
    admin: null,
    check: null,
  };
  const plan = async (context: ReturnType<typeof world>['context'], input: Partial<MarkNodeInput> = {}) =>
    (await planPhases([markNode], context, { ...MARK, ...input }))[0]?.plan;

  it('gives what is missing, keeps what is there, and has nothing to do then', async () => {
    const spec = { taints: [{ key: 'other', effect: 'NoExecute' }] };
    const { admin, context } = world([node({ metadata: { name: 'w1', labels: { pool: 'edge', mine: 'x' } }, spec })], NOBODY);
    await applyPhases([markNode], context, { ...MARK, admin }, []);
    const found = await admin.get(REF);
    expect(found?.metadata.labels).toEqual({ pool: 'edge', mine: 'x', 'node-role.kubernetes.io/worker': '' });
    expect(found?.spec).toMatchObject({ taints: expect.arrayContaining([spec.taints[0], MARK.taints[0]]) });
    expect((await plan(context, { admin }))?.noop).toBe('Node w1 has its labels and taints');
  });

  it('without an administrator warns of what a Node that was there lacks', async () => {
    const { context } = world([node({ metadata: { name: 'w1', labels: { 'node-role.kubernetes.io/worker': '' } } })]);
    const found = await plan(context);
    expect(found).toMatchObject({ changes: [], warnings: [{ code: 'NODE_NOT_MARKED' }] });
    expect(found?.warnings?.[0]?.message).toContain('has no label pool=edge, taint gpu=a:NoSchedule');
  });

  it('claims nothing about the age of a Node that lacks a taint: it may be new, with register-with-taints', async () => {
    const { context } = world([node({ metadata: { name: 'w1' } })]);
    const warning = (await plan(context, { labels: {} }))?.warnings?.[0]?.message;
    expect(warning).toBe(
      'Node w1 has no taint gpu=a:NoSchedule: its kubelet cannot add it to the registered Node. Give the credentials of an administrator with --kubeconfig',
    );
  });

  it('asks nobody where nothing was declared', async () => {
    const { context, cluster } = world();
    expect((await plan(context, { labels: {}, taints: [] }))?.noop).toBe('no labels or taints were declared');
    expect(cluster.calls).toEqual([]);
  });

  it('is put off until the Node is there', async () => {
    const { context, admin } = world();
    expect((await plan(context, { admin }))?.deferred).toBe('gives Node w1 its labels and taints once it is there');
  });

  describe('with marks that were applied before', () => {
    const NONE = { labels: {}, taints: [] };
    const TAINT = { key: 'gpu', value: 'a', effect: 'NoSchedule' } as const;
    const others = { key: 'other', effect: 'NoExecute' };
    const marked = (annotations: Readonly<Record<string, string>> = {}) =>
      node({ metadata: { name: 'w1', labels: { pool: 'edge', mine: 'x' }, annotations }, spec: { taints: [TAINT, others] } });
    const record = JSON.stringify({ labels: { pool: 'edge' }, taints: [TAINT] });
    const marksAfter = async (found: ReturnType<typeof node>, input: Partial<MarkNodeInput>) => {
      const { admin, context } = world([found], NOBODY);
      await applyPhases([markNode], context, { ...MARK, ...NONE, remembered: NONE, admin, ...input }, []);
      const again = await plan(context, { ...NONE, remembered: NONE, admin, ...input });
      expect(again?.changes).toEqual([]);
      const result = await admin.get(REF);
      const { taints = [] } = (result?.spec ?? {}) as { taints?: readonly { key: string }[] };
      return { metadata: result?.metadata, taints: taints.filter(({ key }) => !key.startsWith('node.kubernetes.io/')) };
    };

    it('removes those recorded on the Node that are no longer declared, and the record', async () => {
      const found = await marksAfter(marked({ [LAST_APPLIED_MARKS]: record, theirs: 'y' }), {});
      expect(found.metadata).toMatchObject({ labels: { mine: 'x' }, annotations: { theirs: 'y' } });
      expect([found.metadata?.labels?.pool, found.metadata?.annotations?.[LAST_APPLIED_MARKS]]).toEqual([undefined, undefined]);
      expect(found.taints).toEqual([others]);
    });

    it('removes those that the host remembers where the Node has no record', async () => {
      const found = await marksAfter(marked(), { remembered: { labels: { pool: 'edge' }, taints: [TAINT] } });
      expect([found.metadata?.labels, found.taints]).toEqual([{ mine: 'x' }, [others]]);
    });

    it('records what it applies, in place of what the host remembers', async () => {
      const found = await marksAfter(marked(), { labels: { pool: 'core' } });
      expect(found.metadata?.labels).toEqual({ pool: 'core', mine: 'x' });
      expect(JSON.parse(found.metadata?.annotations?.[LAST_APPLIED_MARKS] ?? '')).toEqual({ labels: { pool: 'core' }, taints: [] });
      // It was not applied by a fleet: neither recorded nor remembered.
      expect(found.taints).toEqual([TAINT, others]);
    });

    it.each([
      ['whose value somebody changed', JSON.stringify({ labels: { pool: 'core' }, taints: [{ ...TAINT, value: 'b' }] })],
      ['of a record that is not JSON', '{'],
      ['of a record of another form', JSON.stringify({ labels: ['pool'], taints: {} })],
    ])('leaves those %s', async (_, annotation) => {
      const found = await marksAfter(marked({ [LAST_APPLIED_MARKS]: annotation }), {});
      expect([found.metadata?.labels, found.taints]).toEqual([{ pool: 'edge', mine: 'x' }, [TAINT, others]]);
    });

    it('without an administrator warns of what stays', async () => {
      const { context } = world([marked({ [LAST_APPLIED_MARKS]: record })]);
      const found = await plan(context, { ...NONE, remembered: NONE });
      expect(found).toMatchObject({ changes: [], warnings: [{ code: 'NODE_MARKS_NOT_REMOVED' }] });
      expect(found?.warnings?.[0]?.message).toContain('no longer declared: label pool=edge, taint gpu=a:NoSchedule');
    });
  });
});
