import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type CertificateAuthority, createCa, type KeyPair } from '../../lab/api-server/pki.ts';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { Services } from '../../src/cli/output/services.ts';
import type { FleetResult } from '../../src/fleet/run/fleet.ts';
import type { FleetRunRequest } from '../../src/fleet/use-cases/fleet-request.ts';
import { readTasks } from '../../src/fleet/use-cases/fleet-tasks.ts';
import { openFleetRun } from '../../src/fleet/use-cases/open-fleet-run.ts';
import type { Host } from '../../src/host/access/host.ts';
import { DEFAULT_RUN } from '../../src/host/run-settings.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { BOOTSTRAP_GROUP } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { kubeadmConfigRbac } from '../../src/kubeadm/phases/upload-config.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import { createServices } from '../../src/wiring.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { TOKEN } from '../support/cluster-info.ts';
import { makePki, pkiContext, pkiNode, pkiOptions } from '../support/control-plane-pki.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { fakeHost } from '../support/fake-host.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const CLUSTER = fileURLToPath(new URL('../fixtures/kubeadm-1.36.2/join/cluster.yaml', import.meta.url));
const ADMIN_CONF = 'etc/kubernetes/admin.conf';
const LISTENING = '   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n';
const ADDRESS = '10.0.0.11';

/** Connections and requests that a server under the host's control received. */
interface Received {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  /** Common name of the client certificate. */
  readonly client: string | undefined;
}

let directory: string;
let lab: Lab;
let api: LabApiServer;
let ca: CertificateAuthority;
let operator: KeyPair;
let hostAdmin: KeyPair;
let server: Server;
let port: number;
const received: Received[] = [];
let connections = 0;
/** The real target of connections that the hosts are asked to open. */
let destination: number;

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const hostPath = (path: string): string => join(lab.hosts[0]?.rootDir ?? '', path);
const operatorPath = (name: string): string => join(directory, 'operator', name);
const put = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
};

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ka-kubeconfig-'));
  ca = await createCa();
  api = await startApiServer({ ca, controllers: ['bootstrap-signer'] });
  const token = { token: new Secret(TOKEN.full), usages: ['signing', 'authentication'], groups: [String(BOOTSTRAP_GROUP.name)] };
  api.put(
    ...parseAllDocuments(readFileSync(CLUSTER, 'utf8')).flatMap((document) => (document.toJS() as KubeObject | null) ?? []),
    ...kubeletConfigRbac('kubelet-config'),
    ...kubeadmConfigRbac(),
    ...clusterInfoRbac(),
    clusterInfoMap({ server: api.url, caPem: api.caPem }),
    tokenSecret(token, new Date()),
  );
  lab = await startLab({ directory: join(directory, 'lab'), hosts: 1 });
  operator = await ca.issueClient({ commonName: 'operator', organizations: ['system:masters'] });
  hostAdmin = await ca.issueClient({ commonName: 'kubernetes-admin', organizations: ['system:masters'] });
  const serving = await ca.issueServer(['127.0.0.1', ADDRESS, '10.99.0.11']);
  const tls = { cert: serving.certPem, key: serving.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: false };
  server = createServer(tls, (request, response) => {
    const client = (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
    const { method = '', url = '' } = request;
    received.push({ method, url, authorization: request.headers.authorization, client: typeof client === 'string' ? client : undefined });
    response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"kind":"Status","code":401}');
  });
  server.on('connection', () => {
    connections++;
  });
  port = await listenOnLoopback(server);
  put(operatorPath('token'), 'SECRET-OF-THE-OPERATOR\n');
  put(operatorPath('client.crt'), operator.certPem);
  put(operatorPath('client.key'), operator.keyPem);
  put(operatorPath('ca.crt'), ca.certPem);
  const pki = fakeHost({ files: { '/etc/kubernetes/pki/ca.crt': ca.certPem, '/etc/kubernetes/pki/ca.key': ca.keyPem } });
  await makePki(pkiContext(pki, fakeClock(new Date())), pkiOptions(pkiNode()));
  for (const name of ['ca', 'sa', 'front-proxy-ca', 'etcd/ca'])
    for (const kind of name === 'sa' ? ['key', 'pub'] : ['crt', 'key'])
      put(hostPath(`etc/kubernetes/pki/${name}.${kind}`), pki.text(`/etc/kubernetes/pki/${name}.${kind}`));
  put(hostPath('proc/net/tcp'), `  sl  local_address rem_address   st\n${LISTENING}`);
  const etcd = ['etcd', `--advertise-client-urls=https://${ADDRESS}:2379`, `--initial-advertise-peer-urls=https://${ADDRESS}:2380`];
  const pod = {
    kind: 'Pod',
    spec: { containers: [{ command: etcd }], volumes: [{ name: 'etcd-data', hostPath: { path: '/data/etcd' } }] },
  };
  put(hostPath('etc/kubernetes/manifests/etcd.yaml'), JSON.stringify(pod));
  put(join(directory, 'init.yaml'), INIT);
  put(join(directory, 'fleet.yaml'), FLEET);
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await lab?.close();
  await api?.close();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  received.length = 0;
  connections = 0;
  destination = port;
  rmSync(operatorPath('executed'), { force: true });
});

