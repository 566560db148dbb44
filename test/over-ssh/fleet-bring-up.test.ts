import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('a fleet whose cluster does not exist yet', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const file = (): string => join(directory, 'fleet.yaml');
  const run = (command: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand([command, '-f', file(), '--ssh-config', lab.sshConfig, ...args], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  const write = (text = FLEET): void => writeFileSync(file(), text);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });
  beforeEach(() => {
    write();
    writeFileSync(join(directory, 'cluster.yaml'), CLUSTER);
  });

  it('is planned: the first control plane creates the cluster, the others join later', async () => {
    const { code, stdout, stderr } = await run('plan', '--diff', '--exit-code', '--ignore-preflight-errors', 'all');
    expect(code, stderr).toBe(6);
    const lines = stdout.split('\n');
    expect(lines).toContain('node3, node2 (2 hosts)');
    expect(lines).toContain('  > [join] later: waits for node1 to bootstrap the cluster');
    expect(lines.filter((line) => /^ {2}\+ \[(?:certs\/ca|kubeconfig\/admin|control-plane\/apiserver)\] write-file/.test(line))).toEqual([
      '  + [certs/ca] write-file /etc/kubernetes/pki/ca.key (0600 root:root): does not exist',
      '  + [certs/ca] write-file /etc/kubernetes/pki/ca.crt (0644 root:root): does not exist',
      '  + [kubeconfig/admin] write-file /etc/kubernetes/admin.conf (0600 root:root): does not exist',
      '  + [control-plane/apiserver] write-file /etc/kubernetes/manifests/kube-apiserver.yaml (0600 root:root): does not exist',
    ]);
    expect(stdout).toContain('- --service-cluster-ip-range=10.50.0.0/16');
    expect(stdout).toMatch(/\+maxPods: 21$/m);
    expect(stdout).not.toContain('PRIVATE KEY');
    expect(lines.at(-2)).toBe('3 hosts: 3 pending (2 nodes join).');
    expect(existsSync(join(directory, 'admin.conf'))).toBe(false);
    for (const { rootDir } of lab.hosts) expect(existsSync(join(rootDir, 'etc/kubernetes/pki'))).toBe(false);
  });

  it('prepares the first control plane before it creates the cluster', async () => {
    write(FLEET.replace('name: node1', 'name: node1, proxy: {https: "http://proxy.example.com:3128"}'));
    const { code, stdout, stderr } = await run('plan', '--ignore-preflight-errors', 'all', '--diff');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('  + [proxy] write-file /etc/kubeletadm/proxy.env');
    expect(stdout).toMatch(/^ +\+NO_PROXY=localhost,127\.0\.0\.1,::1,10\.50\.0\.0\/16,.*\.svc,\.cluster\.local,/m);
    expect(stdout).toMatch(/^ {2}> \[preflight\/pull-images, .*, [0-9]+ more phases\] later: waits for proxy$/m);
  });

  it('uses the endpoint of the fleet file when the cluster configuration names none', async () => {
    writeFileSync(join(directory, 'cluster.yaml'), CLUSTER.replace(/^controlPlaneEndpoint.*\n/m, ''));
    write(FLEET.replace('configuration: cluster.yaml', 'configuration: cluster.yaml, endpoint: vip.example:7443'));
    const { code, stdout, stderr } = await run('plan', '--ignore-preflight-errors', 'all', '--diff');
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/controlPlaneEndpoint: vip\.example:7443$/m);
  });

  it('starts no other host when the first is rejected, and writes no kubeconfig', async () => {
    write(FLEET.replace('name: node1', 'name: node1, nodeIP: 10.255.255.0/24'));
    const { code, stdout, stderr } = await run('apply', '--yes');
    expect([code, stdout]).toEqual([3, '3 hosts: 1 refused, 2 not started.\n']);
    expect(stderr).toMatch(/^node1: node IP 10\.255\.255\.0\/24: the host has no address in the subnet .*\[NODE_IP_NOT_FOUND\]$/m);
    expect(stderr).toContain('the run stopped before it processed 2 hosts: the other hosts need node1, which failed.');
    expect(existsSync(join(directory, 'admin.conf'))).toBe(false);
  });

  describe('on a terminal', () => {
    const asking = async (
      approves: boolean,
      beforeAnswer: () => void = () => undefined,
    ): Promise<CliResult & { readonly questions: readonly string[] }> => {
      const questions: string[] = [];
      const confirm = async (question: string): Promise<boolean> => {
        questions.push(question);
        beforeAnswer();
        return approves;
      };
      const argv = ['apply', '-f', file(), '--ssh-config', lab.sshConfig, '--ignore-preflight-errors', 'all'];
      const env = { XDG_STATE_HOME: join(directory, 'state') };
      return { ...(await runCommand(argv, { env, services: () => ({ canAsk: true, confirm }) })), questions };
    };

    it('shows the plan of the first control plane and asks for the approval of all hosts', async () => {
      const { code, stdout, questions } = await asking(false);
      expect([code, questions]).toEqual([1, ['Apply these changes? [y/N] ']]);
      expect(stdout).toContain('  > [join] later: waits for node1 to bootstrap the cluster\n');
      expect(stdout).toMatch(/^3 hosts: 3 pending \(2 nodes join\)\.$/m);
      for (const { rootDir } of lab.hosts) expect(existsSync(join(rootDir, 'etc/kubernetes/pki'))).toBe(false);
    });

    it('refuses a first control plane that has changed since the approval', async () => {
      const manifest = join(lab.hosts[0]?.rootDir ?? '', 'etc/kubernetes/manifests/etcd.yaml');
      const { code, stdout, stderr } = await asking(true, () => {
        mkdirSync(dirname(manifest), { recursive: true });
        writeFileSync(manifest, 'kind: Pod\n');
      });
      rmSync(manifest);
      expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([3, '3 hosts: 1 refused, 2 not started.']);
      expect(stderr).toMatch(/^node1: .*the host or the cluster changed since the plan was approved: .*etcd\.yaml.*\[PLAN_STALE\]$/m);
      expect(existsSync(join(lab.hosts[0]?.rootDir ?? '', 'etc/kubernetes/pki'))).toBe(false);
    });

    it('applies the approved plan to an unchanged first control plane, although its keys are generated', async () => {
      // The hook runs after the comparison, and ends the run before any change.
      write(FLEET.replace('name: node1', 'name: node1, hooks: {beforeChange: {command: [sh, -c, exit 7]}}'));
      const { code, stderr } = await asking(true);
      expect([code, stderr]).toEqual([3, expect.stringMatching(/^node1: the hook beforeChange .*\[HOOK_FAILED\]$/m)]);
      expect(stderr).not.toContain('PLAN_STALE');
    });

    it('asks nothing and changes nothing when the first control plane is refused', async () => {
      write(FLEET.replace('name: node1', 'name: node1, nodeIP: 10.255.255.0/24'));
      const { code, stderr, questions } = await asking(true);
      expect([code, questions]).toEqual([4, []]);
      expect(stderr).toMatch(/^node1: node IP 10\.255\.255\.0\/24: .*\[NODE_IP_NOT_FOUND\]$/m);
      expect(existsSync(join(directory, 'admin.conf'))).toBe(false);
    });
  });

  it.each<[string, readonly string[], (() => void) | null, string | RegExp]>([
    [
      'the first control plane is excluded',
      ['--limit', 'node2'],
      null,
      /^\S+\/admin\.conf does not exist, so node1 must bootstrap the cluster first, but this run excludes node1\. Remove --limit, or include node1. If the cluster already exists, pass its kubeconfig with --kubeconfig\. \[USAGE\]\n$/,
    ],
    [
      'the plan is saved',
      ['--out', 'plan.json'],
      null,
      /^cannot save a plan before the cluster exists, because the changes of the joining hosts are still unknown\./,
    ],
    [
      'the cluster configuration is invalid',
      [],
      () => writeFileSync(join(directory, 'cluster.yaml'), CLUSTER.replace('serviceSubnet', 'serviceSubnets')),
      /^\S+\/cluster\.yaml:4:4 networking\.serviceSubnets: unknown field\. Did you mean serviceSubnet\? \[CONFIG_UNKNOWN_FIELD\]\n$/,
    ],
    [
      'no endpoint leads to all control planes',
      [],
      () => writeFileSync(join(directory, 'cluster.yaml'), CLUSTER.replace(/^controlPlaneEndpoint.*\n/m, '')),
      /^\S+\/fleet\.yaml: node1, node2 are control planes, but no shared endpoint is configured\. Set cluster\.endpoint, .*\[CONTROL_PLANE_ENDPOINT_MISSING\]\n$/,
    ],
    [
      'the cluster configuration does not exist',
      [],
      () => rmSync(join(directory, 'cluster.yaml')),
      /cluster\.yaml: no such file or directory\. Check the path\. \[INPUT_UNREADABLE\]\n$/,
    ],
  ])('prints one line when %s', async (_, args, spoil, message) => {
    spoil?.();
    expect(await run('plan', ...args)).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });
});

const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, configuration: cluster.yaml}
hosts:
  - {name: node3}
  - {name: node1, role: controlPlane, kubeletConfiguration: {maxPods: 21}}
  - {name: node2, role: control-plane}
`;
const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking:
   serviceSubnet: 10.50.0.0/16
kubernetesVersion: v1.36.2
controlPlaneEndpoint: api.example:6443
encryptionAlgorithm: ECDSA-P256
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.11}
`;
