import { afterEach, describe, expect, it } from 'vitest';
import { MEMORY_BYTES } from '../../../../lab/hosts/stand-in-admission.ts';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import { clusterRefused } from '../../../../src/kube/cluster-problems.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { ALLOW_POD_LOSS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { readPod } from '../../../../src/kubelet/workload/pod.ts';
import { OVERLAY } from '../../../support/agent-scenarios.ts';
import { payloadTable } from '../../../support/payload-table.ts';
import { virtualClock } from '../../../support/virtual-clock.ts';
import { type Behaviour, NODE, newWorld, payload, type World } from './world.ts';

const MANIFESTS = '/etc/kubernetes/manifests';
/** With the static pod, one more than the CPUs of the host, for podsPerCore. */
const PODS = ['web-1', 'web-2', 'web-3', 'web-4'];
const TARGET = { cpus: 4, memoryBytes: MEMORY_BYTES, ephemeralBytes: 100 * 2 ** 30 };
const MEMORY_KIB = MEMORY_BYTES / 1024;
const TRIAL_MS = 10_000;
/** Distinguishes a payload with a behaviour from the local configuration. */
const CHANGED_PODS = 109;

const exits = (error: string): Behaviour => ({
  crashesAfter: 1,
  logs: `E1123 10:00:00.000000    1234 run.go:72] "command failed" err="failed to run Kubelet: ${error}"`,
});
/** What a kubelet does on a real host with payloads that the simulated kubelet does not understand. */
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'cgroupRoot: /no-such': exits('invalid configuration: cgroup-root [no-such] does not exist'),
  'podLogsDir: /proc/pods': exits('mkdir /proc/pods: no such file or directory'),
  'authentication: {x509: {clientCAFile: /etc/kubernetes/pki/other.crt}}': { lockedOut: true },
  'enforceNodeAllocatable: [pods, system-reserved]\nsystemReservedCgroup: /no-such\nsystemReserved: {cpu: 10m}': exits(
    'failed to enforce System Reserved Cgroup Limits on /no-such: [no-such] cgroup does not exist',
  ),
  'enforceNodeAllocatable: [pods, kube-reserved]\nkubeReservedCgroup: /no-such\nkubeReserved: {cpu: 10m}': exits(
    'failed to enforce Kube Reserved Cgroup Limits on /no-such: [no-such] cgroup does not exist',
  ),
};

/** The configuration of kubeadm, on cgroup v1. */
const LOCAL = payload(
  110,
  `staticPodPath: ${MANIFESTS}
clusterDNS: [10.96.0.10]
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
`,
);

const STATIC_POD = `apiVersion: v1
kind: Pod
metadata: {name: static-web, namespace: kube-system}
spec: {containers: [{name: c, image: "example.org/web:1"}]}
`;

const FILES: Readonly<Record<string, string>> = {
  [`${MANIFESTS}/static-web.yaml`]: STATIC_POD,
  '/etc/kubernetes/pki/ca.crt': 'ca',
  '/etc/kubernetes/pki/other.crt': 'other',
  '/proc/meminfo': `MemTotal: ${MEMORY_KIB} kB\nMemFree: ${Math.floor(MEMORY_KIB * 0.75)} kB\nInactive(file): ${Math.floor(MEMORY_KIB * 0.1)} kB\n`,
  '/proc/sys/kernel/pid_max': '32768\n',
  '/proc/sys/kernel/threads-max': '60000\n',
  '/proc/net/tcp': '   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n',
  '/proc/net/fib_trie': 'Local:\n     |-- 10.99.0.11\n        /32 host LOCAL\n',
  '/proc/loadavg': '0.1 0.1 0.1 1/300 4000\n',
  '/sys/devices/system/cpu/online': '0-3\n',
  '/sys/fs/cgroup/pids/tasks': '',
  '/var/lib/kubelet/cpu_manager_state': '{"policyName":"none"}',
  '/var/lib/kubelet/memory_manager_state': '{"policyName":"None"}',
  '/proc/sys/vm/overcommit_memory': '0\n',
};

interface AssignOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  /** The agent cannot read the pods and the memory before the change. */
  readonly isBlind?: boolean;
}

