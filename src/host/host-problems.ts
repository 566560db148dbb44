import { AppError, type Position } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import { MAX_FILE_BYTES } from './facts/query.ts';

/** A host that is unreachable or failed to execute a request. All have exit code 1: fix the cause and rerun. */
interface HostProblem {
  readonly host: string;
  readonly cause?: unknown;
}

function hostError(
  code: string,
  { host, cause }: HostProblem,
  text: { message: string; hint: string; detail?: string; position?: Position | undefined },
): AppError {
  const { message, hint, detail, position } = text;
  return new AppError({ code, host, message, hint, position }, { ...(detail ? { detail } : {}), cause });
}

/** Why a connection failed whose host name has no address. */
export const NO_SUCH_NAME = 'host name not found';

/** `address` is that of the connection, e.g. `10.0.0.7:22`; `why` is a clause such as `connection refused`. */
export function hostUnreachable(input: HostProblem & { address: string; why: string; hint?: string | undefined }): AppError {
  return hostError('HOST_UNREACHABLE', input, {
    message: `cannot reach ${input.address}: ${input.why}`,
    hint: input.hint ?? 'Check address, port, network and firewall, and that the SSH server is running',
  });
}

export function hostForwardRefused(input: HostProblem & { reported: string }): AppError {
  return hostError('HOST_FORWARD_REFUSED', input, {
    message: `the SSH server of the host refuses TCP forwarding: ${input.reported}`,
    hint: 'Set AllowTcpForwarding (local or yes) and PermitOpen in the sshd_config of the host',
  });
}

/** The host key differs from the known one. `entry` is the position of the known key. */
export function hostKeyMismatch(
  input: HostProblem & { knownAs: string; shown: string; known: string; entry: { file: string; line: number } },
): AppError {
  const { knownAs, shown, known, entry } = input;
  return hostError('HOST_KEY_MISMATCH', input, {
    position: { file: entry.file, line: entry.line, column: 1 },
    message: `the host key has changed: ${knownAs} shows ${shown}, the known_hosts entry has ${known}`,
    hint: `The connection may be intercepted. If the host was reinstalled, remove the old key: ssh-keygen -R '${knownAs}' -f ${entry.file}`,
  });
}

export function hostKeyRevoked(input: HostProblem & { knownAs: string; shown: string; entry: { file: string; line: number } }): AppError {
  const { knownAs, shown, entry } = input;
  return hostError('HOST_KEY_REVOKED', input, {
    position: { file: entry.file, line: entry.line, column: 1 },
    message: `the host key is revoked: ${knownAs} shows ${shown}`,
    hint: REVOKED_HINT,
  });
}

const REVOKED_HINT = 'Do not connect. Give the host a new key, or check whether another host answers at this address';

export function hostKeyTooShort(input: HostProblem & { knownAs: string; shown: string; bits: number; minimalBits: number }): AppError {
  const { knownAs, shown, bits, minimalBits } = input;
  return hostError('HOST_KEY_WEAK', input, {
    message: `the host key is too short: ${knownAs} shows ${shown} of ${bits} bits, but the minimum is ${minimalBits} bits`,
    hint: 'Give the host a longer RSA key or a key of another type, or lower RequiredRSASize of ssh_config',
  });
}

export function hostKeyUnknown(input: HostProblem & { knownAs: string; shown: string; files: readonly string[]; hint: string }): AppError {
  const { knownAs, shown, files, hint } = input;
  const where = files.length === 0 ? 'no known_hosts file is configured' : `the key is not in ${files.join(', ')}`;
  return hostError('HOST_KEY_UNKNOWN', input, { message: `unknown host key: ${knownAs} shows ${shown}, and ${where}`, hint });
}

/** The system ssh rejects the host key. @param input.reported its output line */
export function sshKeyRefused(input: HostProblem & { code: keyof typeof KEY_REFUSALS; why: string; reported: string }): AppError {
  return hostError(input.code, input, {
    message: `${input.why}: ssh reported "${printable(input.reported)}"`,
    hint: KEY_REFUSALS[input.code],
  });
}

