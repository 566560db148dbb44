import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ETCD_PROBES, HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { installProgram, type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing = whyNoKubelet() ?? whyNoLabHosts();

/** A cluster from bare hosts: real static pods, started by real kubelets in containerd. */
describe.skipIf(requirement('a control plane on a bare host', missing))('a control plane on a bare host', () => {
  let lab: LabHosts;
  let printed = '';
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-cp-'));

  beforeAll(async () => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(2, kubelet, 'control-plane');
    for (const name of lab.names) lab.reset(name);
    mkdirSync(join(directory, 'patches'));
    writeFileSync(join(directory, 'patches/etcd.yaml'), ETCD_PROBES);
    writeFileSync(join(directory, 'init.yaml'), config(`${lab.address('node1')}:6443`, join(directory, 'patches')));
    importControlPlaneImages(lab, binaries);
    // Nodes reach the API server at another address than the local host, so they join with the command on the
    // node.
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    lab.put('node2', '/usr/local/bin/node', readFileSync(process.execPath));
    installProgram(lab, 'node2', join(ROOT, 'dist'));
    lab.run('node2', `mkdir -p /root/patches && cat > /root/patches/etcd.yaml <<'X'\n${ETCD_PROBES}X`);
  }, 900_000);
  afterAll(() => {
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const without = HAS_SCHEDULER ? [] : ['--skip-phases', 'control-plane/scheduler'];
  const init = (...more: readonly string[]) =>
    runCommand(['init', '--config', join(directory, 'init.yaml'), ...ssh('node1'), ...without, ...IGNORED, ...more]);
  const nodes = (): readonly string[] => {
    const text = lab.run('node1', 'cat /etc/kubernetes/admin.conf');
    const { 'client-certificate-data': cert, 'client-key-data': key } = parse(text).users[0].user as Record<string, string>;
    const files = `umask 077; d=$(mktemp -d); echo ${cert} | base64 -d > $d/c; echo ${key} | base64 -d > $d/k`;
    const query = 'curl -sS --cacert /etc/kubernetes/pki/ca.crt --cert $d/c --key $d/k';
    const list = JSON.parse(lab.run('node1', `${files}; ${query} https://${lab.address('node1')}:6443/api/v1/nodes; rm -r $d`)) as NodeList;
    return list.items.map(({ metadata: { name, labels }, status }) => {
      const ready = status.conditions.find(({ type }) => type === 'Ready')?.status === 'True';
      return `${name} ${'node-role.kubernetes.io/control-plane' in labels ? 'control plane' : 'worker'} ${ready ? 'ready' : 'not ready'}`;
    });
  };
  const joinLine = (role: 'worker' | 'control-plane'): string =>
    // Printed for this host; the nodes run it themselves.
    [...printed.matchAll(/^ {2}\S.* (join \S+ --token .*) --host NEW-HOST /gm)]
      .map(([, line]) => `kubeletadm ${line}`)
      .find((line) => line.includes('--control-plane') === (role === 'control-plane')) ?? 'false';

  it('becomes healthy, and its node becomes Ready', async () => {
    const { code, stdout, stderr } = await init('--upload-certs');
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain('PLAN_CHANGED');
    printed = stdout;
    expect(joinLine('control-plane')).toMatch(/ --control-plane --certificate-key [0-9a-f]{64}$/);
    await expect.poll(nodes, { timeout: 60_000, interval: 1_000 }).toEqual(['node1 control plane ready']);
  }, 300_000);

  it('is unchanged by a second run', async () => {
    const { code, stdout, stderr } = await init('--dry-run', '--exit-code');
    expect(stdout, stderr).toMatch(/Nothing to do\.\n$/);
    expect(code).toBe(0);
  }, 60_000);

  it('prints no secret', async () => {
    const { stderr } = await init('-v', '2', '--skip-token-print');
    const [, secret = 'none'] = / --token \w+\.(\w+)/.exec(printed) ?? [];
    expect(stderr).not.toContain(secret);
    expect(stderr).not.toMatch(/PRIVATE KEY|client-key-data: \w{20}/);
  }, 60_000);

  it.skipIf(
    requirement('kubeadm manages a control plane of kubeletadm', kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null),
  )('is managed by kubeadm like one of its own', async () => {
    lab.put('node1', '/usr/local/bin/kubeadm', readFileSync(kubeadm ?? ''));
    const theirs = lab.run('node1', 'kubeadm certs renew apiserver >/dev/null && kubeadm certs check-expiration 2>/dev/null');
    expect(theirs).not.toContain('!MISSING!');
    const { stdout } = await runCommand(['certs', 'check-expiration', ...ssh('node1')]);
    expect(theirs).toContain(stdout.trim());
    expect(lab.run('node1', 'kubeadm token list')).toContain("The default bootstrap token generated by 'kubeadm init'.");
    expect(lab.run('node1', 'kubeadm upgrade node phase kubelet-config 2>&1')).toContain('was successfully upgraded');
  });

  it('accepts workers', async () => {
    lab.run('node2', `${joinLine('worker')} ${IGNORED.join(' ')} 2>&1`);
    await expect.poll(nodes, { timeout: 60_000, interval: 1_000 }).toEqual(['node1 control plane ready', 'node2 worker ready']);
    const { code, stderr } = await runCommand(['reset', '--force', ...ssh('node2')]);
    expect(code, stderr).toBe(0);
  }, 120_000);

  it('accepts another control plane, whose etcd member votes; a second run changes nothing', async () => {
    const line = `${joinLine('control-plane')} --take-over --patches /root/patches --apiserver-advertise-address ${lab.address('node2')} ${IGNORED.join(' ')}${HAS_SCHEDULER ? '' : ' --skip-phases wait-control-plane'}`;
    await expect.poll(() => nodes()[1], { timeout: 90_000, interval: 1_000 }).toContain('not ready');
    lab.run('node2', `timeout 50 ${line} > /root/join.log 2>&1 || { cat /root/join.log; exit 1; }`);
    await expect.poll(nodes, { timeout: 60_000, interval: 1_000 }).toEqual(['node1 control plane ready', 'node2 control plane ready']);
    expect(lab.run('node2', `${line} --dry-run --exit-code 2>/dev/null`)).toMatch(/Nothing to do\.\n$/);
  }, 240_000);

  it('stays healthy when that one is reset: its member left etcd', async () => {
    const { code, stderr } = await runCommand(['reset', '--force', ...ssh('node2')]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('[remove-etcd-member] deleted Member node2');
    expect(lab.run('node2', 'ls -A /var/lib/etcd /etc/kubernetes/pki /etc/kubernetes/manifests')).not.toMatch(/member|\.(key|crt|yaml)/);
    expect(nodes()[0]).toBe('node1 control plane ready');
  }, 60_000);
});

interface NodeList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
    readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

/** The local kernel has no modules, and perhaps cgroup v1; images of the add-ons are not available. */
const IGNORED = ['--ignore-preflight-errors', 'SystemVerification,Swap,FileExisting-losetup,ImagePull'];

const config = (endpoint: string, patches: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
patches: {directory: ${patches}}
timeouts: {controlPlaneComponentHealthCheck: 3m}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: ${endpoint}
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
