import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createCa } from '../../../lab/api-server/pki.ts';
import { AppError, isAppError } from '../../../src/base/errors.ts';
import { disableWorkflow } from '../../../src/dynamic/workflows/disable-config.ts';
import { type EnableOptions, enableWorkflow } from '../../../src/dynamic/workflows/enable-config.ts';
import type { CommandFact } from '../../../src/host/facts/query.ts';
import type { LargeFile } from '../../../src/host/operation/large-file.ts';
import type { WorkflowResult } from '../../../src/host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../../../src/kube/agent-namespace.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { resetWorkflow } from '../../../src/kubeadm/workflows/reset.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { CONFIG_SOURCE_ANNOTATION, formatSourceAnnotation } from '../../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../../src/kubelet/node-agent/agent-program.ts';
import { formatPointer, hashInPath, pointerFile } from '../../../src/kubelet/node-agent/layout.ts';
import { loadTemplates } from '../../../src/template-files.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, type FakeHostOptions, fakeHost } from '../../support/fake-host.ts';
import { fakeUnit } from '../../support/fake-units.ts';
import { isProof, kubeletCredentials, provesNode, testTrust } from '../../support/node-proof.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { runWorkflow } from '../../support/run-workflow.ts';
import { withRun } from '../../support/with-run.ts';

const [catalogue, templates] = await Promise.all([loadCatalogue(), loadTemplates()]);
const LOCAL = '/var/lib/kubelet/config.yaml';
const KUBEADM = '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const N1 = await kubeletCredentials('n1');
const FORGED = await (await createCa()).issueClient(
  { commonName: 'system:node:n1', organizations: ['system:nodes'] },
  { notAfter: new Date('2040-01-01T00:00:00Z') },
);
const BUNDLE = program('#!/usr/bin/env node\nconsole.log(1)\n');

function program(text: string): LargeFile {
  const packed = gzipSync(text).toString('base64');
  return { sha256: createHash('sha256').update(text).digest('hex'), size: text.length, head: text.slice(0, 64), pieces: () => [packed] };
}

interface World {
  readonly host: FakeHost;
  readonly cluster: FakeCluster;
  readonly clock: ReturnType<typeof fakeClock>;
  readonly reporter: ReturnType<typeof recordingReporter>;
  /** Command line of the kubelet. */
  runs(): string;
  enable(change?: Partial<EnableOptions>, dryRun?: boolean): Promise<WorkflowResult>;
  disable(dryRun?: boolean, nodeName?: string): Promise<WorkflowResult>;
  reset(dryRun?: boolean): Promise<WorkflowResult>;
  /** False if the host has no kubelet certificate. */
  loseCertificate(): void;
}

interface WorldOptions {
  readonly version?: string;
  readonly command?: string;
  readonly commands?: FakeHostOptions['commands'];
  readonly files?: FakeHostOptions['files'];
  readonly machineID?: string;
  /** Credentials of the kubelet; null: none. Default: those of n1, signed by the cluster's CA. */
  readonly credentials?: typeof N1 | null;
  readonly dynamicKubeletConfig?: boolean;
  /** The answer to the script that verifies a signature; default: a valid signature. */
  readonly verifies?: Partial<CommandFact>;
}

