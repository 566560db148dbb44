import { describe, expect, it } from 'vitest';
import { explainTakeover } from '../../../../src/kubeadm/workflows/node/explain-takeover.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const UNIT = '/etc/systemd/system/kubelet.service';
const ENV = '/etc/kubernetes/kubelet.env';
const OWN = '/etc/kubernetes/own.yaml';

describe('explainTakeover', () => {
  it('lists each flag, field and file that a join would change, and changes nothing', async () => {
    const argv = [
      '/opt/bin/kubelet',
      `--config=${OWN}`,
      '--kubeconfig=/etc/kubernetes/kubelet.conf',
      '--node-ip=10.0.0.5',
      '--pod-infra-container-image=pause',
    ];
    const host = hostOf(argv, {
      [UNIT]: `[Service]\nEnvironmentFile=-${ENV}\nExecStart=/opt/bin/kubelet --config=${OWN} $KUBELET_ARGS\n`,
      [ENV]: 'KUBELET_ARGS="--kubeconfig=/etc/kubernetes/kubelet.conf --node-ip=10.0.0.5 --pod-infra-container-image=pause"\n',
      [OWN]: `${HEADER}maxPods: 50\npodPidsLimit: 300\n`,
      '/var/lib/kubelet/config.yaml': `${HEADER}podPidsLimit: 300\n`,
    });
    const { program, items } = await explainTakeover(host, { catalogue, templates: await loadTemplates() });
    expect(program).toBe('/opt/bin/kubelet');
    expect(items.map(({ what, effect }) => `${what}: ${effect}`)).toEqual([
      `--config=${OWN}: replaced by --config=/var/lib/kubelet/config.yaml (${UNIT}.d/10-kubeadm.conf)`,
      `--kubeconfig=/etc/kubernetes/kubelet.conf: unchanged, set by ${UNIT}.d/10-kubeadm.conf`,
      '--node-ip=10.0.0.5: kept as node setting, unless dropped by --kubelet-extra-args node-ip-',
      '--pod-infra-container-image=pause: dropped: a 1.36 kubelet has no flag --pod-infra-container-image: the flag was removed in 1.35. Remove the flag',
      'maxPods: 50: no longer read; /var/lib/kubelet/config.yaml has 110. To keep the field, pass it with --overlay or --set',
      `${UNIT}.d/10-kubeadm.conf: created`,
      '/var/lib/kubelet/config.yaml: rewritten',
      '/var/lib/kubelet/kubeadm-flags.env: written with the flags of the node',
      `${UNIT}: kept, but the new command line uses nothing of it`,
      `${ENV}: kept, but the new command line uses nothing of it`,
    ]);
    expect(host.performed).toEqual([]);
  });

  it('prints no credentials of the URL of static pods, neither present nor new ones', async () => {
    const host = hostOf(['/opt/bin/kubelet', `--config=${OWN}`, '--manifest-url-header=X:hush-1', '--manifest-url=https://u:hush-2@a/'], {
      [UNIT]: `[Service]\nEnvironmentFile=/etc/default/kubelet\nExecStart=/opt/bin/kubelet --config=${OWN} --manifest-url-header=X:hush-1 --manifest-url=https://u:hush-2@a/ $KUBELET_EXTRA_ARGS\n`,
      '/etc/default/kubelet':
        'KUBELET_EXTRA_ARGS="--manifest-url-header=X:hush-8 --manifest-url=https://u:hush-9@a/ --manifest-url-header=X:hush-3 --manifest-url=https://u:hush-4@b/"\n',
      [OWN]: `${HEADER}staticPodURL: https://u:hush-5@c/\nstaticPodURLHeader: {X: [hush-6]}\n`,
      '/var/lib/kubelet/config.yaml': `${HEADER}staticPodURL: https://u:hush-7@d/\n`,
    });
    const { items } = await explainTakeover(host, { catalogue, templates: await loadTemplates() });
    const text = items.map(({ what, effect }) => `${what}: ${effect}`).join('\n');
    expect(text).not.toContain('hush');
    expect(text).toContain('--manifest-url-header=[secret]: replaced by --manifest-url-header=[secret]');
    expect(text).toContain('--manifest-url=https://[secret]@a/: replaced by --manifest-url=https://[secret]@b/');
  });
});

function hostOf(argv: readonly string[], files: Readonly<Record<string, string>>) {
  return fakeHost({
    files,
    commands: {
      sh: ([, , script = '']) => {
        if (script.includes('/cmdline')) return { stdout: `712\nKubernetes v1.36.2\n${argv.join('\0')}\0` };
        if (script.includes('ExecStart')) return { stdout: '/opt/bin/kubelet\nKubernetes v1.36.2\n' };
        return { exitCode: 127 };
      },
      kubelet: { exitCode: 127 },
      id: { stdout: '0\n' },
      uname: { stdout: 'host-a\n' },
    },
    units: { kubelet: fakeUnit({ fragmentPath: UNIT, activeState: 'active' }) },
  });
}
