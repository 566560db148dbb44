import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { Secret, SensitiveText } from '../base/text/secret.ts';
import { pemBlocks } from './pem-blocks.ts';

/** Limits for hostile key files; real ones are far smaller. */
const MAX_LENGTH = 65_536;
const MAX_BLOCKS = 100;

const PRIVATE = ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY'];
const PUBLIC = ['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'];

/**
 * Reads the first private key of a PEM text: RSA or ECDSA; PKCS#1, SEC 1 or PKCS#8. Other blocks are skipped.
 * @returns null when the text contains none, or it is damaged, encrypted or of another type
 */
export function readPrivateKey(pem: string | Secret | SensitiveText): KeyObject | null {
  const text = typeof pem === 'string' ? pem : pem.reveal();
  const block = text.length > MAX_LENGTH ? undefined : pemBlocks(text).find(({ label }) => PRIVATE.includes(label));
  if (block === undefined) return null;
  try {
    const key = createPrivateKey(block.pem);
    return key.asymmetricKeyType === 'rsa' || key.asymmetricKeyType === 'ec' ? key : null;
  } catch {
    return null;
  }
}

/** Whether a PEM text contains the public key of a private key. */
export function publicKeyFits(pem: string, key: KeyObject): boolean {
  if (pem.length > MAX_LENGTH) return false;
  const desired = spki(createPublicKey(key));
  const blocks = pemBlocks(pem)
    .filter(({ label }) => PUBLIC.includes(label))
    .slice(0, MAX_BLOCKS);
  return blocks.some((block) => {
    try {
      return spki(createPublicKey(block.pem)).equals(desired);
    } catch {
      return false;
    }
  });
}

function spki(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' });
}
