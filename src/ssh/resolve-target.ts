import { type Problem, usageError } from '../base/errors.ts';
import { sshConfigInvalid } from '../host/host-problems.ts';
import { evaluateSshConfig, type SshConfigFile, type SshConfigLine, type SshSettings } from './config.ts';
import { isPort, isSafeHostName, isSafeUserName, parseSshDestination, type SshDestination } from './destination.ts';
import { readSshPolicy, USE_OPENSSH } from './policy.ts';
import type { SshTarget, StrictHostKeyChecking } from './target.ts';

/** The local host and the local user. */
export interface SshEnvironment {
  readonly homeDirectory: string;
  readonly workingDirectory: string;
  readonly userName: string;
  readonly userId: number;
  /** As `hostname` prints it, possibly with a domain. */
  readonly localHostName: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** ssh_config files, the user's first, and the environment for their evaluation. */
export interface SshConfig {
  readonly files: readonly SshConfigFile[];
  readonly environment: SshEnvironment;
  /** Runs the command of `Match exec` in the user's shell; true when it succeeds. */
  readonly exec: (command: string) => boolean;
}

/**
 * Settings that take precedence over ssh_config. Those marked "Also for jump hosts" apply to the jump hosts,
 * too.
 */
export interface SshOverrides {
  /** Inventory name; default: the destination's host. */
  readonly name?: string;
  readonly user?: string;
  readonly port?: number;
  /** Tried before those of ssh_config. */
  readonly identityFiles?: readonly string[];
  /** As in ssh_config: `user@host:port,…`, or `none`. */
  readonly proxyJump?: string;
  /** Also for jump hosts. */
  readonly userKnownHostsFiles?: readonly string[] | undefined;
  /** Also for jump hosts. */
  readonly strictHostKeyChecking?: StrictHostKeyChecking | undefined;
  /** Also for jump hosts. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * The client that connects. OpenSSH's own client supports settings that the built-in one does not (such as
   * ProxyCommand). Also for jump hosts. Default `builtin`.
   */
  readonly client?: 'builtin' | 'openssh' | undefined;
}

const DEFAULT_CONNECT_TIMEOUT_MS = 20_000;

/**
 * Determines how to reach a host: destination and overrides first, then ssh_config, then the defaults of ssh.
 * @param destination `host`, `user@host:port`, `ssh://…`, `[v6]:port`, or a Host entry of ssh_config
 * @throws AppError USAGE for a malformed destination, SSH_CONFIG_INVALID for an invalid or unsupported
 *   setting (ProxyCommand)
 * @see ssh_config(5)
 */
export function resolveSshTarget(destination: string, config: SshConfig, overrides: SshOverrides = {}): SshTarget {
  return resolve(parseSshDestination(destination), config, overrides, { seen: [] });
}

/** The chain of hosts whose ProxyJump led to this host, and the line that names it. */
interface Route {
  readonly seen: readonly string[];
  readonly line?: SshConfigLine | undefined;
}

function resolve(destination: SshDestination, config: SshConfig, overrides: SshOverrides, route: Route): SshTarget {
  const { environment } = config;
  const alias = destination.host;
  const explicitUser = destination.user ?? overrides.user;
  // Validated before it is inserted into a command.
  if (explicitUser !== undefined && !isSafeUserName(explicitUser))
    throw usageError(
      `${JSON.stringify(explicitUser)} is not a valid user name`,
      'Check the user on the command line, in the fleet file or in the inventory',
    );
  const tokensOf = (settings: SshSettings): Tokens => readTokens(settings, destination, overrides, environment);
  const settings: SshSettings = evaluateSshConfig(config.files, {
    alias,
    user: explicitUser,
    localUser: environment.userName,
    expandHostName: (value, host) => expandTokens(value, { '%': '%', h: host }, 'HostName'),
    exec: (command, sofar) => config.exec(expandTokens(command, tokensOf(sofar), 'Match exec')),
  });
  const tokens = tokensOf(settings);
  const expandPath = (value: string, line?: SshConfigLine): string => absolutePath(value, tokens, environment, line);
  const { checking, warnings } = readChecking(settings, overrides);
  const policy = overrides.client === 'openssh' ? {} : readSshPolicy(settings);
  const revokedHostKeysFiles = readFiles(settings, 'revokedhostkeys', expandPath) ?? [];
  const address = `${tokens.r}@${tokens.h}:${tokens.p}`;
  if (route.seen.includes(address)) throw jumpLoop([...route.seen, address], route.line);
  return {
    name: overrides.name ?? alias,
    ...(alias === tokens.h ? {} : { alias }),
    hostName: tokens.h,
    user: tokens.r,
    port: Number(tokens.p),
    identityFiles: readIdentityFiles(settings, overrides, expandPath, environment),
    identitiesOnly: readFlag(settings, 'identitiesonly', false),
    identityAgent: readIdentityAgent(settings, expandPath, environment),
    proxyJump: readProxyJump(settings, config, overrides, { tokens, seen: [...route.seen, address] }),
    userKnownHostsFiles:
      overrides.userKnownHostsFiles?.map((path) => expandPath(path)) ??
      readFiles(settings, 'userknownhostsfile', expandPath) ??
      ['known_hosts', 'known_hosts2'].map((name) => `${environment.homeDirectory}/.ssh/${name}`),
    globalKnownHostsFiles: readFiles(settings, 'globalknownhostsfile', expandPath) ?? [
      '/etc/ssh/ssh_known_hosts',
      '/etc/ssh/ssh_known_hosts2',
    ],
    ...(revokedHostKeysFiles.length === 0 ? {} : { revokedHostKeysFiles }),
    strictHostKeyChecking: checking,
    hostKeyAlias: settings.first.get('hostkeyalias')?.args[0] ?? null,
    hashKnownHosts: readFlag(settings, 'hashknownhosts', false),
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
    connectTimeoutMs: overrides.connectTimeoutMs ?? readConnectTimeoutMs(settings),
    addressFamily: readChoice(settings, 'addressfamily', { any: 'any', inet: 'inet', inet6: 'inet6' }, 'any'),
    bindAddress: settings.first.get('bindaddress')?.args[0] ?? null,
    configFiles: config.files.map(({ path }) => path),
    warnings: [...warnings, ...(overrides.client === 'openssh' ? [] : unsupported(settings))],
  };
}

/** The `%x` of ssh_config(5) TOKENS. */
interface Tokens extends Readonly<Record<string, string>> {
  readonly h: string;
  readonly p: string;
  readonly r: string;
}

function readTokens(settings: SshSettings, destination: SshDestination, overrides: SshOverrides, environment: SshEnvironment): Tokens {
  const alias = destination.host;
  const port = destination.port ?? overrides.port ?? readPort(settings);
  const { localHostName } = environment;
  return {
    '%': '%',
    d: environment.homeDirectory,
    h: readHostName(settings, alias),
    i: String(environment.userId),
    k: settings.first.get('hostkeyalias')?.args[0] ?? alias,
    L: localHostName.split('.', 1)[0] ?? localHostName,
    l: localHostName,
    n: alias,
    p: String(port),
    r: destination.user ?? overrides.user ?? settings.first.get('user')?.args[0] ?? environment.userName,
    u: environment.userName,
  };
}

function readHostName(settings: SshSettings, alias: string): string {
  const line = settings.first.get('hostname');
  if (line === undefined) return alias.toLowerCase();
  const name = expandTokens(line.args[0] ?? '', { '%': '%', h: alias }, 'HostName', line).toLowerCase();
  if (!isSafeHostName(name))
    throw invalid(line, `HostName ${JSON.stringify(name)} is not a valid host name`, 'Use a host name or an IP address');
  return name;
}

function expandTokens(value: string, tokens: Readonly<Record<string, string>>, where: string, line?: SshConfigLine): string {
  return value.replace(/%(.?)/gs, (_, letter: string) => {
    const expansion = Object.hasOwn(tokens, letter) ? tokens[letter] : undefined;
    if (expansion === undefined)
      throw invalid(line, `${where} has an unknown token %${letter}`, 'Use a token that ssh_config(5) lists for this keyword');
    return expansion;
  });
}

/** Expands `~`, then tokens, then `${VARIABLE}`; a relative path is relative to the working directory. */
function absolutePath(value: string, tokens: Tokens, environment: SshEnvironment, line?: SshConfigLine): string {
  if (/^~[^/]/.test(value)) throw invalid(line, `"${value}" refers to the home directory of another user`, 'Use an absolute path');
  const home = value.replace(/^~(?=\/|$)/, () => environment.homeDirectory);
  const expanded = home.replace(/\$\{([^}]{0,255})\}|%(.?)/gs, (text, name: string | undefined) => {
    if (name === undefined) return expandTokens(text, tokens, line?.keyword ?? 'the path', line);
    const variable = environment.variables[name];
    if (variable === undefined) throw invalid(line, `the environment variable ${name} is not set`, `Set ${name}, or use an absolute path`);
    return variable;
  });
  return expanded.startsWith('/') ? expanded : `${environment.workingDirectory}/${expanded}`;
}

