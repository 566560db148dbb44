import { usageError } from '../../base/errors.ts';
import type { InputFiles, LocalFiles } from '../../base/local-files.ts';
import { SECRET_VARIABLES } from '../../base/secret-variables.ts';
import { Secret } from '../../base/text/secret.ts';
import type { SshOptions } from '../../ssh/options.ts';
import type { HostTarget } from '../host-target.ts';

/** Connection to hosts: SSH options without secrets, and the time limit of one command. */
export interface ConnectionRequest extends Omit<SshOptions, 'password' | 'sudoPassword' | 'passphrase'> {
  readonly identityFiles: readonly string[];
  readonly passwordFromStdin: boolean;
  readonly sudoPasswordFromStdin: boolean;
  /** Default: that of the fleet file, otherwise one minute. */
  readonly commandTimeoutMs?: number | undefined;
}

/** The hosts of a command. */
export interface HostsRequest {
  /** Empty: the local host. */
  readonly addresses: readonly string[];
  /** The directory that all files are written to instead of `/`. */
  readonly rootDir?: string | undefined;
  readonly connection: ConnectionRequest;
}

/** The targets of a command. Passwords are read from standard input or the environment. */
export async function readHostTargets(
  services: LocalFiles,
  { addresses, rootDir, connection }: HostsRequest,
): Promise<readonly HostTarget[]> {
  const staged = { ...(rootDir === undefined ? {} : { rootDir }), ...commandLimit(connection) };
  if (addresses.length === 0) return [staged];
  const ssh = await readSshOptions(services, connection);
  return addresses.map((address) => ({ address, ssh, ...staged }));
}

/** The target of one address; `localhost` is the local host, without SSH. */
export async function readHostTarget(services: LocalFiles, address: string, connection: ConnectionRequest): Promise<HostTarget> {
  const limit = commandLimit(connection);
  return address === 'localhost' ? limit : { address, ssh: await readSshOptions(services, connection), ...limit };
}

/** The time limit of one command, if the command line sets it. */
export function commandLimit({ commandTimeoutMs }: ConnectionRequest): Pick<HostTarget, 'commandTimeoutMs'> {
  return commandTimeoutMs === undefined ? {} : { commandTimeoutMs };
}

/**
 * Caches the secrets, because standard input can be read only once but several parts of a run connect to
 * hosts.
 */
const PASSWORD_LINES = new WeakMap<InputFiles, Promise<string>>();

async function passwordLines({ input }: LocalFiles): Promise<string[]> {
  const text = PASSWORD_LINES.get(input) ?? input.readText('-');
  PASSWORD_LINES.set(input, text);
  return (await text).split('\n');
}

/**
 * The SSH options with their secrets, read from standard input or the environment, never from an option.
 * @throws AppError USAGE (exit code 2) for a missing password or private key file
 */
export async function readSshOptions(services: LocalFiles, connection: ConnectionRequest): Promise<SshOptions> {
  const { passwordFromStdin, sudoPasswordFromStdin, commandTimeoutMs: _, ...ssh } = connection;
  const fromStdin = passwordFromStdin || sudoPasswordFromStdin ? await passwordLines(services) : [];
  const password = passwordFromStdin ? fromStdin.shift() : services.env[SECRET_VARIABLES.sshPassword];
  const sudoPassword = sudoPasswordFromStdin ? fromStdin.shift() : services.env[SECRET_VARIABLES.sudoPassword];
  const passphrase = services.env[SECRET_VARIABLES.sshPassphrase];
  if ((passwordFromStdin && !password) || (sudoPasswordFromStdin && !sudoPassword))
    throw usageError('no password on standard input', 'Pipe one password per line, the SSH password first');
  for (const file of ssh.identityFiles)
    if (!(await services.input.exists(file))) throw usageError(`--ssh-identity ${file}: the file does not exist`, 'Check the path');
  const secret = (name: string, value: string | undefined) => (value === undefined || value === '' ? {} : { [name]: new Secret(value) });
  return { ...ssh, ...secret('password', password), ...secret('sudoPassword', sudoPassword), ...secret('passphrase', passphrase) };
}
