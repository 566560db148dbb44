import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { bundle } from '../support/bundle.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { registerNodes } from '../support/registered-nodes.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';
import type { CliResult } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const WINDOW_SECONDS = 15;
/** Also changes that would stop the kubelet. */
const ANYTHING = ['--allow-pod-loss', '--allow', 'unsafe'];

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('a change with confirmation on a real host', () => {
  let api: LabApiServer;
  let lab: LabHosts;
  let cluster: Cluster | undefined;
  let endNodes: (() => Promise<void>) | undefined;
  const running = new Set<ChildProcess>();
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-e2e-'));
  let program = '';
  let joinWords: readonly string[] = [];

  beforeAll(async () => {
    api = await startApiServer({ controllers: ['bootstrap-signer'] });
    program = await bundle(BIN, directory);
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig());
    lab = startLabHosts(1);
    lab.reset('node1');
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    endNodes = registerNodes(lab, cluster, api.ca);
    writeFileSync(join(directory, 'init.yaml'), `${CLUSTER}---\n${KUBELET}failCgroupV1: false\n`);
    joinWords = await adoptCluster(directory);
    const first = await change(40);
    expect(first.code, first.stderr).toBe(0);
    await untilTrue(() => api.get('v1', 'Node', 'node1') !== null);
  }, 900_000);
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await endNodes?.();
    lab?.close();
    await cluster?.close();
    await api.close();
    rmSync(directory, { recursive: true, force: true });
  });

  let before = '';
  let startedBefore = '';
  beforeEach(async () => {
    lab.network('node1', 'up');
    await stopHeartbeats(null);
    lab.run('node1', 'rm -rf /var/lib/kubeletadm/reverted');
    before = tree();
    startedBefore = kubeletStart();
  });

  function argvOf(extra: string, ...more: string[]): readonly string[] {
    const overlay = join(directory, 'node1.yaml');
    writeFileSync(overlay, KUBELET + extra);
    const hosts = ['--ssh-config', lab.sshConfig, '--host', 'node1', '--connect-timeout', '10'];
    return [...joinWords, '--overlay', overlay, ...hosts, ...more];
  }
  const change = (maxPods: number, ...more: string[]): Promise<CliResult> => runCommand(argvOf(`maxPods: ${maxPods}\n`, ...more));

  /** Runs the command in a separate process; resolves when the kubelet has been restarted. */
  async function startChange(
    maxPods: number,
    more = '',
    { windowSeconds = WINDOW_SECONDS, options = [] }: { readonly windowSeconds?: number; readonly options?: readonly string[] } = {},
  ): Promise<{ kill(): void; ended: Promise<number | null>; reported: () => string }> {
    await stopHeartbeats('2026-01-01T00:00:00Z');
    const argv = argvOf(`maxPods: ${maxPods}\n${more}`);
    const child = spawn(process.execPath, [program, ...argv, ...options, '--confirm-timeout', `${windowSeconds}s`], { detached: true });
    running.add(child);
    let reported = '';
    child.stderr.on('data', (chunk: Buffer) => {
      reported += chunk.toString();
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await untilTrue(() => reported.includes('restarted kubelet'), 60_000).catch(() => {
      throw new Error(`the kubelet was not restarted: ${reported}`);
    });
    return { kill: () => process.kill(-(child.pid as number), 'SIGKILL'), ended, reported: () => reported };
  }

  /** All relevant files, with modes, owners and checksums. */
  function tree(): string {
    const places = '/etc/kubernetes /var/lib/kubelet /etc/systemd /usr/lib/systemd/system/kubelet.service.d /etc/default/kubelet';
    return lab.run('node1', `find ${places} -printf '%M %u:%g %p %l ' -type f -exec sha256sum {} \\; -o -printf '\\n' 2>/dev/null | sort`);
  }
  const kubeletStart = (): string => lab.run('node1', 'systemctl show kubelet -p ExecMainStartTimestampMonotonic --value').trim();
  const record = (): string => lab.run('node1', 'cat /var/lib/kubeletadm/reverted/record 2>/dev/null || true');
  const healthz = (): string => lab.run('node1', 'curl -s http://127.0.0.1:10248/healthz || true');
  /** The kubelet has reported Ready, and does not report it again: the change cannot be verified. */
  const stopHeartbeats = (lastHeartbeatTime: string | null): Promise<unknown> =>
    (cluster as Cluster).patch(
      { apiVersion: 'v1', kind: 'Node', name: 'node1' },
      'merge',
      { status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] } },
      { subresource: 'status' },
    );

  /**
   * The host has its previous files and a restarted, running kubelet; only the record of the revert remains.
   */
  async function expectOldSet(why: string): Promise<void> {
    await untilTrue(() => record() !== '' && healthz() === 'ok', (WINDOW_SECONDS + 30) * 1000);
    expect(record()).toContain(`why ${why}`);
    expect(tree()).toBe(before);
    expect(kubeletStart()).not.toBe(startedBefore);
    expect(lab.run('node1', 'ls -A /var/lib/kubeletadm; ls -A /run/kubeletadm.lock 2>/dev/null || true')).toMatch(
      /^reverted\n(\/run\/kubeletadm\.lock\n)?$/,
    );
    expect(
      lab.run('node1', 'systemctl list-units --all --no-legend "kubeletadm*"; systemctl show kubelet -p NeedDaemonReload --value'),
    ).toBe('no\n');
    expect(lab.run('node1', 'cat /var/lib/kubelet/config.yaml')).toContain('maxPods: 4');
  }

  it('is kept after its confirmation, and leaves nothing on the host', async () => {
    const { code, stderr } = await change(41, '-v', '1');
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('rolls back automatically unless the change is confirmed within 300 s');
    expect(stderr).toContain('node1 [kubelet-start] change confirmed over a new connection');
    expect(
      lab.run('node1', 'grep maxPods /var/lib/kubelet/config.yaml; ls -d /var/lib/kubeletadm /run/kubeletadm.lock 2>/dev/null || true'),
    ).toBe('maxPods: 41\n');
    expect(lab.run('node1', 'systemctl list-units --all --no-legend "kubeletadm*"; ls /etc/systemd/system')).not.toMatch(
      /kubeletadm|kubelet.service.wants/,
    );
    expect(lab.run('node1', 'systemctl show kubelet -p NeedDaemonReload --value')).toBe('no\n');
    const again = await change(41, '--dry-run', '--exit-code');
    expect(again.code, again.stdout).toBe(0);
  });

  it('is kept or reverted for a user with sudo as well', async () => {
    const asAdmin = (argv: readonly string[]): readonly string[] => argv.map((word) => (word === 'node1' ? 'admin@node1' : word));
    const good = await runCommand(asAdmin(argvOf('maxPods: 46\n')));
    expect(good.code, good.stderr).toBe(0);
    expect(
      lab.run('node1', 'grep maxPods /var/lib/kubelet/config.yaml; ls -d /var/lib/kubeletadm /run/kubeletadm.lock 2>/dev/null || true'),
    ).toBe('maxPods: 46\n');
    const bad = await runCommand(asAdmin(argvOf('tlsCertFile: /nowhere.crt\ntlsPrivateKeyFile: /nowhere.key\n', ...ANYTHING)));
    expect(bad.code, bad.stderr).toBe(5);
    expect(lab.run('node1', 'grep maxPods /var/lib/kubelet/config.yaml; curl -s http://127.0.0.1:10248/healthz')).toBe('maxPods: 46\nok');
  });

  it('is reverted when the kubelet crashes with it', async () => {
    const { code, stderr } = await runCommand(argvOf('tlsCertFile: /nowhere.crt\ntlsPrivateKeyFile: /nowhere.key\n', ...ANYTHING));
    expect(code, stderr).toBe(5);
    expect(stderr).toMatch(
      /^node1: kubelet-start: kubelet not healthy after \d+s: \/nowhere\.crt does not exist\. .*\[KUBELET_UNHEALTHY\]$/m,
    );
    expect(stderr).toMatch(/: the previous files were restored and the kubelet is healthy again \[ROLLED_BACK\]\n$/);
    await expectOldSet('kubelet-start: kubelet not healthy after');
  });

  it('is reverted automatically when the tool is killed', async () => {
    const run = await startChange(50);
    run.kill();
    await run.ended;
    expect(lab.run('node1', 'cat /var/lib/kubelet/config.yaml')).toContain('maxPods: 50');
    await expectOldSet(`the change was not confirmed within ${WINDOW_SECONDS} s`);
  });

  it('is reverted automatically when the network of the host is cut, and the tool reports that', async () => {
    const run = await startChange(51);
    lab.network('node1', 'down');
    await new Promise((resolve) => setTimeout(resolve, (WINDOW_SECONDS + 5) * 1000));
    lab.network('node1', 'up');
    await expectOldSet(`the change was not confirmed within ${WINDOW_SECONDS} s`);
    expect(await run.ended, run.reported()).toBe(5);
    // The result depends on whether the tool detects the loss while it watches the kubelet or before its next
    // step.
    expect(run.reported()).toMatch(
      /the host rolled back automatically and the kubelet is healthy again \[ROLLED_BACK\]\n$|was not confirmed within 15 s\. .*\[COMMIT_REVERTED\]\n$/,
    );
  });

  it('is reverted at boot, before the kubelet starts', async () => {
    const missing = 'tlsCertFile: /run/absent.crt\ntlsPrivateKeyFile: /run/absent.key\n';
    const run = await startChange(52, missing, { options: ANYTHING });
    run.kill();
    await run.ended;
    lab.powerCycle('node1');
    await expectOldSet('the host was restarted before the change was confirmed');
    expect(lab.run('node1', 'systemctl show kubelet -p NRestarts --value')).toBe('0\n');
    expect(lab.run('node1', 'journalctl -b -u kubelet -o cat | grep -c absent || true')).toBe('0\n');
  });

  it.each([
    ['a power cut', () => lab.powerCycle('node1'), () => Promise.resolve()],
    ['a reboot', () => lab.reboot('node1'), () => lab.booted('node1')],
  ])('is reverted by %s while the tool keeps running; the tool writes nothing more and reports the revert', async (_, strike, over) => {
    // Settings of the node are saved on the host once the kubelet is healthy: a late write.
    const run = await startChange(47, '', { windowSeconds: 90, options: ['--set', 'imageMinimumGCAge=3m'] });
    strike();
    expect(await run.ended, run.reported()).toBe(5);
    await over();
    expect(run.reported()).toMatch(/the host was restarted before the change was confirmed.*\[COMMIT_REVERTED\]\n$|\[ROLLED_BACK\]\n$/);
    await expectOldSet('the host was restarted before the change was confirmed');
  });

  it('is continued after a killed run, and excludes other runs while one is in progress', async () => {
    const run = await startChange(53);
    run.kill();
    await run.ended;
    const plan = await change(43, '--dry-run');
    expect(plan.stdout).toContain('confirm');
    await stopHeartbeats(null);
    const { code, stderr } = await change(43);
    expect(code, stderr).toBe(0);
    expect(lab.run('node1', 'grep maxPods /var/lib/kubelet/config.yaml; ls -d /var/lib/kubeletadm 2>/dev/null || true')).toBe(
      'maxPods: 43\n',
    );

    const kept = await startChange(45);
    kept.kill();
    await kept.ended;
    const settle = (verb: string): Promise<CliResult> => runCommand(['fleet', verb, 'node1', '--ssh-config', lab.sshConfig]);
    expect(await settle('confirm')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^node1: confirmed: the change made by \S+@\S+ at \S+Z\n$/),
    });
    expect((await settle('confirm')).stdout).toMatch(/: no pending change\n$/);
    const dropped = await startChange(55);
    dropped.kill();
    await dropped.ended;
    expect(await settle('revert')).toMatchObject({ code: 0, stdout: expect.stringContaining('node1: rolled back: ') });
    expect(await settle('revert')).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/was rolled back at .*Z: requested by \S+@\S+\. .*\[COMMIT_REVERTED\]\n$/),
    });
    expect(lab.run('node1', 'grep maxPods /var/lib/kubelet/config.yaml; curl -s http://127.0.0.1:10248/healthz')).toBe('maxPods: 45\nok');
    lab.run('node1', 'rm -rf /var/lib/kubeletadm/reverted');
    await stopHeartbeats(null);

    const other = await startChange(54);
    const refused = await change(44);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^node1: locked by another kubeletadm run \(\S+@\S+, pid \d+, since .*Z\)\. Wait until that run .*--break-lock, .*\. \[HOST_LOCKED\]$/m,
    );
    other.kill();
    await other.ended;
    await untilTrue(() => record() !== '', (WINDOW_SECONDS + 30) * 1000);
  });
});

const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n';
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