const KEY_REFUSALS = {
  HOST_KEY_UNKNOWN:
    'Compare the fingerprint with the key of the host. If both are equal, connect once with ssh, or accept new keys with --ssh-accept-new',
  HOST_KEY_MISMATCH: 'The connection may be intercepted. If the host was reinstalled, remove the old key with ssh-keygen -R NAME',
  HOST_KEY_REVOKED: REVOKED_HINT,
} as const;

/** `tried` and `skipped` are clauses, one per method; `accepts` lists the methods that the host accepts. */
export function hostAuthFailed(
  input: HostProblem & {
    user: string;
    address: string;
    tried: readonly string[];
    skipped: readonly string[];
    accepts: readonly string[];
    why?: string | undefined;
  },
): AppError {
  const { user, address, tried, skipped, accepts, why } = input;
  const clauses = [
    ...(why === undefined ? [] : [why]),
    tried.length === 0 ? 'no authentication method was available' : `tried ${tried.join(', ')}`,
    ...(skipped.length === 0 ? [] : [`skipped ${skipped.join(', ')}`]),
    ...(accepts.length === 0 ? [] : [`the host accepts ${accepts.join(', ')}`]),
  ];
  return hostError('HOST_AUTH_FAILED', input, {
    message: `${address} rejected user ${user}: ${clauses.join('; ')}`,
    hint:
      tried.length === 0
        ? `${skipped.length === 0 ? 'Set' : 'Fix the skipped keys or agents, set'} IdentityFile in ssh_config, or add a private key to the SSH agent`
        : `Add the public key to authorized_keys of ${user} on the host, or set the correct user and key in ssh_config`,
  });
}

export const CONNECT_TIMEOUT_HINT =
  'Check the load of the host and the network to the host, or increase --connect-timeout (in a fleet file: ssh.connectTimeout)';

/** `what` is the operation that timed out, e.g. `no answer to systemctl restart kubelet`. */
export function hostTimeout(input: HostProblem & { what: string; timeoutMs: number; hint?: string }): AppError {
  return hostError('HOST_TIMEOUT', input, {
    message: `${input.what} within ${input.timeoutMs / 1000}s`,
    hint: input.hint ?? 'Check the load and the journal of the host, or increase --command-timeout (in a fleet file: ssh.commandTimeout)',
  });
}

/** The connection was lost during or just before a command: its effect is unknown. */
export function hostConnectionLost(input: HostProblem & { why: string }): AppError {
  return hostError('HOST_CONNECTION_LOST', input, {
    message: `the connection was lost: ${input.why}`,
    hint: 'The operation in progress on the host may or may not have taken effect. Rerun kubeletadm',
  });
}

/** `command` is the name of the program: its arguments may be secret. */
export function hostOutputTooLarge(
  input: HostProblem & { command: string; stream: 'stdout' | 'stderr'; maxOutputBytes: number },
): AppError {
  return hostError('HOST_OUTPUT_TOO_LARGE', input, {
    message: `${input.command} wrote more than ${input.maxOutputBytes} bytes to ${input.stream} and was stopped`,
    hint: 'Run this program on the host and check its output',
  });
}

export function hostAnswerTooLarge(input: HostProblem & { path: string; bytes: number }): AppError {
  return hostError('HOST_ANSWER_TOO_LARGE', input, {
    message: `cannot read ${input.path}: the file has ${input.bytes} bytes, but the limit is ${MAX_FILE_BYTES} bytes`,
    hint: `Check this file on the host: ls -l ${input.path}`,
  });
}

export function hostCommandNotFound(input: HostProblem & { command: string; why?: string }): AppError {
  return hostError('HOST_COMMAND_NOT_FOUND', input, {
    message: `cannot start ${input.command}: ${input.why ?? 'the program does not exist or is not executable'}`,
    hint: 'Install the program on the host, or add its directory to PATH',
  });
}

export function hostCommandTooLong(input: HostProblem & { command: string; bytes: number; maxBytes: number }): AppError {
  return hostError('HOST_COMMAND_TOO_LONG', input, {
    message: `cannot start ${input.command}: an argument has ${input.bytes} bytes; the Linux limit is ${input.maxBytes}`,
    hint: 'Pass the value on stdin or in a file',
  });
}

