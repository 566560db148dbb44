import { untilAborted } from '../base/abort.ts';
import { type AppError, isAppError } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import type { Secret } from '../base/text/secret.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoSudo, hostSudoPassword } from './host-problems.ts';
import type { RunOptions, RunResult, Transport } from './transport.ts';

interface AsRootOptions {
  /** `auto`: sudo if the remote user is not root. `none`: commands run unchanged. */
  readonly become: 'auto' | 'sudo' | 'none';
  /** Password of the remote user. Used only if sudo requires it. */
  readonly sudoPassword?: Secret | undefined;
  /** Timeout of one sudo attempt. Default: the transport's. */
  readonly commandTimeoutMs?: number | undefined;
}

/** How commands are started, determined once per transport: with sudo and a password, if it requires one. */
type Route = 'directly' | 'sudo' | Secret;

/** Line after the password on stdin: the following input belongs to the command. */
const BEGIN = 'kubeletadm: standard input begins';

/** Stderr line that shows that sudo started the command; earlier output is sudo's (lecture, prompt, PAM). */
const STARTED = 'kubeletadm: sudo started the command';

/** sudo-rs 0.2.5 reads the password through a buffer of 8 KiB, and would consume input of the command. */
const PADDING = '.'.repeat(8192);

const EXISTS = 'case $1 in */*) [ -f "$1" ]&&[ -x "$1" ];; *) command -v "$1" >/dev/null 2>&1;; esac';

/** Reports on stderr that sudo succeeded, then executes the command. */
const START = `${EXISTS}||{ echo "${STARTED} missing" >&2;exit 127;};echo "${STARTED}" >&2;exec "$@"`;

/** Reads up to the line `$0`, then executes the command. `read` reads byte by byte, and so not more than the line. */
const SKIP_PASSWORD = `while IFS= read -r l&&[ "$l" != "$0" ];do :;done;${START}`;

const WAY = 'kubeletadm way:';

/**
 * Determines the privilege escalation and executes the command. Arguments: `auto` or `sudo`, the script that
 * sudo runs, the command. Its first stderr line is the result: `directly`, `sudo`, `missing` (root, but the
 * program does not exist), `unknown …`. With the last two the command does not run.
 */
const FIRST_COMMAND = [
  'case $1 in auto) if [ -O / ]&&[ -O /proc/1 ];then u=0;else u=$(id -u </dev/null);fi 2>/dev/null;; *) u=1;; esac;s=$2;shift 2',
  'case $u in 0) w=directly;; ""|*[!0-9]*) w="unknown $u";; *) w=sudo;; esac',
  `if [ "$w" = directly ];then ${EXISTS}||w=missing;fi`,
  `echo "${WAY} $w" >&2`,
  'case $w in directly) exec "$@";; sudo) exec sudo -n -- /bin/sh -c "$s" sh "$@";; esac',
  'exit 127',
].join(';');

/**
 * A Transport whose commands run as root. The first command determines whether sudo is required and works.
 *
 * Only exit codes and the start line of the command decide, because the messages of sudo differ by
 * implementation (sudo, sudo-rs) and language. If sudo refuses to run without a password, a given password is
 * sent as the first line of stdin (`-S -k`: requested each time, not cached on the host). A shell between sudo
 * and the command consumes the line if sudo did not (NOPASSWD), so that the password never reaches the command.
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
    // An unreachable host is tried again; sudo is not, since each wrong password counts against the account.
    present.catch((error: unknown) => {
      if (finding === present && !isAppError(error, 'HOST_SUDO_PASSWORD') && !isAppError(error, 'HOST_NO_SUDO')) finding = null;
    });
    const { route, outcome } = await untilAborted(first, runOptions.signal);
    return route === null ? runBy(await untilAborted(present, runOptions.signal), argv, runOptions) : outcome();
  };

  const runBy = async (route: Route, argv: readonly string[], runOptions: RunOptions): Promise<RunResult> => {
    if (route === 'directly') return transport.run(argv, runOptions);
    const result =
      route === 'sudo'
        ? transport.run(['sudo', '-n', '--', '/bin/sh', '-c', START, 'sh', ...argv], runOptions)
        : runWithPassword(transport, argv, route, runOptions);
    return checked(transport.name, argv, await result);
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

/** @returns a route of null: privilege escalation is required, and the command did not run */
async function runFirstCommand(
  transport: Transport,
  argv: readonly string[],
  become: 'auto' | 'sudo',
  options: RunOptions,
): Promise<{ readonly route: Route | null; readonly outcome: () => RunResult }> {
  const host = transport.name;
  const words = [become, START, ...argv].map(quoteShell).join(' ');
  const result = await transport.run(['/bin/sh', '-c', `set -- ${words};${FIRST_COMMAND}`], options);
  const end = result.stderr.indexOf(0x0a);
  const reported = end < 0 ? '' : decode(result.stderr.subarray(0, end));
  const rest: RunResult = { ...result, stderr: result.stderr.subarray(end + 1) };
  switch (reported) {
    case `${WAY} directly`:
      return { route: 'directly', outcome: () => rest };
    case `${WAY} sudo`:
      return { route: isStarted(rest) ? 'sudo' : null, outcome: () => checked(host, argv, rest) };
    case `${WAY} missing`:
      return {
        route: 'directly',
        outcome: () => {
          throw hostCommandNotFound({ host, command: argv[0] ?? '' });
        },
      };
  }
  const user = printable(reported.replace(`${WAY} unknown `, ''), 80);
  throw hostConnectionLost({ host, why: `cannot determine the remote user: id -u printed "${user}"` });
}

