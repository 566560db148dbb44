import { usageError } from '../../base/errors.ts';
import type { InputFiles, LocalFiles } from '../../base/local-files.ts';
import { SECRET_VARIABLES } from '../../base/secret-variables.ts';
import { Secret } from '../../base/text/secret.ts';
import type { SshOptions } from '../../ssh/target.ts';
import type { ResolvedHost } from '../file/model.ts';
import type { HostTarget } from '../host-target.ts';
import { directoryOf, resolveFleetPath } from './load-fleet.ts';

/** Where a password is read: from standard input, from the terminal, or from an environment variable. */
export type PasswordSource = 'stdin' | 'terminal' | 'environment';

/** Connection to hosts: SSH options without secrets, and the time limit of one command. */
export interface ConnectionRequest extends Omit<SshOptions, 'password' | 'sudoPassword' | 'passphrase'> {
  readonly identityFiles: readonly string[];
  readonly password: PasswordSource;
  readonly sudoPassword: PasswordSource;
  /** Default: that of the fleet file, otherwise one minute. */
  readonly commandTimeoutMs?: number | undefined;
}

export interface HostsRequest {
  /** Addresses, or names of hosts and Nodes of the fleet file. Empty: the local host. */
  readonly addresses: readonly string[];
  /** The fleet file; undefined: `fleet.yaml`, if it exists. */
  readonly file?: string | undefined;
  /** The directory that all files are written to instead of `/`. */
  readonly rootDir?: string | undefined;
  readonly connection: ConnectionRequest;
}

/** The time limit of one command, if the command line sets it. */
export function commandLimit({ commandTimeoutMs }: ConnectionRequest): Pick<HostTarget, 'commandTimeoutMs'> {
  return { commandTimeoutMs };
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

type Passwords = Partial<Record<'password' | 'sudoPassword', string | undefined>>;

/** Passwords typed on the terminal: asked once, because several parts of a run connect to hosts. */
const TYPED_PASSWORDS = new WeakMap<InputFiles, Promise<Passwords>>();

function typedPasswords({ input }: LocalFiles, connection: ConnectionRequest): Promise<Passwords> {
  const passwords = TYPED_PASSWORDS.get(input) ?? askPasswords(input, connection);
  TYPED_PASSWORDS.set(input, passwords);
  return passwords;
}

/** The questions of Ansible's --ask-pass and --ask-become-pass, whose second answer defaults to the first as well. */
async function askPasswords(input: InputFiles, connection: ConnectionRequest): Promise<Passwords> {
  const asked = async (prompt: string, { flag, stdinFlag, variable }: (typeof PASSWORD_OPTIONS)[keyof Passwords]): Promise<string> => {
    const answer = await input.askSecret(prompt);
    const instead = `Use ${stdinFlag} or the environment variable ${variable}`;
    if (answer === null)
      throw usageError(`${flag}: cannot ask for the password: standard input or standard error is not a terminal`, instead);
    return answer;
  };
  const required = (answer: string, { flag }: { readonly flag: string }): string => {
    if (answer === '') throw usageError(`${flag}: the password is empty`, 'Run the command again and type the password');
    return answer;
  };
  const { password: ssh, sudoPassword: sudo } = PASSWORD_OPTIONS;
  const password = connection.password === 'terminal' ? required(await asked('SSH password: ', ssh), ssh) : undefined;
  if (connection.sudoPassword !== 'terminal') return { password };
  const suffix = password === undefined ? '' : ' (default: the SSH password)';
  const typed = await asked(`sudo password${suffix}: `, sudo);
  return { password, sudoPassword: required(typed === '' ? (password ?? '') : typed, sudo) };
}

const PASSWORD_OPTIONS = {
  password: { flag: '--ask-pass', stdinFlag: '--ssh-password-stdin', variable: SECRET_VARIABLES.sshPassword },
  sudoPassword: { flag: '--ask-become-pass', stdinFlag: '--sudo-password-stdin', variable: SECRET_VARIABLES.sudoPassword },
} as const;

/**
 * The SSH options with their secrets, read from standard input, the terminal or the environment, never from an option.
 * @throws AppError USAGE (exit code 2) for a missing password or private key file, and without a terminal to ask on;
 * INTERRUPTED
 */
export async function readSshOptions(services: LocalFiles, connection: ConnectionRequest): Promise<SshOptions> {
  const { password: passwordSource, sudoPassword: sudoSource, commandTimeoutMs: _, ...ssh } = connection;
  // Before the terminal is asked: a missing file needs no password.
  for (const file of ssh.identityFiles)
    if (!(await services.input.exists(file))) throw usageError(`--ssh-identity ${file}: the file does not exist`, 'Check the path');
  const sources = [passwordSource, sudoSource];
  const fromStdin = sources.includes('stdin') ? await passwordLines(services) : [];
  const typed = sources.includes('terminal') ? await typedPasswords(services, connection) : {};
  const read = (name: keyof Passwords, source: PasswordSource): string | undefined => {
    if (source === 'environment') return services.env[PASSWORD_OPTIONS[name].variable];
    return source === 'stdin' ? fromStdin.shift() : typed[name];
  };
  const password = read('password', passwordSource);
  const sudoPassword = read('sudoPassword', sudoSource);
  const passphrase = services.env[SECRET_VARIABLES.sshPassphrase];
  if ((passwordSource === 'stdin' && !password) || (sudoSource === 'stdin' && !sudoPassword))
    throw usageError('no password on standard input', 'Pipe one password per line, the SSH password first');
  const secret = (name: string, value: string | undefined) => (value === undefined || value === '' ? {} : { [name]: new Secret(value) });
  return { ...ssh, ...secret('password', password), ...secret('sudoPassword', sudoPassword), ...secret('passphrase', passphrase) };
}

/** SSH options with the ssh_config of the fleet file, unless the command line names another. */
export function withSshConfig(
  { homeDirectory }: Pick<LocalFiles, 'homeDirectory'>,
  ssh: SshOptions,
  { configFile, directory }: { readonly configFile?: string | undefined; readonly directory: string },
): SshOptions {
  if (ssh.configFile !== undefined || configFile === undefined) return ssh;
  return { ...ssh, configFile: resolveFleetPath(configFile, `${directory}/.`, homeDirectory) };
}

/**
 * The SSH target of each host, by fleet file and command line.
 * @param file the fleet file: relative key files are resolved against its directory
 */
export async function fleetTargets(
  services: LocalFiles,
  connection: ConnectionRequest,
  file: string,
): Promise<(host: Pick<ResolvedHost, 'name' | 'ssh'>) => HostTarget> {
  const directory = directoryOf(services, file);
  const ssh = await readSshOptions(services, connection);
  const limit = commandLimit(connection);
  return ({ name, ssh: own }) => ({
    member: { name, ssh: own, directory },
    ssh: withSshConfig(services, ssh, { ...own, directory }),
    ...limit,
  });
}
