import { describe, expect, it } from 'vitest';
import type { Json } from '../../../../../src/base/json.ts';
import { definePhase } from '../../../../../src/host/phase.ts';
import type { Dial } from '../../../../../src/kube/dial.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { otherControlPlanes, skipUntilAllUpgraded } from '../../../../../src/kubeadm/phases/upgrade/skip-until-all-upgraded.ts';
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

interface RunOptions {
  /** When the Pod of cp-2 becomes Ready. */
  readonly readyAtMs?: number;
  readonly dial?: Dial;
}

const TIMEOUT_MS = 60_000;
const CP2_POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: 'kube-apiserver-cp-2' };

/** Two phases that depend on the other control planes of one run, as they are planned and then applied. */
async function run(objects: readonly KubeObject[] | null, { readyAtMs, dial }: RunOptions = {}) {
  const clock = fakeClock();
  const cluster = objects === null ? null : fakeCluster({ objects, now: clock.now });
  const reporter = recordingReporter();
  const host = dial === undefined ? fakeHost() : { ...fakeHost({ name: 'admin@cp-1' }), dial };
  const context = { host, cluster, clock, reporter };
  const others = otherControlPlanes({ nodeName: 'cp-1', image: IMAGE, timeoutMs: TIMEOUT_MS });
  const phase = skipUntilAllUpgraded(ADDONS, () => others);
  const planned = (await phase.inspect(context, null)).plan.noop;
  if (readyAtMs !== undefined) {
    const { status } = pod('cp-2');
    clock.at(readyAtMs, () => void cluster?.patch(CP2_POD, 'merge', { status: status as Json }, { subresource: 'status' }));
  }
  const applied: (string | undefined)[] = [];
  for (const one of [phase, phase]) {
    await one.ready(context, null);
    applied.push((await one.inspect(context, null)).plan.noop);
  }
  const warnings = reporter.events.filter(({ level }) => level === 'warning').map(({ code, message }) => `${message} [${code}]`);
  return { planned, applied, warnings, waitedMs: clock.elapsedMs };
}

describe('deferUntilAllUpgraded', () => {
  it.each([
    ['all others run', [node('cp-1'), node('cp-2'), pod('cp-2')]],
    ['no other exists', [node('cp-1')]],
    ['the phase is deferred', null],
  ])('plans the phase if %s', async (_, objects) => {
    expect(await run(objects)).toEqual({ planned: 'planned', applied: ['planned', 'planned'], warnings: [], waitedMs: 0 });
  });

  it.each([
    ['has the previous image', [node('cp-2'), pod('cp-2', { image: 'registry.k8s.io/kube-apiserver:v1.35.6' })], 'runs v1.35.6'],
    ['has another image of the version', [pod('cp-2', { image: 'other/kube-apiserver:v1.36.2' })], 'runs other/kube-apiserver:v1.36.2'],
    ['has no Pod', [node('cp-2')], 'has no Pod of kube-apiserver'],
  ])('skips the phase, without a wait, while an API server %s', async (_, others, why) => {
    const noop = `skipped until all control planes are upgraded: cp-2 ${why}`;
    expect(await run([node('cp-1'), pod('cp-1'), ...others])).toEqual({
      ...{ planned: noop, applied: [noop, noop], waitedMs: 0 },
      warnings: [
        `the add-ons are not upgraded: cp-2 ${why}. Run kubeletadm upgrade node for cp-2: the last of these runs upgrades the add-ons [ADDONS_NOT_UPGRADED]`,
      ],
    });
  });

  it('waits for an upgraded API server that is not Ready yet', async () => {
    expect(await run([node('cp-2'), pod('cp-2', { ready: false })], { readyAtMs: 5_000 })).toEqual({
      planned: 'skipped until all control planes are Ready: cp-2 is not Ready (CrashLoopBackOff)',
      applied: ['planned', 'planned'],
      warnings: [],
      waitedMs: 5_000,
    });
  });

  it.each([
    [{}, 'on cp-1'],
    [{ dial: () => Promise.reject(new Error('unexpected connection')) }, '--host admin@cp-1'],
  ])('names the command after one wait for an API server that stays unready: %j', async (options, place) => {
    const noop = 'skipped until all control planes are Ready: cp-2 is not Ready (CrashLoopBackOff)';
    expect(await run([node('cp-2'), pod('cp-2', { ready: false })], options)).toEqual({
      ...{ planned: noop, applied: [noop, noop], waitedMs: TIMEOUT_MS },
      warnings: [
        `the add-ons are not upgraded: cp-2 is not Ready (CrashLoopBackOff). When all control planes are Ready, run kubeletadm upgrade node phase addon all ${place} [ADDONS_NOT_UPGRADED]`,
      ],
    });
  });

  it('does not skip a phase that deploys nothing', async () => {
    const clock = fakeClock();
    const context = {
      host: fakeHost(),
      cluster: fakeCluster({ objects: [node('cp-2')], now: clock.now }),
      clock,
      reporter: recordingReporter(),
    };
    const phase = skipUntilAllUpgraded(ADDONS, () => null);
    await phase.ready(context, null);
    expect((await phase.inspect(context, null)).plan.noop).toBe('planned');
  });
});
