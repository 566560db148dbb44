import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { AppError, isAppError } from '../../../../src/base/errors.ts';
import type { CommandFact, FileFact } from '../../../../src/host/facts/query.ts';
import type { LargeFile } from '../../../../src/host/operation/large-file.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import type { WorkflowResult } from '../../../../src/host/run-workflow.ts';
import { describeRef, type KubeObject, refOf } from '../../../../src/kube/object.ts';
import { clientCertificateOf } from '../../../../src/kubeadm/pki/validate-kubeconfig.ts';
import { renewCertsWorkflow } from '../../../../src/kubeadm/workflows/certificates/renew-certs.ts';
import { resetWorkflow } from '../../../../src/kubeadm/workflows/reset.ts';
import { objectsAt } from '../../../../src/kubelet/documents/values.ts';
import { hostControllerObjects } from '../../../../src/rollouts/install/controller-objects.ts';
import { CONTROLLER_BINDING, hostsOfController } from '../../../../src/rollouts/install/controller-rights.ts';
import { installOnHostWorkflow } from '../../../../src/rollouts/workflows/install-on-host.ts';
import { uninstallOnHostWorkflow } from '../../../../src/rollouts/workflows/uninstall-on-host.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import { makePki, NOW, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { isProof, kubeletCredentials, provesNode, testTrust } from '../../../support/node-proof.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const templates = await loadTemplates();
const CONF = '/etc/kubernetes/kubeletadm-controller.conf';
const UNIT = '/etc/systemd/system/kubeletadm-controller.service';
const CA_KEY = '/etc/kubernetes/pki/ca.key';
const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver.yaml';
const PROGRAMS = '/usr/local/lib/kubeletadm-controller';
const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'kubeletadm-controller', namespace: 'kubeletadm-system' },
};
const endpoint = (at: string) => `metadata: {annotations: {kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: '${at}'}}\n`;
const pki = fakeHost();
await makePki(pkiContext(pki), pkiOptions(pkiNode()));
const PKI = pki.texts();
const CREDENTIALS = new Map(await Promise.all(['cp-1', 'cp-2'].map(async (name) => [name, await kubeletCredentials(name)] as const)));

function program(text: string): LargeFile {
  const packed = gzipSync(text).toString('base64');
  return { sha256: createHash('sha256').update(text).digest('hex'), size: text.length, head: text.slice(0, 64), pieces: () => [packed] };
}

const BUNDLE = program('#!/usr/bin/env node\nconsole.log(1)\n');
const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { nodeInfo: { machineID: `id-${name}` } } });
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } };
const newCluster = () => fakeCluster({ now: () => NOW, objects: [node('cp-1'), node('cp-2')] });

interface WorldOptions {
  readonly name?: string;
  readonly cluster?: ReturnType<typeof newCluster>;
  readonly commands?: Readonly<Record<string, Partial<CommandFact>>>;
  readonly nodeJs?: string;
  /** The answer of `/readyz` of a running controller. */
  readonly ready?: number;
}

