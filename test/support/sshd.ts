import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { freePort } from './loopback.ts';
import { untilTrue } from './until-true.ts';

const SSHD = '/usr/sbin/sshd';

/** The reason why tests with a real OpenSSH server cannot run; null where they can. */
export const sshdMissing: string | null = existsSync(SSHD) ? null : `${SSHD} is not installed (package openssh-server)`;

export interface Sshd {
  readonly port: number;
  readonly user: string;
  /** Contains the client's keys; removed by `stop`. */
  readonly directory: string;
  /** A private key that the server accepts. */
  readonly identityFile: string;
  /** The server's public key of a type, in the format of known_hosts: type and key. */
  hostKey(type: HostKeyType): string;
  /** Kills all connections and keeps listening. */
  dropConnections(): void;
  /** The complete log so far. */
  log(): string;
  stop(): Promise<void>;
}

export type HostKeyType = 'ed25519' | 'ecdsa' | 'rsa';

/**
 * Starts an OpenSSH server on a free port of the loopback with new host keys and its own configuration,
 * without PAM; the user of the test can log in.
 * @param options.config lines that precede the others and therefore win
 */
export async function startSshd(
  options: { readonly hostKeys?: readonly HostKeyType[]; readonly config?: readonly string[] } = {},
): Promise<Sshd> {
  const { hostKeys = ['ed25519'], config = [] } = options;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-sshd-'));
  const user = userInfo().username;
  const identityFile = join(directory, 'id_ed25519');
  // A compiled-in path of sshd; distributions create it when the service starts.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  for (const type of hostKeys) generateKey(join(directory, `host_${type}`), type);
  generateKey(identityFile, 'ed25519');
  const port = await freePort();
  const lines = [
    ...config,
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    ...hostKeys.map((type) => `HostKey ${join(directory, `host_${type}`)}`),
    `AuthorizedKeysFile ${identityFile}.pub`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    // bash of depth two does not read ~/.bashrc, which may be slow, or wait for a lock that a killed shell has left.
    'SetEnv SHLVL=1',
  ];
  writeFileSync(join(directory, 'sshd_config'), `${lines.join('\n')}\n`);
  const child = spawn(SSHD, ['-D', '-e', '-f', join(directory, 'sshd_config')], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const log = await untilListening(child);
  return {
    port,
    user,
    directory,
    identityFile,
    hostKey: (type) =>
      readFileSync(join(directory, `host_${type}.pub`), 'utf8')
        .trim()
        .split(' ')
        .slice(0, 2)
        .join(' '),
    dropConnections: () => {
      for (const pid of descendants(child.pid ?? 0)) killQuietly(pid);
    },
    log,
    stop: async () => {
      for (const pid of descendants(child.pid ?? 0)) killQuietly(pid);
      child.kill('SIGKILL');
      await ended;
      await untilTrue(() => {
        const left = sessionProcesses(port);
        for (const pid of left) killQuietly(pid);
        return left.length === 0;
      });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Generates a key pair with ssh-keygen: `path` and `path.pub`. */
export function generateKey(path: string, type: HostKeyType, passphrase = ''): void {
  // Generating a longer RSA key takes longer than most tests.
  const bits = type === 'rsa' ? ['-b', '2048'] : [];
  execFileSync('ssh-keygen', ['-q', '-t', type, ...bits, '-N', passphrase, '-C', 'test', '-f', path]);
}

function untilListening(child: ChildProcess): Promise<() => string> {
  let text = '';
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('Server listening')) resolve(() => text);
    });
    child.once('exit', () => reject(new Error(`sshd did not start: ${text}`)));
  });
}

/**
 * All descendants of a process by /proc, parents first: sshd has one or two processes per connection, which
 * must not report the exit of their commands.
 */
function descendants(root: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => parentOf(pid) === root)
    .map(Number);
  return children.flatMap((pid) => [pid, ...descendants(pid)]);
}

function parentOf(pid: string): number | null {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]);
  } catch {
    return null;
  }
}

/**
 * Processes of this user that were started by sessions of a server on this port, including those that
 * outlived it.
 */
export function sessionProcesses(port: number): number[] {
  const names = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return names
    .filter((pid) => environmentOf(pid).some((line) => line.startsWith('SSH_CONNECTION=') && line.endsWith(` ${port}`)))
    .map(Number);
}

function environmentOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has exited meanwhile.
  }
}
