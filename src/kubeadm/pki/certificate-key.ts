import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Secret, SensitiveText } from '../../base/text/secret.ts';

/**
 * Encryption of uploaded certificates: AES-256-GCM; nonce first, authentication tag last.
 * @see kubeadm 1.36 util/crypto
 */

export const CERTIFICATE_KEY_BYTES = 32;
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A key in its printed form: 64 hexadecimal digits. */
export function formatCertificateKey(bytes: Uint8Array): Secret {
  return new Secret(Buffer.from(bytes).toString('hex'));
}

/**
 * Encrypts a text.
 * @param key 64 hexadecimal digits
 * @param nonce 12 bytes, never reused with this key
 */
export function encryptWithCertificateKey(text: SensitiveText, key: Secret, nonce: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', keyBytes(key), nonce);
  return Buffer.concat([nonce, cipher.update(text.reveal(), 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts a text; null when the key is wrong or the data was modified. */
export function decryptWithCertificateKey(data: Uint8Array, key: Secret): SensitiveText | null {
  if (data.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', keyBytes(key), data.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(data.subarray(data.length - TAG_BYTES));
  try {
    const text = Buffer.concat([decipher.update(data.subarray(NONCE_BYTES, data.length - TAG_BYTES)), decipher.final()]).toString('utf8');
    return new SensitiveText([new Secret(text)]);
  } catch {
    return null;
  }
}

function keyBytes(key: Secret): Buffer {
  return Buffer.from(key.reveal(), 'hex');
}
