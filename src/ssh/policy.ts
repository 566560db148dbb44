import { present } from '../base/present.ts';
import { sshConfigInvalid } from '../host/host-problems.ts';
import type { SshConfigLine, SshSettings } from './config.ts';
import { matchPattern, matchPatternList } from './pattern.ts';

/** An authentication method, as ssh and PreferredAuthentications name it. */
type AuthenticationMethod = 'publickey' | 'password' | 'keyboard-interactive';

/** Cryptography and login settings of ssh_config. Absent settings are the client's defaults. */
export interface SshPolicy {
  /** Key exchanges to offer, in order. */
  readonly kex?: readonly string[];
  readonly ciphers?: readonly string[];
  readonly macs?: readonly string[];
  /**
   * Signature algorithms of host keys to offer. `isOrdered`: in exactly this order; otherwise those of known
   * keys come first.
   */
  readonly hostKeys?: { readonly names: readonly string[]; readonly isOrdered: boolean };
  /** Signature algorithms allowed for the user's keys. */
  readonly userKeys?: readonly string[];
  readonly methods?: readonly AuthenticationMethod[];
  /** Minimum length of RSA keys, for host keys and user keys. */
  readonly minimalRsaBits?: number;
}

/** Default order: publickey first, because failed passwords may lock an account. */
export const AUTHENTICATION_METHODS: readonly AuthenticationMethod[] = ['publickey', 'password', 'keyboard-interactive'];

/** As in OpenSSH, shorter RSA keys are rejected regardless of the configuration. */
export const MINIMAL_RSA_BITS = 1024;

/** Signature algorithms for host keys, best first. SHA-1 (`ssh-rsa`) is excluded, as in OpenSSH since 8.8. */
export const HOST_KEY_ALGORITHMS: readonly string[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
];

/** The MAC algorithms of ssh2 that use SHA-1; offered only if ssh_config names them. */
export const SHA1_MACS: readonly string[] = ['hmac-sha1-etm@openssh.com', 'hmac-sha1'];

interface Algorithms {
  readonly keyword: string;
  readonly name: string;
  /** Algorithms that the built-in client offers by default, and others that it supports on request. */
  readonly defaults: readonly string[];
  readonly others: readonly string[];
}

/** Algorithms of ssh2 1.17, by OpenSSH's names. */
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

/** The hint for features that the built-in client lacks. */
export const USE_OPENSSH = "use the system's ssh client with --ssh-transport openssh (in a fleet file: ssh.transport: openssh)";

/**
 * Reads the security settings of ssh_config for a connection. Algorithms unknown to the built-in client are
 * ignored.
 * @throws AppError SSH_CONFIG_INVALID when no supported algorithm remains
 * @see ssh_config(5) KexAlgorithms and the other lists, PubkeyAuthentication, PreferredAuthentications,
 *   RequiredRSASize
 */
export function readSshPolicy(settings: SshSettings): SshPolicy {
  const [kex, ciphers, macs, userKeys] = [KEX, CIPHERS, MACS, USER_KEYS].map((algorithms) => readList(settings, algorithms));
  const hostKeys = readList(settings, HOST_KEYS);
  const isOrdered = !/^[+-]/.test(settings.first.get(HOST_KEYS.keyword)?.args[0] ?? '+');
  return present({
    ...{ kex, ciphers, macs, userKeys },
    hostKeys: hostKeys && { names: hostKeys, isOrdered },
    methods: readMethods(settings),
    minimalRsaBits: readRsaBits(settings),
  });
}

