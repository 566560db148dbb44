import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { CONTROL_PLANE_TAINT } from '../../../../src/kubeadm/config/defaults.ts';
import { type MarkControlPlaneInput, markControlPlane } from '../../../../src/kubeadm/phases/mark-control-plane.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const NODE: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1', labels: { custom: 'x' } } };
const REF = { apiVersion: 'v1', kind: 'Node', name: 'cp-1' };
const INPUT: MarkControlPlaneInput = {
  nodeName: 'cp-1',
  taints: [CONTROL_PLANE_TAINT],
  timeoutMs: 60_000,
};
const LABELS = { 'node-role.kubernetes.io/control-plane': '', 'node.kubernetes.io/exclude-from-external-load-balancers': '' };

function world(objects: readonly KubeObject[] = []) {
  const clock = fakeClock();
  const cluster = fakeCluster({ objects });
  const context: PhaseContext = { host: fakeHost(), cluster, clock, reporter: recordingReporter() };
  const plan = async (input: Partial<MarkControlPlaneInput> = {}, within = context) =>
    (await planPhases([markControlPlane], within, { ...INPUT, ...input }))[0]?.plan;
  return { clock, cluster, context, plan };
}

describe('mark-control-plane', () => {
  it('adds labels and taints to the Node, keeps others, and plans no changes again', async () => {
    const spec = { taints: [{ key: 'custom', effect: 'NoExecute' }] };
    const { cluster, context, plan } = world([{ ...NODE, spec }]);
    await applyPhases([markControlPlane], context, INPUT, []);
    const node = await cluster.get(REF);
    expect(node?.metadata.labels).toMatchObject({ ...LABELS, custom: 'x' });
    expect(node?.spec).toMatchObject({ taints: expect.arrayContaining([spec.taints[0], CONTROL_PLANE_TAINT]) });
    expect((await plan())?.noop).toBe('Node cp-1 has the control plane labels and taints');
  });

  it('removes no taint when none is desired', async () => {
    const { plan } = world([{ ...NODE, spec: { taints: [{ ...CONTROL_PLANE_TAINT }] } }]);
    expect((await plan({ taints: [] }))?.changes).toMatchObject([{ kind: 'mark-node', patch: { metadata: { labels: LABELS } } }]);
  });

  it('waits until the kubelet has registered its Node', async () => {
    const { clock, cluster, context, plan } = world();
    expect((await plan())?.deferred).toBe('waits until the kubelet has registered Node cp-1');
    clock.at(clock.elapsedMs + 7_000, () => void cluster.create(NODE));
    await applyPhases([markControlPlane], context, INPUT, []);
    expect((await cluster.get(REF))?.metadata.labels).toMatchObject(LABELS);
  });

  it('reports that the Node was not registered in time', async () => {
    const { context } = world();
    await expect(applyPhases([markControlPlane], context, INPUT, [])).rejects.toMatchObject({
      code: 'NODE_NOT_REGISTERED',
      message: expect.stringMatching(/mark-control-plane: .*Node cp-1 is not registered after 60s/),
    });
  });

  it('plans all marks for a cluster that does not exist yet', async () => {
    const { context, plan } = world();
    expect((await plan({}, { ...context, cluster: null }))?.changes).toEqual([
      {
        kind: 'mark-node',
        marks: { labels: LABELS, taints: [CONTROL_PLANE_TAINT] },
        isRecorded: false,
        ref: REF,
        patch: { metadata: { labels: LABELS }, spec: { taints: [CONTROL_PLANE_TAINT] } },
        reason: expect.stringContaining('taint node-role.kubernetes.io/control-plane:NoSchedule is missing'),
      },
    ]);
  });
});
