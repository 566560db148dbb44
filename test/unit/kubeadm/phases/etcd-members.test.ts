import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { Phase, PhaseContext } from '../../../../src/host/phase.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import type { EtcdMemberState } from '../../../../src/kube/etcd-cluster.ts';
import {
  checkEtcd,
  type EtcdJoinInput,
  etcdJoin,
  etcdManifest,
  etcdPromote,
  removeEtcdMember,
} from '../../../../src/kubeadm/phases/etcd-members.ts';
import { type FakeClock, fakeClock } from '../../../support/fake-clock.ts';
import { type FakeEtcd, fakeEtcd } from '../../../support/fake-etcd.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { type RecordingReporter, recordingReporter } from '../../../support/recording-reporter.ts';

const MANIFEST = '/etc/kubernetes/manifests/etcd.yaml';
const manifestOf = (members: string): string => `initial-cluster: ${members}\n`;
const input: EtcdJoinInput = {
  nodeName: 'cp-2',
  peerURL: 'https://10.0.0.2:2380',
  manifestFor: (members) => {
    const content = manifestOf(members.map(({ name, peerURL }) => `${name}=${peerURL}`).join(','));
    const files = [{ path: MANIFEST, content, mode: 0o600, owner: 'root:root' }];
    return { files, directories: [{ path: '/var/lib/etcd', mode: 0o700 }], mayChown: true };
  },
  timeoutMs: 5_000,
  skipped: null,
};

const member = (name: string, address: string, more: Partial<EtcdMemberState> = {}): EtcdMemberState => ({
  name,
  id: address,
  peerURLs: [`https://${address}:2380`],
  clientURLs: [`https://${address}:2379`],
  isLearner: false,
  ...more,
});
const FIRST = member('cp-1', '10.0.0.1');
const contextWith = (etcd: FakeEtcd | null, files = {}): PhaseContext => ({
  host: fakeHost({ name: 'cp-2', files }),
  cluster: null,
  etcd,
  clock: fakeClock(),
  reporter: recordingReporter(),
});
const planOf = async (phase: Phase<EtcdJoinInput>, context: PhaseContext, own = input) => (await phase.inspect(context, own)).plan;
const UNREACHABLE = new AppError({ code: 'ETCD_UNREACHABLE', message: 'etcd does not answer: connection timed out' });
/** The etcd cluster, each of whose queries fails the first three times. */
const busy = (etcd: FakeEtcd): FakeEtcd => {
  let queries = 0;
  const members = () => (queries++ % 4 === 3 ? etcd.members() : Promise.reject(UNREACHABLE));
  return { ...etcd, members, health: () => members().then(() => etcd.health()) };
};

