import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { RunSettings } from '../../../../src/host/run-settings.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { applyClusterDefaults } from '../../../../src/kubeadm/config/defaults.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { designFirstNode } from '../../../../src/kubeadm/workflows/node/design-first-node.ts';
import { observeNode } from '../../../../src/kubeadm/workflows/node/observe-node.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { drainPod } from '../../../support/drain-objects.ts';
import { regular } from '../../../support/host-to-join.ts';
import {
  cluster,
  contextOf,
  host,
  join,
  joinOptions,
  overlay,
  planJoin,
  refusalOf,
  upgradeOptions,
  useJoinWorld,
} from '../../../support/join-world.ts';
import { isProof, kubeletCredentials, provesNode, testTrust } from '../../../support/node-proof.ts';
import { fakePod } from '../../../support/pods-on-node.ts';
import { withRun } from '../../../support/with-run.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const W1 = await kubeletCredentials('w1');
/** What the pods of the host use, as its cgroups show it. */
let podCgroups = '';
useJoinWorld({
  sh: (argv, stdin) => (isProof(argv) ? provesNode(W1, stdin) : { stdout: argv[2]?.includes('kubepods') ? podCgroups : '' }),
});
beforeEach(() => {
  podCgroups = '';
});

/** Joins the host with maxPods 110, and starts three pods on it. */
const joined = async (): Promise<void> => {
  await join('maxPods: 110');
  for (const name of ['a', 'b', 'c']) await cluster.create(fakePod({ name }));
  await cluster.create(fakePod({ name: 'elsewhere', nodeName: 'w2' }));
};
/** The requests and queries of a piece of work. */
const cost = async (work: () => Promise<unknown>) => {
  const [calls, trips] = [cluster.calls.length, host.roundTrips];
  await work();
  return { calls: cluster.calls.slice(calls), trips: host.roundTrips - trips };
};
const LOSS = 'maxPods 1 is less than the 3 pods of the node: default/b, default/c would be terminated';
const refused = (message: string) => ({
  exitCode: 3,
  problems: [
    {
      host: 'w1',
      code: 'PODS_AT_RISK',
      message,
      hint: 'Change maxPods, or move these pods to other nodes, or pass --allow-pod-loss to let them be terminated',
    },
  ],
});
const REFUSED = refused(`${LOSS} (node: w1.yaml:3:1)`);

describe('a change of a node that would terminate pods', () => {
  it('is refused with the names of the pods, and nothing is written', async () => {
    await joined();
    const before = host.performed.length;
    expect(await refusalOf(planJoin('maxPods: 1'))).toEqual(REFUSED);
    expect(host.performed.slice(before)).toEqual([]);
    expect(host.text(CONFIG)).toContain('maxPods: 110');
  });

  it('is applied with a warning if it is permitted', async () => {
    await joined();
    const { warnings, apply } = await planJoin('maxPods: 1', withRun({ podLoss: 'warn' }));
    expect(warnings).toContainEqual({ code: 'PODS_AT_RISK', message: LOSS, field: 'maxPods' });
    await apply(contextOf());
    expect(host.text(CONFIG)).toContain('maxPods: 1\n');
  });

  it('is shown with its refusal in a dry run', async () => {
    await joined();
    const planned = await planWorkflow(joinWorkflow, contextOf(), joinOptions('maxPods: 1'), { dryRun: true, skipPhases: [] });
    expect(planned.refusals).toEqual(REFUSED.problems);
    expect(planned.host.phases.flatMap(({ plan }) => plan.changes)).not.toEqual([]);
  });

  it('lists the pods and reads the Node once', async () => {
    await joined();
    const other = await cost(() => planJoin('imageGCHighThresholdPercent: 84\nmaxPods: 110'));
    const { calls, trips } = await cost(() => planJoin('maxPods: 60'));
    expect(trips).toBe(other.trips);
    const more = calls.filter((call) => !other.calls.includes(call) || call === 'get Node w1');
    expect(more.filter((call) => call.includes('Pod'))).toHaveLength(1);
    expect(more.filter((call) => call === 'get Node w1')).toHaveLength(other.calls.filter((call) => call === 'get Node w1').length + 1);
  });

  it('is refused for the flag as for the field', async () => {
    await joined();
    const nodeRegistration = { kubeletExtraArgs: [{ name: 'max-pods', value: '1' }] };
    expect(await refusalOf(planJoin('maxPods: 110', { nodeRegistration }))).toEqual(refused(LOSS));
  });

  it('is found by the facts of the host', async () => {
    await joined();
    const { problems } = await refusalOf(planJoin('maxPods: 110\nresolvConf: /no/such'));
    expect(problems.map(({ code, message }) => [code, message])).toEqual([
      ['PODS_AT_RISK', 'resolvConf /no/such does not exist on the host: no sandbox of a new pod could be created (node: w1.yaml:4:1)'],
    ]);
  });

  it('costs one round trip if it depends on facts of the host', async () => {
    await joined();
    const other = await cost(() => planJoin('maxPods: 110\nimageGCHighThresholdPercent: 84'));
    const { trips } = await cost(() => planJoin('maxPods: 110\nresolvConf: /etc/own.conf'));
    expect(trips).toBe(other.trips + 1);
  });

  it('is refused by init', async () => {
    await joined();
    const init = async (podLoss: RunSettings['podLoss']) => {
      const options = { ...joinOptions('maxPods: 1'), ...withRun({ podLoss }), kubelet: null };
      const settings = { cluster: applyClusterDefaults({}), controlPlaneMinor: 36, running: cluster };
      return designFirstNode(contextOf(), options, { node: await observeNode(contextOf(), options), ...settings });
    };
    expect((await init('refuse')).refusals).toEqual(REFUSED.problems);
    expect((await init('warn')).warnings.map(({ code }) => code)).toContain('PODS_AT_RISK');
  });

  it('is refused by upgrade node', async () => {
    await joined();
    const options = upgradeOptions({ overlays: overlay('maxPods: 1') });
    const upgrade = (podLoss: 'refuse' | 'warn') =>
      planWorkflow(upgradeNodeWorkflow, contextOf(), { ...options, ...withRun({ podLoss }) }, { dryRun: false, skipPhases: [] });
    expect(await refusalOf(upgrade('refuse'))).toEqual(REFUSED);
    expect((await upgrade('warn')).warnings.map(({ code }) => code)).toContain('PODS_AT_RISK');
  });
});

