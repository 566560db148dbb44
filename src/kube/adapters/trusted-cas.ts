import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import type { ProxyEnvironment } from '../proxy.ts';

/** CA bundles of the distributions; the first existing file is used, as in Go's crypto/x509. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The CAs that the local host trusts, as PEM: SSL_CERT_FILE or the distribution's bundle, else Node's
 * built-in CAs; plus NODE_EXTRA_CA_CERTS. Unreadable files are ignored: verification then fails and reports
 * the unknown CA.
 */
export async function trustedCas(env: ProxyEnvironment): Promise<readonly string[]> {
  const extra = await read(env.NODE_EXTRA_CA_CERTS);
  const [bundle] = (await Promise.all((env.SSL_CERT_FILE ? [env.SSL_CERT_FILE] : BUNDLES).map(read))).flat();
  return [...(bundle === undefined ? rootCertificates : [bundle]), ...extra];
}

async function read(path: string | undefined): Promise<readonly string[]> {
  if (!path) return [];
  return readFile(path, 'utf8').then(
    (text) => (text.includes('-----BEGIN CERTIFICATE-----') ? [text] : []),
    () => [],
  );
}
