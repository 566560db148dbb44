import { untilAborted } from '../base/abort.ts';
import { type AppError, isAppError } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import type { Secret } from '../base/text/secret.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoSudo, hostSudoPassword } from './host-problems.ts';
import type { RunOptions, RunResult, Transport } from './transport.ts';

/** `auto`: sudo if the remote user is not root. `none`: commands run unchanged. */
export type Become = 'auto' | 'sudo' | 'none';

export interface AsRootOptions {
  readonly become: Become;
  /** Password of the remote user. Used only if sudo requires it. */
  readonly sudoPassword?: Secret | undefined;
  /** Timeout of one sudo attempt. Default: the transport's. */
  readonly commandTimeoutMs?: number | undefined;
}

/** How commands are started, determined once per transport. */
type Route = { readonly kind: 'directly' } | { readonly kind: 'sudo' } | { readonly kind: 'password'; readonly password: Secret };

/**
 * Line after the password on stdin: the following input belongs to the command, whether or not sudo consumed
 * the password.
 */
const BEGIN = 'kubeletadm: standard input begins';

/**
 * Reads up to the line `$0`, then executes the command. The shell's `read` reads byte by byte and so does not
 * consume more. The message for a missing command equals sudo's.
 */
const SKIP_PASSWORD = [
  'IFS= read -r l',
  '[ "$l" = "$0" ]||IFS= read -r l',
  'command -v "$1" >/dev/null 2>&1||{ echo "sudo: $1: command not found" >&2;exit 1;}',
  'exec "$@"',
].join(';');

/** Prefix of the stderr line that {@link FIRST_COMMAND} prints. */
const WAY = 'kubeletadm way:';

/**
 * Determines the privilege escalation and executes the command in its arguments, all in one round trip. Its first
 * argument is `auto` or `sudo`. Its first stderr line is the result: `directly`, `sudo`, `missing` (root, but
 * the program does not exist), `refused` (sudo without a password failed), `unknown …`. With the last three
 * the command does not run.
 */
const FIRST_COMMAND = [
  'case $1 in auto) if [ -O / ]&&[ -O /proc/1 ];then u=0;else u=$(id -u </dev/null);fi 2>/dev/null;; *) u=1;; esac;shift',
  'case $u in 0) w=directly;; ""|*[!0-9]*) w="unknown $u";; *) w=sudo;LC_ALL=C sudo -n -- true </dev/null >/dev/null 2>&1||w=refused;; esac',
  'if [ "$w" = directly ];then case $1 in */*) [ -f "$1" ]&&[ -x "$1" ];; *) command -v "$1" >/dev/null 2>&1;; esac||w=missing;fi',
  `echo "${WAY} $w" >&2`,
  'case $w in directly) exec "$@";; sudo) exec sudo -n -- "$@";; esac',
  'exit 127',
].join(';');

/**
 * A Transport whose commands run as root. The first command determines whether sudo is required and works.
 *
 * With a password sudo gets it as the first line of stdin (`-S -k`: requested each time, not cached on the
 * host). A shell between sudo and the command consumes the line if sudo did not (NOPASSWD), so that the
 * password never reaches the command.
 * @throws (its commands) AppError HOST_NO_SUDO, HOST_SUDO_PASSWORD, and errors of the transport
 */
export function asRoot(transport: Transport, options: AsRootOptions): Transport {
  const { become } = options;
  if (become === 'none') return transport;
  let finding: Promise<Route> | null = null;

  const runFirst = async (argv: readonly string[], runOptions: RunOptions): Promise<RunResult> => {
    const first = runFirstCommand(transport, argv, become, runOptions);
    const present = first.then(({ route }) => route ?? observeRoute(transport, options));
    finding = present;
    // An unreachable host is tried again; a wrong password is not, since each attempt counts against the
    // account.
    present.catch((error: unknown) => {
      if (finding === present && !isAppError(error, 'HOST_SUDO_PASSWORD')) finding = null;
    });
    const { route, outcome } = await untilAborted(first, runOptions.signal);
    return route === null ? runBy(await untilAborted(present, runOptions.signal), argv, runOptions) : outcome();
  };

  const runBy = async (route: Route, argv: readonly string[], runOptions: RunOptions): Promise<RunResult> => {
    switch (route.kind) {
      case 'directly':
        return transport.run(argv, runOptions);
      case 'sudo':
        return checked(transport.name, argv, await transport.run(['sudo', '-n', '--', ...argv], runOptions));
      case 'password':
        return checked(transport.name, argv, await runWithPassword(transport, argv, route.password, runOptions));
    }
  };

  return {
    name: transport.name,
    run: async (argv, runOptions = {}) => {
      for (;;) {
        if (finding === null) return runFirst(argv, runOptions);
        const route = await untilAborted(finding, runOptions.signal).catch((error: unknown) => {
          // The request that determined the route was aborted; this one continues.
          if (isAppError(error) || runOptions.signal?.aborted) throw error;
          return null;
        });
        if (route !== null) return runBy(route, argv, runOptions);
      }
    },
    dial: transport.dial,
    close: () => transport.close(),
  };
}

interface First {
  /** null: privilege escalation is required, and the command did not run. */
  readonly route: Route | null;
  readonly outcome: () => RunResult;
}