describe('a change of a node that is drained before', () => {
  const NEEDS_DRAIN = 'maxPods: 1\ntopologyManagerScope: pod';
  const drain = { isAllowed: true, isForced: false, timeoutMs: 600_000 };
  const refusalsOf = async (fields: string, run: Partial<RunSettings>): Promise<readonly string[]> => {
    const planned = await planWorkflow(joinWorkflow, contextOf(), joinOptions(fields, withRun(run)), { dryRun: true, skipPhases: [] });
    return planned.refusals.map(({ message }) => message);
  };
  const refusedWithPods = [expect.stringContaining(LOSS)];

  it('is not refused for pods that the drain evicts', async () => {
    await joined();
    expect(await refusalsOf(NEEDS_DRAIN, { drain })).toEqual([]);
    expect(await refusalsOf(NEEDS_DRAIN, { drain, allow: 'drain' })).toEqual([]);
  });

  it('is refused for pods that the drain leaves: those of DaemonSets and static pods', async () => {
    await joined();
    await cluster.create(drainPod('proxy', 'w1', { of: 'DaemonSet/proxy' }));
    expect(await refusalsOf(NEEDS_DRAIN, { drain })).toEqual([]);
    await cluster.create(drainPod('etcd', 'w1', { of: null, annotations: { 'kubernetes.io/config.mirror': 'x' } }));
    expect(await refusalsOf(NEEDS_DRAIN, { drain })).toEqual([
      expect.stringContaining('maxPods 1 is less than the 2 pods of the node: default/proxy would be terminated'),
    ]);
  });

  it('is not refused for the tasks and the memory of evicted pods, but for the tasks of those that stay', async () => {
    await joined();
    host.files.set('/proc/meminfo', regular('MemTotal: 4194304 kB\nMemFree: 2097152 kB\nInactive(file): 0 kB\n'));
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod' });
    const uid = items.find(({ metadata }) => metadata.name === 'a')?.metadata.uid;
    podCgroups = `pod kubepods-pod${uid} 200\nmemory ${2 * 2 ** 30} 0\n`;
    const fields = 'maxPods: 110\npodPidsLimit: 100\nsystemReserved: {memory: 3Gi}\ntopologyManagerScope: pod';
    const tasks = expect.stringContaining('podPidsLimit 100 is less than the 200 tasks of a running pod');
    expect(await refusalsOf(fields, {})).toEqual([expect.stringContaining('systemReserved leaves less memory for pods'), tasks]);
    expect(await refusalsOf(fields, { drain })).toEqual([]);
    const proxy = await cluster.create(drainPod('proxy', 'w1', { of: 'DaemonSet/proxy' }));
    podCgroups += `pod kubepods-pod${proxy.metadata.uid} 200\n`;
    expect(await refusalsOf(fields, { drain })).toEqual([tasks]);
  });

  it.each<[string, string, Partial<RunSettings>]>([
    ['the run drains no node', NEEDS_DRAIN, {}],
    ['--no-drain', NEEDS_DRAIN, { drain: { ...drain, isAllowed: false } }],
    ['the class of the change needs no drain', 'maxPods: 1', { drain }],
  ])('is refused for all pods if it is not: %s', async (_, fields, run) => {
    await joined();
    expect(await refusalsOf(fields, run)).toEqual(refusedWithPods);
  });

  it('is refused for all pods if --allow excludes it', async () => {
    await joined();
    expect(await refusalsOf(NEEDS_DRAIN, { drain, allow: 'new-pods-only' })).toEqual(refusedWithPods);
  });

  it('is refused for all pods if the credentials may not evict pods, or their rights cannot be read', async () => {
    await joined();
    const { create } = cluster;
    const answerReviewsOfEvictions = (answer: () => KubeObject): void => {
      cluster.create = async (object) => (JSON.stringify(object).includes('"subresource":"eviction"') ? answer() : create(object));
    };
    answerReviewsOfEvictions(() => ({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: { name: '' },
      status: { allowed: false },
    }));
    expect(await refusalsOf(NEEDS_DRAIN, { drain })).toEqual(refusedWithPods);
    answerReviewsOfEvictions(() => {
      throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response' });
    });
    expect(await refusalsOf(NEEDS_DRAIN, { drain })).toEqual(refusedWithPods);
  });

  it('of upgrade node is not refused for pods that the drain evicts, if the Node is proven to be that of the host', async () => {
    await joined();
    host.files.set('/etc/machine-id', regular('aaaa\n'));
    const upgrade = async (trust: UpgradeNodeOptions['trust']) => {
      const options = upgradeOptions({ overlays: overlay(NEEDS_DRAIN), trust, ...withRun({ drain }) });
      const { refusals } = await planWorkflow(upgradeNodeWorkflow, contextOf(), options, { dryRun: true, skipPhases: [] });
      return refusals.map(({ message }) => message);
    };
    expect(await upgrade(null)).toEqual(refusedWithPods);
    expect(await upgrade(testTrust())).toEqual([]);
  });
});

