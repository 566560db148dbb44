import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/kube/cluster.ts';
import { storedPolicy } from '../../src/kubelet/workload/manager-states.ts';
import { bundle } from '../support/bundle.ts';
import { imageArchive } from '../support/container-images.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing = whyNoKubelet() ?? whyNoLabHosts();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node2' } as const;
const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const STATE = '/var/lib/kubelet/cpu_manager_state';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';

/** The lifecycle of a node with a real control plane and kubelet. */
describe.skipIf(requirement('the lifecycle of a node with a real kubelet', missing))('the lifecycle of a node with a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  let joinWords: readonly string[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-life-'));
  const conf = join(directory, 'admin.conf');

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(2, directory, CONFIG));
    const images = ['3.6', '3.8', '3.10.2'].map((tag) => `registry.k8s.io/pause:${tag}`);
    lab.importImage('node2', imageArchive({ names: images, programs: ['/bin/sleep'], entrypoint: ['sleep', '2147483647'] }));
    joinWords = await adoptCluster(directory);
    const first = await runCommand([...joinWords, ...ssh('node1')]);
    expect(first.code, first.stderr).toBe(0);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const run = (...argv: readonly string[]) => runCommand([...argv, ...ssh('node2')]);
  const expectDone = async (...argv: readonly string[]) => {
    const done = await run(...argv);
    expect(done.code, `${argv.join(' ')}: ${done.stderr}`).toBe(0);
    return done;
  };
  const joining = (...more: readonly string[]) =>
    expectDone(
      ...joinWords,
      '--set',
      'serverTLSBootstrap=true',
      '--kubeconfig',
      conf,
      '--node-labels',
      'node-role.kubernetes.io/worker=',
      ...more,
    );

  it('joins, waits until it is Ready, and has the label that a kubelet may not set itself', async () => {
    await joining('--wait-ready=90s');
    expect((await cluster.get(NODE))?.metadata.labels).toHaveProperty(['node-role.kubernetes.io/worker']);
    expect(lab.run('node2', 'ls /etc/kubernetes')).not.toContain('bootstrap-kubelet.conf');
    expect((await joining('--dry-run', '--exit-code')).stdout).toMatch(/Nothing to do\.\n$/);
  });

  it("applies an edited kubelet-config with the node's own credentials, and keeps its own setting", async () => {
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' };
    const found = await cluster.get(ref);
    const { kubelet: yaml = '' } = (found?.data ?? {}) as { readonly kubelet?: string };
    await cluster.patch(ref, 'merge', { data: { kubelet: `${yaml}maxPods: 77\n` } });
    await expectDone('upgrade', 'node');
    const configz = (await cluster.getRaw('/api/v1/nodes/node2/proxy/configz').catch(() => null)) as {
      readonly kubeletconfig?: object;
    } | null;
    const inForce = configz?.kubeletconfig ?? {
      maxPods: Number(/^maxPods: (\d+)$/m.exec(lab.run('node2', 'cat /var/lib/kubelet/config.yaml'))?.[1]),
    };
    expect(inForce).toMatchObject({ maxPods: 77 });
    expect(lab.run('node2', 'cat /var/lib/kubelet/config.yaml')).toContain('serverTLSBootstrap: true');
    expect((await run('upgrade', 'node', '--dry-run', '--exit-code')).code).toBe(0);
  });

  it.skipIf(requirement('kubeadm upgrades a node of kubeletadm', kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null))(
    'kubeadm writes the same, except for the settings of this node',
    async () => {
      const config = () => lab.run('node2', 'cat /var/lib/kubelet/config.yaml');
      const ours = config();
      lab.put('node2', '/usr/local/bin/kubeadm', readFileSync(kubeadm ?? ''));
      lab.run('node2', 'kubeadm upgrade node phase kubelet-config');
      // The settings of this node, and the cgroup driver of its runtime, which kubeadm does not detect.
      expect(config()).toBe(ours.replace('serverTLSBootstrap: true\n', '').replace(/^cgroupDriver: .*$/m, 'cgroupDriver: systemd'));
      const [copy = ''] = lab.run('node2', 'ls -d /etc/kubernetes/tmp/kubeadm-kubelet-config-*').trimEnd().split('\n').slice(-1);
      expect(lab.run('node2', `cat ${copy}/config.yaml`)).toBe(ours);
      await expectDone('upgrade', 'node', '--allow', 'unsafe');
      expect(config()).toBe(ours);
    },
  );

  it('gets its serving certificate approved for its host name and addresses', async () => {
    await expect
      .poll(async () => (await run('csr', 'list', '--kubeconfig', conf)).stdout, { timeout: 60_000 })
      .toMatch(/system:node:node2 .* ok\n/);
    await expectDone('csr', 'approve', '--kubeconfig', conf);
    await expect
      .poll(() => lab.run('node2', 'ls /var/lib/kubelet/pki'), { timeout: 60_000, interval: 500 })
      .toContain('kubelet-server-current.pem');
    const { stdout } = await expectDone('certs', 'check');
    expect(stdout).toMatch(/node2 +serving +O=system:nodes, CN=system:node:node2 +CN=kubernetes .* ok\n/);
  });

  describe('a change of cpuManagerPolicy, with which the kubelet exits until its state file is deleted', () => {
    // upgrade node replaces the settings of the node: the one of join stays.
    const KEPT = ['--set', 'serverTLSBootstrap=true'];
    const STATIC = ['upgrade', 'node', ...KEPT, '--set', 'cpuManagerPolicy=static', '--set', 'kubeReserved={"cpu":"500m"}'];
    const policy = (): string | null => storedPolicy(lab.run('node2', `cat ${STATE} 2>/dev/null || true`));
    /** Content, time of the last change, mode and owner of the state file, and the configuration. */
    const files = (): string => lab.run('node2', `stat -c '%n %y %a %U:%G' ${STATE}; cat ${STATE} /var/lib/kubelet/config.yaml`);
    const health = (): string => lab.run('node2', 'curl -s http://127.0.0.1:10248/healthz || true');
    const restarts = (): string => lab.run('node2', 'systemctl show kubelet -p NRestarts --value');
    const configz = async (): Promise<unknown> => {
      const text = await lab.query('node2', 'curl -skf --cert /run/admin.pem https://127.0.0.1:10250/configz');
      return (JSON.parse(text) as { readonly kubeletconfig: { readonly cpuManagerPolicy: string } }).kubeletconfig.cpuManagerPolicy;
    };
    /** The previous kubelet runs with its previous state file. */
    const expectRestored = async (before: string): Promise<void> => {
      expect(files()).toBe(before);
      expect(health()).toBe('ok');
      expect(await configz()).toBe('none');
      expect(lab.run('node2', 'ls -A /var/lib/kubeletadm')).toBe('reverted\n');
    };

    beforeAll(() => {
      // The API server has no route to the kubelets.
      const [, certificate = ''] = /client-certificate-data: (\S+)/.exec(readFileSync(conf, 'utf8')) ?? [];
      const [, key = ''] = /client-key-data: (\S+)/.exec(readFileSync(conf, 'utf8')) ?? [];
      lab.put('node2', '/run/admin.pem', Buffer.concat([certificate, key].map((each) => Buffer.from(each, 'base64'))));
    });
    afterEach(() => void lab.run('node2', 'rm -rf /var/lib/kubeletadm/reverted'));
    afterAll(() => void lab.run('node2', 'rm -f /run/admin.pem'));

    it('is refused without --allow drain, before anything is written', async () => {
      const before = files();
      const started = lab.run('node2', 'systemctl show kubelet -p ExecMainStartTimestampMonotonic --value');
      const { code, stderr } = await run(...STATIC);
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(/cpuManagerPolicy: none → static \(drain[;)][\s\S]*\[IMPACT_NOT_ALLOWED\]/),
      ]);
      expect(files()).toBe(before);
      expect(lab.run('node2', 'systemctl show kubelet -p ExecMainStartTimestampMonotonic --value')).toBe(started);
    });

    it('is rolled back with the state file when the kubelet exits', async () => {
      const before = files();
      const failing = ['--set', 'authentication.x509.clientCAFile=/nowhere.crt', '--allow-pod-loss'];
      const { code, stderr } = await run(...STATIC, ...failing, '--allow', 'unsafe');
      expect([code, stderr]).toEqual([5, expect.stringMatching(/\[KUBELET_UNHEALTHY\][\s\S]*\[ROLLED_BACK\]/)]);
      await expectRestored(before);
    });

    it('is rolled back with the state file when the command is killed, although the new kubelet wrote another one', async () => {
      const before = files();
      const argv = [await bundle(BIN, directory), ...STATIC, '--allow', 'drain', ...ssh('node2'), '--confirm-timeout', '20s'];
      const child = spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'pipe'] });
      const ended = new Promise((resolve) => child.once('close', resolve));
      let reported = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        reported += text;
        if (reported.includes('restarted kubelet')) child.kill('SIGKILL');
      });
      await ended;
      expect([child.signalCode, reported]).toEqual(['SIGKILL', expect.stringContaining('restarted kubelet')]);
      await untilTrue(() => policy() === 'static');
      await untilTrue(() => lab.run('node2', 'cat /var/lib/kubeletadm/reverted/record 2>/dev/null || true') !== '', 60_000);
      await untilTrue(() => health() === 'ok', 60_000);
      await expectRestored(before);
    });

    it('is applied with --allow drain: the state file is removed, and the new kubelet writes it with the new policy', async () => {
      const { stderr } = await expectDone(...STATIC, '--allow', 'drain', '-v', '1');
      expect(stderr).toContain('node2 [kubelet-config] change confirmed over a new connection');
      expect(policy()).toBe('static');
      expect(await configz()).toBe('static');
      expect([health(), restarts()]).toEqual(['ok', '0\n']);
      expect((await run(...STATIC, '--dry-run', '--exit-code')).code).toBe(0);
    });

    it('is reverted by the next change in the same way', async () => {
      await expectDone('upgrade', 'node', ...KEPT, '--allow', 'drain');
      expect(policy()).toBe('none');
      expect(await configz()).toBe('none');
      expect([health(), restarts()]).toEqual(['ok', '0\n']);
    });
  });

  it('gets a new client certificate when its own is lost', async () => {
    lab.run('node2', `rm ${PEM}`);
    expect((await run('certs', 'check')).stderr).toContain('does not exist');
    expect((await run('certs', 'renew-kubelet', '--kubeconfig', conf)).stderr).toContain('[NODE_NOT_PROVEN]');
    await expectDone('certs', 'renew-kubelet', '--kubeconfig', conf, '--node-name', 'node2');
    await expectDone('certs', 'check');
    const { stdout } = await runCommand(['token', 'list', '--kubeconfig', conf]);
    expect(stdout.trimEnd().split('\n')).toHaveLength(2);
    expect((await run('certs', 'renew-kubelet', '--kubeconfig', conf)).stdout).toBe('Nothing to do.\n');
  });

  it('leaves together with its Node, and joins again', async () => {
    const { stderr } = await expectDone('reset', '--force', '--delete-node', '--kubeconfig', conf);
    expect(stderr).toContain('[leftovers] left on the host: ');
    await expect.poll(() => cluster.get(NODE), { timeout: 30_000 }).toBeNull();
    await joining('--wait-ready=90s');
  });

  it.skipIf(requirement('kubeadm takes over a node and returns it', kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null))(
    'is reset and joined by kubeadm, and then managed and reset by kubeletadm',
    async () => {
      const left = () =>
        lab.run(
          'node2',
          'find /var/lib/kubelet /etc/kubernetes -path /etc/kubernetes/tmp -prune -o -type f -print; systemctl is-active kubelet || true',
        );
      lab.put('node2', '/usr/local/bin/kubeadm', readFileSync(kubeadm ?? ''));
      lab.run('node2', 'kubeadm reset -f 2>&1');
      expect(left()).toBe('inactive\n');
      // kubeadm joins no host whose Node is Ready.
      await cluster.delete(NODE);
      const { stdout } = await runCommand(['token', 'create', '--print-join-command', '--kubeconfig', conf]);
      lab.run('node2', `${stdout.trim().replace('kubeletadm', 'kubeadm')} --ignore-preflight-errors=all 2>&1`);
      await expectDone('certs', 'check');
      expect((await expectDone('upgrade', 'node', '--dry-run', '--allow', 'unsafe')).stderr).toContain('[NODE_MEMORY_MISSING]');
      await expectDone('reset', '--force');
      expect(left()).toBe('inactive\n');
    },
  );
});

const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
