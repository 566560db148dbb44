import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { registerNodes } from '../support/registered-nodes.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';
import type { CliResult } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const TOKEN = 'abcdef.0123456789abcdef';
const KUBELET_FILES = '/var/lib/kubelet/config.yaml /var/lib/kubelet/instance-config.yaml /var/lib/kubelet/kubeadm-flags.env';

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('cluster adopt and join on real hosts over SSH', () => {
  let api: LabApiServer;
  let lab: LabHosts;
  let cluster: Cluster | undefined;
  let endNodes: (() => Promise<void>) | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-e2e-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };

  beforeAll(async () => {
    api = await startApiServer({ controllers: ['bootstrap-signer'], names: [GATEWAY] });
    api.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: {
        'token-id': 'abcdef',
        'token-secret': '0123456789abcdef',
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
      },
    });
    file('admin.conf', api.adminKubeconfig());
    file('ca.crt', api.caPem);
    lab = startLabHosts(2);
    for (const name of lab.names) lab.reset(name);
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    endNodes = registerNodes(lab, cluster, api.ca);
  }, 900_000);
  afterAll(async () => {
    await endNodes?.();
    lab?.close();
    await cluster?.close();
    await api.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const adopt = (...more: string[]): Promise<CliResult> => {
    const files = ['--config', join(directory, 'init.yaml'), '--kubeconfig', join(directory, 'admin.conf')];
    return runCommand(['cluster', 'adopt', ...files, '--token', TOKEN, ...more]);
  };
  const joinHost = (host: string, more: readonly string[]): Promise<CliResult> =>
    runCommand(['join', api.url.replace('https://', ''), '--token', TOKEN, '--ca-cert', join(directory, 'ca.crt'), ...ssh(host), ...more]);
  const join1 = (...more: string[]): Promise<CliResult> => joinHost('node1', more);
  const join2 = (...more: string[]): Promise<CliResult> => joinHost('node2', more);
  /** The name of a Ready Node is rejected, so the test deletes the Node. */
  const nodeIsGone = (name: string): Promise<void> => untilTrue(() => api.get('v1', 'Node', name) === null);
  const sums = (host: string): string => lab.run(host, `sha256sum ${KUBELET_FILES}`);

  it("join writes kubeadm's files and starts a healthy kubelet", async () => {
    file('init.yaml', `${CLUSTER}---\n${KUBELET}failCgroupV1: false\nmaxPods: 42\n`);
    expect((await adopt()).code).toBe(0);
    const { code, stderr } = await join1();
    expect(code, stderr).toBe(0);
    const golden = parse(readFileSync(new URL('./golden/init-config.yaml', import.meta.url), 'utf8')) as unknown;
    expect(parse(lab.run('node1', 'cat /var/lib/kubelet/config.yaml'))).toEqual(golden);
    expect(lab.run('node1', 'cat /var/lib/kubelet/instance-config.yaml')).toBe(
      'containerRuntimeEndpoint: "unix:///var/run/containerd/containerd.sock"\n',
    );
    expect(lab.run('node1', 'cat /var/lib/kubelet/kubeadm-flags.env')).toBe('KUBELET_KUBEADM_ARGS=""\n');
    expect(lab.run('node1', `stat -c '%a %U:%G' ${KUBELET_FILES} /etc/kubernetes/pki/ca.crt /etc/kubernetes/kubelet.conf`)).toBe(
      '644 root:root\n644 root:root\n644 root:root\n644 root:root\n600 root:root\n',
    );
    expect(lab.run('node1', 'systemctl cat kubelet')).toContain('# /etc/systemd/system/kubelet.service.d/10-kubeadm.conf');
    expect(lab.run('node1', 'systemctl is-active kubelet && systemctl is-enabled kubelet && curl -s http://127.0.0.1:10248/healthz')).toBe(
      'active\nenabled\nok',
    );
    const left = lab.run('node1', 'ls -A /etc/kubernetes /var/lib/kubelet /etc/systemd/system/kubelet.service.d');
    expect(left.replace('kubeletadm-node.yaml', '')).not.toMatch(/kubeletadm|bootstrap/);
    expect(api.get('v1', 'ConfigMap', 'kubelet-config', 'kube-system')).not.toBeNull();
  });

  it('node explain shows the winning layers, and edits that need a restart', async () => {
    const explain = async (): Promise<string> => {
      const { code, stdout, stderr } = await runCommand(['node', 'explain', 'node1', 'maxPods', '--ssh-config', lab.sshConfig]);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    expect(await explain()).toMatch(
      /^node1: kubelet v\S+, running as process \d+ since \S+Z\n\nFIELD +VALUE +SOURCE\nmaxPods +42 +config file: \/var\/lib\/kubelet\/config\.yaml:\d+\n +110 +overridden: kubelet default: kubelet 1\.\d+\n$/,
    );
    const before = lab.run('node1', 'cat /etc/default/kubelet');
    lab.run('node1', "echo 'KUBELET_EXTRA_ARGS=--max-pods=70' > /etc/default/kubelet");
    expect(await explain()).toContain(
      '! the running kubelet has no --max-pods, but the unit sets --max-pods=70 (KUBELET_EXTRA_ARGS in /etc/default/kubelet): restart the kubelet to apply the change\n',
    );
    lab.run('node1', 'systemctl restart kubelet');
    expect(await explain()).toMatch(
      /^maxPods +70 +flag: --max-pods, KUBELET_EXTRA_ARGS in \/etc\/default\/kubelet\n +42 +overridden: config file/m,
    );
    lab.run('node1', `printf %s '${before.trim()}' > /etc/default/kubelet; echo >> /etc/default/kubelet; systemctl restart kubelet`);
    expect(await explain()).toMatch(/^maxPods +42 +config file/m);
  });

  it('a second run plans nothing and restarts nothing', async () => {
    const pid = lab.run('node1', 'systemctl show kubelet -p MainPID');
    for (const again of [await adopt('--dry-run', '--exit-code'), await join1('--dry-run', '--exit-code')]) {
      expect(again.stdout).toMatch(/Nothing to do\.\n$/);
      expect(again.code).toBe(0);
    }
    expect((await join1()).code).toBe(0);
    expect(lab.run('node1', 'systemctl show kubelet -p MainPID')).toBe(pid);
  });

  it('join uses the configuration of the cluster and the settings of the node', async () => {
    const overlay = file('overlay.yaml', `${KUBELET}evictionHard: {memory.available: 150Mi}\n`);
    const address = lab.run('node2', "ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1").trim();
    const { code, stderr } = await join2(
      '--overlay',
      overlay,
      '--node-ip',
      address,
      '--set',
      'podPidsLimit=512',
      '--node-labels',
      'pool=edge',
    );
    expect(code, stderr).toBe(0);
    const config = parse(lab.run('node2', 'cat /var/lib/kubelet/config.yaml')) as Record<string, unknown>;
    expect(config).toMatchObject({ maxPods: 42, failCgroupV1: false, podPidsLimit: 512, evictionHard: { 'memory.available': '150Mi' } });
    expect(lab.run('node2', 'cat /var/lib/kubelet/kubeadm-flags.env')).toBe(
      `KUBELET_KUBEADM_ARGS="--node-ip=${address} --node-labels=pool=edge"\n`,
    );
    expect(lab.run('node2', "tr '\\0' ' ' < /proc/$(systemctl show kubelet -p MainPID --value)/cmdline")).toContain(
      `--config=/var/lib/kubelet/config.yaml --node-ip=${address} --node-labels=pool=edge`,
    );
    expect(lab.run('node2', 'ls /etc/kubernetes')).toBe('kubelet.conf\npki\n');
  });

  it('a file keeps a stricter mode than the default', async () => {
    lab.run('node1', 'chmod 600 /var/lib/kubelet/config.yaml');
    file('init.yaml', `${CLUSTER}---\n${KUBELET}failCgroupV1: false\nmaxPods: 43\n`);
    expect((await adopt('--force-upload')).code).toBe(0);
    const { code, stderr } = await join1();
    expect(code, stderr).toBe(0);
    expect(lab.run('node1', 'stat -c %a /var/lib/kubelet/config.yaml; grep maxPods /var/lib/kubelet/config.yaml')).toBe(
      '600\nmaxPods: 43\n',
    );
  });

  it('a wrong cgroupDriver is rejected before any change', async () => {
    const before = sums('node1');
    file('init.yaml', `${CLUSTER}---\n${KUBELET}failCgroupV1: false\ncgroupDriver: nonsense\n`);
    const { code, stderr } = await adopt('--force-upload');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /cgroupDriver: .*must be systemd or cgroupfs, not "nonsense".*init\.yaml:\d+:1.*\[KUBELET_START_UNKNOWN_WORD\]\n$/,
    );
    expect(sums('node1')).toBe(before);
  });

  it('a configuration that only the kubelet of the host rejects is rejected before any change', async () => {
    const before = sums('node1');
    const refusal =
      'failed to validate kubelet configuration, error: invalid configuration: maxPods is odd, path: &TypeMeta{Kind:,APIVersion:,}';
    lab.run('node1', `echo '${refusal}' >/run/stand-in-kubelet-refuses`);
    const refused = await join1('--set', 'maxPods=45');
    expect([refused.code, refused.stderr]).toEqual([
      3,
      expect.stringMatching(
        /^node1: preflight: kubelet v1\.36\.2 would fail at startup with this configuration: .*maxPods is odd\..*\[KubeletConfigAccepted\]$/m,
      ),
    ]);
    expect(sums('node1')).toBe(before);
    file('kubelet.yaml', `${KUBELET}failCgroupV1: false\nmaxPods: 45\n`);
    const validate = (): Promise<CliResult> => runCommand(['config', 'validate', join(directory, 'kubelet.yaml'), ...ssh('node1')]);
    expect(await validate()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/: kubelet v1\.36\.2 of node1 refuses this configuration: .*maxPods is odd\..*\[KUBELET_REFUSES\]$/m),
    });
    lab.run('node1', 'rm /run/stand-in-kubelet-refuses');
    expect(await validate()).toMatchObject({ code: 0, stdout: 'ok\n' });
    expect(lab.run('node1', 'ls /tmp')).not.toMatch(/tmp\./);
  });

  it('a configuration that crashes the kubelet is rolled back, with the cause from its journal in one line', async () => {
    const before = sums('node1');
    const overlay = file('crash.yaml', `${KUBELET}tlsCertFile: /nowhere.crt\ntlsPrivateKeyFile: /nowhere.key\n`);
    const { code, stderr } = await join1('--overlay', overlay, '--allow-pod-loss', '--allow', 'unsafe');
    expect(stderr).toMatch(
      /^node1: kubelet-start: kubelet not healthy after \d+s: \/nowhere\.crt does not exist\. .*\[KUBELET_UNHEALTHY\]$/m,
    );
    expect(stderr).toMatch(/\[ROLLED_BACK\]\n$/);
    expect(code).toBe(5);
    expect(sums('node1')).toBe(before);
    expect(lab.run('node1', 'curl -s http://127.0.0.1:10248/healthz')).toBe('ok');
  });

  it('a masked unit, a missing kubelet and a port in use are rejected, each with a hint', async () => {
    lab.reset('node2');
    lab.run('node2', 'systemctl mask -q --now kubelet');
    const masked = await join2();
    expect([masked.code, masked.stderr]).toEqual([
      3,
      expect.stringMatching(/^node2: preflight: kubelet\.service is masked\. Run systemctl unmask kubelet.*\[Service-kubelet\]$/m),
    ]);
    lab.run(
      'node2',
      'systemctl unmask -q kubelet; mv /usr/bin/kubelet /root/; systemd-run -q --unit=squatter python3 -m http.server 10250',
    );
    for (let i = 0; i < 50 && lab.run('node2', 'ss -ltn | grep -c :10250 || true').trim() === '0'; i++) lab.run('node2', 'sleep 0.1');
    const taken = await join2();
    expect(taken.code).toBe(3);
    expect(taken.stderr).toMatch(/^node2: preflight: port 10250 is in use\..*\[Port-10250\]$/m);
    expect(taken.stderr).toMatch(
      /^node2: preflight: no kubelet: it is not on the PATH of the host, and no unit kubelet.service starts one\..*\[KubeletVersion\]$/m,
    );
    expect(lab.run('node2', 'ls -A /var/lib/kubelet /etc/kubernetes 2>/dev/null | head -1')).toBe('');
    lab.run('node2', 'systemctl stop squatter; mv /root/kubelet /usr/bin/');
  });

  it('a full disk leaves the host unchanged, and the same command succeeds afterwards', async () => {
    lab.run('node2', 'mkdir -p /var/lib/kubelet && mount -t tmpfs -o size=4k tmpfs /var/lib/kubelet');
    const full = await join2();
    expect(full.code).toBe(1);
    expect(full.stderr).toMatch(
      /^node2: cannot write \/var\/lib\/kubelet\/[\w.-]+: .*(?:No space left on device|\d+ of \d+ bytes could be written)\. Free disk space.*\[HOST_NO_SPACE\]$/m,
    );
    expect(lab.run('node2', 'find /var/lib/kubelet /etc/kubernetes /etc/systemd/system/kubelet.service.d -type f')).toBe('');
    lab.run('node2', 'umount /var/lib/kubelet');
    const again = await join2();
    expect(again.code, again.stderr).toBe(0);
  });

  it('a user with sudo suffices', async () => {
    const { code, stdout, stderr } = await runCommand([
      'join',
      api.url.replace('https://', ''),
      '--token',
      TOKEN,
      '--ca-cert',
      join(directory, 'ca.crt'),
      '--ssh-config',
      lab.sshConfig,
      '--host',
      'admin@node2',
      '--dry-run',
      '--exit-code',
    ]);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/Nothing to do\.\n$/);
  });

  it('reset removes all files from the host, and join works again', async () => {
    const reset = await runCommand(['reset', '--force', ...ssh('node2')]);
    expect(reset.code, reset.stderr).toBe(0);
    expect(lab.run('node2', 'find /var/lib/kubelet /etc/kubernetes -type f; systemctl is-active kubelet || true')).toBe('inactive\n');
    await nodeIsGone('node2');
    const again = await join2();
    expect(again.code, again.stderr).toBe(0);
    expect(lab.run('node2', 'curl -s http://127.0.0.1:10248/healthz')).toBe('ok');
  });

  it('join queries the API server over the connection to the host when the local host cannot reach it', async () => {
    lab.reset('node2');
    await nodeIsGone('node2');
    const { port } = new URL(api.url);
    lab.expose(Number(port));
    const found = ['--token', TOKEN, '--ca-cert', join(directory, 'ca.crt'), ...ssh('node2')];
    const { code, stderr } = await runCommand(['join', `${GATEWAY}:${port}`, ...found]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`https://${GATEWAY}:${port} is unreachable from the local host: connecting through node2`);
    expect(lab.run('node2', 'curl -s http://127.0.0.1:10248/healthz')).toBe('ok');
  });

  it('a fleet with only a token discovers its cluster over the connection to a host that reaches it', async () => {
    lab.reset('node2');
    await nodeIsGone('node2');
    const { port } = new URL(api.url);
    lab.expose(Number(port));
    const [pin = ''] = caPinsOf(api.caPem) ?? [];
    const fleet = (caPin: string): string =>
      file(
        'fleet.yaml',
        `${FLEET}cluster: {endpoint: ${GATEWAY}:${port}, token: {env: FLEET_TOKEN}, caCertHashes: ['${caPin}']}\n${FLEET_HOSTS}`,
      );
    const run = (command: string, path: string, ...more: string[]): Promise<CliResult> =>
      runCommand([command, '-f', path, '--ssh-config', lab.sshConfig, ...more], { env: { FLEET_TOKEN: TOKEN, XDG_STATE_HOME: directory } });
    const refused = await run('plan', fleet(`sha256:${'0'.repeat(64)}`));
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('[DISCOVERY_') });
    const planned = await run('plan', fleet(pin), '-v', '1');
    const route = `https://${GATEWAY}:${port} is unreachable from the local host: connecting through node2`;
    expect(planned.code, planned.stderr).toBe(4);
    expect(planned.stderr).toContain(route);
    expect(planned.stdout).toMatch(/^node2\n[\s\S]*^2 hosts: 1 pending \(1 node joins\), 1 unreachable\.$/m);
    const applied = await run('apply', fleet(pin), '--yes', '--limit', 'node2');
    expect(applied.code, applied.stderr).toBe(0);
    expect(applied.stdout).toBe('1 host: 1 changed.\n');
    expect(applied.stderr).not.toContain(route);
    expect(lab.run('node2', 'curl -s http://127.0.0.1:10248/healthz')).toBe('ok');
    for (const { stdout, stderr } of [refused, planned, applied]) expect(stdout + stderr).not.toContain(TOKEN.slice(7));
  });

  it('no output contains the token', async () => {
    lab.reset('node2');
    await nodeIsGone('node2');
    const outputs = await Promise.all([
      join2('--dry-run', '--diff'),
      join2('--dry-run', '-o', 'json', '--show-origin'),
      join2('--dry-run', '-o', 'yaml', '-v', '9'),
    ]);
    outputs.push(await join2('-v', '9'));
    for (const { code, stdout, stderr } of outputs) {
      expect(code, stderr).toBe(0);
      expect(stdout + stderr).not.toContain(TOKEN.slice(7));
    }
    expect(outputs[0]?.stdout).toContain('token: [secret]');
    expect(lab.run('node2', `grep -rlF ${TOKEN.slice(7)} /etc /var/lib/kubelet /var/log /tmp /run 2>/dev/null || true`)).toBe('');
  });
});

/** The host name by which the lab hosts know the local host; it resolves nowhere else. */
const GATEWAY = 'lab-gw';
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n';
const FLEET = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n';
/** The first address has no listener. */
const FLEET_HOSTS = 'hosts: [{name: dead, address: 127.0.0.1, ssh: {port: 1}}, {name: node2}]\n';
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
