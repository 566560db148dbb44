import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type FakeCluster, fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { runCommand } from '../../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-adopt-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const kubeconfig = file(
  'admin.conf',
  JSON.stringify({
    kind: 'Config',
    'current-context': 'admin@shop',
    contexts: [{ name: 'admin@shop', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://shop.test:6443' } }],
    users: [{ name: 'u', user: { token: 't' } }],
  }),
);
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

async function adopt(args: readonly string[], { env = {}, gitVersion }: { env?: Record<string, string>; gitVersion?: string } = {}) {
  const cluster: FakeCluster = Object.assign(fakeCluster(gitVersion === undefined ? {} : { gitVersion }), {
    server: 'https://shop.test:6443',
    context: 'admin@shop',
  });
  const host = fakeHost({ name: 'localhost' });
  const services = () => ({ connectCluster: async () => cluster, connectHost: async () => host });
  const result = await runCommand(['cluster', 'adopt', ...args], { env, services });
  expect([host.roundTrips, host.performed]).toEqual([0, []]);
  return { ...result, cluster };
}

describe('cluster adopt', () => {
  it('requires a kubeconfig, and ignores the variable that may name another cluster', async () => {
    const { code, stderr, cluster } = await adopt([], { env: { KUBECONFIG: kubeconfig } });
    expect([code, stderr, cluster.calls]).toEqual([
      2,
      'cluster adopt requires --kubeconfig. Pass the kubeconfig of an administrator of the cluster. [USAGE]\n',
      [],
    ]);
  });

  it('creates no token and prints no command unless requested', async () => {
    const { code, stdout, stderr, cluster } = await adopt(['--kubeconfig', kubeconfig]);
    expect([code, stdout], stderr).toEqual([0, '']);
    expect(stderr.split('\n')[0]).toBe(`cluster: context "admin@shop", https://shop.test:6443 (${kubeconfig})`);
    expect(cluster.calls.filter((call) => call.includes('Secret'))).toEqual([]);
    expect(cluster.calls).toContain('create ConfigMap kube-system/kubelet-config');
  });

  it('refuses a configuration that the kubelets of the cluster would not start with, before it writes an object', async () => {
    const config = file('bad.yaml', `${KUBELET}maxPods: -3\ncgroupDriver: nonsense\n`);
    const { code, stderr, cluster } = await adopt(['--kubeconfig', kubeconfig, '--config', config]);
    expect(code).toBe(2);
    expect(stderr).toContain(`maxPods: must be 0 or more, not -3 (cluster: ${config}:3:1) [KUBELET_OUT_OF_RANGE]\n`);
    expect(stderr).toMatch(/cgroupDriver: must be systemd or cgroupfs.*\[KUBELET_START_UNKNOWN_WORD\]\n/);
    expect(cluster.calls.filter((call) => !/^(?:get|read) /.test(call))).toEqual([]);
  });

  const INIT = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n';

  it('skips the phases that the configuration skips, also those that only init has', async () => {
    const config = file('skip.yaml', `${INIT}skipPhases: [bootstrap-token, addon/kube-proxy, preflight]\n`);
    const { code, stderr, cluster } = await adopt(['--kubeconfig', kubeconfig, '--config', config]);
    expect(code, stderr).toBe(0);
    expect(cluster.calls).toContain('create ConfigMap kube-system/kubelet-config');
    expect(cluster.calls.filter((call) => call.includes('cluster-info'))).toEqual([]);
    expect(stderr).not.toContain('[CONFIG_IGNORED_FIELD]');
  });

  it('refuses the name of a phase that no command has', async () => {
    const config = file('no-phase.yaml', `${INIT}skipPhases: [nonsense]\n`);
    const { code, stderr } = await adopt(['--kubeconfig', kubeconfig, '--config', config]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('cluster adopt has no phase nonsense')]);
  });

  it('warns about the fields that configure a host', async () => {
    const config = file(
      'host.yaml',
      `${INIT}nodeRegistration:\n  name: cp-1\nlocalAPIEndpoint: {bindPort: 6444}\npatches: {directory: /p}\n`,
    );
    const { code, stderr } = await adopt(['--kubeconfig', kubeconfig, '--config', config]);
    expect(code, stderr).toBe(0);
    for (const [line, field] of [
      [3, 'nodeRegistration'],
      [5, 'localAPIEndpoint'],
      [6, 'patches'],
    ])
      expect(stderr).toMatch(
        new RegExp(`host.yaml:${line}:[0-9]+: ${field}: ignored, because cluster adopt changes no host \\[CONFIG_IGNORED_FIELD\\]`),
      );
  });

  it('shows a plan of the cluster alone', async () => {
    const { code, stdout, stderr } = await adopt(['--kubeconfig', kubeconfig, '--dry-run']);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^cluster context "admin@shop", https:\/\/shop.test:6443\n/);
    expect(stdout).toMatch(/\n[0-9]+ changes in the cluster\.\n$/);
  });

  it('names the ConfigMap by the version of the API server', async () => {
    const { cluster } = await adopt(['--kubeconfig', kubeconfig], { gitVersion: 'v1.21.5' });
    expect(cluster.calls).toContain('create ConfigMap kube-system/kubelet-config-1.21');
  });

  it('warns that it cannot print a command with a kubeconfig without a CA', async () => {
    const { code, stderr } = await adopt(['--kubeconfig', kubeconfig, '--print-join-command']);
    expect(code).toBe(0);
    expect(stderr).toContain('the kubeconfig contains no CA: cannot print a join command [KUBECONFIG_NO_CA]');
  });
});