/** A control plane of kubeadm. */
function world({ name = 'cp-1', cluster = newCluster(), commands = {}, ready = 200, nodeJs = '/usr/bin/node' }: WorldOptions = {}) {
  const clock = fakeClock(NOW);
  const host: FakeHost = fakeHost({
    name,
    files: { ...PKI, [MANIFEST]: endpoint('192.168.56.10:6443'), '/etc/machine-id': `id-${name}\n` },
    commands: {
      sh: (words, stdin) => {
        if (isProof(words)) return provesNode(CREDENTIALS.get(name) as never, stdin);
        return words[2]?.includes('command -v "$n"') ? { stdout: `${nodeJs} v22.1.0\n` } : { exitCode: 127 };
      },
      id: { stdout: '0\n' },
      uname: ([, what]) => ({ stdout: what === '-n' ? `${name}\n` : 'x86_64\n' }),
      date: { stdout: `${NOW.getTime() / 1000}\n` },
      'systemctl --version': { stdout: 'systemd 252 (252.36-1~deb12u1)\n+PAM\n' },
      '/usr/bin/node': { stdout: '0.1.0\n' },
      sed: ([, script = '', path = '']) => {
        const text = host.files.get(path)?.content;
        return text === undefined ? { exitCode: 2 } : { stdout: text.replace(/client-key-data: .*/, script.split('|')[2] ?? '') };
      },
      sha256sum: ([, path = '']) => {
        const content = host.files.get(path)?.content;
        return content === undefined ? { exitCode: 1 } : { stdout: `${createHash('sha256').update(content).digest('hex')}  ${path}\n` };
      },
      ...commands,
    },
    units: { kubelet: fakeUnit() },
    http: (url) => {
      if (host.units.get('kubeletadm-controller')?.state.activeState !== 'active') return { error: 'refused' };
      return url.endsWith('/metrics') ? { status: 200, body: 'kubeletadm_controller_leader 1\n' } : { status: ready, body: 'forbidden' };
    },
  });
  const reporter = recordingReporter();
  const context = { host, cluster, clock, reporter };
  const common = { nodeName: null, trust: testTrust() };
  return {
    host,
    cluster,
    clock,
    reporter,
    install: (file = BUNDLE, dryRun = false) =>
      runWorkflow(
        installOnHostWorkflow,
        context,
        { ...common, templates, issuer: certificateIssuer, program: { file, node: null } },
        { dryRun, skipPhases: [] },
      ),
    uninstall: () =>
      runWorkflow(uninstallOnHostWorkflow, context, { ...common, removesDefinition: false }, { dryRun: false, skipPhases: [] }),
    renew: (names: readonly string[]) => {
      const options = {
        issuer: certificateIssuer,
        cluster: { encryptionAlgorithm: 'ECDSA-P256' as const },
        certificatesDir: null,
        withinMs: null,
      };
      return runWorkflow(renewCertsWorkflow(names), context, options, { dryRun: false, skipPhases: [] });
    },
    reset: () => {
      const unreachable = async () => {
        throw new Error('no API server and no etcd is asked');
      };
      const given = {
        reset: { criSocket: 'unix:///run/x.sock' },
        ...withRun({ dryRun: false }),
        connect: unreachable,
        connectEtcd: unreachable,
        opened: () => undefined,
      };
      return runWorkflow(resetWorkflow, context, given, { dryRun: false, skipPhases: ['leftovers'] });
    },
    hosts: async () => hostsOfController(await cluster.get(CONTROLLER_BINDING)),
  };
}

const kinds = ({ host }: WorkflowResult): readonly string[] => host.phases.flatMap(({ plan }) => plan.changes.map(({ kind }) => kind));
const own = (host: FakeHost): readonly string[] =>
  [...host.files.keys()].filter((path) => path.includes('kubeletadm-controller')).toSorted();

function fileAt(host: FakeHost, path: string): FileFact {
  const file = host.files.get(path);
  if (file === undefined) throw new Error(path);
  return file;
}

function certificate(host: FakeHost) {
  const read = clientCertificateOf(host.text(CONF), CONF);
  if (typeof read === 'string') throw new Error(read);
  return read;
}

