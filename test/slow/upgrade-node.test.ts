import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';
const KUBELET_CONFIG = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' };

describe('upgrade node', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  const path = (name: string): string => join(lab.hosts[1]?.rootDir ?? '', name);
  const config = (): string => readFileSync(path(CONFIG), 'utf8');
  const upgrade = (...args: string[]) => runCommand(['upgrade', 'node', '--ssh-config', lab.sshConfig, '--host', 'node2', ...args]);
  /** Edits the configuration of all nodes, like kubectl edit. */
  const editCluster = async (edit: (yaml: string) => string): Promise<void> => {
    const found = await admin.get(KUBELET_CONFIG);
    if (found === null) throw new Error('no kubelet-config');
    const data = found.data as Record<string, string>;
    await admin.update({ ...found, data: { kubelet: edit(data.kubelet ?? '') } });
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-upgrade-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    await startFirstNode(lab);
    const patches = join(directory, 'patches');
    const overlay = join(directory, 'node2.yaml');
    mkdirSync(patches);
    writeFileSync(join(patches, 'kubeletconfiguration+merge.yaml'), 'imageGCHighThresholdPercent: 91\n');
    writeFileSync(overlay, 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nserializeImagePulls: false\n');
    const own = ['--host', 'node2', '--overlay', overlay, '--patches', patches, '--set', 'maxPods=60', '--node-labels', 'pool=edge'];
    const joined = await runCommand(['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, ...own]);
    expect(joined.code, joined.stderr).toBe(0);
    rmSync(patches, { recursive: true });
    rmSync(overlay);
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('changes nothing right after a join, without repeating the options of join', async () => {
    const { code, stdout, stderr } = await upgrade('--dry-run', '--exit-code');
    expect(code, stdout + stderr).toBe(0);
  });

  it('takes a host with a manifest of the API server for a control plane, and refuses a manifest without an address', async () => {
    mkdirSync(path('etc/kubernetes/manifests'), { recursive: true });
    const manifest = 'spec: {containers: [{name: kube-apiserver, image: "localhost:5000/kube-apiserver:v1.30.1"}]}\n';
    writeFileSync(path('etc/kubernetes/manifests/kube-apiserver.yaml'), manifest);
    const { code, stderr } = await upgrade('--dry-run');
    rmSync(path('etc/kubernetes/manifests'), { recursive: true });
    expect(code, stderr).toBe(3);
    expect(stderr).toMatch(
      /kube-apiserver\.yaml does not exist or does not set the flag --advertise-address.* \[CONTROL_PLANE_MISSING\]$/m,
    );
  });

  it('saves the settings in a file that only root may read, without a secret', () => {
    const memory = path('var/lib/kubelet/kubeletadm-node.yaml');
    expect(statSync(memory).mode & 0o777).toBe(0o600);
    expect(readFileSync(memory, 'utf8')).toContain('kind: NodeSettings');
    expect(readFileSync(memory, 'utf8')).not.toContain(lab.token.reveal().slice(7));
  });

  it("prints nothing of the node's key at any verbosity", async () => {
    const pem = readFileSync(path('var/lib/kubelet/pki/kubelet-client-current.pem'), 'utf8');
    const key = /PRIVATE KEY-----\n([^\n]+)/.exec(pem)?.[1] ?? '';
    expect(key).toHaveLength(64);
    const { stdout, stderr } = await upgrade('--dry-run', '-o', 'yaml', '-v', '9');
    for (const secret of [key, Buffer.from(key).toString('base64').slice(4, 60), lab.token.reveal().slice(7)])
      expect(stdout + stderr).not.toContain(secret);
  });

  it("applies an edited kubelet-config with the node's credentials, keeps its own settings, and keeps a backup", async () => {
    const before = config();
    await editCluster((yaml) => `${yaml}registryPullQPS: 7\n`);
    const starts = lab.hosts[1]?.kubeletStarts() ?? 0;
    const plan = await upgrade('--dry-run', '--diff');
    expect(plan.stdout).toContain('+registryPullQPS: 7');
    expect(config()).toBe(before);
    const { code, stderr } = await upgrade();
    expect(code, stderr).toBe(0);
    for (const line of ['registryPullQPS: 7', 'maxPods: 60', 'imageGCHighThresholdPercent: 91', 'serializeImagePulls: false'])
      expect(config()).toContain(`${line}\n`);
    expect(lab.hosts[1]?.kubeletStarts()).toBe(starts + 1);
    const [backup = ''] = readdirSync(path('etc/kubernetes/tmp'));
    expect(backup).toMatch(/^kubeadm-kubelet-config-\d{4}(-\d\d){5}$/);
    expect(readFileSync(path(`etc/kubernetes/tmp/${backup}/config.yaml`), 'utf8')).toBe(before);
    expect((await upgrade('--dry-run', '--exit-code')).code).toBe(0);
  });

  it('replaces and saves the options given to this run', async () => {
    expect((await upgrade('--set', 'maxPods=70')).code).toBe(0);
    expect(config()).toContain('maxPods: 70\n');
    expect((await upgrade('--dry-run', '--exit-code')).code).toBe(0);
    expect(config()).toContain('imageGCHighThresholdPercent: 91\n');
  });

  it('confirms no value while the Node reports a ConfigMap, although the process runs the file', async () => {
    const configMap = {
      namespace: 'kubeletadm-system',
      name: 'node-config-x',
      kubeletConfigKey: 'kubelet',
      uid: 'u',
      resourceVersion: '7',
    };
    const ref = { apiVersion: 'v1', kind: 'Node', name: 'node2' };
    const report = (text: string | null) =>
      admin.patch(ref, 'merge', { metadata: { annotations: { 'kubeletadm.dev/config-status': text } } });
    await report(JSON.stringify({ assigned: { configMap }, active: { configMap } }));
    const { code, stderr } = await upgrade('--set', 'maxPods=71');
    await report(null);
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain('[ConfigOverridden]');
    expect(stderr).toMatch(
      /the new files are kept, but ConfigMap kubeletadm-system\/node-config-x\/kubelet overrides config\.yaml .* maxPods/,
    );
    expect(stderr).not.toContain('confirmed over a new connection');
    const without = await upgrade('--set', 'maxPods=70');
    expect([without.code, without.stderr]).toEqual([0, expect.not.stringContaining('overrides')]);
  });

  it("rolls back when the kubelet does not start with the cluster's configuration", async () => {
    const before = config();
    const healthy = (await admin.get(KUBELET_CONFIG))?.data as Record<string, string>;
    await editCluster((yaml) => yaml.replace('/etc/kubernetes/pki/ca.crt', '/nowhere/ca.crt'));
    const refused = await upgrade();
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('[PODS_AT_RISK]')]);
    const { code, stderr } = await upgrade('--allow-pod-loss', '--allow', 'unsafe');
    expect(code, stderr).toBe(5);
    expect(stderr).toMatch(/\[KUBELET_UNHEALTHY\][\s\S]*\[ROLLED_BACK\]/);
    expect(config()).toBe(before);
    await editCluster(() => healthy.kubelet ?? '');
    expect((await upgrade('--dry-run', '--exit-code')).code).toBe(0);
  });

  it('refuses a change above --allow before anything is written, shows it in the plan, and applies it with the flag', async () => {
    const [before, starts] = [config(), lab.hosts[1]?.kubeletStarts()];
    const change = ['--cgroup-driver', 'cgroupfs'];
    const planned = await upgrade(...change, '--dry-run');
    expect(planned.code).toBe(3);
    expect(planned.stdout).toContain(
      '  ~ cgroupDriver: systemd → cgroupfs (unsafe, because needs a drain and usually a reboot; must match the runtime)\n',
    );
    expect(planned.stdout).toMatch(/; highest impact: unsafe\.\n$/);
    const refused = await upgrade(...change);
    const drain = await upgrade(...change, '--allow', 'drain');
    for (const { code, stderr } of [planned, refused, drain]) {
      expect([code, stderr.match(/IMPACT_NOT_ALLOWED/g)]).toEqual([3, ['IMPACT_NOT_ALLOWED']]);
      expect(stderr).toMatch(
        /^node2: the change has the impact unsafe, .*: cgroupDriver: systemd → cgroupfs \(unsafe, because [^)]*\)\. .*then pass --allow unsafe\. \[IMPACT_NOT_ALLOWED\]$/m,
      );
    }
    expect([config(), lab.hosts[1]?.kubeletStarts()]).toEqual([before, starts]);
    const shown = await upgrade(...change, '--allow', 'unsafe', '--dry-run', '-o', 'json');
    expect(JSON.parse(shown.stdout)).toMatchObject({ highestImpact: 'unsafe', hosts: [{ name: 'node2', highestImpact: 'unsafe' }] });
    const applied = await upgrade(...change, '--allow', 'unsafe');
    expect(applied.code, applied.stderr).toBe(0);
    expect(config()).toContain('cgroupDriver: cgroupfs\n');
    expect((await upgrade('--cgroup-driver', 'systemd', '--allow', 'unsafe')).code).toBe(0);
  });

  it('removes the state file of a CPU manager with another policy, and restores it in a rollback', async () => {
    const state = path('var/lib/kubelet/cpu_manager_state');
    const stored = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}';
    writeFileSync(state, stored, { mode: 0o600 });
    const change = ['--set', 'maxPods=70', '--set', 'cpuManagerPolicy=static', '--set', 'kubeReserved={"cpu":"500m"}'];
    const before = config();
    const failing = [...change, '--set', 'authentication.x509.clientCAFile=/nowhere/ca.crt'];
    const failed = await upgrade(...failing, '--allow', 'unsafe', '--allow-pod-loss');
    expect([failed.code, failed.stderr]).toEqual([5, expect.stringContaining('[ROLLED_BACK]')]);
    expect([config(), readFileSync(state, 'utf8'), statSync(state).mode & 0o777]).toEqual([before, stored, 0o600]);
    expect((await upgrade(...change)).stderr).toMatch(
      /cpuManagerPolicy: none → static \(drain; set: --set cpuManagerPolicy=static\)\..*then pass --allow drain/,
    );
    const applied = await upgrade(...change, '--allow', 'drain');
    expect(applied.code, applied.stderr).toBe(0);
    expect(readdirSync(path('var/lib/kubelet'))).not.toContain('cpu_manager_state');
    expect((await upgrade('--set', 'maxPods=70', '--allow', 'drain')).code).toBe(0);
  });

  it('keeps the manual edits of instance-config.yaml', async () => {
    const instance = path('var/lib/kubelet/instance-config.yaml');
    writeFileSync(instance, `${readFileSync(instance, 'utf8')}podPidsLimit: 4096\n`);
    expect((await upgrade()).code).toBe(0);
    expect(config()).toContain('podPidsLimit: 4096\n');
    expect(readFileSync(instance, 'utf8')).toContain('podPidsLimit: 4096\n');
  });

  it('moves the socket from the flags of an older kubeadm, and works without saved settings', async () => {
    const [instance, flags, memory] = ['instance-config.yaml', 'kubeadm-flags.env', 'kubeletadm-node.yaml'].map((name) =>
      path(`var/lib/kubelet/${name}`),
    ) as [string, string, string];
    rmSync(instance);
    rmSync(memory);
    writeFileSync(
      flags,
      'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock --pod-infra-container-image=registry.k8s.io/pause:3.10 --node-labels=pool=edge"\n',
    );
    const { code, stderr } = await upgrade();
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('[NODE_MEMORY_MISSING]');
    expect(stderr).toContain('--pod-infra-container-image=registry.k8s.io/pause:3.10 is removed from kubeadm-flags.env');
    expect(readFileSync(flags, 'utf8')).toBe('KUBELET_KUBEADM_ARGS="--node-labels=pool=edge"\n');
    expect(readFileSync(instance, 'utf8')).toBe('containerRuntimeEndpoint: "unix:///var/run/containerd/containerd.sock"\n');
    expect(config()).not.toContain('maxPods');
    expect((await upgrade('--dry-run', '--exit-code')).code).toBe(0);
  });

  it('reports how a node with an expired certificate gets another one', async () => {
    const pem = path('var/lib/kubelet/pki/kubelet-client-current.pem');
    const good = readFileSync(pem, 'utf8');
    const past = { notAfter: new Date('2021-01-01T00:00:00Z') };
    const { certPem, keyPem } = await (await createCa()).issueClient({ commonName: 'system:node:node2' }, past);
    writeFileSync(pem, certPem + keyPem);
    const { code, stderr } = await upgrade();
    writeFileSync(pem, good);
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /node2: the client certificate in .* expired on \d{4}-01-01T.*certs renew-kubelet --host node2 --kubeconfig admin.conf.*\[NODE_NO_CREDENTIALS\]/,
    );
  });

  it('reads the credentials of kubelet.conf only on the host, and rejects a kubelet.conf with more than credentials', async () => {
    const conf = path('etc/kubernetes/kubelet.conf');
    const own = readFileSync(conf, 'utf8');
    const pem = '/var/lib/kubelet/pki/kubelet-client-current.pem';
    expect(own).toContain(`client-certificate: ${pem}`);
    const ofOperator = join(directory, 'operator.pem');
    writeFileSync(ofOperator, readFileSync(path(pem), 'utf8'));
    writeFileSync(conf, own.replaceAll(pem, ofOperator));
    const missing = await upgrade('--dry-run');
    writeFileSync(
      conf,
      own.replace(/(server: .*)/, '$1\n    insecure-skip-tls-verify: true').replace(/ *certificate-authority-data.*\n/, ''),
    );
    const insecure = await upgrade('--dry-run');
    const certs = await runCommand(['certs', 'check-expiration', '--ssh-config', lab.sshConfig, '--host', 'node2']);
    writeFileSync(conf, own);
    expect([missing.code, insecure.code]).toEqual([3, 3]);
    expect(missing.stderr).toContain(`users[0].user.client-certificate: the file ${ofOperator} does not exist on the host`);
    expect(missing.stderr).toContain('[HOST_KUBECONFIG_UNUSABLE]');
    expect(insecure.stderr).toMatch(
      /^node2: \/etc\/kubernetes\/kubelet\.conf:\d+:\d+ clusters\[0\]\.cluster\.insecure-skip-tls-verify: .*\[HOST_KUBECONFIG_REFUSED\]$/m,
    );
    expect(certs.stderr).toContain('because ConfigMap kubeadm-config cannot be read with the credentials of the node');
    expect((await upgrade('--dry-run')).code).toBe(0);
  });

  it('rejects a host that is not a node', async () => {
    expect((await runCommand(['reset', '--force', '--ssh-config', lab.sshConfig, '--host', 'node2'])).code).toBe(0);
    const { code, stderr } = await upgrade();
    expect(code).toBe(3);
    expect(stderr).toContain(
      'node2: /etc/kubernetes/kubelet.conf does not exist: the host has not joined a cluster. Join the host with kubeletadm join.',
    );
  });
});
