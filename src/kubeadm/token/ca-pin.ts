import { type Certificate, parseCertificates } from '../../x509/certificate.ts';

/**
 * Reads a pin of a CA's public key, as `--discovery-token-ca-cert-hash` takes it: `sha256:` and 64 hexadecimal digits, in any case, nothing around them.
 * @returns the pin in lower case; null when it is none
 * @see kubeadm 1.36 util/pubkeypin
 */
export function parseCaPin(text: string): string | null {
  return /^sha256:[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : null;
}

/** The pin of a certificate: SHA-256 over its SubjectPublicKeyInfo. Certificates of one key have one pin. */
export function caPinOf({ publicKeySha256 }: Pick<Certificate, 'publicKeySha256'>): string {
  return `sha256:${publicKeySha256}`;
}

/**
 * The pins of a PEM bundle, each once.
 * @returns null when it holds no certificate, or one that can't be read
 */
export function caPinsOf(pem: string): readonly string[] | null {
  const certificates = parseCertificates(pem);
  return certificates === null || certificates.length === 0 ? null : [...new Set(certificates.map(caPinOf))];
}