describe('etcd-join', () => {
  it('adds the member first, then writes its manifest', async () => {
    const context = contextWith(fakeEtcd([FIRST]));
    expect((await planOf(etcdJoin, context)).changes).toMatchObject([{ kind: 'add-etcd-learner', member: 'cp-2', peerURL: input.peerURL }]);
    expect((await planOf(etcdManifest, context)).changes).toMatchObject([
      { kind: 'make-directory', path: '/var/lib/etcd' },
      { kind: 'write-file', path: MANIFEST },
    ]);
  });

  it('lists all members that exist after it was added, with itself last', async () => {
    const etcd = fakeEtcd([FIRST]);
    const { addLearner } = etcd;
    // Two other hosts join while the member waits; the second one has not started.
    etcd.addLearner = async (peerURL) => {
      etcd.all.push(member('cp-3', '10.0.0.3'), member('', '10.0.0.4', { id: '255' }));
      await addLearner(peerURL);
    };
    const context = contextWith(etcd);
    const planned = await planPhases([etcdJoin, etcdManifest], context, input);
    const applied = await applyPhases([etcdJoin, etcdManifest], context, input, planned);
    const all = 'cp-1=https://10.0.0.1:2380,cp-3=https://10.0.0.3:2380,ff=https://10.0.0.4:2380,cp-2=https://10.0.0.2:2380';
    expect(applied[1]?.plan.changes.at(-1)).toMatchObject({ path: MANIFEST, content: manifestOf(all) });
  });

  it('resumes after an interrupted run that added the member', async () => {
    const context = contextWith(fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true })]));
    expect(await planOf(etcdJoin, context)).toEqual({ changes: [], noop: 'already a member' });
    expect((await planOf(etcdManifest, context)).changes.map(({ kind }) => kind)).toEqual(['make-directory', 'write-file']);
  });

  it('restarts the kubelet for a manifest that was generated for other members', async () => {
    const content = manifestOf('cp-1=https://10.0.0.1:2380,cp-2=https://10.0.0.2:2380');
    const existing = { [MANIFEST]: { type: 'file', mode: 0o600, owner: 'root:root', content } };
    const etcd = fakeEtcd([FIRST, member('cp-3', '10.0.0.3'), member('', '10.0.0.2', { isLearner: true })]);
    const { changes } = await planOf(etcdManifest, contextWith(etcd, existing));
    expect(changes.map(({ kind }) => kind)).toEqual(['make-directory', 'write-file', 'restart-unit']);
  });

  it('continues after queries to which etcd does not answer', async () => {
    const etcd = fakeEtcd([FIRST]);
    const context = contextWith(busy(etcd));
    await applyPhases([checkEtcd, etcdJoin, etcdManifest], context, input, []);
    etcd.all.push({ ...(etcd.all.pop() as EtcdMemberState), name: 'cp-2' });
    await applyPhases([etcdPromote], context, input, []);
    expect(etcd.all).toMatchObject([FIRST, { name: 'cp-2', isLearner: false }]);
  });

  it.each([
    ['does not answer', { members: () => Promise.reject(UNREACHABLE) }],
    ['has no leader', { health: async () => ({ healthy: false, reason: 'RAFT NO LEADER' }) }],
  ])('fails if etcd %s for timeouts.etcdAPICall', async (_, given) => {
    const context = contextWith({ ...fakeEtcd([FIRST]), ...given });
    await expect(applyPhases([checkEtcd], context, input, [])).rejects.toMatchObject({ code: expect.stringMatching(/^ETCD_UN/) });
    expect((context.clock as FakeClock).elapsedMs).toBe(input.timeoutMs);
  });

  it('plans no changes on the second run', async () => {
    const directory = { type: 'directory', mode: 0o700, owner: 'root:root' };
    const content = manifestOf('cp-1=https://10.0.0.1:2380,cp-2=https://10.0.0.2:2380');
    const existing = { [MANIFEST]: { type: 'file', mode: 0o600, owner: 'root:root', content }, '/var/lib/etcd': directory };
    const context = contextWith(fakeEtcd([FIRST, member('cp-2', '10.0.0.2')]), existing);
    expect(await planPhases([etcdJoin, etcdManifest, etcdPromote, checkEtcd], context, input)).toMatchObject([
      { plan: { changes: [], noop: 'already a member' } },
      { plan: { changes: [], noop: 'the manifest is unchanged' } },
      { plan: { changes: [], noop: 'member cp-2 is a voting member' } },
      { plan: { changes: [] } },
    ]);
  });

  it('is skipped with external etcd', async () => {
    const own = { ...input, skipped: 'etcd is external' };
    // The members of an external etcd must not be queried.
    const unqueried = {
      ...fakeEtcd([]),
      members: () => Promise.reject(new Error('unexpected query')),
      health: () => Promise.reject(new Error('unexpected query')),
    };
    for (const phase of [checkEtcd, etcdJoin, etcdManifest, etcdPromote]) {
      const inspected = await phase.inspect(contextWith(unqueried), own);
      expect(inspected.plan).toEqual({ changes: [], noop: 'etcd is external' });
      await phase.ready(contextWith(unqueried), own);
      await inspected.verify([]);
    }
  });
});

describe('etcd-join/promote', () => {
  it('promotes a learner that has started', async () => {
    const { changes } = await planOf(etcdPromote, contextWith(fakeEtcd([FIRST, member('cp-2', '10.0.0.2', { isLearner: true })])));
    expect(changes).toMatchObject([{ kind: 'promote-etcd-member', member: 'cp-2', id: '10.0.0.2' }]);
  });

  it('waits for the learner to start, and reports a timeout', async () => {
    const context = contextWith(fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true })]));
    await expect(etcdPromote.ready(context, input)).rejects.toMatchObject({
      code: 'ETCD_MEMBER_NOT_STARTED',
      problems: [{ host: 'cp-2' }],
    });
  });
});

