import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { HttpFact } from '../../../../src/host/facts/query.ts';
import { explainHostKubelet, explainNodeKubelet } from '../../../../src/kubeadm/workflows/node/explain-kubelet.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { observeKubelet } from '../../../../src/kubelet/effective/observe-kubelet.ts';
import { renderNodeExplanation } from '../../../../src/kubelet/effective/render.ts';
import { CONFIG_STATUS_ANNOTATION, formatConfigStatus } from '../../../../src/kubelet/layers/config-source.ts';
import { formatManifest } from '../../../../src/kubelet/node-agent/layout.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, type FakeHostOptions, fakeHost } from '../../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit } from '../../../support/fake-units.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const DROP_IN = '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf';
const CONFIG = '/var/lib/kubelet/config.yaml';
const STARTED = Date.parse('2026-11-20T10:00:00Z') / 1000;

const FILES = {
  '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\n',
  [DROP_IN]: `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=${CONFIG} --config-dir=/etc/kubernetes/kubelet.d"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
  '/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--hostname-override=worker-1 --node-ip=10.0.0.5"\n',
  '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--max-pods=80\n',
  [CONFIG]: `${HEADER}maxPods: 50\nclusterDNS: [10.96.0.10]\n`,
  '/etc/kubernetes/kubelet.d/10-pods.conf': `${HEADER}maxPods: 60\nserializeImagePulls: false\n`,
};
const RUNNING = [
  '/usr/bin/kubelet',
  `--config=${CONFIG}`,
  '--config-dir=/etc/kubernetes/kubelet.d',
  '--hostname-override=worker-1',
  '--node-ip=10.0.0.5',
  '--max-pods=80',
];

interface World {
  readonly files?: Readonly<Record<string, string>>;
  /** null: no kubelet runs. */
  readonly argv?: readonly string[] | null;
  readonly version?: string;
  readonly diskVersion?: string;
  /** Output of busctl ListInhibitors. Default: no busctl. */
  readonly locks?: string;
  readonly unit?: (unit: FakeUnit) => void;
}

function host({ files = FILES, argv = RUNNING, version = 'v1.36.2', diskVersion = version, locks, unit: change }: World = {}): FakeHost {
  const commands: FakeHostOptions['commands'] = {
    sh: ([, , script = '']) => {
      if (script === 'command -v kubelet') return { stdout: '/usr/bin/kubelet\n' };
      if (script.includes('/cmdline'))
        return argv === null ? { exitCode: 3 } : { stdout: `712\nKubernetes ${version}\n${argv.join('\0')}\0` };
      return { exitCode: 127 };
    },
    kubelet: { stdout: `Kubernetes ${diskVersion}\n` },
    busctl: locks === undefined ? { exitCode: 127 } : { stdout: locks },
    ...(locks === undefined ? {} : { journalctl: { stdout: '' } }),
    id: { stdout: '0\n' },
    uname: ([, what]) => ({ stdout: what === '-n' ? 'Host-A\n' : 'x86_64\n' }),
  };
  const active = argv === null ? { loadState: 'loaded' } : { activeState: 'active', startedAt: STARTED };
  const unit = fakeUnit({ fragmentPath: '/usr/lib/systemd/system/kubelet.service', dropInPaths: [DROP_IN], ...active });
  change?.(unit);
  const http = (): HttpFact => (argv === null ? { error: 'connection refused' } : { status: 200, body: 'ok' });
  return fakeHost({ name: 'node1', files, commands, units: { kubelet: unit }, http });
}

/** A cluster with the Node and the configz of its kubelet. */
function cluster(name: string, config: JsonObject): FakeCluster {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { nodeInfo: { kubeletVersion: 'v1.36.2' } },
  };
  const made = fakeCluster({ objects: [node] });
  made.proxyNode(name, (path) => (path === '/configz' ? { status: 200, body: { kubeletconfig: config } } : null));
  return made;
}

describe('explainHostKubelet', () => {
  it.each<[string | undefined, readonly string[]]>([
    ['a(ssssuu) 0', ['shutdownGracePeriod (30 s) is not in force: the kubelet holds no lock of systemd-logind that delays a shutdown']],
    ['a(ssssuu) 1 "shutdown" "kubelet" "x" "delay" 0 712', []],
    [undefined, []],
  ])('reports a shutdown that the kubelet does not delay: %j', async (locks, expected) => {
    const files = { ...FILES, [CONFIG]: `${HEADER}shutdownGracePeriod: 30s\n` };
    const world = locks === undefined ? { files } : { files, locks };
    const { disagreements } = await explainHostKubelet(host(world), { catalogue, cluster: null });
    expect(disagreements.filter(({ code }) => code === 'SHUTDOWN_NOT_DELAYED').map(({ message }) => message)).toEqual(expected);
  });

  it('shows no HTTP headers of the kubelet', async () => {
    const headers = (value: string): string => `staticPodURLHeader:\n  Authorization: [Bearer ${value}]\n`;
    const files = {
      ...FILES,
      [CONFIG]: `${HEADER}${headers('hush-1')}`,
      '/etc/kubernetes/kubelet.d/10-pods.conf': `${HEADER}${headers('hush-2')}`,
    };
    const argv = [...RUNNING, '--manifest-url-header=X:hush-3'];
    const configz = { staticPodURLHeader: { Authorization: ['<masked>'] } };
    const explanation = await explainHostKubelet(host({ files, argv }), { catalogue, cluster: cluster('worker-1', configz) });
    expect(JSON.stringify(explanation)).not.toContain('hush');
    expect(renderNodeExplanation(explanation, true)).toContain('[secret]');
  });

  it('names files of --config-dir that the kubelet ignores because of their names', async () => {
    const files = { ...FILES, '/etc/kubernetes/kubelet.d/99-admin.yaml': `${HEADER}maxPods: 9\n`, '/etc/kubernetes/kubelet.d/README': '' };
    const { disagreements, fields } = await explainHostKubelet(host({ files }), { catalogue, cluster: null });
    const messages = disagreements.map(({ message }) => message).filter((message) => message.includes('ignored'));
    expect(messages).toEqual([expect.stringMatching(/^\/etc\/kubernetes\/kubelet\.d\/99-admin\.yaml is ignored: .* end in \.conf/)]);
    expect(fields.find(({ path: field }) => field === 'maxPods')?.value).toBe(80);
  });

  it('shows the source layer of every field', async () => {
    const explanation = await explainHostKubelet(host(), { catalogue, cluster: null });
    expect(explanation.disagreements).toEqual([]);
    const text = renderNodeExplanation(explanation, true);
    await expect(text).toMatchFileSnapshot(path.join(import.meta.dirname, 'golden', 'explain-host.txt'));
  });

  it('changes nothing on the host', async () => {
    const observed = host();
    const before = observed.texts();
    await explainHostKubelet(observed, { catalogue, cluster: null });
    expect(observed.performed).toEqual([]);
    expect(observed.texts()).toEqual(before);
  });

  it('names the ConfigMap of the agent, not its checkpoint', async () => {
    const checkpoint = `/var/lib/kubelet/kubeletadm-agent/checkpoints/${'a'.repeat(64)}`;
    const identity = { namespace: 'kube-system', name: 'node-config', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '7' };
    const withCheckpoint = (sets: readonly string[] | null, places?: Readonly<Record<string, string>>): FakeHost =>
      host({
        files: {
          ...FILES,
          [`${checkpoint}/kubelet.yaml`]: `${HEADER}maxPods: 33\nclusterDNS: [10.96.0.10]\n`,
          [`${checkpoint}/manifest.json`]: formatManifest({ identity, files: ['kubelet.yaml'], sets, places }),
        },
        argv: ['/usr/bin/kubelet', `--config=${CONFIG}`, `--config=${checkpoint}/kubelet.yaml`],
      });
    const source = { kind: 'config-map', source: { namespace: 'kube-system', name: 'node-config', kubeletConfigKey: 'kubelet' } };
    const name = 'ConfigMap kube-system/node-config';
    const whole = await explainHostKubelet(withCheckpoint(null), { catalogue, cluster: null });
    expect(whole.source).toMatchObject({ ...source, assignedAt: null });
    expect(whole.fields.find(({ path }) => path === 'maxPods')).toMatchObject({ value: 33, layer: 'dynamic config', source: name });
    const text = renderNodeExplanation(whole, true);
    expect(text).toContain(`configuration: ${name} (key kubelet)\n`);
    const overlay = await explainHostKubelet(withCheckpoint(['maxPods']), { catalogue, cluster: null });
    expect(overlay.fields.find(({ path }) => path === 'maxPods')).toMatchObject({ layer: 'dynamic config', source: name });
    expect(overlay.fields.find(({ path }) => path === 'clusterDNS')).toMatchObject({ layer: 'config file', source: CONFIG });
    const places = { maxPods: 'kubelet.group.edge:4' };
    const layers = await explainHostKubelet(withCheckpoint(['maxPods'], places), { catalogue, cluster: null });
    expect(layers.fields.find(({ path }) => path === 'maxPods')).toMatchObject({ source: `${name} kubelet.group.edge:4` });
    for (const explained of [whole, overlay]) expect(JSON.stringify(explained.fields)).not.toContain('a'.repeat(64));
  });

  it('names the local file of an overlay, wherever the unit places it', async () => {
    const checkpoint = `/var/lib/kubelet/kubeletadm-agent/checkpoints/${'a'.repeat(64)}/kubelet.yaml`;
    const identity = { namespace: 'kube-system', name: 'node-config', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '7' };
    const { [DROP_IN]: text, [CONFIG]: _, ...files } = FILES;
    const observed = host({
      files: {
        ...files,
        [DROP_IN]: text.replace(`--config=${CONFIG}`, '--config=/etc/own.yaml'),
        [checkpoint]: `${HEADER}maxPods: 33\nclusterDNS: [10.96.0.10]\n`,
        [checkpoint.replace('kubelet.yaml', 'manifest.json')]: formatManifest({ identity, files: ['kubelet.yaml'], sets: ['maxPods'] }),
      },
      argv: ['/usr/bin/kubelet', `--config=${checkpoint}`],
    });
    const { fields } = await explainHostKubelet(observed, { catalogue, cluster: null });
    expect(fields.find(({ path }) => path === 'clusterDNS')).toMatchObject({ layer: 'config file', source: '/etc/own.yaml' });
  });

  it('shows that a drop-in file wins over the ConfigMap of the agent', async () => {
    const checkpoint = `/var/lib/kubelet/kubeletadm-agent/checkpoints/${'a'.repeat(64)}`;
    const identity = { namespace: 'kube-system', name: 'node-config', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '7' };
    const files = {
      ...FILES,
      '/etc/default/kubelet': '',
      [`${checkpoint}/kubelet.yaml`]: `${HEADER}maxPods: 33\nclusterDNS: [10.96.0.10]\n`,
      [`${checkpoint}/manifest.json`]: formatManifest({ identity, files: ['kubelet.yaml'], sets: ['maxPods'] }),
    };
    const argv = [
      '/usr/bin/kubelet',
      `--config=${CONFIG}`,
      '--config-dir=/etc/kubernetes/kubelet.d',
      `--config=${checkpoint}/kubelet.yaml`,
    ];
    const explained = await explainHostKubelet(host({ files, argv }), { catalogue, cluster: null });
    expect(explained.source).toMatchObject({ kind: 'config-map', dropIns: 1 });
    const field = explained.fields.find(({ path }) => path === 'maxPods');
    expect(field).toMatchObject({ value: 60, layer: 'drop-in', source: '/etc/kubernetes/kubelet.d/10-pods.conf:3' });
    expect(field?.lost[0]).toEqual({ value: 33, layer: 'dynamic config', source: 'ConfigMap kube-system/node-config' });
  });

  it('reports changes without a restart', async () => {
    const edited = host({
      files: { ...FILES, '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--max-pods=90 --v=4\n' },
      diskVersion: 'v1.36.3',
    });
    const config = edited.files.get(CONFIG);
    if (config === undefined) throw new Error('no file');
    edited.files.set(CONFIG, { ...config, modifiedAt: STARTED + 60 });
    const { disagreements, fields } = await explainHostKubelet(edited, { catalogue, cluster: null });
    expect(disagreements.map(({ message }) => message)).toEqual([
      'the running kubelet is v1.36.2, the program on disk is v1.36.3: restart the kubelet to run the new program',
      `${CONFIG} was edited after the kubelet started, which may have other values: restart the kubelet to apply the change`,
      'the running kubelet has --max-pods=80, but the unit sets --max-pods=90 (KUBELET_EXTRA_ARGS in /etc/default/kubelet): restart the kubelet to apply the change',
      'the running kubelet has no --v, but the unit sets --v=4 (KUBELET_EXTRA_ARGS in /etc/default/kubelet): restart the kubelet to apply the change',
    ]);
    expect(fields.find((field) => field.path === 'maxPods')).toMatchObject({ value: 80, source: '--max-pods, the running command line' });
  });

  it('never advises a restart that would fail, and names the reason instead', async () => {
    const texts = async (files: Readonly<Record<string, string>>, more: Omit<World, 'files'> = {}): Promise<string> => {
      const { disagreements } = await explainHostKubelet(host({ files: { ...FILES, ...files }, ...more }), { catalogue, cluster: null });
      return disagreements.map(({ message }) => message).join('\n');
    };
    const removed = await texts({ '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--max-pods=80 --pod-infra-container-image=pause:3.9\n' });
    expect(removed).toContain(
      'a restart of the kubelet would fail: --pod-infra-container-image (KUBELET_EXTRA_ARGS in /etc/default/kubelet): a 1.36 kubelet has no flag --pod-infra-container-image: the flag was removed in 1.35. Remove the flag',
    );
    expect(removed).not.toContain('restart the kubelet');
    const other = { '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--max-pods=80 --config=/etc/other.yaml\n' };
    expect(await texts(other)).toContain('would fail: /etc/other.yaml does not exist or cannot be read (--config, KUBELET_EXTRA_ARGS in');
    expect(await texts({ ...other, '/etc/other.yaml': `${HEADER}maxPods: many\n` })).toContain(
      'would fail: /etc/other.yaml:3:10 maxPods: ',
    );
    expect(await texts({ [CONFIG]: `${HEADER}clusterDNS: [10.96.0.10]\ncontainerLogMaxFiles: 1\n` })).toContain(
      `would fail: ${CONFIG}:4 containerLogMaxFiles: `,
    );
    expect(await texts({}, { diskVersion: 'none' })).toContain('would fail: /usr/bin/kubelet is missing, or does not print its version');
    expect(await texts({ '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--max-pods=90\n' })).not.toContain('would fail');
  });

  it('reports a stopped kubelet and a crash loop with its last error', async () => {
    const crashed = host({
      argv: null,
      unit: (unit) => {
        for (let times = 0; times < 5; times++)
          crashes(unit, 'E1128 12:00:00.000000     901 run.go:72] "command failed" err="something odd"');
      },
    });
    const loop = renderNodeExplanation(await explainHostKubelet(crashed, { catalogue, cluster: null }), false);
    expect(loop).toContain('node1: kubelet v1.36.2, not running (crashed, 5 restarts)\n');
    expect(loop).toContain('! the kubelet does not run (crashed, 5 restarts): something odd. See journalctl -u kubelet on the host\n');
    // The process has ended, and systemd has already started the next one.
    const between = host({
      argv: null,
      unit: (unit) => Object.assign(unit, { state: { ...unit.state, activeState: 'active', restarts: 7 } }),
    });
    expect((await explainHostKubelet(between, { catalogue, cluster: null })).health).toBe('starting, 7 restarts');
    const stopped = renderNodeExplanation(await explainHostKubelet(host({ argv: null }), { catalogue, cluster: null }), false);
    // Before the values, which may not be those of the process.
    expect(stopped).toMatch(
      /^node1: kubelet v1\.36\.2, not running \(inactive\)\n! the kubelet is stopped: run systemctl start kubelet\n\nFIELD/,
    );
  });

  it('reports a newer drop-in of the unit although its flags are unchanged', async () => {
    const world = host();
    const file = world.files.get(DROP_IN);
    if (file === undefined) throw new Error('no file');
    world.files.set(DROP_IN, { ...file, modifiedAt: STARTED + 60 });
    const { disagreements } = await explainHostKubelet(world, { catalogue, cluster: null });
    expect(disagreements.map(({ message }) => message)).toEqual([
      `${DROP_IN} was edited after the kubelet started, which may have other values: restart the kubelet to apply the change`,
    ]);
  });

  it('reports differences between configz and the files', async () => {
    const configz = { maxPods: 70, clusterDNS: ['10.96.0.10'], serializeImagePulls: false };
    const explanation = await explainHostKubelet(host(), { catalogue, cluster: cluster('worker-1', configz) });
    expect(explanation.disagreements).toContainEqual({
      code: 'CONFIGZ_DIFFERS',
      field: 'maxPods',
      liveChange: 'safe',
      message: 'maxPods: the running kubelet has 70, the files on disk set 80',
    });
    expect(explanation.disagreements.map(({ field }) => field).filter((field) => !field?.startsWith('evictionHard'))).toEqual(['maxPods']);
  });

  it('reports per-host fields of kubeadm that differ from the configuration file', async () => {
    const instance = (socket: string) => ({ '/var/lib/kubelet/instance-config.yaml': `containerRuntimeEndpoint: "${socket}"\n` });
    const config = { [CONFIG]: `${HEADER}containerRuntimeEndpoint: unix:///a.sock\n` };
    const found = async (socket: string): Promise<readonly string[]> => {
      const world = host({ files: { ...FILES, ...config, ...instance(socket) } });
      return (await explainHostKubelet(world, { catalogue, cluster: null })).disagreements.map(({ message }) => message);
    };
    expect(await found('unix:///a.sock')).toEqual([]);
    expect(await found('unix:///b.sock')).toEqual([
      'containerRuntimeEndpoint: /var/lib/kubelet/instance-config.yaml sets unix:///b.sock, but the configuration file has unix:///a.sock. The next upgrade with kubeadm would write unix:///b.sock',
    ]);
  });

  it('explains the configuration of the next kubelet when none runs', async () => {
    const explanation = await explainHostKubelet(host({ argv: null }), { catalogue, cluster: null });
    expect(explanation.process).toBeNull();
    expect(explanation.fields.find((field) => field.path === 'maxPods')).toMatchObject({
      value: 80,
      source: '--max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet',
    });
  });

  it('reads the dynamic configuration of old kubelets', async () => {
    const assigned = `source:\n  configMap: {kubeletConfigKey: kubelet, name: c, namespace: kube-system, resourceVersion: "7", uid: u-1}\n`;
    const files = {
      ...FILES,
      '/dyn/store/meta/assigned': assigned,
      '/dyn/store/checkpoints/u-1/7/kubelet': `${HEADER}maxPods: 33\n`,
    };
    const argv = ['/usr/bin/kubelet', `--config=${CONFIG}`, '--dynamic-config-dir=/dyn'];
    const { fields } = await explainHostKubelet(host({ files, argv, version: 'v1.21.0' }), { catalogue, cluster: null });
    expect(fields.find((field) => field.path === 'maxPods')).toMatchObject({ value: 33, layer: 'dynamic config' });
  });
});

