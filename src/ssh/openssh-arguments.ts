import type { AppError } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import {
  CONNECT_TIMEOUT_HINT,
  hostAuthFailed,
  hostTimeout,
  hostUnreachable,
  NO_SUCH_NAME,
  revokedKeysUnusable,
  sshKeyRefused,
} from '../host/host-problems.ts';
import { isDefaultIdentity } from './resolve-target.ts';
import { addressOf, type SshTarget, unknownNameHint } from './target.ts';

export interface OpensshLogin {
  /** Path of the control socket. */
  readonly socket: string;
  /** Control socket of the connection to the jump host; null: as configured in ssh_config. */
  readonly via: string | null;
  /** Command that runs on the local host after the login. */
  readonly localCommand: string;
  /** Replaces the configuration files of the user and the system. */
  readonly configFile?: string | undefined;
  /** A known_hosts file with the only accepted keys. */
  readonly pinnedKeysFile?: string | undefined;
}

/**
 * The arguments with which `ssh` logs in to a host and then serves commands on its control socket. Settings
 * that the built-in client does not support (certificates, Kerberos, algorithms, ProxyCommand) take effect
 * through the host's alias; ssh never prompts, and nothing is forwarded.
 * @see ssh_config(5)
 */
export function opensshArguments(target: SshTarget, login: OpensshLogin): readonly string[] {
  const { socket, via, localCommand, configFile, pinnedKeysFile } = login;
  const { connectTimeoutMs, strictHostKeyChecking, hostKeyAlias } = target;
  const options = [
    'BatchMode=yes',
    'ControlMaster=yes',
    'ControlPersist=no',
    `ControlPath=${configWord(socket)}`,
    'PermitLocalCommand=yes',
    `LocalCommand=${localCommand}`,
    'RemoteCommand=none',
    'RequestTTY=no',
    'ForwardAgent=no',
    'ForwardX11=no',
    'ClearAllForwardings=yes',
    'UpdateHostKeys=no',
    'LogLevel=INFO',
    `ConnectTimeout=${Math.max(1, Math.ceil(connectTimeoutMs / 1000))}`,
    'ServerAliveInterval=15',
    'ServerAliveCountMax=3',
    `HostName=${target.hostName}`,
    `Port=${target.port}`,
    `User=${target.user}`,
    ...(hostKeyAlias === null ? [] : [`HostKeyAlias=${hostKeyAlias}`]),
    ...(pinnedKeysFile === undefined
      ? [
          `StrictHostKeyChecking=${strictHostKeyChecking}`,
          `UserKnownHostsFile=${configWords(target.userKnownHostsFiles)}`,
          `GlobalKnownHostsFile=${configWords(target.globalKnownHostsFiles)}`,
        ]
      : [
          'StrictHostKeyChecking=yes',
          `UserKnownHostsFile=${configWord(pinnedKeysFile)}`,
          'GlobalKnownHostsFile=none',
          'KnownHostsCommand=none',
        ]),
    ...target.identityFiles.filter((path) => !isDefaultIdentity(path)).map((path) => `IdentityFile=${configWord(path)}`),
    ...(target.identitiesOnly ? ['IdentitiesOnly=yes'] : []),
    ...(via === null
      ? []
      : [`ProxyCommand=ssh ${controlSocketArguments(via).map(quoteShell).join(' ').replaceAll('%', '%%')} -W '[%h]:%p' jump`]),
  ];
  const file = configFile === undefined ? [] : ['-F', configFile];
  return [...file, '-N', '-T', ...options.flatMap((option) => ['-o', option]), '--', target.alias ?? target.hostName];
}

/**
 * The arguments with which `ssh` uses a control socket, and fails if the socket is gone instead of opening a
 * new connection.
 */
export function controlSocketArguments(socket: string): readonly string[] {
  const options = [`ControlPath=${configWord(socket)}`, 'ControlMaster=no', 'ProxyCommand=false', 'BatchMode=yes', 'LogLevel=ERROR'];
  return ['-F', 'none', '-T', ...options.flatMap((option) => ['-o', option])];
}

/** A path as an argument of ssh_config: `%` starts a token, `"` and `\` are special. */
function configWord(path: string): string {
  return `"${path.replace(/["\\]/g, '\\$&').replaceAll('%', '%%')}"`;
}

