import { describe, expect, it } from 'vitest';
import { type RestoredFiles, restoreFiles } from '../../../../src/kubeadm/phases/restore-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const PATH = '/etc/containerd/certs.d/docker.io/hosts.toml';

async function planWith(files: Readonly<Record<string, string>>, restored: RestoredFiles) {
  const context = { host: fakeHost({ files }), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  return (await restoreFiles.inspect(context, { files: restored })).plan;
}

describe('restore-files', () => {
  it('restores a file, and removes one that did not exist', async () => {
    const before = { content: 'old\n', mode: 0o644, owner: 'root:root' };
    const { changes } = await planWith(
      { [PATH]: 'new\n', '/etc/new': 'n\n' },
      new Map([
        [PATH, before],
        ['/etc/new', null],
        ['/etc/gone', null],
      ]),
    );
    expect(changes).toMatchObject([
      { kind: 'write-file', path: PATH, content: 'old\n' },
      { kind: 'remove-file', path: '/etc/new', before: { content: 'n\n' } },
    ]);
  });

  it('does not remove a directory', async () => {
    await expect(planWith({ [PATH]: 'a\n' }, new Map([['/etc/containerd', null]]))).rejects.toMatchObject({
      problems: [{ code: 'NOT_A_FILE' }],
      exitCode: 3,
    });
  });
});
