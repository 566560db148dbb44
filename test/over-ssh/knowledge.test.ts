import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-knowledge-'));
const file = (name: string, text: string): string => {
  const path = join(temporary, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
};
const kubeconfig = join(temporary, 'admin.conf');
let api: LabApiServer;
let lab: Lab;

beforeAll(async () => {
  api = await startApiServer();
  writeFileSync(kubeconfig, api.adminKubeconfig());
  api.put(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kubelet-config', namespace: 'kube-system' },
      data: {
        kubelet: `${HEADER}clusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\ncontainerRuntimeEndpoint: ""\nsyncFrequency: 0s\n`,
      },
    },
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1' }, status: { nodeInfo: { kubeletVersion: 'v1.36.2' } } },
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-2' }, status: { nodeInfo: { kubeletVersion: 'v1.36.2' } } },
  );
  const kubeletconfig = {
    clusterDNS: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    containerRuntimeEndpoint: 'unix:///var/run/containerd/containerd.sock',
    evictionHard: {
      'imagefs.available': '15%',
      'imagefs.inodesFree': '5%',
      'memory.available': '100Mi',
      'nodefs.available': '10%',
      'nodefs.inodesFree': '5%',
    },
    maxPods: 50,
    resolvConf: '/run/systemd/resolve/resolv.conf',
    syncFrequency: '1m0s',
  };
  api.proxyNode('worker-1', (path) => (path === '/configz' ? { status: 200, body: { kubeletconfig } } : null));
  lab = await startLab({ directory: join(temporary, 'lab'), hosts: 1 });
  const root = lab.hosts[0]?.rootDir ?? '';
  const onHost = (path: string, text: string): string => file(join('lab', 'node1', path), text);
  expect(root).toBe(join(temporary, 'lab', 'node1'));
  onHost('/var/lib/kubelet/config.yaml', `${HEADER}clusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\nmaxPods: 40\n`);
  onHost('/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--hostname-override=worker-1"\n');
  onHost('/etc/default/kubelet', 'KUBELET_EXTRA_ARGS=--max-pods=50 --v=2\n');
  onHost('/etc/kubernetes/kubelet.d/50-pulls.conf', `${HEADER}maxPods: 45\nserializeImagePulls: false\n`);
  onHost(
    '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf',
    `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir=/etc/kubernetes/kubelet.d"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
  );
});

afterAll(async () => {
  await lab?.close();
  await api?.close();
  rmSync(temporary, { recursive: true, force: true });
});

const run = (...argv: readonly string[]): Promise<CliResult> => runCommand(argv);

/**
 * The output as in a golden file: stdout, then stderr and the exit code. Paths of this run are masked, and
 * runs of spaces between columns are collapsed.
 */
async function expectGolden(name: string, result: CliResult): Promise<void> {
  const text = `${result.stdout}--- stderr, exit code ${result.code}\n${result.stderr}`
    .replaceAll(temporary, 'DIR')
    .replaceAll(api.url, 'https://api:6443')
    .replace(/(?<=\S) {2,}/g, '  ');
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, 'golden', `${name}.txt`));
}

describe('config explain', () => {
  it.each<[string, readonly string[]]>([
    ['explain-field', ['maxPods', '--kubernetes-version', '1.30']],
    ['explain-json', ['healthzPort', '-o', 'json']],
    ['explain-flag', ['--node-labels']],
    ['explain-gate', ['NodeSwap', '-o', 'yaml']],
    ['explain-unknown', ['maxPodz']],
    ['explain-version', ['maxPods', '--kubernetes-version', '1.99']],
  ])('%s', async (name, args) => {
    await expectGolden(name, await run('config', 'explain', ...args));
  });
});

describe('config defaults', () => {
  it("prints kubeadm's defaults, also as JSON", async () => {
    const { code, stdout } = await run('config', 'defaults', '--profile', 'kubeadm', '-o', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ cgroupDriver: 'systemd', clusterDNS: ['10.96.0.10'], memorySwap: {}, syncFrequency: '0s' });
  });

  it('prints the defaults of a minor version', async () => {
    const { code, stdout } = await run('config', 'defaults', '--kubernetes-version', 'v1.26.3');
    expect([code, /^eventBurst: (.*)$/m.exec(stdout)?.[1]]).toEqual([0, '10']);
  });

  it('rejects an unknown version', async () => {
    await expectGolden('defaults-version', await run('config', 'defaults', '--kubernetes-version', '1.19'));
  });
});

describe('config diff', () => {
  const old = file('old.yaml', `${HEADER}maxPods: 110\nsyncFrequency: 60s\nkubeReserved: {memory: 1024Mi}\n`);
  const next = file('new.yaml', `${HEADER}maxPods: 50\nkubeReserved: {memory: 1Gi}\nclusterDomain: example.org\n`);

  it('compares files', async () => {
    await expectGolden('diff-files', await run('config', 'diff', old, next, '--exit-code'));
    await expectGolden('diff-same', await run('config', 'diff', old, old, '--exit-code'));
    await expectGolden('diff-yaml', await run('config', 'diff', old, next, '-o', 'yaml'));
  });

  it('compares the cluster with a node', async () => {
    await expectGolden('diff-cluster-node', await run('config', 'diff', 'cluster', 'node/worker-1', '--kubeconfig', kubeconfig));
  });

  it('compares a host over SSH with its own kubelet', async () => {
    const result = await run('config', 'diff', 'host/node1', 'node/worker-1', '--kubeconfig', kubeconfig, '--ssh-config', lab.sshConfig);
    await expectGolden('diff-host-node', result);
  });

  it('compares the defaults of two kubelets', async () => {
    await expectGolden('diff-defaults', await run('config', 'diff', 'defaults/1.30', 'defaults/1.36'));
  });

  it.each<[string, readonly string[]]>([
    ['diff-one', [old]],
    ['diff-no-file', [old, join(temporary, 'nowhere.yaml')]],
    ['diff-empty-side', [old, 'node/']],
    ['diff-bad-file', [old, file('bad.yaml', `${HEADER}maxPods: [1]\nport: x\n`)]],
    ['diff-no-node', [old, 'node/nobody', '--kubeconfig', kubeconfig]],
    ['diff-node-down', [old, 'node/worker-2', '--kubeconfig', kubeconfig]],
  ])('%s', async (name, args) => {
    await expectGolden(name, await run('config', 'diff', ...args));
  });
});

describe('config migrate', () => {
  const flags = file('flags.env', 'KUBELET_KUBEADM_ARGS="--container-runtime=remote --node-ip=10.0.0.5 --max-pods=70"\n');
  const workers = file('workers.yaml', `# ours\n${HEADER}maxPods: 60 # small\nfeatureGates:\n  CSIMigration: true\n`);

  it('reports each change', async () => {
    await expectGolden('migrate', await run('config', 'migrate', workers, '--from', '1.24', '--to', '1.36', '--flags', flags));
  });

  it('writes files, and flags as systemd reads them', async () => {
    const [config, env] = [join(temporary, 'out.yaml'), join(temporary, 'out.env')];
    const { code, stdout } = await run(
      ...['config', 'migrate', workers, '--from', '1.24', '--to', '1.36', '--flags', flags, '--new-config', config, '--new-flags', env],
    );
    expect([code, stdout]).toEqual([0, '']);
    expect(readFileSync(config, 'utf8')).toBe(`# ours\n${HEADER}maxPods: 70 # small\n`);
    expect(readFileSync(env, 'utf8')).toBe('KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.5"\n');
  });

  it('rejects a lossy migration, and writes nothing', async () => {
    const lossy = file('lossy.yaml', `${HEADER}maxPods: 60\nfeatureGates:\n  CSIMigration: false\n`);
    const target = join(temporary, 'never.yaml');
    await expectGolden('migrate-lossy', await run('config', 'migrate', lossy, '--from', '1.24', '--to', '1.36', '--new-config', target));
    expect(() => readFileSync(target)).toThrow('ENOENT');
    await expectGolden('migrate-forced', await run('config', 'migrate', lossy, '--from', '1.24', '--to', '1.36', '--force'));
  });

  it('rejects a result that the new kubelet would not accept', async () => {
    const bad = file('refused.yaml', `${HEADER}runOnce: true\n`);
    await expectGolden('migrate-refused', await run('config', 'migrate', bad, '--from', '1.24', '--to', '1.36'));
  });

  it('prints a JSON document', async () => {
    await expectGolden('migrate-json', await run('config', 'migrate', workers, '--from', '1.24', '--to', '1.26', '-o', 'json'));
  });

  it('still converts kubeadm documents', async () => {
    const v1beta3 = file('v1beta3.yaml', 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration: {name: a}\n');
    await expectGolden('migrate-kubeadm', await run('config', 'migrate', '--old-config', v1beta3));
  });

  it.each<[string, readonly string[]]>([
    ['migrate-no-file', ['--from', '1.24', '--to', '1.26']],
    ['migrate-no-to', [workers, '--from', '1.24']],
    ['migrate-both', [workers, '--old-config', workers]],
    ['migrate-flags-file', [workers, '--from', '1.24', '--to', '1.26', '--flags', workers]],
  ])('%s', async (name, args) => {
    await expectGolden(name, await run('config', 'migrate', ...args));
  });
});

describe('config from-node', () => {
  it('separates the node-specific fields', async () => {
    const overlay = join(temporary, 'worker-1.yaml');
    const args = ['config', 'from-node', 'worker-1', '--without-defaults', '--overlay-out', overlay, '--kubeconfig', kubeconfig];
    await expectGolden('from-node', await run(...args));
    expect(readFileSync(overlay, 'utf8')).toBe(
      `apiVersion: kubelet.config.k8s.io/v1beta1
containerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock
kind: KubeletConfiguration
resolvConf: /run/systemd/resolve/resolv.conf
`,
    );
  });

  it('writes a file that validates', async () => {
    const { stdout } = await run('config', 'from-node', 'node/worker-1', '-o', 'json', '--kubeconfig', kubeconfig);
    expect(await run('config', 'validate', file('from-node.json', stdout))).toMatchObject({ code: 0 });
  });
});

describe('node explain', () => {
  const ssh = (): readonly string[] => ['--ssh-config', lab.sshConfig];

  it('shows the winning layer of each field on a host, and where its kubelet reports another value', async () => {
    await expectGolden('node-explain', await run('node', 'explain', 'node1', 'maxPods', ...ssh(), '--kubeconfig', kubeconfig));
    await expectGolden('node-explain-json', await run('node', 'explain', 'host/node1', 'clusterDomain', '-o', 'json', ...ssh()));
  });

  it('shows all fields', async () => {
    const { code, stdout } = await run('node', 'explain', 'node1', ...ssh());
    expect(code).toBe(0);
    expect(stdout.split('\n').length).toBeGreaterThan(80);
    expect(stdout).toMatch(/^serializeImagePulls +false +drop-in: \/etc\/kubernetes\/kubelet\.d\/50-pulls\.conf:4$/m);
  });

  it("inspects a node by its kubelet's configz", async () => {
    await expectGolden('node-explain-node', await run('node', 'explain', 'node/worker-1', '--kubeconfig', kubeconfig));
  });

  it.each<[string, readonly string[]]>([
    ['node-explain-unset', ['node1', 'providerID']],
    ['node-explain-unknown', ['node1', 'maxPodz']],
  ])('%s', async (name, args) => {
    await expectGolden(name, await run('node', 'explain', ...args, ...ssh()));
  });
});

describe('docs/configuration.md', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const steps = [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .filter(Boolean)
      .map((step): [string, string] => [step.split('\n')[0] ?? '', step.slice(step.indexOf('\n') + 1)]),
  );
  const directory = join(temporary, 'page');
  const before = process.cwd();

  beforeAll(() => {
    mkdirSync(directory);
    process.chdir(directory);
  });
  afterAll(() => process.chdir(before));

  it('quotes commands', () => {
    expect(steps.length).toBeGreaterThan(6);
  });

  it.each(steps)('%s', async (command, output) => {
    const [program, ...args] = command.split(' ');
    if (program === 'cat') {
      writeFileSync(join(directory, args[0] ?? ''), output);
      return;
    }
    expect(program).toBe('kubeletadm');
    const ssh = args[0] === 'node' ? ['--ssh-config', lab.sshConfig] : [];
    const { stdout, stderr } = await runCommand([...args, ...ssh], { env: { KUBECONFIG: kubeconfig } });
    // The kubelet of the lab's host is stopped; that of the page runs.
    const asRunning = stdout.replace(', not running (inactive)', '').replace(/! the kubelet is stopped: .*\n/, '');
    expect(stderr + asRunning).toBe(output);
  });
});