describe('no finding', () => {
  it('and no request is caused by a change of other fields', async () => {
    await joined();
    const unchecked = await cost(() => planJoin('maxPods: 110\nimageGCHighThresholdPercent: 84', withRun({ podLoss: 'ignore' })));
    const checked = await cost(() => planJoin('maxPods: 110\nimageGCHighThresholdPercent: 84'));
    expect(checked).toEqual(unchecked);
  });

  it('and no request is caused by a node without changes', async () => {
    await joined();
    const unchecked = await cost(() => planJoin('maxPods: 110', withRun({ podLoss: 'ignore' })));
    expect(await cost(() => planJoin('maxPods: 110'))).toEqual(unchecked);
  });

  it('is caused by a new host', async () => {
    for (const name of ['a', 'b', 'c']) await cluster.create(fakePod({ name }));
    const unchecked = await cost(() => planJoin('maxPods: 1', withRun({ podLoss: 'ignore' })));
    expect(await cost(() => planJoin('maxPods: 1'))).toEqual(unchecked);
    expect(unchecked.calls.filter((call) => call.includes('Pod'))).toEqual([]);
  });

  it('is caused by pods that the credentials must not list', async () => {
    await joined();
    cluster.failNext('Pod', new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'pods is forbidden' }));
    const { warnings } = await planJoin('maxPods: 1');
    expect(warnings.map(({ code }) => code)).not.toContain('PODS_AT_RISK');
  });

  it('is caused by a field that a drop-in decides', async () => {
    await joined();
    host.files.set('/etc/kubelet.d', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set(
      '/etc/kubelet.d/10.conf',
      regular('apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 90\n'),
    );
    const nodeRegistration = { kubeletExtraArgs: [{ name: 'config-dir', value: '/etc/kubelet.d' }] };
    await expect(planJoin('maxPods: 1', { nodeRegistration })).rejects.toMatchObject({ code: 'FieldNotInForce' });
    const { warnings } = await planJoin('maxPods: 1', { nodeRegistration, ...withRun({ ignorePreflightErrors: ['FieldNotInForce'] }) });
    expect(warnings.map(({ code }) => code)).toContain('DROP_IN_SHADOWS_FIELD');
    expect(warnings.map(({ code }) => code)).not.toContain('PODS_AT_RISK');
  });
});