function configWords(paths: readonly string[]): string {
  return paths.length === 0 ? 'none' : paths.map(configWord).join(' ');
}

const unreachable =
  (why: string) =>
  ({ name }: SshTarget, address: string): AppError =>
    hostUnreachable({ host: name, address, why });

/** Login failures that ssh reports, the most specific first. The texts are those of OpenSSH 8.4 to 10. */
const READINGS: readonly {
  readonly pattern: RegExp;
  readonly problem: (target: SshTarget, address: string, line: string) => AppError;
}[] = [
  {
    pattern: /REMOTE HOST IDENTIFICATION HAS CHANGED|host key for \S{1,255} has changed/i,
    problem: ({ name }, _, line) =>
      sshKeyRefused({ host: name, code: 'HOST_KEY_MISMATCH', why: 'the host key has changed', reported: line }),
  },
  {
    pattern: /REVOKED HOST KEY|host key .{1,255} (?:is revoked|revoked by file)|is marked as revoked/i,
    problem: ({ name }, _, line) => sshKeyRefused({ host: name, code: 'HOST_KEY_REVOKED', why: 'the host key is revoked', reported: line }),
  },
  {
    pattern: /Error checking host key .{1,255} in revoked keys file/i,
    problem: ({ name }, _, line) =>
      revokedKeysUnusable({
        host: name,
        file: '',
        why: `ssh reported "${printable(line)}"`,
        hint: 'Check the file named by RevokedHostKeys in ssh_config',
      }),
  },
  {
    pattern: /Host key verification failed|No \S{1,64} host key is known/i,
    problem: ({ name }, _, line) => sshKeyRefused({ host: name, code: 'HOST_KEY_UNKNOWN', why: 'unknown host key', reported: line }),
  },
  {
    pattern: /Permission denied \([^)]{0,255}\)|Too many authentication failures/,
    problem: ({ name, user, identityFiles }, address, line) =>
      hostAuthFailed({
        host: name,
        user,
        address,
        tried: identityFiles.map((path) => `key ${path}`),
        skipped: [],
        accepts: /\(([^)]{0,255})\)/.exec(line)?.[1]?.split(',') ?? [],
        why: printable(line),
        cause: undefined,
      }),
  },
  { pattern: /Connection refused/, problem: unreachable('connection refused') },
  { pattern: /No route to host/, problem: unreachable('no route to host') },
  { pattern: /Network is unreachable/, problem: unreachable('network is unreachable') },
  {
    pattern: /Could not resolve hostname/,
    problem: (target, address) => hostUnreachable({ host: target.name, address, why: NO_SUCH_NAME, hint: unknownNameHint(target) }),
  },
  {
    pattern: /timed out/,
    problem: ({ name, connectTimeoutMs }, address) =>
      hostTimeout({ host: name, what: `${address}: no SSH handshake`, timeoutMs: connectTimeoutMs, hint: CONNECT_TIMEOUT_HINT }),
  },
  {
    pattern: /Connection (closed|reset) by|kex_exchange_identification|Exceeded MaxStartups/,
    problem: ({ name }, address, line) =>
      hostUnreachable({
        host: name,
        address,
        why: printable(line),
        hint: 'Check that an SSH server listens on this port. On the host, check MaxStartups in sshd_config, /etc/hosts.deny and the journal of sshd',
      }),
  },
];

/**
 * Classifies the stderr output of a failed login with the system's ssh.
 * @param reported the complete stderr output
 * @returns AppError HOST_KEY_MISMATCH, HOST_KEY_REVOKED, HOST_KEY_UNKNOWN, HOST_AUTH_FAILED, HOST_TIMEOUT or
 *   HOST_UNREACHABLE
 */
export function readOpensshFailure(target: SshTarget, reported: string): AppError {
  const address = addressOf(target);
  const lines = reported.split(/\r?\n/).filter((line) => line.trim() !== '');
  for (const { pattern, problem } of READINGS) {
    const line = lines.findLast((each) => pattern.test(each));
    if (line !== undefined)
      return problem(
        target,
        address,
        trimTrailing(line, '@')
          .replace(/^ssh: |^@+/, '')
          .trim(),
      );
  }
  return hostUnreachable({ host: target.name, address, why: printable(lines.at(-1) ?? '') || 'ssh exited without a message' });
}
