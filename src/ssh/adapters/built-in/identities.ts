import { readFile, stat } from 'node:fs/promises';
import ssh2 from 'ssh2';
import { systemErrorText } from '../../../base/system-error.ts';
import type { Secret } from '../../../base/text/secret.ts';
import { readPrivateKeyHeader, readPublicKeyFile, rsaBits } from '../../key-format.ts';
import { hostKeyFingerprint, hostKeyFromBytes, hostKeyTypeName } from '../../known-hosts.ts';
import { allowsSha1Signatures, type SshPolicy, userKeyRefusal } from '../../policy.ts';
import type { SshTarget } from '../../target.ts';

/** Called once for each encrypted key. Without a passphrase the key is skipped. */
export type AskPassphrase = (identityFile: string) => Promise<Secret | undefined>;

/** A way to log in; `prepare` makes it ready when it is tried. */
export interface Candidate {
  readonly type: 'publickey' | 'password' | 'keyboard-interactive' | 'none';
  readonly label: string;
  /** @param onSkipped is called if the candidate later proves unusable, as a key without an algorithm that the host accepts */
  prepare(
    onSkipped: (why: string) => void,
  ): Promise<{ readonly kind: 'ready'; readonly method: ssh2.AnyAuthMethod } | { readonly kind: 'skipped'; readonly why: string }>;
}

export interface KeyCandidates {
  readonly candidates: readonly Candidate[];
  /** Unusable identity files and agents, each with the reason. */
  readonly skipped: readonly string[];
}

/**
 * Private keys and agents of this process: each file is read, and each passphrase requested, once for all
 * hosts.
 */
export interface Identities {
  /**
   * The keys to try, in the order of ssh: agent keys that match identity files, the agent's other keys unless
   * IdentitiesOnly, then the identity files themselves.
   */
  candidates(target: SshTarget, askPassphrase: AskPassphrase | undefined): Promise<KeyCandidates>;
}

const AGENT_TIMEOUT_MS = 5000;

export function identities(): Identities {
  const files = new Map<string, Promise<IdentityFile>>();
  const agents = new Map<string, Promise<Agent>>();
  const unlocked = new Map<string, Promise<Unlocked>>();
  return {
    candidates: async (target, askPassphrase) => {
      const identityFiles = await Promise.all(target.identityFiles.map((path) => cached(files, path, readIdentityFile)));
      const agent = target.identityAgent === null ? NO_AGENT : await cached(agents, target.identityAgent, listAgentKeys);
      const isOfAgent = (file: IdentityFile): boolean => agent.keys.some(({ blob }) => blob === file.publicBlob);
      const named = identityFiles.flatMap((file) => agent.keys.filter(({ blob }) => blob === file.publicBlob));
      const others = target.identitiesOnly ? [] : agent.keys.filter((key) => !named.includes(key));
      const own = identityFiles.filter((file) => file.kind === 'private' && !isOfAgent(file));
      const unlock = (file: PrivateFile): Promise<Unlocked> => cached(unlocked, file.path, () => unlockFile(file, askPassphrase));
      return {
        candidates: [
          ...[...named, ...others].map((key) => agentCandidate(key, target)),
          ...own.filter((file) => file.kind === 'private').map((file) => fileCandidate(file, target, () => unlock(file))),
        ],
        skipped: [
          ...(agent.failure === null ? [] : [agent.failure]),
          ...identityFiles.flatMap((file) => (file.kind === 'unusable' && !isOfAgent(file) ? [`${file.path} (${file.why})`] : [])),
        ],
      };
    },
  };
}

/** Caches successful results; failures are retried. */
function cached<T>(map: Map<string, Promise<T>>, key: string, make: (key: string) => Promise<T>): Promise<T> {
  const present = map.get(key);
  if (present !== undefined) return present;
  const made = make(key);
  map.set(key, made);
  made.catch(() => map.delete(key));
  return made;
}

interface PrivateFile {
  readonly kind: 'private';
  readonly path: string;
  readonly text: string;
  readonly encrypted: boolean;
  readonly publicBlob: string | null;
}

type IdentityFile =
  | PrivateFile
  | { readonly kind: 'missing'; readonly path: string; readonly publicBlob: string | null }
  | { readonly kind: 'unusable'; readonly path: string; readonly publicBlob: string | null; readonly why: string };

async function readIdentityFile(path: string): Promise<IdentityFile> {
  const publicText = await readTextOrNull(`${path}.pub`);
  const publicBlob = publicText === null ? null : readPublicKeyFile(publicText);
  const unusable = (why: string, blob = publicBlob): IdentityFile => ({ kind: 'unusable', path, publicBlob: blob, why });
  try {
    const { uid, mode } = await stat(path);
    const text = await readFile(path, 'utf8');
    const header = readPrivateKeyHeader(text);
    if (header === null) {
      const blob = readPublicKeyFile(text);
      return unusable(blob === null ? 'not a private key' : 'a public key whose private key is not in the agent', blob);
    }
    if (uid === process.getuid?.() && (mode & 0o077) !== 0)
      return unusable(
        `mode ${(mode & 0o7777).toString(8).padStart(4, '0')} permits access by other users: run chmod 600 ${path}`,
        header.publicBlob ?? publicBlob,
      );
    return { kind: 'private', path, text, encrypted: header.encrypted, publicBlob: header.publicBlob ?? publicBlob };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing', path, publicBlob };
    return unusable(`cannot be read: ${systemErrorText(error)}`);
  }
}

async function readTextOrNull(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch(() => null);
}