/** A node set up by kubeadm. */
function world(options: WorldOptions = {}): World {
  const { version = 'v1.36.2', command = '/usr/bin/kubelet $KUBELET_CONFIG_ARGS' } = options;
  const clock = fakeClock(new Date('2030-01-01T00:00:00Z'));
  let config = LOCAL;
  let { credentials = N1 } = options;
  let extra = '';
  const start = (): void => {
    const pointer = hashInPath(host.files.get(pointerFile(AGENT_DIRECTORY))?.content ?? '');
    const isRead = host.files.has('/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf');
    config = pointer === null || !isRead ? LOCAL : `${AGENT_DIRECTORY}/checkpoints/${pointer}/kubelet.yaml`;
    extra =
      /--dynamic-config-dir\S+/.exec(
        host.files.get('/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf')?.content ?? '',
      )?.[0] ?? '';
    kubelet.state = { ...kubelet.state, activeState: 'active', subState: 'running' };
  };
  const kubelet = fakeUnit({
    fragmentPath: '/usr/lib/systemd/system/kubelet.service',
    dropInPaths: [KUBEADM],
    activeState: 'active',
    subState: 'running',
    unitFileState: 'enabled',
  });
  kubelet.onStart = start;
  const host = fakeHost({
    files: {
      '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
      [KUBEADM]: `[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=${LOCAL}"\nExecStart=\nExecStart=${command}\n`,
      [LOCAL]: `${HEADER}maxPods: 110\n`,
      '/etc/kubernetes/kubelet.conf': 'the kubeconfig of the kubelet\n',
      '/etc/machine-id': 'm1\n',
      ...options.files,
    },
    commands: {
      sh: (words, stdin) => {
        const [, , script = ''] = words;
        if (isProof(words)) return credentials === null ? {} : provesNode(credentials, stdin);
        if (script === 'command -v systemctl') return { stdout: '/bin/systemctl\n' };
        if (script.includes('command -v kubelet')) return { stdout: '/usr/bin/kubelet\n' };
        if (script.includes('ssh-keygen')) return options.verifies ?? { stdout: 'test@kubeletadm.dev\n' };
        if (script.includes('command -v "$n"')) return { stdout: '/usr/bin/node v22.1.0\n' };
        if (!script.includes('/cmdline')) return { exitCode: 127 };
        const argv = `/usr/bin/kubelet\0--config=${config}\0${extra === '' ? '' : `${extra}\0`}`;
        return { stdout: script.includes('--version') ? `1\nKubernetes ${version}\n${argv}` : `1\n${argv}` };
      },
      kubelet: { stdout: `Kubernetes ${version}\n` },
      id: { stdout: '0\n' },
      uname: ([, what]) => ({ stdout: what === '-n' ? 'n1\n' : 'x86_64\n' }),
      date: { stdout: `${clock.now().getTime() / 1000}\n` },
      '/usr/bin/node': { stdout: '0.1.0\n' },
      sha256sum: ([, path = '']) => {
        const content = host.files.get(path)?.content;
        return content === undefined ? { exitCode: 1 } : { stdout: `${createHash('sha256').update(content).digest('hex')}  ${path}\n` };
      },
      ...options.commands,
    },
    units: { kubelet },
    http: (url) =>
      url.includes(':10246/') && host.units.get('kubeletadm-agent')?.state.activeState !== 'active'
        ? { error: 'refused' }
        : { status: 200, body: 'ok' },
  });
  const cluster = fakeCluster({
    now: () => clock.now(),
    ...(options.dynamicKubeletConfig === undefined ? {} : { dynamicKubeletConfig: options.dynamicKubeletConfig }),
    objects: [
      {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'n1' },
        status: { nodeInfo: { kubeletVersion: version, machineID: options.machineID ?? 'm1' } },
      },
    ],
  });
  const reporter = recordingReporter();
  const context = { host, cluster, clock, reporter };
  const workflowOptions: EnableOptions = {
    templates,
    catalogue,
    backend: null,
    nodeName: null,
    trust: testTrust(),
    namespace: AGENT_NAMESPACE,
    program: { file: BUNDLE, directory: '/usr/local/lib/kubeletadm', node: null },
    agentOptions: ['--trial=5m'],
    allow: 'safe',
    signers: { kind: 'unchanged' },
    agentAddress: '127.0.0.1:10246',
    nativeDirectory: '/var/lib/kubelet/dynamic-config',
  };
  const run = (dryRun: boolean) => ({ dryRun, skipPhases: [] });
  return {
    host,
    cluster,
    clock,
    reporter,
    runs: () => config,
    enable: (change = {}, dryRun = false) => runWorkflow(enableWorkflow, context, { ...workflowOptions, ...change }, run(dryRun)),
    disable: (dryRun = false, nodeName) => {
      const given = { templates, catalogue, nodeName: nodeName ?? null, trust: testTrust(), namespace: null, programDirectory: null };
      return runWorkflow(disableWorkflow, context, given, run(dryRun));
    },
    reset: (dryRun = false) => {
      const unreachable = async () => {
        throw new Error('no API server and no etcd is asked');
      };
      const given = {
        reset: { criSocket: 'unix:///run/x.sock' },
        ...withRun({ dryRun }),
        connect: unreachable,
        connectEtcd: unreachable,
        opened: () => undefined,
      };
      return runWorkflow(resetWorkflow, context, given, { dryRun, skipPhases: ['leftovers'] });
    },
    loseCertificate: () => {
      credentials = null;
    },
  };
}

