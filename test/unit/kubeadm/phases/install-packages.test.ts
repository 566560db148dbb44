import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import type { PackageInstall } from '../../../../src/host/operation/install-model.ts';
import { installPackages } from '../../../../src/kubeadm/phases/prepare-host.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { pkiContext } from '../../../support/control-plane-pki.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const KEY = readFileSync(new URL('../../host/install/fixtures/rsa-forever.asc', import.meta.url), 'utf8');
const PATH = '/etc/apt/keyrings/kubernetes-apt-keyring.asc';
const install: PackageInstall = {
  kind: 'packages',
  version: '1.36',
  runtime: null,
  extra: [],
  repositories: [
    {
      name: 'kubernetes',
      url: 'https://mirror.example/',
      suite: '/',
      components: [],
      key: '/keys/k8s.asc',
      keyFingerprints: ['6B1BB40B01B84DB4FED188ECAC54F86189240365'],
    },
  ],
};
const INSTALLED = 'manager apt\ninstalled kubelet 1.36.2-1.1\ninstalled cri-tools 1.36.0\nheld kubelet\n';

it.each([
  ['keeps the key while nothing is to be installed', INSTALLED, KEY, 0, false],
  ['reads the key again for an upgrade: the vendor may have extended it', INSTALLED.replace('1.36.2', '1.35.9'), KEY, 1, true],
  ['replaces a key that is not pinned', INSTALLED, 'another key', 1, true],
])('%s', async (_, packages, existing, reads, replaces) => {
  const host = fakeHost({ files: { [PATH]: existing }, commands: { sh: { exitCode: 0, stdout: packages } } });
  const readKey = vi.fn(async () => `extended\n${KEY}`);
  const inspection = await installPackages.inspect(pkiContext(host), { templates: await loadTemplates(), install, readKey });
  expect(readKey).toHaveBeenCalledTimes(reads);
  const written = inspection.plan.changes.some((change) => change.kind === 'write-file' && change.path === PATH);
  expect(written).toBe(replaces);
});