describe('controller install on a host', () => {
  it('installs a program, a unit and a kubeconfig of its own, and then plans nothing', async () => {
    const w = world();
    const done = await w.install();
    expect(own(w.host)).toEqual([CONF, UNIT, PROGRAMS, `${PROGRAMS}/kubeletadm-${BUNDLE.sha256.slice(0, 12)}.mjs`]);
    expect(w.host.files.get(CONF)).toMatchObject({ mode: 0o600, owner: 'root:root' });
    expect(w.host.text(CONF)).toContain('server: https://192.168.56.10:6443');
    expect(certificate(w.host).subject).toEqual([{ type: 'CN', value: 'kubeletadm:controller:cp-1' }]);
    expect(w.host.text(UNIT)).toContain(
      `LoadCredential=kubeconfig:${CONF}\nExecStart=/usr/bin/node ${PROGRAMS}/kubeletadm-${BUNDLE.sha256.slice(0, 12)}.mjs controller --kubeconfig \${CREDENTIALS_DIRECTORY}/kubeconfig --listen 127.0.0.1:10247\n`,
    );
    expect(w.host.units.get('kubeletadm-controller')?.state).toMatchObject({ activeState: 'active', unitFileState: 'enabled' });
    expect(await w.hosts()).toEqual(['cp-1']);
    expect(w.reporter.events.filter(({ code }) => code === 'CONTROLLER_READY').map(({ message }) => message)).toEqual([
      'the controller is ready, and the leader',
    ]);
    expect(JSON.stringify([planDocument([done.host], []), w.reporter.events])).not.toMatch(/PRIVATE KEY|client-key-data/);
    const asked = w.host.queries.length;
    expect(kinds(await w.install())).toEqual([]);
    const read = w.host.queries.slice(asked).filter((query) => query.kind === 'file' && query.content !== false);
    expect(read.filter((query) => 'path' in query && [CA_KEY, CONF].includes(query.path))).toEqual([]);
  });

  it('reaches the same result when it is rerun after a kill at any point', async () => {
    const whole = world();
    await whole.install();
    const [desired, count] = [own(whole.host), whole.host.performed.length];
    expect(count).toBeGreaterThan(4);
    for (let n = 0; n < count; n++) {
      const w = world();
      w.host.loseConnectionAfter(n);
      await expect(w.install(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.install();
      expect(own(w.host), `after ${n}`).toEqual(desired);
      const { activeState, unitFileState, startedAt } = w.host.units.get('kubeletadm-controller')?.state ?? {};
      expect([activeState, unitFileState], `after ${n}`).toEqual(['active', 'enabled']);
      expect(startedAt, `after ${n}`).toBeGreaterThanOrEqual(w.host.files.get(CONF)?.modifiedAt ?? Number.NaN);
      expect(kinds(await w.install()), `after ${n}`).toEqual([]);
    }
  });

  it('installs another version, and removes the previous one when the new one runs', async () => {
    const w = world();
    await w.install();
    expect(kinds(await w.install(program('#!/usr/bin/env node\nconsole.log(2)\n')))).toEqual([
      'put-file',
      'write-file',
      'daemon-reload',
      'restart-unit',
      'remove-file',
    ]);
  });

  it('restores the previous version if the new one does not become ready', async () => {
    const options = { ready: 200 };
    const w = world(options);
    await w.install();
    const before = w.host.text(UNIT);
    const http = w.host.http;
    w.host.http = (url) => (w.host.text(UNIT) === before ? http(url) : { status: 503, body: 'forbidden' });
    await expect(w.install(program('#!/usr/bin/env node\nconsole.log(2)\n'))).rejects.toMatchObject({
      exitCode: 5,
      problems: [{ code: 'UNIT_NOT_READY', message: expect.stringContaining('forbidden') }, { code: 'ROLLED_BACK' }],
    });
    expect(w.host.text(UNIT)).toBe(before);
    expect(w.host.units.get('kubeletadm-controller')?.state.activeState).toBe('active');
  });

  it.each<[string, (host: FakeHost) => void]>([
    ['other users can read it', (host) => void host.files.set(CONF, { ...fileAt(host, CONF), mode: 0o640 })],
    ['it is no kubeconfig', (host) => void host.files.set(CONF, { ...fileAt(host, CONF), content: 'x' })],
    [
      'the API server has another address',
      (host) => void host.files.set(MANIFEST, { ...fileAt(host, MANIFEST), content: endpoint('192.168.56.11:6443') }),
    ],
  ])('issues another kubeconfig if %s, and restarts the controller', async (_, change) => {
    const w = world();
    await w.install();
    const before = certificate(w.host);
    change(w.host);
    const done = await w.install();
    expect(kinds(done)).toEqual(['write-file', 'restart-unit']);
    expect(JSON.stringify([planDocument([done.host], []), w.reporter.events])).not.toMatch(/PRIVATE KEY|client-key-data/);
    expect(w.host.files.get(CONF)?.mode).toBe(0o600);
    expect(certificate(w.host).x509.serialNumber).not.toBe(before.x509.serialNumber);
    expect(kinds(await w.install())).toEqual([]);
  });

  it.each([
    ['a worker', { files: { [MANIFEST]: null } }, /not a control plane.*kube-apiserver\.yaml/],
    [
      'an old systemd',
      { commands: { 'systemctl --version': { stdout: 'systemd 239\n' } } },
      /needs systemd 247 or later .* systemd of the host is 239/,
    ],
    ['a systemd that does not run', { files: { '/run/systemd/system': null } }, /systemd does not run on the host/],
    [
      'a systemd without a version',
      { commands: { 'systemctl --version': { stdout: '' } } },
      /systemd of the host does not report its version/,
    ],
    [
      'Node.js in a home directory',
      { nodeJs: '/root/.nvm/node' },
      /\/root\/\.nvm\/node is below a home directory, which the user of the controller cannot read/,
    ],
    ['a user without root', { commands: { id: { stdout: '1000\n' } } }, /not root/],
    [
      'a controller in the cluster',
      { objects: [NAMESPACE, DEPLOYMENT] },
      /is already installed in the cluster, as Deployment kubeletadm-system\/kubeletadm-controller/,
    ],
    ['an external CA', { files: { [CA_KEY]: null } }, /ca\.key/],
  ])(
    'refuses %s before it changes anything',
    async (_, {
      files = {},
      objects = [],
      ...options
    }: { readonly files?: Record<string, null>; readonly objects?: readonly KubeObject[] } & WorldOptions, message) => {
      const w = world(options);
      for (const path of Object.keys(files)) w.host.files.delete(path);
      for (const object of objects) await w.cluster.create(object);
      await expect(w.install()).rejects.toMatchObject({ exitCode: 3, message: expect.stringMatching(message) });
      expect(w.host.performed).toEqual([]);
      expect(await w.hosts()).toEqual([]);
    },
  );
});

describe('controller install on several hosts', () => {
  const bindings = hostControllerObjects([]).filter(({ kind }) => kind.endsWith('Binding'));

  it('loses no rights when two runs change them at the same time', async () => {
    const cluster = newCluster();
    const worlds = [world({ cluster }), world({ cluster, name: 'cp-2' })];
    const ended = await Promise.allSettled(worlds.map(({ install }) => install()));
    for (const one of ended) if (one.status === 'rejected') expect(one.reason.code).toMatch(/^CLUSTER_(CONFLICT|ALREADY_EXISTS)$/);
    for (const { install } of worlds) await install();
    for (const binding of bindings) expect(hostsOfController(await cluster.get(refOf(binding))).toSorted()).toEqual(['cp-1', 'cp-2']);
  });

  it('completes the removal of a lost host from the ClusterRoleBinding', async () => {
    const cluster = newCluster();
    const remaining = world({ cluster });
    for (const { install } of [world({ cluster, name: 'cp-2' }), remaining]) await install();
    const binding = await cluster.get(CONTROLLER_BINDING);
    const subjects = objectsAt(binding as KubeObject, 'subjects').filter(({ name }) => name !== 'kubeletadm:controller:cp-2');
    await cluster.update({ ...(binding as KubeObject), subjects });
    await remaining.install();
    for (const each of bindings) expect(hostsOfController(await cluster.get(refOf(each)))).toEqual(['cp-1']);
  });
});

describe('controller uninstall on a host', () => {
  it('keeps the rights of other hosts, and deletes all objects with the last one', async () => {
    const cluster = newCluster();
    const [first, second] = [world({ cluster }), world({ cluster, name: 'cp-2' })];
    await first.install();
    await second.install();
    expect(await first.hosts()).toEqual(['cp-1', 'cp-2']);
    const bindings = hostControllerObjects([]).filter(({ kind }) => kind.endsWith('Binding'));
    for (const { apiVersion, kind, metadata } of bindings)
      expect((await cluster.get({ apiVersion, kind, ...metadata } as never))?.subjects).toHaveLength(2);
    await first.uninstall();
    expect([own(first.host), await first.hosts()]).toEqual([[], ['cp-2']]);
    expect(kinds(await first.uninstall())).toEqual([]);
    await second.uninstall();
    expect([own(second.host), await cluster.get(CONTROLLER_BINDING)]).toEqual([[], null]);
    expect(second.reporter.events.map(({ message }) => message)).toContain(
      'Nodes keep their configuration. Namespace kubeletadm-system stays, with the ConfigMaps of the nodes.',
    );
    expect(second.reporter.events.map(({ message }) => message).join()).not.toContain('keep the program');
    expect(kinds(await second.uninstall())).toEqual([]);
  });

  it('reaches the same result when it is rerun after a kill at any point', async () => {
    const whole = world();
    await whole.install();
    const had = whole.host.performed.length;
    await whole.uninstall();
    for (let n = 0; n < whole.host.performed.length - had; n++) {
      const w = world();
      await w.install();
      w.host.loseConnectionAfter(n);
      await expect(w.uninstall(), `after ${n}`).rejects.toSatisfy((error) => isAppError(error));
      await w.uninstall();
      expect([own(w.host), await w.hosts()], `after ${n}`).toEqual([[], []]);
      expect(w.host.units.has('kubeletadm-controller'), `after ${n}`).toBe(false);
    }
  });

  it('revokes all rights when it is rerun after the API server refused any change', async () => {
    const objects = hostControllerObjects([]);
    const bindings = objects.filter(({ kind }) => kind.endsWith('Binding'));
    const rights = async ({ cluster }: ReturnType<typeof world>) =>
      (await Promise.all(bindings.map((binding) => cluster.get(refOf(binding))))).map(hostsOfController);
    for (const [verb, failing, names] of [
      ['update', bindings, ['cp-1', 'cp-2']],
      ['delete', objects.filter(({ apiVersion }) => apiVersion.startsWith('rbac.')), ['cp-1']],
    ] as const)
      for (const object of failing) {
        const call = `${verb} ${describeRef(refOf(object))}`;
        const cluster = newCluster();
        const [first] = names.map((name) => world({ cluster, name }));
        if (first === undefined) throw new Error(call);
        for (const name of names) await world({ cluster, name }).install();
        cluster.failNext(call, new AppError({ code: 'CLUSTER_UNREACHABLE', message: call }));
        await expect(first.uninstall()).rejects.toThrow(call);
        await first.uninstall();
        expect([call, own(first.host), await rights(first)]).toEqual([call, expect.anything(), bindings.map(() => names.slice(1))]);
        expect(kinds(await first.uninstall()), call).toEqual([]);
      }
  });

  it('does not touch a controller that runs in the cluster', async () => {
    const w = world();
    for (const object of [NAMESPACE, DEPLOYMENT]) await w.cluster.create(object);
    expect(kinds(await w.uninstall())).toEqual([]);
  });
});

describe('other commands on a host with a controller', () => {
  it('certs renew renews its certificate, and restarts it', async () => {
    const w = world();
    await w.install();
    const before = certificate(w.host);
    const starts = w.host.units.get('kubeletadm-controller')?.starts ?? 0;
    await w.renew(['admin.conf']);
    expect(w.host.units.get('kubeletadm-controller')?.starts).toBe(starts);
    await w.renew(['kubeletadm-controller.conf']);
    const after = certificate(w.host);
    expect([after.subject, after.x509.serialNumber === before.x509.serialNumber]).toEqual([before.subject, false]);
    expect(w.host.units.get('kubeletadm-controller')?.starts).toBe(starts + 1);
    expect(kinds(await w.install())).toEqual([]);
  });

  it('reset removes it, and names the rights that remain', async () => {
    const w = world();
    await w.install();
    await w.reset();
    expect(own(w.host)).toEqual([]);
    expect(w.reporter.events.filter(({ code }) => code === 'CONTROLLER_RIGHTS_STAY')).toHaveLength(1);
  });
});
