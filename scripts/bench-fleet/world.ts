import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { checkRoot, resetRoot, touchRoot, workFiles, writeRestartStub } from './work.ts';

const SSHD = '/usr/sbin/sshd';

/**
 * One OpenSSH server for N hosts: it answers on 127.0.1.1 and following, and each address has a separate
 * root.
 */
export interface World {
  readonly directory: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly user: string;
  readonly identityFile: string;
  /** Contains the key of every address, on every port. */
  readonly knownHostsFile: string;
  readonly rootsDirectory: string;
  /** Empties every root. */
  reset(): void;
  /** Throws when a host differs from the expectation: bytes, modes, number of restarts. */
  verify(restarts: number, addresses?: readonly string[]): void;
  /** Edits one file of a host manually. */
  touch(address: string): void;
  /** A second server with OpenSSH's default limits that accepts the same keys. */
  startBastion(port: number): Promise<Bastion>;
  stop(): Promise<void>;
}

/**
 * @param port where the server listens, on all of 127.0.0.0/8
 * @param config lines that precede the others of sshd_config and therefore win
 */
export async function startWorld(count: number, port: number, config: readonly string[] = HIGH_LIMITS): Promise<World> {
  if (!existsSync(SSHD)) throw new Error(`${SSHD} is not installed (package openssh-server)`);
  // In memory if possible: on one disk the flushes of a thousand hosts would queue up, unlike on a thousand
  // hosts.
  const directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'kubeletadm-fleet-'));
  const identityFile = join(directory, 'id_ed25519');
  const hostKey = join(directory, 'host_ed25519');
  const rootsDirectory = join(directory, 'roots');
  const knownHostsFile = join(directory, 'known_hosts');
  const addresses = Array.from({ length: count }, (_, i) => addressOf(i));
  for (const path of [identityFile, hostKey]) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'bench', '-f', path]);
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  writeRestartStub(join(directory, 'bin'), rootsDirectory);
  writeFileSync(knownHostsFile, `127.0.*,[127.0.*]:* ${readFileSync(`${hostKey}.pub`, 'utf8')}`);
  const common = [
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${identityFile}.pub`,
    'KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org',
    // If the login shell is bash, it must not read the user's ~/.bashrc: below the first level bash does not.
    `SetEnv PATH=${join(directory, 'bin')}:/usr/sbin:/usr/bin:/sbin:/bin SHLVL=2`,
    'Subsystem sftp internal-sftp',
    'StrictModes no',
    'UsePAM no',
    'UseDNS no',
    'PidFile none',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
  ];
  const sshd = await startSshd(join(directory, 'sshd_config'), [...config, `ListenAddress 0.0.0.0:${port}`, ...common]);
  const reset = (): void => {
    for (const address of addresses) resetRoot(join(rootsDirectory, address));
  };
  reset();
  return {
    directory,
    addresses,
    port,
    user: userInfo().username,
    identityFile,
    knownHostsFile,
    rootsDirectory,
    reset,
    touch: (address) => touchRoot(join(rootsDirectory, address)),
    startBastion: (bastionPort) => startBastion(directory, common, bastionPort),
    verify: (restarts, which = addresses) => {
      for (const address of which) {
        const wrong = checkRoot(join(rootsDirectory, address), workFiles(address), restarts);
        if (wrong !== null) throw new Error(wrong);
      }
    },
    stop: async () => {
      rmSync(directory, { recursive: true, force: true });
      await sshd.stop();
    },
  };
}

/** A host that accepts a connection and sends nothing. */
export async function startSilentHost(port: number): Promise<{ stop(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export interface Bastion {
  readonly logins: () => number;
  stop(): Promise<void>;
}

async function startBastion(directory: string, common: readonly string[], port: number): Promise<Bastion> {
  const sshd = await startSshd(join(directory, 'bastion_config'), [`ListenAddress 127.0.0.1:${port}`, ...common]);
  return { logins: () => sshd.log().match(/Accepted publickey/g)?.length ?? 0, stop: sshd.stop };
}

interface Server {
  readonly log: () => string;
  stop(): Promise<void>;
}

async function startSshd(config: string, lines: readonly string[]): Promise<Server> {
  writeFileSync(config, `${lines.join('\n')}\n`);
  const child = spawn(SSHD, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = await untilListening(child);
  return {
    log,
    stop: async () => {
      if (child.exitCode !== null) throw new Error(`sshd exited: ${log().slice(-500)}`);
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const HIGH_LIMITS = ['MaxStartups 2000', 'MaxSessions 100', 'LoginGraceTime 120'];

function addressOf(index: number): string {
  return `127.0.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`;
}

function untilListening(sshd: ChildProcess): Promise<() => string> {
  let text = '';
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error(`sshd did not start: ${text}`));
    sshd.once('exit', onExit);
    sshd.stderr?.on('data', (chunk: Buffer) => {
      // Enough log for counting logins of a bastion; a thousand hosts log a lot.
      if (text.length < 1_000_000) text += chunk.toString();
      if (!text.includes('Server listening')) return;
      sshd.off('exit', onExit);
      resolve(() => text);
    });
  });
}
