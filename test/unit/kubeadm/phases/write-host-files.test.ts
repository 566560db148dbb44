import { describe, expect, it } from 'vitest';
import { NO_PREPARATION } from '../../../../src/host/operation/install-model.ts';
import { writeHostFiles } from '../../../../src/kubeadm/phases/prepare-host.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const PATH = '/etc/containerd/certs.d/docker.io/hosts.toml';
const templates = await loadTemplates();

async function planWith(files: Readonly<Record<string, string>>) {
  const context = { host: fakeHost({ files }), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const preparation = { ...NO_PREPARATION, files: { [PATH]: { content: 'new\n', mode: 0o644 } } };
  return (await writeHostFiles.inspect(context, { templates, preparation })).plan;
}

describe('files', () => {
  it('creates a missing file and its directory', async () => {
    expect(await planWith({})).toMatchObject({
      changes: [
        { kind: 'make-directory', path: '/etc/containerd/certs.d/docker.io', mode: 0o755 },
        { kind: 'write-file', path: PATH, action: 'create', content: 'new\n', mode: 0o644, owner: 'root:root' },
      ],
    });
  });

  it('replaces another content, and changes nothing else', async () => {
    const { changes } = await planWith({ [PATH]: 'old\n' });
    expect(changes.at(-1)).toMatchObject({ kind: 'write-file', path: PATH, action: 'update', before: { content: 'old\n' } });
    expect((await planWith({ [PATH]: 'new\n' })).changes.filter(({ kind }) => kind === 'write-file')).toEqual([]);
  });
});