/** The login shell exited before it started /bin/sh: nologin, a forced command, a broken profile, an expired password. */
export function hostNoShell(input: HostProblem & { user: string; reported: string }): AppError {
  return hostError('HOST_COMMAND_NOT_FOUND', input, {
    message: `the login shell of ${input.user} did not start /bin/sh${input.reported === '' ? '' : `: "${input.reported}"`}`,
    hint: `Log in once with ssh in a terminal and follow its messages (change an expired password), set a login shell for ${input.user} that can run commands, or connect as another user`,
  });
}

export function hostNoSudo(input: HostProblem & { why: string; hint: string }): AppError {
  return hostError('HOST_NO_SUDO', input, { message: `privilege escalation failed: ${input.why}`, hint: input.hint });
}

export function hostSudoPassword(input: HostProblem & { why: string; hint: string }): AppError {
  return hostError('HOST_SUDO_PASSWORD', input, { message: `privilege escalation failed: ${input.why}`, hint: input.hint });
}

/** The known_hosts file cannot be read, so no host key can be trusted. */
export function knownHostsUnreadable(input: HostProblem & { file: string; why: string }): AppError {
  return hostError('HOST_KEY_UNKNOWN', input, {
    message: `cannot check the host key, because ${input.file} cannot be read: ${input.why}`,
    hint: 'Check the permissions of the file',
  });
}

/** A file of RevokedHostKeys cannot be used, so no host key can be trusted. `line` is that of a syntax error. */
export function revokedKeysUnusable(input: HostProblem & { file: string; line?: number | undefined; why: string; hint: string }): AppError {
  const { file, line, why, hint } = input;
  return hostError('HOST_KEY_UNKNOWN', input, {
    position: line === undefined ? undefined : { file, line, column: 1 },
    message: `cannot check the host key: ${why}`,
    hint,
  });
}

/** Reports an error of a jump host as an error of the host behind it; returns other errors unchanged. */
export function throughJumpHost(error: unknown, host: string): unknown {
  if (!(error instanceof AppError)) return error;
  const problems = error.problems.map((problem) => ({
    ...problem,
    host,
    message: `jump host${problem.host === undefined ? '' : ` ${problem.host}`}: ${problem.message}`,
  }));
  const { exitCode, detail, cause } = error;
  return new AppError(problems, { exitCode, detail, cause: cause ?? error });
}

/** ssh_config is invalid or uses an unsupported option. Without `line`, the problem is that of the whole file. Exit code 2: nothing was changed. */
export function sshConfigInvalid(input: {
  file?: string | undefined;
  line?: number | undefined;
  host?: string;
  message: string;
  hint: string;
  cause?: unknown;
}): AppError {
  const { file, line, host, hint, cause } = input;
  const message = file === undefined || line !== undefined ? input.message : `${file}: ${input.message}`;
  const position = file === undefined || line === undefined ? undefined : { file, line, column: 1 };
  const problem = { code: 'SSH_CONFIG_INVALID', message, hint, position };
  return new AppError(host === undefined ? problem : { ...problem, host }, { exitCode: 2, cause });
}

const ENV_NOT_FOUND = 127;

/** A failed program on the local host; the first paragraph of its stderr is the reason. */
export function localCommandFailed(
  argv: readonly string[],
  { exitCode, stderr }: { readonly exitCode: number | null; readonly stderr: string },
): AppError {
  const [why = ''] = stderr.trim().split(/\n\s*\n/);
  const end = exitCode === null ? 'was killed by a signal' : `exited with code ${exitCode}`;
  const message = `${argv.join(' ')} ${end}${why === '' ? '' : `: ${printable(why, 300)}`}`;
  const isMissing = argv[0] === 'env' && exitCode === ENV_NOT_FOUND;
  return new AppError({ code: isMissing ? 'HOST_COMMAND_NOT_FOUND' : 'LOCAL_COMMAND_FAILED', message }, { exitCode: 2, detail: stderr });
}