type ExpandPath = (value: string, line?: SshConfigLine) => string;

function readIdentityFiles(
  settings: SshSettings,
  overrides: SshOverrides,
  expandPath: ExpandPath,
  environment: SshEnvironment,
): readonly string[] {
  const given = (overrides.identityFiles ?? []).map((path) => expandPath(path));
  const configured = settings.identityFiles.filter(({ args }) => !isNone(args[0])).map((line) => expandPath(line.args[0] ?? '', line));
  if (given.length > 0 || settings.identityFiles.length > 0) return [...new Set([...given, ...configured])];
  return DEFAULT_IDENTITIES.map((name) => `${environment.homeDirectory}/.ssh/${name}`);
}

const DEFAULT_IDENTITIES = ['id_ed25519', 'id_ecdsa', 'id_rsa'];

/** Whether a key path is a default of ssh, not one that the user configured. */
export function isDefaultIdentity(path: string): boolean {
  return DEFAULT_IDENTITIES.some((name) => path.endsWith(`/.ssh/${name}`));
}

function readIdentityAgent(settings: SshSettings, expandPath: ExpandPath, environment: SshEnvironment): string | null {
  const line = settings.first.get('identityagent');
  const value = line?.args[0] ?? 'SSH_AUTH_SOCK';
  if (isNone(value)) return null;
  if (value === 'SSH_AUTH_SOCK') return environment.variables.SSH_AUTH_SOCK || null;
  if (/^\$[A-Za-z_]\w*$/.test(value)) return environment.variables[value.slice(1)] || null;
  return expandPath(value, line);
}