const kinds = ({ host }: WorkflowResult): readonly string[] => host.phases.flatMap(({ plan }) => plan.changes.map(({ kind }) => kind));
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const RBAC = 'rbac.authorization.k8s.io/v1';
/** A missing file. */
const ABSENT = { type: 'other', mode: 0, owner: 'root:root' } as const;
const ROLE_KINDS = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'];
/** Roles and bindings of agents of this version. */
async function rights({ cluster }: World): Promise<readonly KubeObject[]> {
  const found = await Promise.all(ROLE_KINDS.map((kind) => cluster.list({ apiVersion: RBAC, kind })));
  return found.flatMap(({ items }) => items).filter(({ metadata }) => metadata.name.startsWith('kubeletadm:agent:'));
}
/** Objects of agents of earlier versions. */
async function accounts({ cluster }: World): Promise<readonly string[]> {
  const kinds = [{ apiVersion: 'v1', kind: 'ServiceAccount' }, ...ROLE_KINDS.map((kind) => ({ apiVersion: RBAC, kind }))];
  const found = await Promise.all(kinds.map((kind) => cluster.list(kind)));
  return found
    .flatMap(({ items }) => items)
    .flatMap(({ kind, metadata: { namespace, name } }) =>
      name.startsWith('kubeletadm-agent-') ? [`${kind} ${namespace ?? ''}/${name}`] : [],
    );
}

/** Existing files, without directories. */
const texts = (host: FakeHost): Readonly<Record<string, string>> => ({ ...host.texts() });

