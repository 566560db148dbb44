import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type ssh2 from 'ssh2';
import { makeKeyExchangeLean } from './lean-key-exchange.ts';

/** What is used of the client beyond its public interface; a test holds that it is there (ssh2 1.17). */
interface Internals {
  readonly _protocol?: { _kex?: unknown; authPK: AuthPublicKey; readonly _handlers: { GLOBAL_REQUEST: HandleRequest } };
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
 * It makes a host prove all keys it offers for later, as often as it offers some, and keeps account of that without bound. Nobody here remembers them.
 * @param client after `connect` was called
 */
export function makeLean(client: ssh2.Client): void {
  const { _protocol: protocol } = client as unknown as Internals;
  if (protocol === undefined) return;
  makeKeyExchangeLean(protocol);
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
  const { _handlers: handlers } = protocol;
  const handle = handlers.GLOBAL_REQUEST;
  handlers.GLOBAL_REQUEST = (connection, name, wantReply, data) => {
    if (!name.startsWith('hostkeys')) return handle(connection, name, wantReply, data);
    if (wantReply) connection.requestSuccess();
  };
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
