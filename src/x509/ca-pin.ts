import { type Certificate, parseCertificates } from './certificate.ts';

/**
 * Reads a pin of a CA public key, as in `--discovery-token-ca-cert-hash`: `sha256:` and 64 hexadecimal digits
 * in any case.
 * @returns the pin in lower case; null when it is not valid
 * @see kubeadm 1.36 util/pubkeypin
 */
export function parseCaPin(text: string): string | null {
  return /^sha256:[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : null;
}

/**
 * The pin of a certificate: SHA-256 of its SubjectPublicKeyInfo. Certificates with the same key have the same
 * pin.
 */
export function caPinOf({ publicKeySha256 }: Pick<Certificate, 'publicKeySha256'>): string {
  return `sha256:${publicKeySha256}`;
}

/**
 * The pins of a PEM bundle, without duplicates.
 * @returns null when the bundle contains no certificate, or one that cannot be read
 */
export function caPinsOf(pem: string): readonly string[] | null {
  const certificates = parseCertificates(pem);
  return certificates === null || certificates.length === 0 ? null : [...new Set(certificates.map(caPinOf))];
}
