import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import { decryptWithCertificateKey, encryptWithCertificateKey, formatCertificateKey } from '../../../../src/kubeadm/pki/certificate-key.ts';

const KEY = new Secret('e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204');
const TEXT = '-----BEGIN PUBLIC KEY-----\n';
// Sealed by Go's crypto/cipher with that key and the nonce "0123456789ab".
const SEALED = 'MDEyMzQ1Njc4OWFiCtCdOs3J4hKKvuAruN67qFyfQOCwS0eVTyDZMpZPR1o1CbRA6I//GGtVnw==';

describe('encryption with a certificate key', () => {
  it('matches the output of Go', () => {
    const bytes = encryptWithCertificateKey(new SensitiveText([TEXT]), KEY, Buffer.from('0123456789ab'));
    expect(Buffer.from(bytes).toString('base64')).toBe(SEALED);
    expect(decryptWithCertificateKey(Buffer.from(SEALED, 'base64'), KEY)?.reveal()).toBe(TEXT);
  });

  it('rejects other keys, and changed or truncated data', () => {
    const bytes = Buffer.from(SEALED, 'base64');
    expect(decryptWithCertificateKey(bytes, formatCertificateKey(new Uint8Array(32)))).toBeNull();
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes);
      changed[i] = (changed[i] as number) ^ 1;
      expect(decryptWithCertificateKey(changed, KEY)).toBeNull();
      expect(decryptWithCertificateKey(bytes.subarray(0, i), KEY)).toBeNull();
    }
  });

  it('returns secrets that print masked', () => {
    expect(String(decryptWithCertificateKey(Buffer.from(SEALED, 'base64'), KEY))).toBe('[secret]');
    expect(formatCertificateKey(new Uint8Array(32)).reveal()).toBe('00'.repeat(32));
  });
});