/** The host decides which server answers, for any requested address. */
const overHostileNetwork = ({ connectHost }: Services): Partial<Services> => ({
  connectHost: async (target, reporter): Promise<Host> => {
    const host = await connectHost(target, reporter);
    const isLocal = target.address === undefined && target.member === undefined;
    return isLocal ? host : { ...host, dial: async () => connect({ host: '127.0.0.1', port: destination }) };
  },
});

function run(argv: readonly string[]): Promise<CliResult> {
  const env = { XDG_STATE_HOME: join(directory, 'state'), HOME: join(directory, 'home') };
  return runCommand(argv, { env, services: overHostileNetwork });
}

const overSsh = (): readonly string[] => ['--host', 'node1', '--ssh-config', lab.sshConfig];
const COMMANDS: Readonly<Record<string, () => readonly string[]>> = {
  reset: () => ['reset', '--dry-run', ...overSsh()],
  init: () => ['init', '--config', join(directory, 'init.yaml'), '--dry-run', '--ignore-preflight-errors', 'all', ...overSsh()],
  'init phase upload-certs': () => [
    ...['init', 'phase', 'upload-certs', '--config', join(directory, 'init.yaml'), '--upload-certs', '--dry-run'],
    ...['--ignore-preflight-errors', 'all', ...overSsh()],
  ],
  'join --control-plane': () => [
    ...['join', new URL(api.url).host, '--control-plane', '--apiserver-advertise-address', ADDRESS, '--token', TOKEN.full],
    ...['--discovery-token-ca-cert-hash', caPinsOf(api.caPem)?.[0] ?? ''],
    ...['--dry-run', '--ignore-preflight-errors', 'all', ...overSsh()],
  ],
  'fleet plan': () => ['plan', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, '--ignore-preflight-errors', 'all'],
  'fleet apply': () => [
    'apply',
    '--yes',
    '-f',
    join(directory, 'fleet.yaml'),
    '--ssh-config',
    lab.sshConfig,
    '--ignore-preflight-errors',
    'all',
  ],
};

interface Entries {
  readonly cluster?: object;
  readonly user?: object;
}

function kubeconfig({ cluster = {}, user = {} }: Entries): string {
  const trust = 'insecure-skip-tls-verify' in cluster ? {} : { 'certificate-authority-data': base64(ca.certPem) };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'kubernetes', user: 'u' } }],
    clusters: [{ name: 'kubernetes', cluster: { server: `https://127.0.0.1:${port}`, ...trust, ...cluster } }],
    users: [{ name: 'u', user }],
  });
}

const shell = (): string => `touch ${operatorPath('executed')}; echo '{"kind":"ExecCredential"}'`;
const ownCertificate = () => ({
  'client-certificate-data': base64(hostAdmin.certPem),
  'client-key-data': base64(hostAdmin.keyPem),
});

interface Hostile {
  readonly what: string;
  readonly entries: () => Entries;
  readonly field: string;
  /** The name is resolved only on the host, which has no such file. */
  readonly namesFile?: true;
}

const PLUGIN = 'client.authentication.k8s.io/v1';
const HOSTILE: readonly Hostile[] = [
  {
    what: 'a credential plugin',
    entries: () => ({ user: { exec: { apiVersion: PLUGIN, command: 'sh', args: ['-c', shell()], interactiveMode: 'Never' } } }),
    field: 'users[0].user.exec',
  },
  {
    what: 'an auth-provider with a command',
    entries: () => ({
      user: { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'touch', 'cmd-args': operatorPath('executed') } } },
    }),
    field: 'users[0].user.auth-provider',
  },
  {
    what: "a token file of the operator's",
    entries: () => ({ user: { tokenFile: operatorPath('token') } }),
    field: 'users[0].user.tokenFile',
    namesFile: true,
  },
  {
    what: "a client key of the operator's",
    entries: () => ({ user: { 'client-certificate': operatorPath('client.crt'), 'client-key': operatorPath('client.key') } }),
    field: 'users[0].user.client-certificate',
    namesFile: true,
  },
  {
    what: "a CA file of the operator's",
    entries: () => ({
      cluster: { 'certificate-authority-data': '', 'certificate-authority': operatorPath('ca.crt') },
      user: ownCertificate(),
    }),
    field: 'clusters[0].cluster.certificate-authority',
    namesFile: true,
  },
  {
    what: 'insecure-skip-tls-verify',
    entries: () => ({ cluster: { 'insecure-skip-tls-verify': true }, user: ownCertificate() }),
    field: 'clusters[0].cluster.insecure-skip-tls-verify',
  },
  {
    what: 'a proxy',
    entries: () => ({ cluster: { 'proxy-url': `http://127.0.0.1:${port}` }, user: ownCertificate() }),
    field: 'clusters[0].cluster.proxy-url',
  },
];
const MORE: readonly Hostile[] = [
  {
    what: 'basic authentication',
    entries: () => ({ user: { username: 'u', password: 'p' } }),
    field: 'users[0].user.username',
  },
  { what: 'impersonation', entries: () => ({ user: { ...ownCertificate(), as: 'system:admin' } }), field: 'users[0].user.as' },
];