describe('observeKubelet', () => {
  it('reads drop-in files in merge order, and ignores other files', async () => {
    const configDropIn = (pods: number): string => `${HEADER}maxPods: ${pods}\n`;
    const files = {
      ...FILES,
      '/etc/kubernetes/kubelet.d/9-last.conf': configDropIn(9),
      '/etc/kubernetes/kubelet.d/10-pods.conf': configDropIn(10),
      '/etc/kubernetes/kubelet.d/20-more/b.conf': configDropIn(21),
      '/etc/kubernetes/kubelet.d/20-more/a.conf': configDropIn(20),
      '/etc/kubernetes/kubelet.d/99-note.yaml': configDropIn(99),
    };
    const observed = await observeKubelet(host({ files, argv: RUNNING.slice(0, -1) }), catalogue);
    expect(observed.setup.files.map((one) => one.path)).toEqual([
      CONFIG,
      '/etc/kubernetes/kubelet.d/10-pods.conf',
      '/etc/kubernetes/kubelet.d/20-more/a.conf',
      '/etc/kubernetes/kubelet.d/20-more/b.conf',
      '/etc/kubernetes/kubelet.d/9-last.conf',
    ]);
    expect(observed.running.layered.config.maxPods).toBe(9);
  });

  it.each<[string, World, string]>([
    [
      'an old kubelet',
      { version: 'v1.10.13' },
      'node1: kubelet v1.10.13 is not supported; supported versions: 1.11 to 1.37 [KUBELET_UNSUPPORTED]',
    ],
    [
      'a missing configuration file',
      { files: Object.fromEntries(Object.entries(FILES).filter(([file]) => file !== CONFIG)) },
      `node1: ${CONFIG}: the file does not exist, but the kubelet is configured to read it. Rerun kubeletadm init or kubeletadm join. [HOST_FILE_MISSING]`,
    ],
    [
      'a file that the kubelet cannot parse',
      { files: { ...FILES, [CONFIG]: `${HEADER}maxPods: many\n` } },
      `node1: ${CONFIG}:3:10 maxPods: must be an integer, not the string "many" [CONFIG_WRONG_TYPE]`,
    ],
    [
      'no kubelet',
      { argv: null, diskVersion: 'nothing' },
      'node1: the kubelet is missing, or kubelet --version failed. Install the kubelet, or check kubelet --version on the host. [KUBELET_MISSING]',
    ],
  ])('reports the problem of %s, with the host', async (_, world, message) => {
    await expect(observeKubelet(host(world), catalogue)).rejects.toThrow(message);
  });
});

