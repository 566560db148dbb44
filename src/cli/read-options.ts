import { usageError } from '../base/errors.ts';
import { SECRET_VARIABLES } from '../base/secret-variables.ts';
import { goDurationMs, isTimeLimit } from '../base/text/go-duration.ts';
import { Secret } from '../base/text/secret.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import { unknownCheck } from '../kubeadm/preflight/check-names.ts';
import type { SshOptions } from '../ssh/options.ts';
import type { CommandOptions } from './command.ts';
import type { InputFiles, Services } from './services.ts';

/** The text of an option; undefined when it was not given. */
export function flagText(options: CommandOptions, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Whether `--kubeconfig` selects a cluster, for commands that use no other kubeconfig.
 * @throws AppError USAGE (exit code 2) for `--context` alone
 */
export function isKubeconfigGiven(options: CommandOptions): boolean {
  if (flagText(options, 'kubeconfig') !== undefined) return true;
  if (flagText(options, 'context') === undefined) return false;
  throw usageError('--context is of a kubeconfig, and none was given', 'Add --kubeconfig');
}

/** The items of a repeatable option. */
export function flagList(options: CommandOptions, name: string): readonly string[] {
  const value = options[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/**
 * The checks of `--ignore-preflight-errors`.
 * @throws AppError USAGE (exit code 2) for a name that no check has
 */
export function ignoredChecks(options: CommandOptions): readonly string[] {
  const names = flagList(options, 'ignorePreflightErrors');
  for (const name of names) {
    const unknown = unknownCheck(name);
    if (unknown !== null) throw usageError(`--ignore-preflight-errors: ${unknown.message}`, unknown.hint);
  }
  return names;
}

/** The options under the names kubeadm gives them on the command line: `podNetworkCidr` is `pod-network-cidr`. */
export function kubeadmFlags(options: CommandOptions): Flags {
  const entries = Object.entries(options).flatMap(([name, value]) => {
    const kept = typeof value === 'string' || typeof value === 'boolean' || Array.isArray(value);
    return kept ? [[name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]] : [];
  });
  return Object.fromEntries(entries) as Flags;
}

/** The hosts to work on: those of `--host`, else this machine. Passwords come from standard input or the environment, never from an option. */
export async function readHostTargets(services: Services, options: CommandOptions): Promise<readonly HostTarget[]> {
  const rootDir = flagText(options, 'rootfs');
  const staged = { ...(rootDir === undefined ? {} : { rootDir }), ...readCommandTimeout(options) };
  const addresses = flagList(options, 'host');
  if (addresses.length === 0) return [staged];
  const twice = addresses.find((address, at) => addresses.indexOf(address) !== at);
  if (twice !== undefined) throw usageError(`--host ${twice} is given twice`, 'Give each host once');
  const ssh = await readSshOptions(services, options);
  return addresses.map((address) => ({ address, ssh, ...staged }));
}

/** The host of an address; `localhost` is this machine, without SSH. */
export async function readHostTarget(services: Services, address: string, options: CommandOptions): Promise<HostTarget> {
  const limit = readCommandTimeout(options);
  return address === 'localhost' ? limit : { address, ssh: await readSshOptions(services, options), ...limit };
}

/**
 * Reads `--command-timeout`.
 * @throws AppError USAGE with exit code 2
 */
export function readCommandTimeout(options: CommandOptions): Pick<HostTarget, 'commandTimeoutMs'> {
  const text = flagText(options, 'commandTimeout');
  if (text === undefined) return {};
  if (!isTimeLimit(text)) throw usageError(`--command-timeout ${text}: not a duration from 1s to 24h`, 'Write it like 90s or 5m');
  return { commandTimeoutMs: goDurationMs(text) };
}

/** Standard input ends once, and hosts are connected to from several places of a run. */
const PASSWORD_LINES = new WeakMap<InputFiles, Promise<string>>();

async function passwordLines({ input }: Services): Promise<string[]> {
  const text = PASSWORD_LINES.get(input) ?? input.readText('-');
  PASSWORD_LINES.set(input, text);
  return (await text).split('\n');
}

/** How hosts are reached. Passwords come from standard input or the environment, never from an option. */
export async function readSshOptions(services: Services, options: CommandOptions): Promise<SshOptions> {
  const fromStdin = options.sshPasswordStdin === true || options.sudoPasswordStdin === true ? await passwordLines(services) : [];
  const password = options.sshPasswordStdin === true ? fromStdin.shift() : services.env[SECRET_VARIABLES.sshPassword];
  const sudoPassword = options.sudoPasswordStdin === true ? fromStdin.shift() : services.env[SECRET_VARIABLES.sudoPassword];
  const passphrase = services.env[SECRET_VARIABLES.sshPassphrase];
  if ((options.sshPasswordStdin === true && !password) || (options.sudoPasswordStdin === true && !sudoPassword))
    throw usageError('there is no password on standard input', 'Pipe it in, one line a password: the SSH password first');
  for (const file of flagList(options, 'sshIdentity'))
    if (!(await services.input.exists(file))) throw usageError(`--ssh-identity ${file}: there is no such file`, 'Check the path');
  const [configFile, knownHostsFile] = [flagText(options, 'sshConfig'), flagText(options, 'sshKnownHosts')];
  const secret = (name: string, value: string | undefined) => (value === undefined || value === '' ? {} : { [name]: new Secret(value) });
  return {
    ...(configFile === undefined ? {} : { configFile }),
    ...(knownHostsFile === undefined ? {} : { knownHostsFile }),
    identityFiles: flagList(options, 'sshIdentity'),
    acceptNewHostKeys: options.sshAcceptNew === true,
    connectTimeoutMs: (typeof options.connectTimeout === 'number' ? options.connectTimeout : 10) * 1000,
    transport: (flagText(options, 'sshTransport') ?? 'builtin') as 'builtin' | 'openssh',
    become: (flagText(options, 'become') ?? 'auto') as 'auto' | 'sudo' | 'none',
    ...secret('password', password),
    ...secret('sudoPassword', sudoPassword),
    ...secret('passphrase', passphrase),
  };
}

/** How much to tell. */
export function verbosityOf(options: CommandOptions): number {
  return typeof options.v === 'number' ? options.v : 0;
}
