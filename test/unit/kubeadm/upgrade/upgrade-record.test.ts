import { describe, expect, it } from 'vitest';
import { decodeUpgradeRecord, encodeUpgradeRecord, type UpgradeRecord } from '../../../../src/kubeadm/upgrade/upgrade-record.ts';

const BACKUP = { manifests: '/etc/kubernetes/tmp/kubeadm-backup-manifests-2030', etcd: '/etc/kubernetes/tmp/kubeadm-backup-etcd-2030' };
const ENTRY = { hashBefore: 'h', before: 'a', written: ['b'], isVerified: true, isRolledBack: false, hasAnswered: false };
const RECORD: UpgradeRecord = {
  ...{ version: 'v1.36.2', backup: BACKUP, nodeName: 'cp-1', criSocket: 'unix:///run/containerd/containerd.sock' },
  ...{ etcd: { dataDir: '/var/lib/etcd', members: 1 }, restoring: '2030-01-01' },
  components: new Map([['kube-scheduler', ENTRY]]),
};

/** The record after a change of its JSON. */
function decodeWith(change: Readonly<Record<string, unknown>>): UpgradeRecord | null {
  return decodeUpgradeRecord(JSON.stringify({ ...JSON.parse(encodeUpgradeRecord(RECORD)), ...change }));
}

describe('the record of an upgrade', () => {
  it('is decoded as it was encoded', () => {
    expect(decodeUpgradeRecord(encodeUpgradeRecord(RECORD))).toEqual(RECORD);
  });

  it.each(['', '{', '[]', '"x"', '{}'])('is none for other content: %j', (text) => {
    expect(decodeUpgradeRecord(text)).toBeNull();
  });

  it.each([
    { version: 1 },
    { nodeName: null },
    { backup: { ...BACKUP, etcd: '/var/lib/etcd' } },
    { backup: { ...BACKUP, manifests: `${BACKUP.manifests}/../x` } },
    { components: [] },
  ])('is none with an invalid %j', (change) => {
    expect(decodeWith(change)).toBeNull();
  });

  it('omits parts that are not valid: they are not restored', () => {
    expect(decodeWith({ etcd: { dataDir: 'var/lib/etcd', members: 1 } })?.etcd).toBeNull();
    expect(decodeWith({ etcd: { dataDir: '/var/lib/etcd', members: '1' } })?.etcd).toBeNull();
    expect(decodeWith({ restoring: '../x' })?.restoring).toBeNull();
    const components = { etcd: { ...ENTRY, written: 'b' }, 'kube-proxy': ENTRY, 'kube-apiserver': { before: 'a', written: [] } };
    expect([...(decodeWith({ components })?.components ?? [])]).toEqual([
      ['kube-apiserver', { hashBefore: null, before: 'a', written: [], isVerified: false, isRolledBack: false, hasAnswered: false }],
    ]);
  });
});
