import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type ssh2 from 'ssh2';
import { makeKeyExchangeLean } from './lean-key-exchange.ts';

/** What is used of the client beyond its public interface; a test holds that it is there (ssh2 1.17). */
interface Internals {
  readonly _protocol?: Protocol;
  /** Begins to wait for the next keepalive anew; does not where the socket takes nothing any more. */
  readonly _resetKA: () => void;
}

interface Protocol {
  _kex?: unknown;
  /** While a key exchange is under way. */
  readonly _kexinit?: unknown;
  readonly _packetRW: { readonly write: { readonly allocStart: number; alloc(bytes: number): Buffer; finalize(packet: Buffer): Buffer } };
  readonly _cipher: { encrypt(packet: Buffer): void };
  authPK: AuthPublicKey;
  readonly _handlers: {
    GLOBAL_REQUEST: HandleRequest;
    EXT_INFO: (protocol: unknown, extensions: unknown) => void;
    SERVICE_ACCEPT: (protocol: unknown, name: string) => void;
  };
}

type AuthPublicKey = (user: string, key: ssh2.ParsedKey, algorithm?: string, sign?: Sign) => void;
type HandleRequest = (protocol: { requestSuccess(): void }, name: string, wantReply: boolean, data: unknown) => void;
type Sign = (data: Buffer, done: (signature: Buffer) => void) => void;

const HASHES: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' };

/**
 * Leaves out what a client does for nothing.
 *
 * It asks whether the host would take a key before it signs, which costs a round trip; here it signs at once, and a host that does not want the key says the
 * same. Keys of an agent are still asked about first: signing with one may want a finger.
 *
 * It waits to hear that it may log in before it does, another round trip, which RFC 4253 (section 10) asks for only where the host has not proved its key.
 *
 * It makes a host prove all keys it offers for later, as often as it offers some, and keeps account of that without bound. Nobody here remembers them.
 * @param client after `connect` was called
 */
export function makeLean(client: ssh2.Client): void {
  const { _protocol: protocol } = client as unknown as Internals;
  if (protocol === undefined) return;
  makeKeyExchangeLean(protocol);
  signAtOnce(protocol);
  logInAtOnce(client, protocol);
  passOverOfferedKeys(protocol);
}

function signAtOnce(protocol: Protocol): void {
  const ask = protocol.authPK.bind(protocol) as AuthPublicKey;
  protocol.authPK = (user, key, algorithm, signer) => {
    if (signer !== undefined || !key.isPrivateKey()) return ask(user, key, algorithm, signer);
    return ask(user, key, algorithm, (data, done) => {
      const signature = signWith(key, data, HASHES[algorithm ?? '']);
      // It cannot sign: asked in the usual way, the client says why and goes on to the next key.
      if (signature instanceof Error) ask(user, key, algorithm);
      else done(signature);
    });
  };
}

/** Where the host has said which signatures it takes, which comes with its half of the key exchange: an RSA key signs in the way it says. */
function logInAtOnce(client: ssh2.Client, protocol: Protocol): void {
  const { _handlers: handlers } = protocol;
  const { EXT_INFO: takeExtensions, SERVICE_ACCEPT: logIn } = handlers;
  let hasTold = false;
  handlers.EXT_INFO = (connection, extensions) => {
    hasTold = true;
    takeExtensions(connection, extensions);
  };
  client.once('handshake', () => {
    if (!hasTold) return;
    handlers.SERVICE_ACCEPT = () => undefined;
    // The service is asked for once those who listen have heard of the handshake.
    process.nextTick(() => logIn(protocol, 'ssh-userauth'));
  });
}

function passOverOfferedKeys(protocol: Protocol): void {
  const { _handlers: handlers } = protocol;
  const handle = handlers.GLOBAL_REQUEST;
  handlers.GLOBAL_REQUEST = (connection, name, wantReply, data) => {
    if (!name.startsWith('hostkeys')) return handle(connection, name, wantReply, data);
    if (wantReply) connection.requestSuccess();
    else acknowledge(protocol);
  };
}

const IGNORE = 2;

/**
 * Sends a message that says nothing. The host's TCP keeps what it says next until we have acknowledged this, and ours would do so only 40 ms later: it waits for
 * something of ours to send along.
 */
function acknowledge({ _kexinit, _packetRW: { write }, _cipher }: Protocol): void {
  if (_kexinit !== undefined) return;
  const packet = write.alloc(5);
  packet.fill(0, write.allocStart, write.allocStart + 5);
  packet[write.allocStart] = IGNORE;
  _cipher.encrypt(write.finalize(packet));
}

/** Has a client that has said goodbye wait for nothing: its next keepalive would hold the process. */
export function stopKeepalive(client: ssh2.Client): void {
  (client as unknown as Internals)._resetKA();
}

const privateKeys = new WeakMap<ssh2.ParsedKey, KeyObject>();

/** The client's own reads the key's text for each signature, which takes longer than to sign. */
function signWith(key: ssh2.ParsedKey, data: Buffer, hash: string | undefined): Buffer | Error {
  try {
    const present = privateKeys.get(key) ?? createPrivateKey(key.getPrivatePEM());
    privateKeys.set(key, present);
    return sign(hash ?? DEFAULT_HASHES[key.type], data, present);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** As RFC 4253, 5656 and 8709 have them; Ed25519 hashes by itself. */
const DEFAULT_HASHES: Readonly<Record<string, string>> = {
  'ssh-rsa': 'sha1',
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
};
