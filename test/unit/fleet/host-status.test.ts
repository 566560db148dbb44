import { describe, expect, it } from 'vitest';
import { observeKubeletStatus } from '../../../src/fleet/drift/host-status.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { fakeUnit } from '../../support/fake-units.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const UNIT = '/etc/systemd/system/kubelet.service';
const LOCAL = '/etc/systemd/system/kubelet.service.d/20-local.conf';
const OTHER = '/etc/kubernetes/my.yaml';
const FILES = {
  [UNIT]: `[Service]\nExecStart=/usr/bin/kubelet --config=${OTHER} $KUBELET_EXTRA_ARGS\n`,
  [LOCAL]: '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=2"\n',
  [OTHER]: `${HEADER}maxPods: 50\n`,
  '/var/lib/kubelet/config.yaml': `${HEADER}maxPods: 7\n`,
};

function host(files: Readonly<Record<string, string>>, { isRunning = true, needsReload = false } = {}): FakeHost {
  const argv = ['/usr/bin/kubelet', `--config=${OTHER}`, '--v=2'];
  return fakeHost({
    files: { ...FILES, ...files },
    commands: {
      sh: ([, , script = '']) => {
        if (script.includes('/cmdline')) return isRunning ? { stdout: `712\nKubernetes v1.36.2\n${argv.join('\0')}\0` } : { exitCode: 3 };
        return script === 'command -v kubelet' ? { stdout: '/usr/bin/kubelet\n' } : { exitCode: 3 };
      },
      kubelet: { stdout: 'Kubernetes v1.36.2\n' },
      id: { stdout: '0\n' },
      uname: { stdout: 'host-a\n' },
    },
    units: {
      kubelet: fakeUnit({ fragmentPath: UNIT, dropInPaths: [LOCAL], activeState: isRunning ? 'active' : 'inactive', needsReload }),
    },
  });
}

const read = (files: Readonly<Record<string, string>>, options = {}) => observeKubeletStatus(host(files, options), catalogue);

describe('observeKubeletStatus', () => {
  it('hashes the file that the kubelet reads, wherever --config points', async () => {
    const { configHash, pending, failures } = await read({});
    expect({ pending, failures }).toEqual({ pending: [], failures: [] });
    expect((await read({ '/var/lib/kubelet/config.yaml': 'another text' })).configHash).toBe(configHash);
    expect((await read({ [OTHER]: `${HEADER}maxPods: 51\n` })).configHash).not.toBe(configHash);
    expect((await read({}, { isRunning: false })).configHash).toBe(configHash);
  });

  it.each([true, false])('reports a changed drop-in of the unit as pending, daemon-reload pending: %s', async (needsReload) => {
    const { pending } = await read({ [LOCAL]: '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=2 --max-pods=50"\n' }, { needsReload });
    expect(pending[0]?.why).toBe(
      `the running kubelet has no --max-pods, but the unit sets --max-pods=50 (${LOCAL}): restart the kubelet to apply the change`,
    );
    expect(pending).toHaveLength(needsReload ? 2 : 1);
  });

  it('reports why the next start would fail', async () => {
    const removed = await read({ [LOCAL]: '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=2 --pod-infra-container-image=x"\n' });
    expect(removed.failures[0]?.why).toContain(`a restart would fail: --pod-infra-container-image (${LOCAL})`);
    const { failures, configHash } = await read({ [OTHER]: `${HEADER}maxPods: many\n` });
    expect(failures).toEqual([
      { what: 'unit kubelet', why: `a restart would fail: ${OTHER}:3:10 maxPods: must be an integer, not the string "many"` },
    ]);
    expect(configHash).toMatch(/^[0-9a-f]{12}$/);
  });

  it('reports that the next start would fail without the program of the kubelet', async () => {
    const missing = { sh: { exitCode: 3 }, kubelet: { exitCode: 127 }, id: { stdout: '0\n' }, uname: { stdout: 'host-a\n' } };
    const removed = fakeHost({ commands: missing, units: { kubelet: fakeUnit({}) } });
    expect((await observeKubeletStatus(removed, catalogue)).failures).toEqual([
      { what: 'unit kubelet', why: 'a restart would fail: the kubelet is missing, or kubelet --version failed' },
    ]);
  });
});