describe('dynamic enable', () => {
  it('starts the agent with the given options, and plans nothing the second time', async () => {
    const w = world();
    const dry = await w.enable({}, true);
    expect(w.host.performed).toEqual([]);
    const done = await w.enable();
    expect(kinds(done)).toEqual(kinds(dry));
    expect(w.host.text('/etc/systemd/system/kubeletadm-agent.service')).toContain(
      `ExecStart=/usr/bin/node /usr/local/lib/kubeletadm/kubeletadm-${BUNDLE.sha256.slice(0, 12)}.mjs agent --kubeconfig /etc/kubernetes/kubelet.conf --node-name n1 --namespace kubeletadm-system --trial=5m\n`,
    );
    expect(w.host.units.get('kubeletadm-agent')?.state).toMatchObject({ activeState: 'active', unitFileState: 'enabled' });
    expect(w.host.units.get('kubelet')?.starts).toBe(0);
    expect(await rights(w)).toHaveLength(4);
    expect(await accounts(w)).toEqual([]);
    const node = await w.cluster.get(NODE);
    expect(node?.metadata.annotations).toEqual({ 'kubeletadm.dev/config-namespace': AGENT_NAMESPACE });
    const before = texts(w.host);
    expect(kinds(await w.enable())).toEqual([]);
    expect(texts(w.host)).toEqual(before);
  });

  it('reaches the same result when it is rerun after a kill at any point', async () => {
    const whole = world();
    await whole.enable();
    const desired = texts(whole.host);
    const count = whole.host.performed.length;
    for (let n = 0; n < count; n++) {
      const w = world();
      w.host.loseConnectionAfter(n);
      await expect(w.enable(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.enable();
      expect(texts(w.host), `after ${n}`).toEqual(desired);
      expect(kinds(await w.enable()), `after ${n}`).toEqual([]);
      expect(w.host.units.get('kubeletadm-agent')?.state.activeState, `after ${n}`).toBe('active');
    }
  });

  it('installs another version, and removes the previous one when the new one runs', async () => {
    const w = world();
    await w.enable();
    const starts = w.host.units.get('kubeletadm-agent')?.starts ?? 0;
    const next = program('#!/usr/bin/env node\nconsole.log(2)\n');
    const done = await w.enable({ program: { file: next, directory: '/usr/local/lib/kubeletadm', node: null } });
    expect(kinds(done)).toEqual(['put-file', 'write-file', 'daemon-reload', 'restart-unit', 'remove-file']);
    expect([...w.host.files.keys()].filter((path) => path.startsWith('/usr/local/lib/kubeletadm/'))).toEqual([
      `/usr/local/lib/kubeletadm/kubeletadm-${next.sha256.slice(0, 12)}.mjs`,
    ]);
    expect(w.host.units.get('kubeletadm-agent')?.starts).toBe(starts + 1);
  });

  it('requires signatures until they are no longer required, with the file of signers on the command line of the agent', async () => {
    const w = world();
    const path = '/var/lib/kubelet/kubeletadm-agent/signers.yaml';
    const required = { signers: { kind: 'required', text: 'signers\n' } } as const;
    const line = (): string => /^ExecStart=.*$/m.exec(w.host.text('/etc/systemd/system/kubeletadm-agent.service'))?.[0] ?? '';
    await w.enable(required);
    expect(w.host.files.get(path)).toMatchObject({ mode: 0o600, owner: 'root:root', content: 'signers\n' });
    expect(line()).toContain(` --require-signature ${path} --trial=5m`);
    expect(kinds(await w.enable(required))).toEqual([]);
    // An update of the agent does not end the requirement.
    expect(kinds(await w.enable())).toEqual([]);
    expect(kinds(await w.enable({ signers: { kind: 'required', text: 'other signers\n' } }))).toEqual(['write-file']);
    await w.enable({ signers: { kind: 'not-required' } });
    expect([w.host.files.has(path), line().includes('--require-signature')]).toEqual([false, false]);
    expect(kinds(await w.enable())).toEqual([]);
  });

  it('restores deleted rights, also for a Node that was registered again', async () => {
    const w = world();
    await w.enable();
    await w.cluster.delete({ apiVersion: RBAC, kind: 'Role', namespace: AGENT_NAMESPACE, name: 'kubeletadm:agent:n1' });
    expect(kinds(await w.enable())).toEqual(['create-object']);
    const { status } = (await w.cluster.get(NODE)) as KubeObject;
    await w.cluster.delete(NODE);
    const again = await w.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
    await w.cluster.patch(NODE, 'merge', { status: status ?? {} }, { subresource: 'status' });
    expect(kinds(await w.enable())).toEqual(['update-object', 'update-object', 'update-object', 'update-object', 'patch-object']);
    expect((await rights(w)).map(({ metadata }) => metadata.ownerReferences)).toEqual(
      Array.from({ length: 4 }, () => [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: again.metadata.uid }]),
    );
    expect(kinds(await w.enable())).toEqual([]);
  });

  it('removes added rights', async () => {
    const w = world();
    await w.enable();
    const role = { apiVersion: RBAC, kind: 'ClusterRole', name: 'kubeletadm:agent:n1' };
    await w.cluster.patch(role, 'merge', { rules: [{ apiGroups: [''], resources: ['nodes/proxy'], verbs: ['get'] }] });
    expect(kinds(await w.enable())).toEqual(['update-object']);
    expect(JSON.stringify((await w.cluster.get(role))?.rules)).not.toContain('proxy');
  });

  it('rolls back when the agent does not become ready, and does not restart the kubelet', async () => {
    const w = world();
    const before = w.host.text(KUBEADM);
    w.host.http = (url) =>
      url.includes('/readyz') ? { status: 503, body: 'the agent cannot read its Node\n' } : { status: 200, body: 'ok' };
    await expect(w.enable()).rejects.toMatchObject({
      code: 'UNIT_NOT_READY',
      exitCode: 5,
      message: expect.stringContaining('the agent cannot read its Node'),
    });
    expect(w.host.files.has('/etc/systemd/system/kubeletadm-agent.service')).toBe(false);
    expect(w.host.files.has('/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf')).toBe(false);
    expect([w.host.text(KUBEADM), w.host.units.get('kubelet')?.starts]).toEqual([before, 0]);
  });

  it.each<[string, WorldOptions, Partial<EnableOptions>, string]>([
    ['a host of another Node', { machineID: 'm2' }, {}, 'NodeOfAnotherHost'],
    ['a missing Node', { credentials: null }, { nodeName: 'other' }, 'NODE_NOT_FOUND'],
    ['a certificate of another CA', { credentials: FORGED }, {}, 'NODE_NOT_PROVEN'],
    [
      'a certificate of another CA, and without a machine-id',
      { credentials: FORGED, files: { '/etc/machine-id': '' } },
      {},
      'NODE_NOT_PROVEN',
    ],
    ['no certificate', { credentials: null }, {}, 'NODE_NOT_PROVEN'],
    ['a certificate for another Node than the given one', {}, { nodeName: 'n2' }, 'NODE_NAME_CONFLICT'],
    ['no machine-id', { files: { '/etc/machine-id': '\n' } }, {}, 'MACHINE_ID_EMPTY'],
    ['a given Node that reports no machine-id', { credentials: null, machineID: '' }, { nodeName: 'n1' }, 'MACHINE_ID_EMPTY'],
    ['an unprivileged user', { commands: { id: { stdout: '1000\n' } } }, {}, 'IsPrivilegedUser'],
    [
      'a kubelet whose flags override its file',
      { command: `/usr/bin/kubelet $KUBELET_CONFIG_ARGS`, files: { '/etc/systemd/system/kubelet.service.d/90.conf': 'x' }, commands: {} },
      { backend: 'native' },
      'DYNAMIC_NOT_NATIVE',
    ],
    [
      'signatures on a host without ssh-keygen',
      { verifies: { exitCode: 43 } },
      { signers: { kind: 'required', text: 's' } },
      'SIGNATURES_NOT_SUPPORTED',
    ],
    [
      'signatures on a host whose ssh-keygen verifies none',
      { verifies: { exitCode: 41, stderr: 'unknown option -- Y' } },
      { signers: { kind: 'required', text: 's' } },
      'SIGNATURES_NOT_SUPPORTED',
    ],
    [
      'signatures on a kubelet that reads ConfigMaps itself',
      { version: 'v1.21.14' },
      { signers: { kind: 'required', text: 's' } },
      'SIGNATURES_NOT_SUPPORTED',
    ],
    ['a kubelet without a configuration file', { command: '/usr/bin/kubelet --v=2' }, {}, 'KUBELET_UNIT_UNSUITABLE'],
    [
      'a program for another architecture',
      {},
      { program: { file: program(`\x7fELF\x02\x01${'\0'.repeat(12)}\xb7\0${'\0'.repeat(44)}`), directory: '/opt', node: null } },
      'AGENT_PROGRAM_OTHER_MACHINE',
    ],
    [
      'a host without Node.js',
      {
        commands: {
          sh: ([, , script = '']) =>
            script.includes('/cmdline')
              ? { stdout: `1\nKubernetes v1.36.2\n/usr/bin/kubelet\0--config=${LOCAL}\0` }
              : script.includes('"$n"')
                ? { exitCode: 1 }
                : { stdout: '/usr/bin/kubelet\n' },
        },
      },
      {},
      'NODE_JS_MISSING',
    ],
    ['a host that has not joined', { files: { '/etc/kubernetes/kubelet.conf': ABSENT } }, {}, 'NODE_NO_CREDENTIALS'],
    ...['kube-system', 'kube-public', 'kube-node-lease', 'default'].map(
      (namespace): [string, WorldOptions, Partial<EnableOptions>, string] => [
        `namespace ${namespace}`,
        {},
        { namespace },
        'AGENT_NAMESPACE_SHARED',
      ],
    ),
  ])('changes nothing with %s', async (_, options, change, code) => {
    const w = world(options);
    await expect(w.enable(change)).rejects.toMatchObject({
      exitCode: 3,
      problems: expect.arrayContaining([expect.objectContaining({ code })]),
    });
    expect(w.host.performed).toEqual([]);
    expect(w.cluster.calls.filter((call) => /^(create|update|patch|delete|request)/.test(call))).toEqual([]);
  });

  it('removes a program that does not run on the host', async () => {
    const w = world({ commands: { '/usr/bin/node': { exitCode: 1, stderr: 'SyntaxError: x\n' } } });
    await expect(w.enable()).rejects.toMatchObject({
      code: 'AGENT_PROGRAM_DOES_NOT_RUN',
      message: expect.stringContaining('SyntaxError: x'),
    });
    expect(texts(w.host)).toEqual(texts(world().host));
    expect(w.cluster.calls.filter((call) => call.startsWith('create'))).toEqual([]);
  });

  it('names the error of a program that crashes, not the version of Node.js', async () => {
    const stderr =
      "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module '/opt/x.mjs'\n    at x (node:1)\n\nNode.js v20.20.2\n";
    const w = world({ commands: { '/usr/bin/node': { exitCode: 1, stderr } } });
    await expect(w.enable()).rejects.toMatchObject({
      code: 'AGENT_PROGRAM_DOES_NOT_RUN',
      message: expect.stringContaining("--version: Error: Cannot find module '/opt/x.mjs'. Provide a program"),
    });
  });

  it('requires a program that is one file', async () => {
    await expect(world().enable({ program: { file: null, directory: '/opt', node: null } })).rejects.toMatchObject({
      exitCode: 2,
      code: 'AGENT_PROGRAM_MISSING',
    });
  });

  describe('of an old kubelet', () => {
    it('restarts the kubelet with the flags, once', async () => {
      const w = world({ version: 'v1.23.17', dynamicKubeletConfig: true });
      await w.enable();
      expect(w.host.text('/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf')).toContain(
        'ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS --dynamic-config-dir=/var/lib/kubelet/dynamic-config --feature-gates=DynamicKubeletConfig=true\n',
      );
      expect(w.host.units.get('kubelet')?.starts).toBe(1);
      const { units } = w.host;
      const unit = units.get('kubelet');
      if (unit)
        unit.state = { ...unit.state, dropInPaths: [KUBEADM, '/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf'] };
      expect(kinds(await w.enable())).toEqual([]);
      await w.disable();
      expect(w.host.files.has('/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf')).toBe(false);
      expect(units.get('kubelet')?.starts).toBe(2);
    });

    it('reports that dynamic configuration was enabled by other means, and keeps the status', async () => {
      const command = '/usr/bin/kubelet $KUBELET_CONFIG_ARGS --dynamic-config-dir=/var/lib/kubelet/dynamic';
      const w = world({ version: 'v1.21.0', dynamicKubeletConfig: true, command });
      const node = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
      const configSource = { configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' } };
      await w.cluster.patch(node, 'merge', { spec: { configSource } });
      await w.cluster.patch(node, 'merge', { status: { config: { error: 'x' } } }, { subresource: 'status' });
      const { warnings } = await w.disable();
      expect(warnings).toMatchObject([{ code: 'DYNAMIC_STAYS_ENABLED', message: expect.stringContaining(KUBEADM) }]);
      const left = await w.cluster.get(node);
      expect(left?.spec ?? {}).not.toHaveProperty('configSource');
      expect(left?.status).toMatchObject({ config: { error: 'x' } });
      expect(kinds(await w.disable())).toEqual([]);
    });

    it('is refused if the API server drops the field', async () => {
      const w = world({ version: 'v1.23.17' });
      await expect(w.enable()).rejects.toMatchObject({ exitCode: 3, code: 'DYNAMIC_SOURCE_DROPPED' });
      expect(w.host.performed).toEqual([]);
    });
  });
});

describe('dynamic enable of a node with an agent of an earlier version', () => {
  /** A node set up by that version, with an assignment. */
  async function former(namespace: string, { isPushed = true }: { readonly isPushed?: boolean } = {}): Promise<World> {
    const w = world({
      files: {
        '/etc/systemd/system/kubeletadm-agent.service': `[Service]\nExecStart=/usr/bin/node /usr/local/lib/kubeletadm/kubeletadm-000000000000.mjs agent --kubeconfig /etc/kubernetes/kubeletadm-agent.conf --token-file ${AGENT_DIRECTORY}/token --node-name n1 --namespace ${namespace}\n`,
        '/etc/kubernetes/kubeletadm-agent.conf': 'the kubeconfig of the agent\n',
        [`${AGENT_DIRECTORY}/token`]: 'header.payload.signature\n',
      },
    });
    const name = 'kubeletadm-agent-n1';
    const subjects = [{ kind: 'ServiceAccount', name, namespace }];
    const role = async (kind: 'Role' | 'ClusterRole', at: { readonly namespace?: string }) => {
      await w.cluster.create({ apiVersion: RBAC, kind, metadata: { name, ...at }, rules: [] });
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name };
      await w.cluster.create({ apiVersion: RBAC, kind: `${kind}Binding`, metadata: { name, ...at }, roleRef, subjects });
    };
    if (namespace !== 'kube-system') await w.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await w.cluster.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
    await role('Role', { namespace });
    await role('Role', { namespace: 'default' });
    await role('ClusterRole', {});
    const labels = isPushed ? { 'kubeletadm.dev/dynamic-config': 'true' } : {};
    const data = { kubelet: `${HEADER}maxPods: 50\n` };
    await w.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace, labels }, data, immutable: true });
    const annotations = { [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation({ namespace, name: 'a', kubeletConfigKey: 'kubelet' }) };
    await w.cluster.patch(NODE, 'merge', { metadata: { annotations } });
    return w;
  }
  const assignment = async (w: World): Promise<string | undefined> =>
    (await w.cluster.get(NODE))?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];

  it.each(['kube-system', 'configs'])(
    'removes its account in %s, its token and kubeconfig, and keeps the assignment of the node',
    async (namespace) => {
      const w = await former(namespace);
      expect(await accounts(w)).toHaveLength(7);
      const dry = JSON.stringify(await w.enable({}, true));
      expect(dry).toContain('agent-former-account');
      expect(dry).not.toContain('header.payload.signature');
      await w.enable();
      expect(await accounts(w)).toEqual([]);
      expect(
        [...w.host.files.keys()]
          .filter((path) => /token|kubeletadm-agent\.conf$/.test(path))
          .filter((path) => !path.includes('kubelet.service.d')),
      ).toEqual([]);
      expect(await rights(w)).toHaveLength(4);
      expect(await assignment(w)).toBe(formatSourceAnnotation({ namespace: AGENT_NAMESPACE, name: 'a', kubeletConfigKey: 'kubelet' }));
      const copy = await w.cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name: 'a' });
      expect(copy).toMatchObject({ data: { kubelet: `${HEADER}maxPods: 50\n` }, immutable: true });
      expect(w.host.units.get('kubelet')?.starts).toBe(0);
      expect(kinds(await w.enable())).toEqual([]);
    },
  );

  it('reaches the same result when it is rerun after the API server became unreachable at any point', async () => {
    const whole = await former('configs');
    const calls = whole.cluster.calls.length;
    await whole.enable();
    const changes = whole.cluster.calls.slice(calls).filter((call) => /^(create|update|patch|delete)/.test(call));
    expect(changes.length).toBeGreaterThan(12);
    for (const call of changes) {
      const w = await former('configs');
      w.cluster.failNext(call, new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'away' }));
      await expect(w.enable(), call).rejects.toSatisfy((error) => isAppError(error));
      await w.enable();
      expect([await accounts(w), (await rights(w)).length], call).toEqual([[], 4]);
      expect(kinds(await w.enable()), call).toEqual([]);
    }
  });

  it('refuses a ConfigMap that dynamic push did not create: a node must not obtain copies of arbitrary ConfigMaps', async () => {
    const w = await former('kube-system', { isPushed: false });
    await expect(w.enable()).rejects.toMatchObject({
      exitCode: 3,
      problems: [
        expect.objectContaining({
          code: 'AGENT_NAMESPACE_OTHER',
          message: expect.stringContaining('kube-system/a/kubelet'),
          hint: expect.stringContaining('kubeletadm dynamic push FILE --namespace kubeletadm-system'),
        }),
      ],
    });
    expect(w.host.performed).toEqual([]);
    expect(await assignment(w)).toContain('kube-system');
  });

  it('refuses to overwrite another ConfigMap of that name', async () => {
    const w = await former('kube-system');
    await w.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } });
    await w.cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: AGENT_NAMESPACE },
      data: { kubelet: 'x' },
    });
    await expect(w.enable()).rejects.toMatchObject({ code: 'AGENT_NAMESPACE_OTHER' });
  });

  it('keeps the account if the new agent does not become ready', async () => {
    const w = await former('kube-system');
    w.host.http = (url) =>
      url.includes('/readyz') ? { status: 503, body: 'the agent cannot read its Node\n' } : { status: 200, body: 'ok' };
    await expect(w.enable()).rejects.toMatchObject({ code: 'UNIT_NOT_READY' });
    expect(await accounts(w)).toHaveLength(7);
    expect(w.host.text('/etc/systemd/system/kubeletadm-agent.service')).toContain('--token-file');
    expect(await assignment(w)).toContain('kube-system');
  });

  it('is removed completely by dynamic disable', async () => {
    const w = await former('configs');
    await w.disable();
    expect([await accounts(w), await rights(w)]).toEqual([[], []]);
    expect([...w.host.files.keys()].filter((path) => /kubeletadm-agent/.test(path))).toEqual([]);
  });
});

