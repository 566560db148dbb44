import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { observeKubelet } from '../../../../src/kubelet/effective/observe-kubelet.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const UNIT = '/etc/systemd/system/kubelet.service';
const LOCAL = '/etc/systemd/system/kubelet.service.d/20-local.conf';
const FILES = {
  [UNIT]: '[Service]\nEnvironmentFile=-/etc/kubernetes/kubelet.env\nExecStart=/opt/bin/kubelet $KUBELET_ARGS --config-dir=/etc/kubelet.d\n',
  '/etc/kubernetes/kubelet.env': 'KUBELET_ARGS="--config=/etc/kubernetes/own.yaml --node-ip=10.0.0.5"\n',
  '/etc/kubernetes/own.yaml': `${HEADER}maxPods: 50\npodPidsLimit: 100\n`,
  '/etc/kubelet.d/9-last.conf': `${HEADER}maxPods: 61\n`,
  '/etc/kubelet.d/10-first.conf': `${HEADER}maxPods: 60\n`,
  '/etc/kubelet.d/99-admin.yaml': `${HEADER}maxPods: 99\n`,
  // The kubelet does not read this file.
  '/var/lib/kubelet/config.yaml': `${HEADER}maxPods: 7\n`,
};

function host(files: Readonly<Record<string, string>>, argv: readonly string[] | null, needsReload = false) {
  return fakeHost({
    files,
    commands: {
      sh: ([, , script = '']) => {
        if (script.includes('/cmdline'))
          return argv === null ? { exitCode: 3 } : { stdout: `712\nKubernetes v1.36.2\n${argv.join('\0')}\0` };
        if (script.includes('ExecStart')) return { stdout: '/opt/bin/kubelet\nKubernetes v1.36.2\n' };
        return { exitCode: 127 };
      },
      kubelet: { exitCode: 127 },
      id: { stdout: '0\n' },
      uname: { stdout: 'host-a\n' },
    },
    units: { kubelet: fakeUnit({ fragmentPath: UNIT, dropInPaths: [], activeState: argv === null ? 'inactive' : 'active', needsReload }) },
  });
}

describe('observeKubelet', () => {
  it('reads the files that the running kubelet names, and those of its next start', async () => {
    const argv = ['/opt/bin/kubelet', '--config=/etc/kubernetes/own.yaml', '--max-pods=20'];
    const { running, setup, next, version } = await observeKubelet(host(FILES, argv), catalogue);
    expect(version).toBe('v1.36.2');
    expect(setup.configFile?.path).toBe('/etc/kubernetes/own.yaml');
    expect(running.layered.config).toMatchObject({ maxPods: 20, podPidsLimit: 100 });
    expect(running.layered.history.get('maxPods')?.at(-1)?.origin.source).toBe('--max-pods, the running command line');
    expect(next?.dropIns.map(({ path }) => path)).toEqual(['/etc/kubelet.d/10-first.conf', '/etc/kubelet.d/9-last.conf']);
    expect(next?.flags).toEqual([
      {
        name: 'config',
        value: '/etc/kubernetes/own.yaml',
        source: 'KUBELET_ARGS in /etc/kubernetes/kubelet.env',
        file: '/etc/kubernetes/kubelet.env',
      },
      { name: 'node-ip', value: '10.0.0.5', source: 'KUBELET_ARGS in /etc/kubernetes/kubelet.env', file: '/etc/kubernetes/kubelet.env' },
      { name: 'config-dir', value: '/etc/kubelet.d', source: UNIT, file: UNIT },
    ]);
  });

  it('reads the next start of a stopped kubelet', async () => {
    const { kubelet, running, setup, next } = await observeKubelet(host(FILES, null), catalogue);
    expect(kubelet).toBeNull();
    expect(setup).toEqual(next);
    expect(running.layered.config).toMatchObject({ maxPods: 61 });
  });

  it('reads a drop-in of the unit that systemd has not loaded yet', async () => {
    const files = { ...FILES, [LOCAL]: '[Service]\nExecStart=\nExecStart=/opt/bin/kubelet --config=/etc/other.yaml\n' };
    const { next } = await observeKubelet(host(files, ['/opt/bin/kubelet', '--v=2'], true), catalogue);
    expect(next?.flags).toEqual([{ name: 'config', value: '/etc/other.yaml', source: LOCAL, file: LOCAL }]);
    expect(next?.missing).toEqual(['/etc/other.yaml']);
  });
});
