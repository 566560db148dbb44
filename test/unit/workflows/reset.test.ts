import { describe, expect, it } from 'vitest';
import { resetWorkflow } from '../../../src/workflows/reset.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type FakeHostOptions, fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const SOCKET = { type: 'socket', mode: 0o660, owner: 'root:root' } as const;
const SOCKETS = { '/var/run/containerd/containerd.sock': SOCKET, '/var/run/crio/crio.sock': SOCKET };
const COMMANDS = {
  id: { exitCode: 0, stdout: '0\n' },
  uname: { exitCode: 0, stdout: 'x86_64\n' },
  hostname: { exitCode: 0, stdout: 'n\n' },
};

async function prepare(files: FakeHostOptions['files'] = {}, options: { ignore?: readonly string[] } = {}) {
  const host = fakeHost({ files, commands: COMMANDS });
  const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  return resetWorkflow.prepare(context, {
    reset: {},
    ignorePreflightErrors: options.ignore ?? [],
    skipPreflight: false,
    dryRun: false,
  });
}

describe('prepareReset', () => {
  it('takes the runtime the kubelet was set up with, where there are several', async () => {
    const instance = { '/var/lib/kubelet/instance-config.yaml': 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n' };
    expect((await prepare({ ...SOCKETS, ...instance })).input.criSocket).toBe('unix:///var/run/crio/crio.sock');
  });

  it('names the host where it cannot tell the runtime', async () => {
    await expect(prepare(SOCKETS)).rejects.toMatchObject({ exitCode: 2, problems: [{ code: 'CONFIG_SEVERAL_RUNTIMES', host: 'node1' }] });
  });

  it('refuses to leave a dead member in the etcd cluster, unless told to', async () => {
    const manifest = { '/etc/kubernetes/manifests/etcd.yaml': 'kind: Pod\n' };
    expect((await prepare(manifest)).refusals).toMatchObject([{ code: 'EtcdMember', host: 'node1' }]);
    expect(await prepare(manifest, { ignore: ['EtcdMember'] })).toMatchObject({ refusals: [], warnings: [{ code: 'EtcdMember' }] });
    expect((await prepare()).refusals).toEqual([]);
  });
});