describe('etcd members', () => {
  it('gain a learner, which is promoted after its start, and lose it with its host', async () => {
    const etcd = fakeEtcd([FIRST]);
    const context = contextWith(etcd);
    const reporter = context.reporter as RecordingReporter;
    await applyPhases([etcdJoin, etcdManifest], context, input, []);
    expect(etcd.all).toMatchObject([FIRST, { name: '', peerURLs: [input.peerURL], isLearner: true }]);
    etcd.all.push({ ...(etcd.all.pop() as EtcdMemberState), name: 'cp-2' });
    await applyPhases([etcdPromote], context, input, []);
    expect(etcd.all[1]).toMatchObject({ name: 'cp-2', isLearner: false });
    await applyPhases([removeEtcdMember], context, { peerURL: input.peerURL, noop: '' }, []);
    expect(etcd.all).toEqual([FIRST]);
    const done = reporter.messages('CHANGE_DONE').filter((message) => message.includes('Member'));
    expect(done).toEqual(['created Member cp-2', 'patched Member cp-2', 'deleted Member cp-2']);
  });

  it('are shown as objects in a plan', async () => {
    const learner = member('cp-2', '10.0.0.2', { isLearner: true });
    const context = contextWith(fakeEtcd([FIRST, learner]));
    const phases = [
      ...(await planPhases([etcdJoin], contextWith(fakeEtcd([FIRST])), input)),
      ...(await planPhases([etcdPromote], context, input)),
      ...(await planPhases([removeEtcdMember], context, { peerURL: input.peerURL, noop: '' })),
    ];
    const object = { apiVersion: 'etcd.io/v3', kind: 'Member', metadata: { name: 'cp-2' } };
    expect(planDocument([{ name: 'cp-2', phases }], []).cluster.changes).toMatchObject([
      { phase: 'etcd-join', action: 'create', object: { ...object, spec: { peerURLs: [input.peerURL], isLearner: true } } },
      { phase: 'etcd-join/promote', action: 'patch', object: { ...object, spec: { isLearner: false } } },
      { phase: 'remove-etcd-member', action: 'delete', object },
    ]);
  });
});

describe('remove-etcd-member', () => {
  it('does not wait for an etcd that does not answer while it plans', async () => {
    const clock = fakeClock();
    const etcd = { ...fakeEtcd([FIRST]), members: () => Promise.reject(UNREACHABLE) };
    const inspection = removeEtcdMember.inspect({ ...contextWith(etcd), clock }, { peerURL: input.peerURL, noop: '' });
    await expect(inspection).rejects.toMatchObject({ code: 'ETCD_UNREACHABLE' });
    expect(clock.elapsedMs).toBe(0);
  });
});

describe('check-etcd', () => {
  const check = async (etcd: FakeEtcd) => (await checkEtcd.inspect(contextWith(etcd), input)).verify([]);

  it.each([
    ['the joining member', member('', '10.0.0.2', { isLearner: true })],
    ['another joining member that has not started', member('', '10.0.0.3', { isLearner: true })],
    ['another learner', member('cp-3', '10.0.0.3', { isLearner: true })],
  ])('accepts a healthy cluster with %s', async (_, learner) => {
    await check(fakeEtcd([FIRST, learner]));
  });

  it.each([
    ['has no leader', () => Object.assign(fakeEtcd([FIRST]), { isHealthy: false }), 'not healthy'],
    [
      'has another member that has not started',
      () => fakeEtcd([FIRST, member('', '10.0.0.3')]),
      'check-etcd: voting etcd member https://10.0.0.3:2380 has not started',
    ],
  ])('rejects a cluster that %s', async (_, etcd, why) => {
    await expect(check(etcd())).rejects.toMatchObject({ code: 'ETCD_UNHEALTHY', message: expect.stringContaining(why) });
  });
});
