import { randomInt } from 'node:crypto';
import { chmod, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join, resolve } from 'node:path';
import { usageError } from '../src/base/errors.ts';
import type { Secret } from '../src/base/text/secret.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { KUBE_SYSTEM } from '../src/kube/well-known.ts';
import { generateToken } from '../src/kubeadm/token/token-secret.ts';
import type { Catalogue } from '../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../src/kubelet/catalogue/load-catalogue.ts';
import { type LabApiServer, startApiServer } from './api-server/server.ts';
import { type LabNetwork, labNetwork } from './hosts/lab-network.ts';
import { createRootTree, RUNTIME_SOCKET } from './hosts/root-tree.ts';
import { newSshKey } from './hosts/ssh-key.ts';
import { type SshServer, startSshServer } from './hosts/ssh-server.ts';
import { writeStandInCommands } from './hosts/stand-in-commands.ts';
import { StandInHost } from './hosts/stand-in-host.ts';
import type { Lab, LabHost, LabOptions } from './lab-options.ts';

const KUBELET_VERSION = 'v1.36.2';

/**
 * Starts an API server and hosts in this process: no installation, no root privileges. Each host is a
 * directory as its root, behind its own SSH server, with a stand-in service manager and kubelet.
 */
export async function startLab({ directory, hosts: count }: LabOptions): Promise<Lab> {
  checkLength(directory, count);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await checkPrivate(directory);
  const api = await startApiServer({
    controllers: ['bootstrap-signer', 'token-cleaner', 'csr-approver', 'csr-signer', 'node-lifecycle', 'job-runner', 'disruption'],
  });
  // All users of the local host can reach the API server, so the token must be secret.
  const token = generateToken(randomInt);
  api.put(bootstrapTokenSecret(token));
  const files = { kubeconfig: join(directory, 'admin.conf'), sshConfig: join(directory, 'ssh_config'), caFile: join(directory, 'ca.crt') };
  await writeFile(files.kubeconfig, api.adminKubeconfig(), { mode: 0o600 });
  await writeFile(files.caFile, api.caPem);
  // A unit names programs by absolute paths, and hosts find them on this PATH.
  const bin = resolve(directory, 'bin');
  await writeStandInCommands(bin);
  const user = newSshKey('kubeletadm lab');
  await writePrivate(join(directory, 'id_ed25519'), user.private);
  const names = Array.from({ length: count }, (_, i) => `node${i + 1}`);
  const catalogue = await loadCatalogue();
  const network = labNetwork(Number(new URL(api.url).port));
  const apiStarted = (server: LabApiServer): void => proxyNodes(server, started);
  const starting = await Promise.allSettled(
    names.map((name, index) => startHost({ name, index, directory, bin, authorizedKey: user.public, catalogue, network, apiStarted })),
  );
  const started = starting.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(started.map(({ standIn }) => standIn.close()));
    await Promise.all(started.flatMap(({ ssh, socket }) => [ssh.close(), new Promise((resolve) => socket.close(resolve))]));
    await api.close();
  };
  const failed = starting.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await close();
    throw failed.reason;
  }
  apiStarted(api);
  await writeFile(files.sshConfig, sshConfig(directory, started));
  await writeFile(join(directory, 'known_hosts'), started.map(({ host, hostKey }) => `[127.0.0.1]:${host.port} ${hostKey}\n`).join(''));
  return {
    directory,
    server: api.url,
    ...files,
    token,
    hosts: started.map(({ host }) => host),
    close,
  };
}

/** The API server reaches the kubelets of all hosts. */
function proxyNodes(api: LabApiServer, hosts: readonly StartedHost[]): void {
  for (const { host, standIn } of hosts)
    api.proxyNode(host.name, (path) => {
      if (standIn.configz === null) return 'down';
      return path === '/configz' ? { status: 200, body: { kubeletconfig: standIn.configz } } : null;
    });
}