async function runFirstCommand(
  transport: Transport,
  argv: readonly string[],
  become: 'auto' | 'sudo',
  options: RunOptions,
): Promise<First> {
  const host = transport.name;
  const words = [become, ...argv].map(quoteShell).join(' ');
  const result = await transport.run(['/bin/sh', '-c', `set -- ${words};${FIRST_COMMAND}`], options);
  const end = result.stderr.indexOf(0x0a);
  const reported = end < 0 ? '' : decode(result.stderr.subarray(0, end));
  const rest: RunResult = { ...result, stderr: result.stderr.subarray(end + 1) };
  switch (reported) {
    case `${WAY} directly`:
      return { route: { kind: 'directly' }, outcome: () => rest };
    case `${WAY} sudo`:
      return { route: { kind: 'sudo' }, outcome: () => checked(host, argv, rest) };
    case `${WAY} missing`:
      return {
        route: { kind: 'directly' },
        outcome: () => {
          throw hostCommandNotFound({ host, command: argv[0] ?? '' });
        },
      };
    case `${WAY} refused`:
      return { route: null, outcome: () => rest };
  }
  throw hostConnectionLost({
    host,
    why: `cannot determine the remote user: id -u printed "${printable(reported.replace(`${WAY} unknown `, ''), 80)}"`,
  });
}

/** The routes for a user other than root. */
async function observeRoute(transport: Transport, { sudoPassword, commandTimeoutMs }: AsRootOptions): Promise<Route> {
  const limit = { timeoutMs: commandTimeoutMs };
  const free = await trySudo(transport, ['-n'], limit);
  if (free.exitCode === 0) return { kind: 'sudo' };
  const why = sudoFailure(transport.name, free);
  if (!isAppError(why, 'HOST_SUDO_PASSWORD') || sudoPassword === undefined) throw why;
  // Without further input, sudo gives up after a wrong password.
  const paid = await trySudo(transport, PASSWORD_FLAGS, { ...limit, stdin: `${sudoPassword.reveal()}\n` });
  if (paid.exitCode === 0) return { kind: 'password', password: sudoPassword };
  throw sudoFailure(transport.name, paid);
}

const PASSWORD_FLAGS = ['-S', '-k', '-p', ''];

/** Sets the C locale, since sudo's messages are parsed. */
async function trySudo(transport: Transport, flags: readonly string[], options: RunOptions): Promise<RunResult> {
  try {
    return await transport.run(['env', 'LC_ALL=C', 'sudo', ...flags, '--', 'true'], options);
  } catch (error) {
    throw isAppError(error, 'HOST_COMMAND_NOT_FOUND') ? noSudo(transport.name, error) : error;
  }
}

function runWithPassword(transport: Transport, argv: readonly string[], password: Secret, options: RunOptions): Promise<RunResult> {
  const stdin = `${password.reveal()}\n${BEGIN}\n${options.stdin ?? ''}`;
  return transport.run(['sudo', ...PASSWORD_FLAGS, '--', '/bin/sh', '-c', SKIP_PASSWORD, BEGIN, ...argv], { ...options, stdin });
}

/** Distinguishes a refusal of sudo from a failed command. After a refusal the command has not run. */
function checked(host: string, argv: readonly string[], result: RunResult): RunResult {
  const [command = ''] = argv;
  if (result.exitCode !== 1 || result.stdout.byteLength > 0) return result;
  const stderr = decode(result.stderr).trim();
  if (stderr === `sudo: ${command}: command not found`) throw hostCommandNotFound({ host, command });
  if (/^sudo: a password is required$/m.test(stderr)) throw sudoFailure(host, result);
  return result;
}

interface Refusal {
  readonly pattern: RegExp;
  readonly error: (host: string, line: string) => AppError;
}

const REFUSALS: readonly Refusal[] = [
  {
    pattern: /incorrect password attempt|Sorry, try again|no password was provided/i,
    error: (host) => hostSudoPassword({ host, why: 'sudo rejected the password', hint: 'Pass the password of the SSH user' }),
  },
  {
    pattern: /a password is required|a terminal is required/,
    error: (host) =>
      hostSudoPassword({
        host,
        why: 'sudo requires a password',
        hint: 'Pass the sudo password with --sudo-password-stdin or the environment variable KUBELETADM_SUDO_PASSWORD, connect as root, or allow this user sudo without a password (NOPASSWD: ALL)',
      }),
  },
  {
    pattern: /must have a tty/,
    error: (host) => hostNoSudo({ host, why: 'sudo requires a terminal', hint: 'Remove requiretty for this user from the sudoers file' }),
  },
  { pattern: /not in the sudoers file|not allowed to|may not run sudo/i, error: (host, line) => hostNoSudo({ host, why: line }) },
];

/** Exit code 127 is env's: sudo is not installed. */
function sudoFailure(host: string, result: RunResult): AppError {
  const stderr = decode(result.stderr).trim();
  if (result.exitCode === 127) return noSudo(host);
  const refusal = REFUSALS.find(({ pattern }) => pattern.test(stderr));
  const lines = stderr.split('\n').filter((line) => refusal === undefined || refusal.pattern.test(line));
  const line = printable((lines.at(-1) ?? '').replace(/^sudo: /, ''));
  if (refusal !== undefined) return refusal.error(host, line);
  return hostNoSudo({ host, why: `sudo failed${line === '' ? '' : `: ${line}`}` });
}

function noSudo(host: string, cause?: unknown): AppError {
  return hostNoSudo({ host, why: 'sudo is not installed', hint: 'Connect as root, or install sudo', cause });
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