function readFiles(settings: SshSettings, keyword: string, expandPath: ExpandPath): readonly string[] | null {
  const line = settings.first.get(keyword);
  if (line === undefined) return null;
  return line.args.filter((path) => !isNone(path)).map((path) => expandPath(path, line));
}

/** The jump hosts, each with its own settings. Before the first come the hosts of its own ProxyJump. */
function readProxyJump(
  settings: SshSettings,
  config: SshConfig,
  overrides: SshOverrides,
  { tokens, seen }: { readonly tokens: Tokens; readonly seen: readonly string[] },
): readonly SshTarget[] {
  const line = overrides.proxyJump === undefined ? settings.first.get('proxy') : undefined;
  const value = overrides.proxyJump ?? line?.args.join(' ');
  if (value === undefined || isNone(value)) return [];
  if (line?.keyword === 'proxycommand') {
    if (overrides.client === 'openssh') return [];
    throw proxyCommand(line, value);
  }
  const hops = expandTokens(value, tokens, 'ProxyJump', line)
    .split(',')
    .map((hop) => hop.trim());
  const { userKnownHostsFiles, strictHostKeyChecking, connectTimeoutMs, client } = overrides;
  const inherited: SshOverrides = { userKnownHostsFiles, strictHostKeyChecking, connectTimeoutMs, client };
  return hops.flatMap((hop, index) => {
    const forHop = index === 0 ? inherited : { ...inherited, proxyJump: 'none' };
    const target = resolve(parseSshDestination(hop), config, forHop, { seen, line });
    return [...target.proxyJump, { ...target, proxyJump: [] }];
  });
}

function jumpLoop(hosts: readonly string[], line: SshConfigLine | undefined): Error {
  const hint = 'In ssh_config, add a Host block with "ProxyJump none" for the jump host, above the block with the ProxyJump setting';
  return invalid(line, `the ProxyJump settings form a loop: ${hosts.join(' -> ')}`, hint);
}

function proxyCommand(line: SshConfigLine, value: string): Error {
  const jump = /^(?:\S*\/)?ssh\s+(?:-q\s+)?(?:-W\s+\S+\s+(\S+)|(\S+)\s+-W\s+\S+)(?:\s+-q)?$/.exec(value);
  const through = jump?.[1] ?? jump?.[2] ?? '[user@]host[:port]';
  return invalid(line, 'ProxyCommand is not supported', `Use "ProxyJump ${through}" instead, or --ssh-transport openssh`);
}

