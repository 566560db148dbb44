import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../../src/base/errors.ts';
import type { PhaseContext } from '../../../../../src/host/phase.ts';
import type { EtcdMemberState } from '../../../../../src/kube/etcd-cluster.ts';
import { etcdHealthCheck } from '../../../../../src/kubeadm/workflows/upgrade/etcd-health.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeEtcd } from '../../../../support/fake-etcd.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const LOCAL = 'https://10.0.0.1:2380';

/** Members by name; the first one is local. */
function membersOf(count: number, changes: Readonly<Record<number, Partial<EtcdMemberState>>> = {}): readonly EtcdMemberState[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ name: `m${i + 1}`, id: String(i + 1), isLearner: false },
    ...{ peerURLs: [`https://10.0.0.${i + 1}:2380`], clientURLs: [`https://10.0.0.${i + 1}:2379`] },
    ...changes[i + 1],
  }));
}

/** The codes of the warnings; the check throws if it refuses. */
async function check(
  members: readonly EtcdMemberState[],
  { down, isReplaced = true, localPeerURL = LOCAL }: { down: readonly string[]; isReplaced?: boolean; localPeerURL?: string | null },
): Promise<readonly string[]> {
  const reporter = recordingReporter();
  const context: PhaseContext = { host: fakeHost(), cluster: fakeCluster(), clock: fakeClock(), reporter };
  const run = etcdHealthCheck({
    certificatesDir: '/etc/kubernetes/pki',
    textAt: () => 'pem',
    isReplaced,
    localPeerURL,
    connectEtcd: async ({ endpoints: [endpoint] }) => {
      const etcd = fakeEtcd([...members]);
      const member = members.find(({ clientURLs }) => clientURLs[0] === endpoint);
      if (member !== undefined && down.includes(member.name))
        return { ...etcd, health: () => Promise.reject(new AppError({ code: 'ETCD_UNREACHABLE', message: 'etcd does not answer' })) };
      return etcd;
    },
  });
  await run(context);
  return reporter.events.filter(({ level }) => level === 'warning').map(({ code }) => code);
}

describe('etcdHealthCheck', () => {
  it.each([
    ['one member', membersOf(1)],
    ['two members', membersOf(2)],
    ['three members', membersOf(3)],
  ])('accepts healthy members: %s', async (_, members) => {
    expect(await check(members, { down: [] })).toEqual([]);
  });

  it.each<[string, readonly EtcdMemberState[], Parameters<typeof check>[1]]>([
    ['one of five is down', membersOf(5), { down: ['m3'] }],
    ['the member that is replaced is down', membersOf(3), { down: ['m1'] }],
    ['one of three is down, and no member is replaced', membersOf(3), { down: ['m2'], isReplaced: false }],
  ])('accepts unhealthy members if the others keep the quorum, with a warning: %s', async (_, members, options) => {
    expect(await check(members, options)).toEqual(['ETCD_MEMBER_UNHEALTHY']);
  });

  it.each<[string, readonly EtcdMemberState[], Parameters<typeof check>[1]]>([
    ['one of three is down, and another one is replaced', membersOf(3), { down: ['m2'] }],
    ['two of five are down, and another one is replaced', membersOf(5), { down: ['m2', 'm3'] }],
    ['the only member is down', membersOf(1), { down: ['m1'] }],
    ['the local member is not known', membersOf(5), { down: ['m3'], localPeerURL: null }],
    ['a learner', membersOf(5, { 5: { isLearner: true } }), { down: [] }],
    ['a member that has not started', membersOf(5, { 5: { name: '' } }), { down: [] }],
  ])('refuses: %s', async (_, members, options) => {
    await expect(check(members, options)).rejects.toMatchObject({ code: 'ETCD_UNHEALTHY' });
  });
});
