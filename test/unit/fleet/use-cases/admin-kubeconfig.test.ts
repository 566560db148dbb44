import { describe, expect, it } from 'vitest';
import { createCa } from '../../../../lab/api-server/pki.ts';
import type { LocalFiles } from '../../../../src/base/local-files.ts';
import { requireKubeconfigFile, writeAdminKubeconfig } from '../../../../src/fleet/use-cases/admin-kubeconfig.ts';
import { rebuildHostKubeconfig } from '../../../../src/kube/host-kubeconfig.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const { certPem } = await createCa();
const other = await createCa();

function kubeconfigText(user: string, caPem = certPem): string {
  return JSON.stringify({
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user } }],
    clusters: [
      {
        name: 'k',
        cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': Buffer.from(caPem).toString('base64') },
      },
    ],
    users: [{ name: user, user: { token: 'secret-token' } }],
  });
}

/** Writes the kubeconfig of `kubernetes-admin` to a file that has this text. */
async function write(existing: string, { force = false } = {}) {
  const written: (readonly [string, unknown])[] = [];
  const source = { host: 'cp1', path: '/etc/kubernetes/admin.conf', text: kubeconfigText('kubernetes-admin'), readFile: async () => null };
  const services = {
    input: { exists: async () => true, readText: async () => existing },
    writeLocalFile: async (path: string, _: string, options?: object) => void written.push([path, options]),
  } as unknown as LocalFiles;
  const kubeconfig = await rebuildHostKubeconfig({ ...source, hint: 'hint' });
  await writeAdminKubeconfig(services, kubeconfig, { path: 'admin.conf', force }, { report: () => undefined });
  return written;
}

const WRITTEN = [['admin.conf', { isPrivate: true }]];

describe('the file of the kubeconfig of an administrator', () => {
  it('replaces an empty file and an older kubeconfig of the same administrator', async () => {
    for (const text of ['', kubeconfigText('kubernetes-admin')]) expect(await write(text)).toEqual(WRITTEN);
  });

  it.each([
    ['another cluster', kubeconfigText('kubernetes-admin', other.certPem)],
    ['another user of the cluster', kubeconfigText('alice')],
    ['a user without a cluster', JSON.stringify({ kind: 'Config', users: [{ name: 'alice', user: { token: 't' } }] })],
    ['no kubeconfig', 'a: note'],
  ])('is not replaced if it is that of %s, except with --force', async (_, text) => {
    await expect(write(text)).rejects.toMatchObject({ code: 'KUBECONFIG_EXISTS', exitCode: 2 });
    expect(await write(text, { force: true })).toEqual(WRITTEN);
  });

  it('is to be removed before init if it is that of an earlier cluster, which no other command could replace', async () => {
    const services = {
      input: { exists: async () => true, readText: async () => kubeconfigText('kubernetes-admin') },
      requireWritable: async () => undefined,
      connectHost: async () => fakeHost(),
      signal: new AbortController().signal,
    } as unknown as Parameters<typeof requireKubeconfigFile>[0];
    await expect(requireKubeconfigFile(services, { address: 'cp1' }, { path: 'admin.conf', force: false })).rejects.toThrow(
      'admin.conf exists: it is a kubeconfig of an earlier or another cluster (another CA), https://10.0.0.1:6443; the cluster of this host does not exist yet. The file was not changed. Remove the file, or pass another file (kubectl uses several: export KUBECONFIG=FILE:OTHER-FILE)',
    );
  });
});