describe('the payloads of the table on a simulated kubelet with pods', () => {
  let world: World;
  afterEach(() => world?.stop());

  const table = payloadTable(TARGET);
  it('has an effect for each behaviour, and few payloads that need a real kubelet', () => {
    const texts = table.map(({ text }) => text);
    expect(Object.keys(BEHAVIOURS).filter((text) => !texts.includes(text))).toEqual([]);
    expect(table.filter(({ real }) => real).map(({ text }) => text)).toEqual(['podLogsDir: relative/logs']);
  });

  /** Starts a node with its pods, and assigns a payload. @returns the pods before the assignment */
  const assign = async (text: string, { annotations = {}, isBlind = false }: AssignOptions = {}): Promise<readonly string[]> => {
    world = newWorld({ pods: true, clock: virtualClock(), local: LOCAL, timing: { trialMs: TRIAL_MS } });
    for (const [path, content] of Object.entries(FILES))
      await world.host.perform([{ kind: 'write-file', path, mode: 0o644, owner: 'root:root', content }]);
    for (const name of PODS) await world.cluster.create(podOf(name));
    await world.cluster.create(DNS);
    const before = await podsOf(world);
    expect(before).toEqual([...PODS.map((name) => `default/${name} Running`), `kube-system/static-web-${NODE} Running`]);
    const behaviour = BEHAVIOURS[text];
    if (behaviour !== undefined) world.behaviours.set(CHANGED_PODS, behaviour);
    if (isBlind) {
      world.host.files.delete('/proc/meminfo');
      world.asNode.failNext('list Pod', clusterRefused('list Pod', { httpStatus: 403, message: 'forbidden' }));
    }
    world.start();
    const own = behaviour === undefined ? '' : `maxPods: ${CHANGED_PODS}\n`;
    await world.push('table', `${OVERLAY}${text}\n${own}`, { immutable: true });
    await world.annotate(annotations);
    await world.assign('table');
    return before;
  };

  it.each(table.filter(({ real }) => !real).map((entry) => [`${entry.effect}: ${entry.text.replaceAll('\n', ', ')}`, entry] as const))(
    '%s',
    async (_, { effect, text, cause }) => {
      const before = await assign(text);
      const reason = await decided(world);
      const message = String((await world.condition()).message);
      if (effect === 'bad') {
        expect(reason, message).toMatch(/^(?:Rejected|FallenBack)$/);
        expect(message).toMatch(cause as RegExp);
        if (reason === 'Rejected') expect([world.starts(), await podsOf(world)]).toEqual([0, before]);
        return;
      }
      expect(reason, message).toBe('Good');
      expect(await podsOf(world)).toEqual(before);
      await world.cluster.create(podOf('zz-new'));
      expect(await podsOf(world)).toContain('default/zz-new Running');
    },
  );

  it.each([
    ['maxPods: 1', /a probe pod cannot be started: the node has no room/],
    ['resolvConf: /no/such', /a probe pod cannot be started/],
    ['podPidsLimit: 1', /a probe pod cannot be started: RunContainerError/],
  ])('is rolled back when no new pod starts, even with the permission to end pods: %s', async (text, cause) => {
    await assign(text, { annotations: { [ALLOW_POD_LOSS_ANNOTATION]: `${AGENT_NAMESPACE}/table/kubelet` } });
    expect(await decided(world)).toBe('FallenBack');
    expect((await world.condition()).message).toMatch(cause);
  });

  it.each([
    ['maxPods: 3', /OutOfpods/],
    ['systemReserved: {cpu: 3950m}', /OutOfcpu/],
    ['systemReserved: {memory: 8238888Ki}', /OutOfmemory/],
    ['evictionHard: {memory.available: 99%}', /evicted \d pods? .*low on resource: memory/],
  ])('is rolled back when pods end and the facts before the change were unknown: %s', async (text, cause) => {
    await assign(text, { isBlind: true });
    expect(await decided(world)).toBe('FallenBack');
    expect((await world.condition()).message).toMatch(cause);
  });
});

async function decided(world: World): Promise<string> {
  for (const end = world.clock.elapsedMs + 90_000; world.clock.elapsedMs < end; await world.clock.sleep(1_000)) {
    const { reason } = await world.condition();
    if (['Rejected', 'FallenBack', 'Good'].includes(String(reason))) return String(reason);
  }
  return 'no decision';
}

async function podsOf({ cluster, pods }: World): Promise<readonly string[]> {
  await pods.settled();
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod' });
  return items.map(readPod).map(({ name, phase }) => `${name} ${phase}`);
}

function podOf(name: string): KubeObject {
  const requests = { cpu: '100m', memory: '64Mi', 'ephemeral-storage': '16Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { nodeName: NODE, containers: [{ name: 'c', image: 'example.org/web:1', resources: { requests } }] },
  };
}

const DNS: KubeObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kube-dns', namespace: 'kube-system' },
  spec: { clusterIP: '10.96.0.10', ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
};