type Unlocked = { readonly kind: 'key'; readonly key: ssh2.ParsedKey } | { readonly kind: 'locked'; readonly why: string };

async function unlockFile(file: PrivateFile, askPassphrase: AskPassphrase | undefined): Promise<Unlocked> {
  const passphrase = file.encrypted ? await askPassphrase?.(file.path) : undefined;
  if (file.encrypted && passphrase === undefined)
    return { kind: 'locked', why: 'encrypted: set KUBELETADM_SSH_PASSPHRASE to the passphrase of the key' };
  const key = ssh2.utils.parseKey(file.text, passphrase?.reveal());
  if (!(key instanceof Error)) return { kind: 'key', key };
  return { kind: 'locked', why: file.encrypted ? 'wrong passphrase or unsupported format' : `unsupported: ${key.message}` };
}

function fileCandidate(file: PrivateFile, { user: username, policy = {} }: SshTarget, unlock: () => Promise<Unlocked>): Candidate {
  const label = `key ${file.path}`;
  return {
    type: 'publickey',
    label,
    prepare: async (onSkipped) => {
      const unlocked = await unlock();
      if (unlocked.kind === 'locked') return { kind: 'skipped', why: `${file.path} (${unlocked.why})` };
      const { key } = unlocked;
      const refusal = keyRefusal(key, policy);
      if (refusal !== null) return { kind: 'skipped', why: `${file.path} (${refusal})` };
      // ssh2 itself would sign with SHA-1 when the host announces no better algorithm.
      if (key.type !== 'ssh-rsa') return { kind: 'ready', method: { type: 'publickey', username, key } };
      const sign: Sign = (data, { hash }, done) => {
        const signature = key.sign(data, hash);
        if (signature instanceof Error) done(signature);
        else done(null, signature);
      };
      return {
        kind: 'ready',
        method: { type: 'agent', username, agent: new OneKeyAgent(key, withoutSha1(sign, policy, label, onSkipped)) },
      };
    },
  };
}

function keyRefusal(key: ssh2.ParsedKey, policy: SshPolicy): string | null {
  return userKeyRefusal({ type: key.type, bits: rsaBits(key.getPublicSSH()) }, policy);
}

interface Agent {
  readonly keys: readonly ReturnType<typeof agentKey>[];
  readonly failure: string | null;
}

const NO_AGENT: Agent = { keys: [], failure: null };

/** Never rejects: an unreachable agent is a warning, not an error. */
async function listAgentKeys(socket: string): Promise<Agent> {
  const agent = ssh2.createAgent(socket);
  return new Promise((resolve) => {
    const fail = (): void => resolve({ keys: [], failure: `agent ${socket} (no response)` });
    const timer = setTimeout(fail, AGENT_TIMEOUT_MS);
    agent.getIdentities((error, keys = []) => {
      clearTimeout(timer);
      if (error) return fail();
      const parsed = keys
        .map((key) => ssh2.utils.parseKey(key as ssh2.ParsedKey))
        .filter((key): key is ssh2.ParsedKey => !(key instanceof Error));
      resolve({ keys: parsed.map((key) => agentKey(key, agent)), failure: null });
    });
  });
}

function agentKey(parsed: ssh2.ParsedKey, agent: ssh2.BaseAgent) {
  const key = hostKeyFromBytes(parsed.getPublicSSH());
  const label = `agent key ${hostKeyTypeName(key.type)} ${hostKeyFingerprint(key)}`;
  return { blob: key.blob, label, parsed, agent };
}

function agentCandidate({ parsed, agent, label }: Agent['keys'][number], { user: username, policy = {} }: SshTarget): Candidate {
  return {
    type: 'publickey',
    label,
    prepare: async (onSkipped) => {
      const refusal = keyRefusal(parsed, policy);
      if (refusal !== null) return { kind: 'skipped', why: `${label} (${refusal})` };
      const sign: Sign = (data, options, done) => agent.sign(parsed, data, options, done);
      return {
        kind: 'ready',
        method: { type: 'agent', username, agent: new OneKeyAgent(parsed, withoutSha1(sign, policy, label, onSkipped)) },
      };
    },
  };
}

type Sign = (data: Buffer, options: ssh2.SigningRequestOptions, done: ssh2.SignCallback) => void;

/** Signs with SHA-1 only if ssh_config allows ssh-rsa, as OpenSSH since 8.8. */
function withoutSha1(sign: Sign, policy: SshPolicy, label: string, onSkipped: (why: string) => void): Sign {
  return (data, options, done) => {
    if (options.hash !== 'sha1' || allowsSha1Signatures(policy)) return sign(data, options, done);
    const why = 'the host accepts RSA signatures with SHA-1 only';
    onSkipped(`${label} (${why})`);
    done(new Error(why));
  };
}

/** Offers one key and delegates its signatures: ssh2 would try all keys of an agent, in the agent's order. */
class OneKeyAgent extends ssh2.BaseAgent {
  readonly #key: ssh2.ParsedKey;
  readonly #sign: Sign;

  constructor(key: ssh2.ParsedKey, sign: Sign) {
    super();
    this.#key = key;
    this.#sign = sign;
  }

  override getIdentities(callback: ssh2.IdentityCallback): void {
    callback(undefined, [this.#key]);
  }

  override sign(
    _key: ssh2.ParsedKey | Buffer | string,
    data: Buffer,
    options: ssh2.SigningRequestOptions | ssh2.SignCallback,
    callback: ssh2.SignCallback = () => undefined,
  ): void {
    if (typeof options === 'function') this.#sign(data, {}, options);
    else this.#sign(data, options, callback);
  }
}
