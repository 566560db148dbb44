import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { Secret, SensitiveText } from '../text/secret.ts';

/** More than any key file has; a hostile one does not keep us busy. */
const MAX_LENGTH = 65_536;

const PRIVATE = /-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----[\s\S]*?-----END \1-----/;
const PUBLIC = /-----BEGIN ((?:RSA )?PUBLIC KEY|CERTIFICATE)-----[\s\S]*?-----END \1-----/g;

/**
 * Reads the first private key of a PEM text: RSA or ECDSA, PKCS#1, SEC 1 or PKCS#8; blocks of other kinds are passed over.
 * @returns null when there is none, it is damaged, encrypted or of another kind
 */
export function readPrivateKey(pem: string | Secret | SensitiveText): KeyObject | null {
  const text = typeof pem === 'string' ? pem : pem.reveal();
  const block = text.length > MAX_LENGTH ? undefined : PRIVATE.exec(text)?.[0];
  if (block === undefined) return null;
  try {
    const key = createPrivateKey(block);
    return key.asymmetricKeyType === 'rsa' || key.asymmetricKeyType === 'ec' ? key : null;
  } catch {
    return null;
  }
}

/** Whether one of the public keys of a PEM text is that of a private key. */
export function publicKeyFits(pem: string, key: KeyObject): boolean {
  if (pem.length > MAX_LENGTH) return false;
  const wanted = spki(createPublicKey(key));
  return (pem.match(PUBLIC) ?? []).some((block) => {
    try {
      return spki(createPublicKey(block)).equals(wanted);
    } catch {
      return false;
    }
  });
}

function spki(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' });
}
