import { describe, expect, it } from 'vitest';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planPhases } from '../../../../src/host/run-workflow.ts';
import type { EtcdMemberState } from '../../../../src/kubeadm/control-plane/etcd-member.ts';
import { checkEtcd, type EtcdJoinInput, etcdJoin, etcdPromote } from '../../../../src/kubeadm/phases/etcd-members.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeEtcd, fakeEtcd } from '../../../support/fake-etcd.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

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
const contextWith = (cluster: FakeEtcd | null, files = {}): PhaseContext => ({
  host: fakeHost({ name: 'cp-2', files }),
  cluster,
  clock: fakeClock(),
  reporter: recordingReporter(),
});
const planOf = async (phase: typeof etcdJoin, context: PhaseContext, own = input) => (await phase.inspect(context, own)).plan;

describe('etcd-join', () => {
  it('announces the member first, then writes what starts it', async () => {
    const { changes } = await planOf(etcdJoin, contextWith(fakeEtcd([FIRST])));
    expect(changes).toMatchObject([
      {
        kind: 'create-object',
        object: { kind: 'Member', metadata: { name: 'cp-2' }, spec: { peerURLs: [input.peerURL], isLearner: true } },
      },
      { kind: 'make-directory', path: '/var/lib/etcd' },
      { kind: 'write-file', path: MANIFEST },
    ]);
  });

  it('names all members there are when its turn has come, and itself last', async () => {
    const etcd = fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true }), member('cp-3', '10.0.0.3')]);
    const { changes } = await planOf(etcdJoin, contextWith(etcd));
    const all = 'cp-1=https://10.0.0.1:2380,cp-3=https://10.0.0.3:2380,cp-2=https://10.0.0.2:2380';
    expect(changes.at(-1)).toMatchObject({ path: MANIFEST, content: manifestOf(all) });
  });

  it('goes on where the member was announced and the run was broken off', async () => {
    const etcd = fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true })]);
    expect((await planOf(etcdJoin, contextWith(etcd))).changes.map(({ kind }) => kind)).toEqual(['make-directory', 'write-file']);
  });

  it('has the kubelet take over a manifest that was made for other members', async () => {
    const content = manifestOf('cp-1=https://10.0.0.1:2380,cp-2=https://10.0.0.2:2380');
    const existing = { [MANIFEST]: { type: 'file', mode: 0o600, owner: 'root:root', content } };
    const etcd = fakeEtcd([FIRST, member('cp-3', '10.0.0.3'), member('', '10.0.0.2', { isLearner: true })]);
    const { changes } = await planOf(etcdJoin, contextWith(etcd, existing));
    expect(changes.map(({ kind }) => kind)).toEqual(['make-directory', 'write-file', 'restart-unit']);
  });

  it('has nothing to do a second time', async () => {
    const directory = { type: 'directory', mode: 0o700, owner: 'root:root' };
    const content = manifestOf('cp-1=https://10.0.0.1:2380,cp-2=https://10.0.0.2:2380');
    const existing = { [MANIFEST]: { type: 'file', mode: 0o600, owner: 'root:root', content }, '/var/lib/etcd': directory };
    const context = contextWith(fakeEtcd([FIRST, member('cp-2', '10.0.0.2')]), existing);
    expect(await planPhases([etcdJoin, etcdPromote, checkEtcd], context, input)).toMatchObject([
      { plan: { changes: [], noop: 'the member is announced and its manifest is there' } },
      { plan: { changes: [], noop: 'member cp-2 votes' } },
      { plan: { changes: [] } },
    ]);
  });

  it('is left out with external etcd', async () => {
    const own = { ...input, skipped: 'etcd is external' };
    // What is there in place of etcd's members is not asked.
    const silent = { ...fakeEtcd([]), list: () => Promise.reject(new Error('asked')), getRaw: () => Promise.reject(new Error('asked')) };
    for (const phase of [checkEtcd, etcdJoin, etcdPromote]) {
      const inspected = await phase.inspect(contextWith(silent), own);
      expect(inspected.plan).toEqual({ changes: [], noop: 'etcd is external' });
      await phase.ready(contextWith(silent), own);
      await inspected.verify([]);
    }
  });
});

describe('etcd-join/promote', () => {
  it('promotes a learner that has started', async () => {
    const { changes } = await planOf(etcdPromote, contextWith(fakeEtcd([FIRST, member('cp-2', '10.0.0.2', { isLearner: true })])));
    expect(changes).toMatchObject([{ kind: 'patch-object', ref: { kind: 'Member', name: 'cp-2' }, patch: { spec: { isLearner: false } } }]);
  });

  it('waits for it to start, and says when it does not', async () => {
    const context = contextWith(fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true })]));
    await expect(etcdPromote.ready(context, input)).rejects.toMatchObject({
      code: 'ETCD_MEMBER_NOT_STARTED',
      problems: [{ host: 'cp-2' }],
    });
  });
});

describe('check-etcd', () => {
  const check = async (etcd: FakeEtcd) => (await checkEtcd.inspect(contextWith(etcd), input)).verify([]);

  it('passes a cluster that is well, with the member that joins on its way', async () => {
    await check(fakeEtcd([FIRST, member('', '10.0.0.2', { isLearner: true })]));
  });

  it.each([
    ['has no leader', () => Object.assign(fakeEtcd([FIRST]), { healthy: false }), 'it is not healthy'],
    ['waits for another member', () => fakeEtcd([FIRST, member('', '10.0.0.3')]), 'member https://10.0.0.3:2380 has not come up yet'],
    ['has another learner', () => fakeEtcd([FIRST, member('cp-3', '10.0.0.3', { isLearner: true })]), 'member cp-3 has not come up yet'],
  ])('refuses one that %s', async (_, etcd, why) => {
    await expect(check(etcd())).rejects.toMatchObject({ code: 'ETCD_UNHEALTHY', message: expect.stringContaining(why) });
  });
});