function readChecking(
  settings: SshSettings,
  overrides: SshOverrides,
): { readonly checking: StrictHostKeyChecking; readonly warnings: readonly Problem[] } {
  if (overrides.strictHostKeyChecking !== undefined) return { checking: overrides.strictHostKeyChecking, warnings: [] };
  const words = { yes: 'yes', true: 'yes', ask: 'ask', 'accept-new': 'accept-new', no: 'no', off: 'no', false: 'no' } as const;
  const value = readChoice(settings, 'stricthostkeychecking', words, 'ask');
  if (value !== 'no') return { checking: value, warnings: [] };
  const line = settings.first.get('stricthostkeychecking');
  const message = 'StrictHostKeyChecking no is treated as accept-new: a changed host key is never accepted';
  return { checking: 'accept-new', warnings: [warning(line, message, 'Use "StrictHostKeyChecking accept-new"')] };
}

function readFlag(settings: SshSettings, keyword: string, otherwise: boolean): boolean {
  return readChoice(settings, keyword, { yes: true, true: true, no: false, false: false }, otherwise);
}

function readChoice<T>(settings: SshSettings, keyword: string, choices: Readonly<Record<string, T>>, otherwise: T): T {
  const line = settings.first.get(keyword);
  const word = line?.args[0]?.toLowerCase();
  if (word === undefined) return otherwise;
  const choice = Object.hasOwn(choices, word) ? choices[word] : undefined;
  if (choice === undefined) throw invalid(line, `invalid value "${line?.args[0]}" of ${keyword}`, `Use ${Object.keys(choices).join(', ')}`);
  return choice;
}

function readPort(settings: SshSettings): number {
  const line = settings.first.get('port');
  const text = line?.args[0] ?? '22';
  if (!isPort(text)) throw invalid(line, `"${text}" is not a valid port`, 'Use a number from 1 to 65535');
  return Number(text);
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** `none`, seconds, or amounts with units: `1m30s`. */
function readConnectTimeoutMs(settings: SshSettings): number {
  const line = settings.first.get('connecttimeout');
  const text = line?.args[0];
  if (text === undefined || isNone(text)) return DEFAULT_CONNECT_TIMEOUT_MS;
  if (!/^[0-9]+(?:[smhdw][0-9]+)*[smhdw]?$/i.test(text))
    throw invalid(line, `"${text}" is not a valid time`, 'Use seconds, or amounts with units such as 1m30s');
  const parts = [...text.toLowerCase().matchAll(/([0-9]+)([smhdw]?)/g)];
  const seconds = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_SECONDS[unit ?? ''] ?? 1), 0);
  return seconds === 0 ? DEFAULT_CONNECT_TIMEOUT_MS : Math.min(seconds * 1000, 2 ** 31 - 1);
}

/** Unsupported settings that affect trust, login or the network path. */
const UNSUPPORTED: readonly { readonly keyword: string; readonly name: string; readonly harmless?: readonly string[] }[] = [
  { keyword: 'knownhostscommand', name: 'KnownHostsCommand', harmless: ['none'] },
  { keyword: 'certificatefile', name: 'CertificateFile', harmless: ['none'] },
  { keyword: 'canonicalizehostname', name: 'CanonicalizeHostname', harmless: ['no', 'false', 'none'] },
  { keyword: 'bindinterface', name: 'BindInterface' },
  { keyword: 'pkcs11provider', name: 'PKCS11Provider', harmless: ['none'] },
  { keyword: 'securitykeyprovider', name: 'SecurityKeyProvider', harmless: ['none', 'internal'] },
  { keyword: 'rekeylimit', name: 'RekeyLimit', harmless: ['default', 'none'] },
];

function unsupported(settings: SshSettings): readonly Problem[] {
  const hint = `If the connection needs this setting, ${USE_OPENSSH}`;
  const settingsLeft = UNSUPPORTED.flatMap(({ keyword, name, harmless = [] }) => {
    const line = settings.first.get(keyword);
    if (line === undefined || line.args.every((argument) => harmless.includes(argument.toLowerCase()))) return [];
    return [warning(line, `${name} is not supported by the built-in SSH client; this line is ignored`, hint)];
  });
  const matches = settings.unsupportedMatches.map((line) =>
    warning(line, `Match ${line.args.join(' ')} is not supported by the built-in SSH client; this block is ignored`, hint),
  );
  return [...settingsLeft, ...matches];
}

function warning(line: SshConfigLine | undefined, message: string, hint: string): Problem {
  const position = line && { file: line.file, line: line.line, column: 1 };
  return { code: 'SSH_CONFIG_UNSUPPORTED', severity: 'warning', message, hint, position };
}

function invalid(line: SshConfigLine | undefined, message: string, hint: string): Error {
  return sshConfigInvalid({ file: line?.file, line: line?.line, message, hint });
}

function isNone(value: string | undefined): boolean {
  return value?.toLowerCase() === 'none';
}