/** `+` appends to the client's default list, `^` prepends, `-` removes; names may be patterns. */
function readList(settings: SshSettings, { keyword, name, defaults, others }: Algorithms): readonly string[] | undefined {
  const line = settings.first.get(keyword);
  if (line === undefined) return undefined;
  const [, sign = '', rest = ''] = /^([+^-]?)(.*)$/s.exec(line.args[0] ?? '') ?? [];
  const patterns = rest.split(',');
  const supported = [...defaults, ...others];
  const named = patterns.flatMap((pattern) => supported.filter((algorithm) => matchPattern(algorithm, pattern)));
  const list = { '': named, '+': [...defaults, ...named], '^': [...named, ...defaults] }[sign];
  const left = [...new Set(list ?? defaults.filter((algorithm) => !matchPatternList(algorithm, patterns)))];
  if (left.length === 0) throw nothingLeft(line, `${name} allows no algorithm`, `Add one of ${defaults.slice(0, 3).join(', ')}`);
  return left;
}

/** Keywords that disable methods. */
const METHOD_FLAGS: Readonly<Record<string, AuthenticationMethod>> = {
  pubkeyauthentication: 'publickey',
  passwordauthentication: 'password',
  kbdinteractiveauthentication: 'keyboard-interactive',
};

function readMethods(settings: SshSettings): readonly AuthenticationMethod[] | undefined {
  const off = Object.entries(METHOD_FLAGS).flatMap(([keyword, method]) => {
    const line = settings.first.get(keyword);
    return line !== undefined && ['no', 'false'].includes(line.args[0]?.toLowerCase() ?? '') ? [{ line, method }] : [];
  });
  const preferred = settings.first.get('preferredauthentications');
  if (off.length === 0 && preferred === undefined) return undefined;
  const order = preferred?.args[0]?.split(',') ?? AUTHENTICATION_METHODS;
  const isAllowed = (method: AuthenticationMethod): boolean => !off.some((each) => each.method === method);
  const left = order.flatMap((name) => AUTHENTICATION_METHODS.filter((method) => method === name && isAllowed(method)));
  if (left.length === 0)
    throw nothingLeft(
      preferred ?? off[0]?.line,
      `${preferred === undefined ? 'the SSH configuration' : 'PreferredAuthentications'} allows no authentication method`,
      `Allow one of ${AUTHENTICATION_METHODS.join(', ')}`,
    );
  return left;
}

function readRsaBits(settings: SshSettings): number | undefined {
  const line = settings.first.get('requiredrsasize');
  if (line === undefined) return undefined;
  const text = line.args[0] ?? '';
  if (!/^[0-9]{1,6}$/.test(text)) throw invalid(line, `"${text}" is not a valid number of bits`, 'Use a number such as 2048');
  return Math.max(MINIMAL_RSA_BITS, Number(text));
}

function nothingLeft(line: SshConfigLine | undefined, what: string, hint: string): Error {
  return invalid(line, `${what} that the built-in SSH client supports`, `${hint}, or ${USE_OPENSSH}`);
}

function invalid(line: SshConfigLine | undefined, message: string, hint: string): Error {
  return sshConfigInvalid({ file: line?.file, line: line?.line, message, hint });
}

/**
 * Why a key of the user must not be used; null when it may be used.
 * @param key type and length of the key; bits are those of the RSA modulus, null for other types
 */
export function userKeyRefusal({ type, bits }: { readonly type: string; readonly bits: number | null }, policy: SshPolicy): string | null {
  const { userKeys = USER_KEYS.defaults, minimalRsaBits = MINIMAL_RSA_BITS } = policy;
  if (bits !== null && bits < minimalRsaBits) return `${bits} bits, the minimum is ${minimalRsaBits}`;
  const algorithms = type === 'ssh-rsa' ? ['rsa-sha2-256', 'rsa-sha2-512', 'ssh-rsa'] : [type];
  return algorithms.some((algorithm) => userKeys.includes(algorithm)) ? null : 'key type not allowed by PubkeyAcceptedAlgorithms';
}

/** Whether RSA keys of the user may sign with SHA-1, which OpenSSH disables by default since 8.8. */
export function allowsSha1Signatures({ userKeys }: SshPolicy): boolean {
  return userKeys?.includes('ssh-rsa') ?? false;
}
