import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CertificateAuthority, createCa, type KeyPair, type Validity } from '../../lab/api-server/pki.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from '../../src/kube/kubeconfig-render.ts';

/** The binaries of a real control plane on the local host. */
export interface RealBinaries {
  readonly etcd: string;
  readonly apiserver: string;
  readonly controllerManager: string | null;
  readonly kubelet: string | null;
  readonly kubeadm: string | null;
}

export interface RealApiServer {
  readonly url: string;
  readonly ca: CertificateAuthority;
  readonly admin: KeyPair;
  adminKubeconfig(): string;
  kubeconfigFor(user: string, groups?: readonly string[], validity?: Validity): Promise<string>;
  kubeconfigWithToken(token: string): string;
  /** Restarts the API server on the same address with the same data. */
  restart(options?: { readonly whileDown?: () => Promise<void> | void }): Promise<void>;
  /**
   * Starts another API server for the same objects, with additional flags. Both end together. @returns its
   * address, and a kubeconfig for it
   */
  startAnother(flags: readonly string[]): Promise<{ readonly url: string; readonly adminKubeconfig: string }>;
  close(): Promise<void>;
}

/** Minor versions of Kubernetes, both inclusive. */
export interface MinorRange {
  readonly from: number;
  readonly to: number;
}

/** The minor versions whose kubelets support dynamic configuration, and all later ones. */
export const DYNAMIC_MINORS: MinorRange = { from: 11, to: 23 };
const LATER_MINORS: MinorRange = { from: 24, to: 999 };

/**
 * Locates the binaries: in the folder KUBEBUILDER_ASSETS; etcd may also be on the PATH.
 * @param minors the versions that a test supports
 * @returns the reason, as a sentence, when something is missing
 */
export function findRealBinaries(minors: MinorRange = LATER_MINORS): RealBinaries | string {
  const { KUBEBUILDER_ASSETS: folder, PATH = '' } = process.env;
  if (!folder) return 'KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd';
  const find = (name: string, folders: readonly string[]) => folders.map((each) => join(each, name)).find(existsSync);
  const apiserver = find('kube-apiserver', [folder]);
  const etcd = find('etcd', [folder, ...PATH.split(delimiter)]);
  if (!apiserver) return `kube-apiserver not found in ${folder} (KUBEBUILDER_ASSETS)`;
  if (!etcd) return `etcd not found in ${folder} (KUBEBUILDER_ASSETS) nor on the PATH`;
  const minor = minorOf(apiserver);
  if (minor !== null && (minor < minors.from || minor > minors.to)) return `${apiserver} is of 1.${minor} (KUBEBUILDER_ASSETS)`;
  const more = (name: string) => find(name, [folder]) ?? null;
  return { apiserver, etcd, controllerManager: more('kube-controller-manager'), kubelet: more('kubelet'), kubeadm: more('kubeadm') };
}

function minorOf(program: string): number | null {
  const version = /^Kubernetes v1\.(\d+)\./.exec(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '');
  return version === null ? null : Number(version[1]);
}

/** The reason why a control plane with its controllers is not available; null when it is. */
export function whyNoControlPlane(minors?: MinorRange): string | null {
  const binaries = findRealBinaries(minors);
  if (typeof binaries === 'string') return binaries;
  return binaries.controllerManager === null ? `kube-controller-manager not found in ${folderOf(binaries)} (KUBEBUILDER_ASSETS)` : null;
}

/** The reason why a control plane and a kubelet are not available; null when they are. */
export function whyNoKubelet(minors?: MinorRange): string | null {
  const binaries = findRealBinaries(minors);
  if (typeof binaries === 'string') return binaries;
  return (
    whyNoControlPlane(minors) ?? (binaries.kubelet === null ? `kubelet not found in ${folderOf(binaries)} (KUBEBUILDER_ASSETS)` : null)
  );
}

function folderOf({ apiserver }: RealBinaries): string {
  return dirname(apiserver);
}

/**
 * Starts etcd and kube-apiserver on free ports of the loopback address, with Node and RBAC authorizers,
 * NodeRestriction and bootstrap tokens.
 */
