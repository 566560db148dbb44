import { sshConfigInvalid } from '../host/host-problems.ts';
import type { SshConfigLine, SshSettings } from './config.ts';
import { matchPattern, matchPatternList } from './pattern.ts';

/** A way to log in, as ssh and PreferredAuthentications name it. */
export type LoginMethod = 'publickey' | 'password' | 'keyboard-interactive';

/** What ssh_config demands of cryptography and login. What is absent is left to the client. */
export interface SshPolicy {
  /** Key exchanges to offer, in order. */
  readonly kex?: readonly string[];
  readonly ciphers?: readonly string[];
  readonly macs?: readonly string[];
  /** Signature algorithms of host keys to offer. `isOrdered`: in this very order; otherwise those of known keys come first. */
  readonly hostKeys?: { readonly names: readonly string[]; readonly isOrdered: boolean };
  /** Signature algorithms that the keys of the user may use. */
  readonly userKeys?: readonly string[];
  /** Ways to log in, in order. */
  readonly methods?: readonly LoginMethod[];
  /** Length of the shortest RSA key to trust or to log in with. */
  readonly minimalRsaBits?: number;
}

/** Used where ssh_config demands nothing: publickey first, as a password may lock an account. */
export const LOGIN_METHODS: readonly LoginMethod[] = ['publickey', 'password', 'keyboard-interactive'];

/** As OpenSSH: shorter RSA keys are refused whatever is configured. */
export const MINIMAL_RSA_BITS = 1024;

/** Signature algorithms for host keys, best first. SHA-1 (`ssh-rsa`) is not among them, as in OpenSSH since 8.8. */
export const HOST_KEY_ALGORITHMS: readonly string[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
];

/** The message authentication codes of ssh2 that use SHA-1; offered only where ssh_config names them. */
export const SHA1_MACS: readonly string[] = ['hmac-sha1-etm@openssh.com', 'hmac-sha1'];

interface Algorithms {
  readonly keyword: string;
  readonly name: string;
  /** What the built-in client offers by itself, and what else it can do where it is demanded. */
  readonly defaults: readonly string[];
  readonly others: readonly string[];
}

/** What ssh2 1.17 implements, by OpenSSH's names. */
const KEX: Algorithms = {
  keyword: 'kexalgorithms',
  name: 'KexAlgorithms',
  defaults: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
    'diffie-hellman-group-exchange-sha256',
    'diffie-hellman-group14-sha256',
    'diffie-hellman-group15-sha512',
    'diffie-hellman-group16-sha512',
    'diffie-hellman-group17-sha512',
    'diffie-hellman-group18-sha512',
  ],
  others: ['diffie-hellman-group-exchange-sha1', 'diffie-hellman-group14-sha1', 'diffie-hellman-group1-sha1'],
};
const CIPHERS: Algorithms = {
  keyword: 'ciphers',
  name: 'Ciphers',
  defaults: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes192-ctr', 'aes256-ctr', 'chacha20-poly1305@openssh.com'],
  others: ['aes128-cbc', 'aes192-cbc', 'aes256-cbc', '3des-cbc'],
};
const MACS: Algorithms = {
  keyword: 'macs',
  name: 'MACs',
  defaults: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  others: [...SHA1_MACS, 'hmac-sha1-96', 'hmac-md5', 'hmac-md5-96'],
};
const HOST_KEYS: Algorithms = {
  keyword: 'hostkeyalgorithms',
  name: 'HostKeyAlgorithms',
  defaults: HOST_KEY_ALGORITHMS,
  others: ['ssh-rsa', 'ssh-dss'],
};
const USER_KEYS: Algorithms = {
  keyword: 'pubkeyacceptedalgorithms',
  name: 'PubkeyAcceptedAlgorithms',
  defaults: HOST_KEY_ALGORITHMS,
  others: ['ssh-rsa', 'ssh-dss'],
};

/** The hint for what the built-in client cannot do. */
export const USE_OPENSSH = "use the system's ssh: --ssh-transport openssh, or ssh.transport: openssh in a fleet file";

/**
 * Reads what ssh_config demands of a connection. Names that the built-in client does not know are left out, as ssh leaves out what a server does not know.
 * @throws AppError SSH_CONFIG_INVALID where nothing is left that the built-in client can do
 * @see ssh_config(5) KexAlgorithms and the other lists, PubkeyAuthentication, PreferredAuthentications, RequiredRSASize
 */