/** The routes for a user other than root, after the first command failed. */
async function observeRoute(transport: Transport, { sudoPassword, commandTimeoutMs }: AsRootOptions): Promise<Route> {
  const host = transport.name;
  const limit = { timeoutMs: commandTimeoutMs };
  const free = await trySudo(transport, ['-n'], limit);
  if (free.exitCode === 0) return 'sudo';
  if (free.exitCode === 127) throw noSudo(host);
  if (sudoPassword === undefined) throw sudoFailure(host, free);
  // Without further input, sudo gives up after a wrong password.
  const paid = await trySudo(transport, PASSWORD_FLAGS, { ...limit, stdin: `${sudoPassword.reveal()}\n` });
  if (paid.exitCode === 0) return sudoPassword;
  throw sudoFailure(host, paid, 'with-password');
}

const PASSWORD_FLAGS = ['-S', '-k', '-p', ''];

/** Sets the C locale for the wording of an error. Runs a shell, like each later command. */
async function trySudo(transport: Transport, flags: readonly string[], options: RunOptions): Promise<RunResult> {
  try {
    return await transport.run(['env', 'LC_ALL=C', 'sudo', ...flags, '--', '/bin/sh', '-c', ':'], options);
  } catch (error) {
    throw isAppError(error, 'HOST_COMMAND_NOT_FOUND') ? noSudo(transport.name, error) : error;
  }
}

function runWithPassword(transport: Transport, argv: readonly string[], password: Secret, options: RunOptions): Promise<RunResult> {
  const stdin = `${password.reveal()}\n${PADDING}\n${BEGIN}\n${options.stdin ?? ''}`;
  return transport.run(['sudo', ...PASSWORD_FLAGS, '--', '/bin/sh', '-c', SKIP_PASSWORD, BEGIN, ...argv], { ...options, stdin });
}

function isStarted({ stderr }: RunResult): boolean {
  return Buffer.from(stderr).includes(`${STARTED}\n`);
}

/** The result without the output of sudo. @throws AppError of `sudoFailure`, HOST_COMMAND_NOT_FOUND */
function checked(host: string, argv: readonly string[], result: RunResult): RunResult {
  const stderr = Buffer.from(result.stderr);
  const at = stderr.indexOf(STARTED);
  const end = stderr.indexOf('\n', at);
  // Without an exit code, a signal killed sudo.
  if (at < 0 && result.exitCode !== null) throw sudoFailure(host, result);
  if (at < 0) return result;
  if (stderr.subarray(at, end).toString() !== STARTED) throw hostCommandNotFound({ host, command: argv[0] ?? '' });
  return { ...result, stderr: stderr.subarray(end + 1) };
}

const PASSWORD_HINT =
  'Pass the sudo password with --sudo-password-stdin or the environment variable KUBELETADM_SUDO_PASSWORD, connect as root, or allow this user sudo for all commands without a password (USER ALL=(root) NOPASSWD: ALL in a file of /etc/sudoers.d); a rule for single commands is not sufficient';
const SUDO_HINT = 'allow this user to use sudo for all commands (USER ALL=(root) ALL in a file of /etc/sudoers.d)';
const RIGHTS_HINT = `Connect as root, or ${SUDO_HINT}`;
const PASSWORD_REJECTED = { why: 'sudo rejected the password', hint: 'Pass the password of the SSH user' };

/** Wordings of sudo 1.9 and sudo-rs 0.2. They select the message only. */
const REFUSALS: readonly { readonly pattern: RegExp; readonly error: (host: string, line: string) => AppError }[] = [
  {
    pattern: /not in the sudoers file|not allowed to|may not run sudo|I'm afraid I can't do that/i,
    error: (host, line) => hostNoSudo({ host, why: `sudo does not allow this user to run all commands: ${line}`, hint: RIGHTS_HINT }),
  },
  {
    pattern: /must have a tty/,
    error: (host) => hostNoSudo({ host, why: 'sudo requires a terminal', hint: 'Remove requiretty for this user from the sudoers file' }),
  },
  {
    pattern: /incorrect (?:password|authentication) attempt|Sorry, try again|Authentication failed|no password was provided/i,
    error: (host) => hostSudoPassword({ host, ...PASSWORD_REJECTED }),
  },
  {
    pattern: /a password is required|a terminal is required|interactive authentication is required/,
    error: (host) => hostSudoPassword({ host, why: 'sudo requires a password', hint: PASSWORD_HINT }),
  },
];

/** @param sent `with-password`: sudo refused although the password was sent */
function sudoFailure(host: string, result: RunResult, sent?: 'with-password'): AppError {
  const lines = decode(result.stderr).trim().split('\n');
  for (const { pattern, error } of REFUSALS) {
    const found = lines.findLast((line) => pattern.test(line));
    if (found !== undefined) return error(host, printable(found.replace(/^sudo(?:-rs)?: /, '')));
  }
  const last = printable((lines.at(-1) ?? '').replace(/^sudo(?:-rs)?: /, ''));
  const why = `sudo failed${sent === undefined ? '' : ' with the given password'}${last === '' ? '' : `: ${last}`}`;
  return sent === undefined
    ? hostNoSudo({ host, why, hint: `${RIGHTS_HINT}. If sudo requires a password, pass it with --sudo-password-stdin` })
    : hostSudoPassword({ host, why, hint: `Check the password. If it is correct, ${SUDO_HINT}` });
}

function noSudo(host: string, cause?: unknown): AppError {
  return hostNoSudo({ host, why: 'sudo is not installed', hint: 'Connect as root, or install sudo', cause });
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