describe('explainNodeKubelet', () => {
  it('distinguishes defaults from other values', async () => {
    const { fields } = await explainNodeKubelet(cluster('n', { maxPods: 50, port: 10250 }), 'n', catalogue);
    expect(fields.map(({ path: name, value, layer }) => [name, value, layer])).toEqual([
      ['maxPods', 50, 'configz'],
      ['port', 10250, 'kubelet default'],
    ]);
  });

  it.each([
    ['sets it', { kubelet: '{"maxPods": 50}' }, 'ConfigMap kube-system/edge'],
    ['does not set it', { kubelet: '{"port": 10250}' }, 'a file or a flag of the host'],
    [
      'also has fields for single nodes',
      { kubelet: '{}', 'kubelet.node.n': '{"maxPods": 50}' },
      'ConfigMap kube-system/edge, or a file or a flag of the host',
    ],
  ])('knows the source of a field if the ConfigMap of the Node %s', async (_, data, source) => {
    const api = cluster('n', { maxPods: 50 });
    const { metadata } = await api.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'edge' },
      data,
    });
    const identity = { namespace: 'kube-system', name: 'edge', kubeletConfigKey: 'kubelet', uid: metadata.uid ?? '', resourceVersion: '1' };
    const status = JSON.stringify(formatConfigStatus({ assigned: identity, active: identity, lastKnownGood: null, error: null }));
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n' };
    await api.patch(node, 'merge', { metadata: { annotations: { [CONFIG_STATUS_ANNOTATION]: status } } });
    expect((await explainNodeKubelet(api, 'n', catalogue)).fields[0]?.source).toBe(source);
  });

  it.each<[string, FakeCluster, string]>([
    ['does not exist', fakeCluster(), 'NODE_NOT_FOUND'],
    [
      'has not reported its version',
      fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }] }),
      'NODE_NOT_READY',
    ],
  ])('rejects a Node that %s', async (_, api, code) => {
    await expect(explainNodeKubelet(api, 'n', catalogue)).rejects.toMatchObject({ code });
  });
});