export function readSshPolicy(settings: SshSettings): SshPolicy {
  const [kex, ciphers, macs, userKeys] = [KEX, CIPHERS, MACS, USER_KEYS].map((algorithms) => readList(settings, algorithms));
  const hostKeys = readList(settings, HOST_KEYS);
  const isOrdered = !/^[+-]/.test(settings.first.get(HOST_KEYS.keyword)?.args[0] ?? '+');
  const methods = readMethods(settings);
  const minimalRsaBits = readRsaBits(settings);
  return {
    ...(kex === undefined ? {} : { kex }),
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(macs === undefined ? {} : { macs }),
    ...(hostKeys === undefined ? {} : { hostKeys: { names: hostKeys, isOrdered } }),
    ...(userKeys === undefined ? {} : { userKeys }),
    ...(methods === undefined ? {} : { methods }),
    ...(minimalRsaBits === undefined ? {} : { minimalRsaBits }),
  };
}

/** `+` adds to the client's own list, `^` puts in front of it, `-` takes away from it; names may be patterns. */
function readList(settings: SshSettings, { keyword, name, defaults, others }: Algorithms): readonly string[] | undefined {
  const line = settings.first.get(keyword);
  if (line === undefined) return undefined;
  const [, sign = '', rest = ''] = /^([+^-]?)(.*)$/s.exec(line.args[0] ?? '') ?? [];
  const patterns = rest.split(',');
  const supported = [...defaults, ...others];
  const named = patterns.flatMap((pattern) => supported.filter((algorithm) => matchPattern(algorithm, pattern)));
  const list = { '': named, '+': [...defaults, ...named], '^': [...named, ...defaults] }[sign];
  const left = [...new Set(list ?? defaults.filter((algorithm) => !matchPatternList(algorithm, patterns)))];
  if (left.length === 0) throw nothingLeft(line, name, `Add one of ${defaults.slice(0, 3).join(', ')}`);
  return left;
}

/** Methods that are switched off, by their keyword. */
const METHOD_FLAGS: Readonly<Record<string, LoginMethod>> = {
  pubkeyauthentication: 'publickey',
  passwordauthentication: 'password',
  kbdinteractiveauthentication: 'keyboard-interactive',
};

function readMethods(settings: SshSettings): readonly LoginMethod[] | undefined {
  const off = Object.entries(METHOD_FLAGS).flatMap(([keyword, method]) => {
    const line = settings.first.get(keyword);
    return line !== undefined && ['no', 'false'].includes(line.args[0]?.toLowerCase() ?? '') ? [{ line, method }] : [];
  });
  const preferred = settings.first.get('preferredauthentications');
  if (off.length === 0 && preferred === undefined) return undefined;
  const order = preferred?.args[0]?.split(',') ?? LOGIN_METHODS;
  const isAllowed = (method: LoginMethod): boolean => !off.some((each) => each.method === method);
  const left = order.flatMap((name) => LOGIN_METHODS.filter((method) => method === name && isAllowed(method)));
  if (left.length === 0)
    throw nothingLeft(
      preferred ?? off[0]?.line,
      preferred === undefined ? 'the configuration' : 'PreferredAuthentications',
      `Allow ${LOGIN_METHODS.join(', ')}`,
    );
  return left;
}

function readRsaBits(settings: SshSettings): number | undefined {
  const line = settings.first.get('requiredrsasize');
  if (line === undefined) return undefined;
  const text = line.args[0] ?? '';
  if (!/^[0-9]{1,6}$/.test(text)) throw invalid(line, `"${text}" is not a number of bits`, 'Use a number such as 2048');
  return Math.max(MINIMAL_RSA_BITS, Number(text));
}

function nothingLeft(line: SshConfigLine | undefined, name: string, hint: string): Error {
  return invalid(line, `${name} leaves nothing that the built-in SSH client can do`, `${hint}, or ${USE_OPENSSH}`);
}

function invalid(line: SshConfigLine | undefined, message: string, hint: string): Error {
  return sshConfigInvalid({ ...(line === undefined ? {} : { file: line.file, line: line.line }), message, hint });
}

/**
 * Why a key of the user may not be used; null when it may.
 * @param key type and length of the key; bits are those of an RSA modulus, null for other types
 */
export function userKeyRefusal({ type, bits }: { readonly type: string; readonly bits: number | null }, policy: SshPolicy): string | null {
  const { userKeys = USER_KEYS.defaults, minimalRsaBits = MINIMAL_RSA_BITS } = policy;
  if (bits !== null && bits < minimalRsaBits) return `it has ${bits} bits, fewer than ${minimalRsaBits}`;
  const algorithms = type === 'ssh-rsa' ? ['rsa-sha2-256', 'rsa-sha2-512', 'ssh-rsa'] : [type];
  return algorithms.some((algorithm) => userKeys.includes(algorithm)) ? null : 'PubkeyAcceptedAlgorithms forbids its type';
}

/** True where RSA keys of the user may sign with SHA-1, which OpenSSH does not do since 8.8 unless it is told to. */
export function allowsSha1Signatures({ userKeys }: SshPolicy): boolean {
  return userKeys?.includes('ssh-rsa') ?? false;
}
