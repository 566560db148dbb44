import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const AS_KUBEADM = { KUBELETADM_PROGRAM_NAME: 'kubeadm' };
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n';
const KUBELET =
  'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  EphemeralContainers: true # since 1.16\n';

const migrate = (stdin: string, env = {}) => runCommand(['config', 'migrate', '--old-config', '-'], { stdin, env });

describe('config migrate --old-config', () => {
  // As kubeadm 1.36.2, which keeps the gate.
  it.each([
    ['kubeletadm', {}],
    ['kubeadm', AS_KUBEADM],
  ])('keeps a gate that no kubelet accepts, with a warning: %s', async (_, env) => {
    const { code, stdout, stderr } = await migrate(`${CLUSTER}---\n${KUBELET}`, env);
    expect([code, stdout]).toEqual([0, `${CLUSTER.replace('v1beta3', 'v1beta4')}---\n${KUBELET}`]);
    expect(stderr).toMatch(/^standard input:8:\d+ featureGates\S*: .*\n$/);
  });

  it('keeps an old version and an invalid value, with a warning for each', async () => {
    const { code, stdout, stderr } = await migrate(`${CLUSTER.replace('36.2', '22.1')}certificatesDir: pki\n`);
    expect([code, stdout]).toEqual([0, expect.stringContaining('certificatesDir: pki\n')]);
    expect(stdout).toContain('kubernetesVersion: v1.22.1\n');
    expect(stderr.match(/\[\w+\]/g)).toEqual(['[KUBERNETES_VERSION_UNSUPPORTED]', '[CONFIG_INVALID_PATH]']);
  });

  it('keeps a socket that the CRI client cannot use', async () => {
    const init = 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration:\n  criSocket: unix://run/crio/crio.sock\n';
    expect(await migrate(init)).toMatchObject({
      code: 0,
      stdout: init.replace('v1beta3', 'v1beta4'),
      stderr: /^standard input:4:14 .*\n$/,
    });
  });

  it('refuses an invalid value as kubeadm, and an unknown field under both names', async () => {
    expect(await migrate(`${CLUSTER}certificatesDir: pki\n`, AS_KUBEADM)).toMatchObject({ code: 1, stdout: '' });
    expect(await migrate(`${CLUSTER}certificateDir: /pki\n`)).toMatchObject({ code: 2, stdout: '' });
    const metadata = `${CLUSTER}metadata: {name: config}\n`;
    expect(await migrate(metadata, AS_KUBEADM)).toMatchObject({ code: 1, stdout: '' });
    expect(await migrate(metadata)).toMatchObject({ code: 0, stdout: CLUSTER.replace('v1beta3', 'v1beta4') });
  });
});
