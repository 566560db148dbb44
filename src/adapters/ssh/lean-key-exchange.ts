import { createPublicKey, diffieHellman, type KeyObject } from 'node:crypto';

/** What is used of the client's own key exchange over Curve25519; a test holds that it is there (ssh2 1.17). */
interface Curve25519Exchange {
  generateKeys(): void;
  readonly _keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  getPublicKey(): Buffer;
  /** An mpint's bytes, without its length. */
  computeSecret(theirs: Buffer): Buffer | Error;
}

/**
 * Has the client's key exchanges over Curve25519 hand keys to Node as they are. The client's own wraps them in DER, and unwraps its public key each time it is
 * asked for it, which takes longer than the exchange itself.
 * @param protocol whose key exchange is yet to begin
 */
export function makeKeyExchangeLean(protocol: { _kex?: unknown }): void {
  let current = protocol._kex;
  Object.defineProperty(protocol, '_kex', {
    configurable: true,
    enumerable: true,
    get: () => current,
    set: (next: unknown) => {
      if (isCurve25519(next)) makeLean(next);
      current = next;
    },
  });
}

function isCurve25519(exchange: unknown): exchange is Curve25519Exchange {
  return typeof exchange === 'object' && exchange !== null && 'type' in exchange && exchange.type === '25519';
}

function makeLean(exchange: Curve25519Exchange): void {
  let ours: Buffer | undefined;
  exchange.getPublicKey = () => {
    exchange.generateKeys();
    ours ??= Buffer.from(exchange._keys.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
    return ours;
  };
  exchange.computeSecret = (theirs) => {
    exchange.generateKeys();
    try {
      const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: theirs.toString('base64url') }, format: 'jwk' });
      return toMpint(diffieHellman({ privateKey: exchange._keys.privateKey, publicKey }));
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
}

/** No zero in front but the one that says that the number is positive (RFC 4251, 5). */
function toMpint(bytes: Buffer): Buffer {
  const from = bytes.findIndex((byte) => byte !== 0);
  const digits = bytes.subarray(from < 0 ? bytes.length : from);
  return (digits[0] ?? 0) < 0x80 ? digits : Buffer.concat([Buffer.of(0), digits]);
}
