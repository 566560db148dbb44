import { describe, expect, it } from 'vitest';
import { definePhase } from '../../../../../src/host/phase.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { afterAllControlPlanes } from '../../../../../src/kubeadm/phases/upgrade/after-all-control-planes.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const IMAGE = 'registry.k8s.io/kube-apiserver:v1.36.2';
const ADDONS = definePhase<null, null>({
  ...{ name: 'addon', short: 'Install add-ons' },
  observe: async () => null,
  plan: () => ({ changes: [], noop: 'planned' }),
});

function node(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'node-role.kubernetes.io/control-plane': '' } } };
}

function pod(nodeName: string, { image = IMAGE, ready = true } = {}): KubeObject {
  const labels = { component: 'kube-apiserver', tier: 'control-plane' };
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `kube-apiserver-${nodeName}`, namespace: 'kube-system', labels } },
    spec: { nodeName, containers: [{ name: 'kube-apiserver', image }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      containerStatuses: [{ name: 'kube-apiserver', ready, state: ready ? { running: {} } : { waiting: { reason: 'CrashLoopBackOff' } } }],
    },
  };
}

async function planned(objects: readonly KubeObject[] | null): Promise<string | undefined> {
  const clock = fakeClock();
  const cluster = objects === null ? null : fakeCluster({ objects, now: clock.now });
  const context = { host: fakeHost(), cluster, clock, reporter: recordingReporter() };
  const phase = afterAllControlPlanes(ADDONS, () => ({ nodeName: 'cp-1', image: IMAGE }));
  return (await phase.inspect(context, null)).plan.noop;
}

describe('afterAllControlPlanes', () => {
  it('plans the phase once all other control planes run the new API server', async () => {
    expect(await planned([node('cp-1'), node('cp-2'), pod('cp-2')])).toBe('planned');
    expect(await planned([node('cp-1')])).toBe('planned');
  });

  it.each([
    ['has the previous image', [node('cp-2'), pod('cp-2', { image: 'registry.k8s.io/kube-apiserver:v1.35.6' })]],
    ['is not Ready', [node('cp-2'), pod('cp-2', { ready: false })]],
    ['has no Pod', [node('cp-2')]],
    ['has the previous image and no labelled Node', [pod('cp-2', { image: 'other' })]],
  ])('skips the phase while an API server %s', async (_, others) => {
    expect(await planned([node('cp-1'), pod('cp-1'), ...others])).toBe('skipped until all control planes are upgraded: cp-2');
  });

  it('leaves the decision to the phase without an API server', async () => {
    expect(await planned(null)).toBe('planned');
  });
});
