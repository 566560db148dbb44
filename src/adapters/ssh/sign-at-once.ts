import type ssh2 from 'ssh2';

/** What is used of the client beyond its public interface; a test holds that it is there (ssh2 1.17). */
interface Internals {
  readonly _protocol?: { authPK: AuthPublicKey };
}

type AuthPublicKey = (user: string, key: ssh2.ParsedKey, algorithm?: string, sign?: Sign) => void;
type Sign = (data: Buffer, done: (signature: Buffer) => void) => void;

const HASHES: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' };

/**
 * Lets a client log in with a private key in one round trip: it first asks whether the host would take the key, which costs one more than to sign at
 * once. A host that does not want the key says the same to both. Keys of an agent are still asked about first: signing with one may want a finger.
 * @param client after `connect` was called
 */
export function signAtOnce(client: ssh2.Client): void {
  const { _protocol: protocol } = client as unknown as Internals;
  if (protocol === undefined) return;
  const ask = protocol.authPK.bind(protocol) as AuthPublicKey;
  protocol.authPK = (user, key, algorithm, sign) => {
    if (sign !== undefined || !key.isPrivateKey()) return ask(user, key, algorithm, sign);
    return ask(user, key, algorithm, (data, done) => {
      const signature = key.sign(data, HASHES[algorithm ?? '']);
      // It cannot sign: asked in the usual way, the client says why and goes on to the next key.
      if (signature instanceof Error) ask(user, key, algorithm);
      else done(signature);
    });
  };
}
