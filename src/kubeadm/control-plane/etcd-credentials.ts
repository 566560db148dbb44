import type { Secret } from '../../base/text/secret.ts';
import { chainsTo } from '../../x509/certificate-checks.ts';
import { readPrivateKey } from '../../x509/private-key.ts';
import { readCertificate, readCertificateChain, whyNoCertificate } from '../../x509/read-certificate.ts';

/** Client credentials for etcd. */
export interface EtcdCredentials {
  readonly caPem: string;
  readonly certificatePem: string;
  readonly keyPem: Secret;
  /** Source paths, for messages. */
  readonly files: { readonly ca: string; readonly certificate: string; readonly key: string };
}

/** Why etcd cannot be queried, as a clause, with a hint. */
export interface EtcdFailure {
  readonly why: string;
  readonly hint: string;
}

/** Validates credentials on their own, independent of the server; null: valid. */
export function validateEtcdCredentials({ caPem, certificatePem, keyPem, files }: EtcdCredentials, now: Date): EtcdFailure | null {
  const cas = readCertificateChain(caPem);
  const replaced = { hint: `Put the CA of the etcd cluster into ${files.ca}` };
  if (cas === null) return { why: `${files.ca} ${whyNoCertificate(caPem)}`, ...replaced };
  const expired = cas.find(({ notAfter }) => notAfter <= now);
  if (expired !== undefined) return { why: `${files.ca} expired on ${expired.notAfter.toISOString()}`, ...replaced };
  const renewed = { hint: 'Renew the certificate on the host: kubeletadm certs renew etcd-healthcheck-client' };
  const certificate = readCertificate(certificatePem);
  if (certificate === null) return { why: `${files.certificate} ${whyNoCertificate(certificatePem)}`, ...renewed };
  const key = readPrivateKey(keyPem);
  if (key === null) return { why: `${files.key} contains no private key`, ...renewed };
  if (!certificate.x509.checkPrivateKey(key)) return { why: `${files.key} does not match ${files.certificate}`, ...renewed };
  if (certificate.notAfter <= now) return { why: `${files.certificate} expired on ${certificate.notAfter.toISOString()}`, ...renewed };
  if (!cas.some((ca) => chainsTo(certificate, [], ca)))
    return { why: `${files.certificate} is not signed by the CA in ${files.ca}`, ...renewed };
  return null;
}