describe.each(Object.keys(COMMANDS).filter((command) => command !== 'fleet plan'))('%s rejects admin.conf of a hostile host', (command) => {
  it.each(command === 'reset' ? [...HOSTILE, ...MORE] : HOSTILE)(
    'with $what: nothing is executed, read or sent',
    async ({ entries, field, namesFile }) => {
      put(hostPath(ADMIN_CONF), kubeconfig(entries()));
      const { code, stdout, stderr } = await run(COMMANDS[command]?.() ?? []);
      expect(existsSync(operatorPath('executed')), 'a command was executed on the local host').toBe(false);
      expect(received).toEqual([]);
      expect(connections).toBe(0);
      expect(stdout + stderr).toContain(field);
      expect(stdout + stderr).toMatch(/HOST_KUBECONFIG_(?:REFUSED|UNUSABLE)|HostKubeconfig/);
      expect(stderr).not.toContain('SECRET-OF-THE-OPERATOR');
      // A reset continues without an unusable admin.conf.
      expect(code, stderr).toBe(command === 'reset' && namesFile ? 0 : 3);
    },
  );
});

describe.each(Object.keys(COMMANDS).filter((command) => command !== 'fleet apply'))(
  '%s uses admin.conf as kubeadm writes it',
  (command) => {
    it("with the host's own credentials", async () => {
      put(hostPath(ADMIN_CONF), kubeconfig({ user: ownCertificate() }));
      const { stderr } = await run(COMMANDS[command]?.() ?? []);
      expect(received.length, stderr).toBeGreaterThan(0);
      expect(new Set(received.map(({ client, authorization }) => `${client} ${authorization}`))).toEqual(
        new Set(['kubernetes-admin undefined']),
      );
    });
  },
);

describe('the kubeconfig of a cluster that a fleet file creates', () => {
  const written = (): string => join(directory, 'admin.conf');
  afterEach(() => rmSync(written(), { force: true }));

  /** Called after init on the first control plane. */
  async function settle(): Promise<void> {
    const [stdin, sink] = [Readable.from(['']), new Writable({ write: (_chunk, _encoding, done) => done() })];
    const env = { PATH: process.env.PATH ?? '' };
    const real = createServices({ env, stdin, stdout: sink, stderr: sink, signal: new AbortController().signal });
    const services = { ...real, ...overHostileNetwork(real) };
    const connection = {
      configFile: lab.sshConfig,
      identityFiles: [],
      password: 'environment' as const,
      sudoPassword: 'environment' as const,
    };
    const request: FleetRunRequest = {
      file: join(directory, 'fleet.yaml'),
      selection: { limit: [], groups: [] },
      connection: { ...connection, connectTimeoutMs: 10_000 },
      cluster: {},
      rules: { parallel: 50, canary: { hosts: 0 }, maxUnavailable: null, maxFail: null },
      writing: { breakLock: false, confirmMs: undefined },
      run: DEFAULT_RUN,
      takeOver: false,
      replan: false,
      again: false,
      verbosity: 0,
    };
    const reporter = services.reporter({ verbosity: 0, format: 'text' });
    const opened = await openFleetRun(services, request, {
      ...(await readTasks(services, { ...request, planFile: undefined })),
      reporter,
    });
    try {
      await opened.finish({ outcomes: [{ host: 'node1', status: 'changed' }] } as unknown as FleetResult);
    } finally {
      await opened.close();
    }
  }

  it.each(HOSTILE)('is not written with $what', async ({ entries, field }) => {
    put(hostPath(ADMIN_CONF), kubeconfig(entries()));
    await expect(settle()).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining(field) });
    expect(existsSync(written())).toBe(false);
    expect(received).toEqual([]);
  });

  it('is not written before the API server accepted it', async () => {
    put(hostPath(ADMIN_CONF), kubeconfig({ user: ownCertificate() }));
    await expect(settle()).rejects.toMatchObject({ code: 'CLUSTER_UNAUTHORIZED' });
    expect(existsSync(written())).toBe(false);
  });

  it('contains only the credentials that the host embeds', async () => {
    destination = Number(new URL(api.url).port);
    const text = JSON.parse(kubeconfig({ cluster: { server: api.url }, user: ownCertificate() })) as Record<string, unknown>;
    const other = { name: 'other', user: { exec: { apiVersion: PLUGIN, command: 'sh', args: ['-c', shell()] } } };
    put(hostPath(ADMIN_CONF), JSON.stringify({ ...text, users: [...(text.users as object[]), other], preferences: { colors: true } }));
    await settle();
    expect(parse(readFileSync(written(), 'utf8'))).toEqual(text);
    expect(statSync(written()).mode & 0o777).toBe(0o600);
  });
});

const INIT = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: api.example:6443
encryptionAlgorithm: ECDSA-P256
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${ADDRESS}}
`;
const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, configuration: init.yaml}
hosts:
  - {name: node1, role: controlPlane}
`;