describe('dynamic disable', () => {
  async function enabled(change: Partial<EnableOptions> = {}): Promise<World> {
    const w = world();
    await w.enable(change);
    w.host.files.set(pointerFile(AGENT_DIRECTORY), {
      type: 'file',
      mode: 0o600,
      owner: 'root:root',
      content: formatPointer(AGENT_DIRECTORY, 'a'.repeat(64)),
    });
    w.host.files.set(`${AGENT_DIRECTORY}/checkpoints/${'a'.repeat(64)}/kubelet.yaml`, {
      type: 'file',
      mode: 0o600,
      owner: 'root:root',
      content: `${HEADER}maxPods: 50\n`,
    });
    await w.host.perform([{ kind: 'run', argv: ['systemctl', 'restart', 'kubelet'] }]);
    await w.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'merge', {
      metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: 'x' } },
    });
    expect(w.runs()).toContain('/checkpoints/');
    return w;
  }

  it('restores the previous state, also in the cluster, and plans nothing the second time', async () => {
    const before = texts(world().host);
    const w = await enabled();
    await w.disable();
    expect(texts(w.host)).toEqual(before);
    expect([...w.host.files.keys()]).not.toContain('/etc/systemd/system/kubelet.service.d');
    expect(w.runs()).toBe(LOCAL);
    expect((await w.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' }))?.metadata.annotations ?? {}).toEqual({});
    expect([await rights(w), await accounts(w)]).toEqual([[], []]);
    expect(kinds(await w.disable())).toEqual([]);
  });

  it('keeps a drop-in directory that existed before, when killed at any point', async () => {
    const directory = '/etc/systemd/system/kubelet.service.d';
    const begin = async (): Promise<ReturnType<typeof world>> => {
      const w = world();
      w.host.files.set(directory, { type: 'directory', mode: 0o755, owner: 'root:root' });
      await w.enable();
      expect(kinds(await w.enable())).toEqual([]);
      return w;
    };
    const whole = await begin();
    const had = whole.host.performed.length;
    await whole.disable();
    expect(whole.host.files.has(directory)).toBe(true);
    for (let n = 0; n < whole.host.performed.length - had; n++) {
      const w = await begin();
      w.host.loseConnectionAfter(n);
      await expect(w.disable(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.disable();
      expect(w.host.files.has(directory), `after ${n}`).toBe(true);
    }
  });

  it('cleans up a host after reset whose Node was deleted', async () => {
    const w = await enabled();
    const unit = w.host.units.get('kubelet');
    if (unit) unit.state = { ...unit.state, activeState: 'inactive', subState: 'dead' };
    for (const path of [...w.host.files.keys()]) if (path.startsWith('/var/lib/kubelet/')) w.host.files.delete(path);
    await w.cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'n1' });
    w.loseCertificate();
    // The host could forge the name in the agent's unit.
    await expect(w.disable()).rejects.toMatchObject({ exitCode: 3, code: 'NODE_NOT_PROVEN' });
    await w.disable(false, 'n1');
    expect([...w.host.files.keys()].filter((path) => /kubeletadm/.test(path))).toEqual([]);
    expect(await rights(w)).toEqual([]);
  });

  it('reaches the same result when it is rerun after a kill at any point, and finds files in other places', async () => {
    const before = texts(world().host);
    const change = { namespace: 'edge', program: { file: BUNDLE, directory: '/opt/agent', node: null } };
    const whole = await enabled(change);
    expect([...whole.host.files.keys()].some((path) => path.startsWith('/opt/agent/kubeletadm-'))).toBe(true);
    const had = whole.host.performed.length;
    await whole.disable();
    const count = whole.host.performed.length - had;
    for (let n = 0; n < count; n++) {
      const w = await enabled(change);
      w.host.loseConnectionAfter(n);
      await expect(w.disable(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.disable();
      expect([texts(w.host), w.runs()], `after ${n}`).toEqual([before, LOCAL]);
      expect(await rights(w), `after ${n}`).toEqual([]);
      expect(kinds(await w.disable()), `after ${n}`).toEqual([]);
    }
  });
});

describe('reset of a node with an agent', () => {
  const DROP_INS = '/etc/systemd/system/kubelet.service.d';

  it('stops the agent before the kubelet, and removes all its files', async () => {
    const w = world();
    await w.enable({ program: { file: BUNDLE, directory: '/opt/agent', node: null } });
    expect(w.host.units.get('kubeletadm-agent')?.state.activeState).toBe('active');
    const had = w.host.performed.length;
    await w.reset();
    const stopped = w.host.performed
      .slice(had)
      .flatMap((operation) => (operation.kind === 'run' && operation.argv[1] === 'stop' ? [operation.argv[2]] : []));
    expect(stopped).toEqual(['kubeletadm-agent', 'kubelet']);
    expect(
      [...w.host.files.keys()].filter((path) => /kubeletadm|agent|kubelet\.service\.d$/.test(path) && !path.startsWith('/usr/lib/')),
    ).toEqual([]);
    expect(kinds(await w.reset())).toEqual([]);
  });

  it('reaches the same result when it is rerun after a kill at any point', async () => {
    const whole = world();
    await whole.enable();
    const had = whole.host.performed.length;
    await whole.reset();
    const after = texts(whole.host);
    const count = whole.host.performed.length - had;
    for (let n = 0; n < count; n++) {
      const w = world();
      await w.enable();
      w.host.loseConnectionAfter(n);
      await expect(w.reset(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.reset();
      expect(texts(w.host), `after ${n}`).toEqual(after);
      expect(w.host.units.get('kubeletadm-agent')?.state.activeState, `after ${n}`).not.toBe('active');
    }
  });

  it('keeps other drop-ins', async () => {
    const w = world({ files: { [`${DROP_INS}/30-own.conf`]: '[Service]\n' } });
    await w.enable();
    await w.reset();
    expect([...w.host.files.keys()].filter((path) => path.startsWith(DROP_INS))).toEqual([DROP_INS, `${DROP_INS}/30-own.conf`]);
  });

  it('plans no removal without an agent', async () => {
    const { host } = await world().reset(true);
    expect(host.phases.find(({ phase }) => phase === 'remove-agent')?.plan).toEqual({
      changes: [],
      noop: 'the agent is not installed',
    });
  });
});
