import { describe, expect, it } from 'vitest';
import { readStore } from '../../../../src/dynamic/workflows/read-store.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { type FakeHostOptions, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const UNIT = '/lib/systemd/system/kubelet.service';

function hostOf(version: string) {
  const commands: FakeHostOptions['commands'] = {
    sh: ([, , script = '']) => (script === 'command -v kubelet' ? { stdout: '/usr/bin/kubelet\n' } : { exitCode: 3 }),
    kubelet: { stdout: `Kubernetes ${version}\n` },
    id: { stdout: '0\n' },
    uname: ([, what]) => ({ stdout: what === '-n' ? 'node1\n' : 'x86_64\n' }),
  };
  const files = { [UNIT]: '[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubelet.yaml\n' };
  return fakeHost({ name: 'node1', files, units: { kubelet: fakeUnit({ fragmentPath: UNIT }) }, commands });
}

describe('a host without a store', () => {
  it.each([
    [
      'v1.36.2',
      'node1: no kubeletadm agent is installed, and kubelet v1.36.2 has no built-in dynamic configuration. Install the agent with kubeletadm dynamic enable node1. [DYNAMIC_NOT_ENABLED]',
    ],
    [
      'v1.21.0',
      'node1: kubelet v1.21.0 runs without --dynamic-config-dir. Enable dynamic configuration with kubeletadm dynamic enable node1, or pass the directory to inspect with --dynamic-config-dir. [DYNAMIC_NOT_ENABLED]',
    ],
  ])('is refused with the command that enables a kubelet %s', async (version, message) => {
    const catalogue = await loadCatalogue();
    await expect(readStore(hostOf(version), { catalogue, directory: null })).rejects.toMatchObject({ exitCode: 3, message });
  });
});