/** The longest path of a socket, in bytes: sun_path without its end (unix(7); macOS: unix(4)). */
const MAX_SOCKET_PATH = process.platform === 'darwin' ? 103 : 107;

/** Longer paths of sockets are cut off without an error. */
function checkLength(directory: string, hosts: number): void {
  const tooLong = Buffer.byteLength(join(directory, `node${hosts}`, RUNTIME_SOCKET)) - MAX_SOCKET_PATH;
  if (tooLong > 0)
    throw usageError(
      `lab directory ${directory}: its path is ${tooLong} characters too long for the sockets of the hosts`,
      'Use a shorter directory, with --dir or by setting TMPDIR=/tmp',
    );
}

/**
 * Keys are written into the directory, and directories in it are removed: another user with write access
 * could replace them with links.
 */
async function checkPrivate(directory: string): Promise<void> {
  const { uid, mode } = await stat(directory);
  if (uid === process.geteuid?.() && (mode & 0o022) === 0) return;
  throw usageError(
    `lab directory ${directory}: writable by other users`,
    'Use a directory that only you can write to, or one that does not exist yet',
  );
}

interface StartedHost {
  readonly host: LabHost;
  readonly standIn: StandInHost;
  readonly ssh: SshServer;
  readonly socket: Server;
  /** As in known_hosts. */
  readonly hostKey: string;
}

async function startHost(options: {
  readonly name: string;
  readonly index: number;
  readonly directory: string;
  readonly bin: string;
  readonly authorizedKey: string;
  readonly catalogue: Catalogue;
  readonly network: LabNetwork;
  readonly apiStarted: (api: LabApiServer) => void;
}): Promise<StartedHost> {
  const { name, index, directory, bin, authorizedKey, catalogue, network, apiStarted } = options;
  const rootDir = join(directory, name);
  await rm(rootDir, { recursive: true, force: true });
  // The second host shows that detection is per host: its systemd-resolved runs.
  const resolved = index === 1;
  const address = network.addressOf(index);
  const loopback = network.loopbackOf(address) ?? '';
  const socket = await createRootTree(rootDir, { hostname: name, address, resolved });
  const standIn = new StandInHost({
    rootDir,
    hostname: name,
    kubeletVersion: KUBELET_VERSION,
    resolved,
    now: () => new Date(),
    address,
    catalogue,
    network,
    apiStarted,
  });
  const key = newSshKey(name);
  const env = { PATH: `${bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`, HOME: rootDir, KUBELETADM_ROOT: rootDir };
  const ssh = await startSshServer({
    ...{ hostKey: key.private, authorizedKey, env },
    answer: (line) => standIn.answer(line),
    loopbackOf: (to) => (to === '127.0.0.1' ? loopback : network.loopbackOf(to)),
  });
  const host: LabHost = { name, port: ssh.port, rootDir, loopback, kubeletStarts: () => standIn.starts, agent: () => standIn.agent };
  return { host, standIn, ssh, socket, hostKey: key.public.split(' ').slice(0, 2).join(' ') };
}

function sshConfig(given: string, hosts: readonly StartedHost[]): string {
  // ssh resolves relative paths against its working directory.
  const directory = resolve(given);
  const aliases = hosts.map(({ host }) => `Host ${host.name}\n  HostName 127.0.0.1\n  Port ${host.port}\n`);
  const common = `Host *\n  User root\n  IdentityFile ${directory}/id_ed25519\n  IdentitiesOnly yes\n  UserKnownHostsFile ${directory}/known_hosts\n  StrictHostKeyChecking yes\n`;
  return [...aliases, common].join('\n');
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  await chmod(path, 0o600);
}

function bootstrapTokenSecret(token: Secret): KubeObject {
  const [id, secret] = token.reveal().split('.') as [string, string];
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${id}`, namespace: KUBE_SYSTEM },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': id,
      'token-secret': secret,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
    },
  };
}
