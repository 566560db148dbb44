import { describe, expect, it } from 'vitest';
import { planPhases } from '../../../../src/host/apply-phases.ts';
import { cleanupNode } from '../../../../src/kubeadm/phases/cleanup-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeHostOptions, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const INPUT = {
  certificatesDir: '/etc/kubernetes/pki',
  criSocket: 'unix:///x',
  cleanupTmpDir: false,
  etcdDataDir: null,
  unmountFlags: [],
  podsMayStay: false,
};
const RECORD = 'id 0a\nowner alice@laptop\narmed 1893456000\ntimeout 300\nboot b\n';

async function plan(files: Readonly<Record<string, string>>, commands: FakeHostOptions['commands'] = { sh: { exitCode: 1 } }) {
  const host = fakeHost({ files, units: { kubelet: fakeUnit({ activeState: 'active' }) }, commands });
  const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const [only] = await planPhases([cleanupNode], context, INPUT);
  return only?.plan.changes.map(
    (change) => `${change.kind} ${'path' in change ? change.path : 'unit' in change ? change.unit : 'id' in change ? change.id : ''}`,
  );
}

describe('cleanup-node', () => {
  it('first cancels a pending revert', async () => {
    expect(await plan({ '/var/lib/kubeletadm/commit/record': RECORD })).toEqual(['confirm-commit 0a', 'stop-unit kubelet']);
  });

  it('removes the record of a reverted change', async () => {
    const files = { '/var/lib/kubeletadm/reverted/record': `${RECORD}why x\nat 1893456060\n` };
    expect(await plan(files)).toEqual(['empty-directory /var/lib/kubeletadm', 'stop-unit kubelet']);
  });

  it('removes the pods before it unmounts and deletes their volumes, even when the kubelet directory is a link', async () => {
    const files = {
      '/proc/self/mounts': 'tmpfs /data/kubelet/pods/1/volumes/x tmpfs rw 0 0\n',
      '/var/lib/kubelet/config.yaml': 'x\n',
    };
    const sh = (argv: readonly string[]) =>
      argv[2]?.includes('pwd -P') ? { exitCode: 0, stdout: '/data/kubelet\n' } : { exitCode: 0, stdout: 'pod1\n' };
    expect(await plan(files, { sh })).toEqual([
      'stop-unit kubelet',
      'remove-pods ',
      'unmount-below /var/lib/kubelet',
      'empty-directory /var/lib/kubelet',
    ]);
  });

  it('unmounts what the running kubelet mounts after the plan', async () => {
    expect(await plan({ '/var/lib/kubelet/config.yaml': 'x\n' })).toEqual([
      'stop-unit kubelet',
      'unmount-below /var/lib/kubelet',
      'empty-directory /var/lib/kubelet',
    ]);
  });

  it('only stops the kubelet when no other state exists', async () => {
    expect(await plan({})).toEqual(['stop-unit kubelet']);
  });
});
