import { describe, expect, it } from 'vitest';
import type { BundleContents } from '../../../../src/host/bundle/ports.ts';
import type { RangedFile } from '../../../../src/host/operation/large-file.ts';
import { type ImportImagesInput, importImages } from '../../../../src/kubeadm/phases/import-images.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const SOCKET = '/var/run/containerd/containerd.sock';
const content = (sha256: string, size: number): RangedFile => ({ sha256, size, read: async () => Buffer.alloc(0) });
const PAUSE = { images: ['registry.k8s.io/pause:3.10.2'], content: content('aa', 300_000) };
const ETCD = { images: ['registry.k8s.io/etcd:3.6.8-0'], content: content('bb', 60_000_000) };
const bundle: BundleContents = {
  file: 'bundle.tar',
  architecture: 'amd64',
  imagesFor: (role) => (role === 'control-plane' ? [PAUSE, ETCD] : [PAUSE]),
  fileBySha256: () => null,
};

function inspect(
  input: Partial<ImportImagesInput> = {},
  {
    images = '',
    importer = 'ctr',
    machine = 'x86_64',
    sockets = [SOCKET],
  }: { images?: string; importer?: string; machine?: string; sockets?: readonly string[] } = {},
) {
  const files = Object.fromEntries(sockets.map((path) => [path, { type: 'socket', mode: 0o660, owner: 'root:root' } as const]));
  const sh = (argv: readonly string[]) => ({ exitCode: 0, stdout: argv[2]?.includes('images ls -q') === true ? images : importer });
  const host = fakeHost({ files, commands: { 'uname -m': { exitCode: 0, stdout: `${machine}\n` }, sh } });
  const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  return importImages.inspect(context, { bundle, role: 'worker', criSocket: null, installsRuntime: false, ...input });
}

describe('bundle-images', () => {
  it('copies and imports the images of the role that the runtime lacks', async () => {
    const { plan } = await inspect({ role: 'control-plane' }, { images: 'registry.k8s.io/pause:3.10.2\n' });
    const path = '/var/lib/kubeletadm/uploads/bb';
    expect(plan.changes).toEqual([
      {
        kind: 'upload-file',
        path,
        mode: 0o600,
        owner: 'root:root',
        content: ETCD.content,
        keep: true,
        reason: `${ETCD.images[0]}: not on the host`,
      },
      { kind: 'import-images', path, images: ETCD.images, criSocket: `unix://${SOCKET}`, reason: 'not on the host' },
    ]);
    expect((await inspect({}, { images: 'registry.k8s.io/pause:3.10.2\n' })).plan).toEqual({
      changes: [],
      noop: 'the images of the bundle exist on the host',
    });
  });

  it('reports images that the runtime does not list after the import', async () => {
    const observed = await inspect();
    await expect(observed.verify(observed.plan.changes)).rejects.toMatchObject({ code: 'BUNDLE_IMPORT_FAILED' });
  });

  it('plans all images if an earlier phase installs the runtime, and otherwise requires one', async () => {
    expect((await inspect({ installsRuntime: true }, { sockets: [] })).plan.changes).toHaveLength(2);
    await expect(inspect({}, { sockets: [] })).rejects.toMatchObject({ code: 'CRI', exitCode: 3 });
  });

  it('refuses another architecture, and a runtime without an importer', async () => {
    await expect(inspect({}, { machine: 'aarch64' })).rejects.toMatchObject({ code: 'BUNDLE_WRONG_ARCHITECTURE', exitCode: 3 });
    await expect(inspect({}, { importer: '' })).rejects.toMatchObject({ code: 'BUNDLE_NO_IMPORTER', exitCode: 3 });
  });
});