export async function startRealApiServer(
  binaries: RealBinaries,
  {
    withControllerManager = false,
    reachesKubelets = false,
    flags = [],
  }: {
    readonly withControllerManager?: boolean;
    /** Connects to the kubelets at the addresses of their Nodes, as an administrator. */
    readonly reachesKubelets?: boolean;
    /** Additional flags of the API server. */
    readonly flags?: readonly string[];
  } = {},
): Promise<RealApiServer> {
  const folder = await mkdtemp(join(tmpdir(), 'kubeletadm-apiserver-'));
  const path = (name: string) => join(folder, name);
  const ca = await createCa();
  const admin = await ca.issueClient({ commonName: 'kubernetes-admin', organizations: ['system:masters'] });
  const serving = await ca.issueServer(['127.0.0.1', 'localhost', 'kubernetes']);
  const account = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  await mkdir(path('etcd'), { mode: 0o700 });
  const files: Readonly<Record<string, string>> = {
    'ca.crt': ca.certPem,
    'ca.key': ca.keyPem,
    'apiserver.crt': serving.certPem,
    'apiserver.key': serving.keyPem,
    'sa.pub': account.publicKey,
    'sa.key': account.privateKey,
    'admin.crt': admin.certPem,
    'admin.key': admin.keyPem,
  };
  for (const [name, content] of Object.entries(files)) await writeFile(path(name), content, { mode: 0o600 });
  const [port, etcdPort, peerPort, managerPort] = await freePorts(4);
  const url = `https://127.0.0.1:${port}`;
  const kubeconfigOf = (user: string, { certPem, keyPem }: KeyPair, server = url) =>
    clientCertificateKubeconfig({
      clusterName: 'kubernetes',
      server,
      caPem: ca.certPem,
      user,
      certificatePem: certPem,
      keyPem: new Secret(keyPem),
    }).reveal();

  const running: Running[] = [];
  const start = (program: string, args: readonly string[]) => {
    const process = run(program, args);
    running.push(process);
    return process;
  };
  const close = async () => {
    for (const process of running.reverse()) await process.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const kubelets = [
    `--kubelet-client-certificate=${path('admin.crt')}`,
    `--kubelet-client-key=${path('admin.key')}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
  const startServer = async (at: number | undefined = port, more: readonly string[] = []) => {
    const args = [...apiserverArgs(path, at, etcdPort), ...(reachesKubelets ? kubelets : []), ...flags, ...more];
    const server = start(binaries.apiserver, args);
    await waitUntilReady(`https://127.0.0.1:${at}`, ca.certPem, server);
    return server;
  };
  try {
    start(binaries.etcd, etcdArgs(path, etcdPort, peerPort));
    let server = await startServer();
    if (withControllerManager && binaries.controllerManager !== null) {
      const manager = await ca.issueClient({ commonName: 'system:kube-controller-manager' });
      await writeFile(path('controller-manager.conf'), kubeconfigOf('system:kube-controller-manager', manager), { mode: 0o600 });
      start(binaries.controllerManager, controllerManagerArgs(path, managerPort));
    }
    return {
      url,
      ca,
      admin,
      adminKubeconfig: () => kubeconfigOf('kubernetes-admin', admin),
      kubeconfigFor: async (user, organizations = [], validity = {}) =>
        kubeconfigOf(user, await ca.issueClient({ commonName: user, organizations }, validity)),
      kubeconfigWithToken: (token) =>
        tokenKubeconfig({
          clusterName: 'kubernetes',
          server: url,
          caPem: ca.certPem,
          user: 'token-user',
          token: new Secret(token),
        }).reveal(),
      restart: async ({ whileDown } = {}) => {
        await server.stop();
        await whileDown?.();
        server = await startServer();
      },
      startAnother: async (more) => {
        const [other] = await freePorts(1);
        await startServer(other, more);
        const address = `https://127.0.0.1:${other}`;
        return { url: address, adminKubeconfig: kubeconfigOf('kubernetes-admin', admin, address) };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function etcdArgs(path: (name: string) => string, port: number | undefined, peerPort: number | undefined): readonly string[] {
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  return [
    '--name=test',
    `--data-dir=${path('etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=test=${peer}`,
    '--unsafe-no-fsync',
  ];
}

function apiserverArgs(path: (name: string) => string, port: number | undefined, etcdPort: number | undefined): readonly string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.96.0.0/16',
    `--tls-cert-file=${path('apiserver.crt')}`,
    `--tls-private-key-file=${path('apiserver.key')}`,
    `--client-ca-file=${path('ca.crt')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${path('sa.pub')}`,
    `--service-account-signing-key-file=${path('sa.key')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth',
    '--shutdown-delay-duration=0s',
  ];
}

function controllerManagerArgs(path: (name: string) => string, port: number | undefined): readonly string[] {
  const kubeconfig = path('controller-manager.conf');
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    '--leader-elect=false',
    '--use-service-account-credentials',
    '--controllers=*,bootstrapsigner,tokencleaner',
    `--cluster-signing-cert-file=${path('ca.crt')}`,
    `--cluster-signing-key-file=${path('ca.key')}`,
    `--root-ca-file=${path('ca.crt')}`,
    `--service-account-private-key-file=${path('sa.key')}`,
  ];
}

interface Running {
  /** The last lines of output, for messages. */
  output(): string;
  alive(): boolean;
  stop(): Promise<void>;
}

function run(program: string, args: readonly string[]): Running {
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-4000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const killNow = () => child.kill('SIGKILL');
  process.once('exit', killNow);
  return {
    output: () => output,
    alive: () => child.exitCode === null && child.signalCode === null,
    stop: async () => {
      process.off('exit', killNow);
      child.kill('SIGTERM');
      const timer = setTimeout(killNow, 5000);
      await gone;
      clearTimeout(timer);
    },
  };
}

async function waitUntilReady(url: string, ca: string, server: Running): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    if (!server.alive()) throw new Error(`kube-apiserver ended:\n${server.output()}`);
    if ((await readyz(url, ca)) === 200) return;
    await sleep(100);
  }
  throw new Error(`kube-apiserver is not ready after 60 s:\n${server.output()}`);
}

function readyz(url: string, ca: string): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(`${url}/readyz`, { ca, agent: false, timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(0));
    asked.end();
  });
}

/** Distinct ports that are free now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise<typeof server>((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
