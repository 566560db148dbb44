import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { hostToJoin, optionsToJoin } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-node-lease', name: 'w1' } as const;
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'w1' } as const;
const FIB = '  |-- 10.0.0.5\n     /32 host LOCAL\n';
const lease = (renewTime: string): KubeObject => ({
  apiVersion: LEASE.apiVersion,
  kind: LEASE.kind,
  metadata: { name: 'w1', namespace: LEASE.namespace },
  spec: { holderIdentity: 'w1', leaseDurationSeconds: 40, renewTime },
});
const readyNode = (addresses: readonly string[]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'w1' },
  status: {
    nodeInfo: { machineID: 'aaaa' },
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: addresses.map((address) => ({ type: 'InternalIP', address })),
  },
});

interface World {
  readonly fib?: string | null;
  readonly addresses?: readonly string[];
  /** Seconds between two renewals by another machine. */
  readonly renewedEvery?: number;
  readonly hasLease?: boolean;
  /** The credentials are those of a bootstrap token. */
  readonly token?: boolean;
  /** Seconds after which the control plane notices that the kubelet has stopped. */
  readonly unknownAfter?: number;
}

/** Plans the join of a host that reports the machine-id of a Ready Node. */
async function plan({ fib = FIB, addresses = ['10.0.0.5'], renewedEvery, hasLease = true, token = false, unknownAfter }: World) {
  const clock = fakeClock();
  const { cluster, host } = hostToJoin(clock, {});
  host.files.set('/etc/machine-id', { type: 'file', mode: 0o444, owner: 'root:root', content: 'aaaa\n' });
  if (fib !== null) host.files.set('/proc/net/fib_trie', { type: 'file', mode: 0o444, owner: 'root:root', content: fib });
  await cluster.create(readyNode(addresses));
  await cluster.patch(NODE, 'merge', { status: readyNode(addresses).status as never }, { subresource: 'status' });
  if (hasLease) await cluster.create(lease('2030-01-01T00:00:00.000000Z'));
  for (let at = renewedEvery ?? 99; at < 80; at += renewedEvery ?? 99)
    clock.at(at * 1_000, () => void cluster.patch(LEASE, 'merge', { spec: { renewTime: `2030-01-01T00:00:${at}.000000Z` } }));
  if (unknownAfter !== undefined)
    clock.at(
      unknownAfter * 1_000,
      () =>
        void cluster.patch(NODE, 'merge', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, { subresource: 'status' }),
    );
  const groups = ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token', 'system:authenticated'];
  const ofToken = fakeCluster({ sharedWith: cluster, user: { name: 'system:bootstrap:abcdef', groups } });
  const reader: Cluster = token ? { ...cluster, get: (ref) => (ref.kind === 'Lease' ? ofToken : cluster).get(ref) } : cluster;
  const reporter = recordingReporter();
  const options = optionsToJoin({ templates, catalogue, admin: token ? null : cluster }, { nodeRegistration: { name: 'w1' } });
  const { refusals = [] } = await joinWorkflow.prepare({ host, cluster: reader, clock, reporter }, options);
  return { message: refusals.find(({ code }) => code === 'NodeExists')?.message ?? null, waitedMs: clock.elapsedMs, reporter };
}

describe('a host without credentials that reports the machine-id of a Ready Node', () => {
  it('joins if no kubelet renews the Lease of the Node during one interval', async () => {
    const { message, waitedMs, reporter } = await plan({});
    expect(message).toBeNull();
    expect(waitedMs).toBe(12_000);
    expect(reporter.events.map(({ message: text }) => text)).toContain(
      'checking that the kubelet of Node w1 does not renew its Lease on another host',
    );
  });

  it.each([1, 10, 11])('is refused if another machine renews the Lease every %s s', async (renewedEvery) => {
    const { message, waitedMs } = await plan({ renewedEvery });
    expect(message).toBe(
      'preflight: Node w1 already exists and is Ready: its kubelet is running: it has just renewed the Lease kube-node-lease/w1',
    );
    expect(waitedMs).toBeLessThan(12_000);
  });

  it.each<[string, World, string]>([
    ['of the host', { fib: null }, 'the addresses of this host are unknown'],
    ['of the Node', { addresses: [] }, 'the addresses of Node w1 are unknown'],
  ])('is refused without a wait if the addresses %s are unknown', async (_, world, reason) => {
    const { message, waitedMs } = await plan(world);
    expect(message).toContain(reason);
    expect(waitedMs).toBe(0);
  });

  it.each<[string, World]>([
    ['the Lease cannot be read', { token: true }],
    ['no Lease exists', { hasLease: false }],
  ])('is refused while the Node stays Ready, if %s', async (_, world) => {
    expect((await plan(world)).message).toBe(
      'preflight: Node w1 already exists and is Ready: its kubelet may be running: the Node is still Ready after 65 s',
    );
    const { message, waitedMs } = await plan({ ...world, unknownAfter: 50 });
    expect(message).toBeNull();
    expect(waitedMs).toBe(50_000);
  });
});
