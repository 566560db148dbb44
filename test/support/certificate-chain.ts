import 'reflect-metadata';
import { createPrivateKey, webcrypto } from 'node:crypto';
import { BasicConstraintsExtension, type Extension, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';

export interface CertificateChain {
  /** A self-signed CA, and an intermediate CA that it signed. */
  readonly rootPem: string;
  readonly intermediatePem: string;
  /** A server certificate for 127.0.0.1, signed by the intermediate CA. */
  readonly certPem: string;
  readonly keyPem: string;
}

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A server whose certificate is two signatures away from the root. */
export async function createCertificateChain(): Promise<CertificateChain> {
  const [root, middle, server] = await Promise.all([newKeys(), newKeys(), newKeys()]);
  const ca = new BasicConstraintsExtension(true, undefined, true);
  const names = new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]);
  const key = createPrivateKey({
    key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', server.privateKey)),
    format: 'der',
    type: 'pkcs8',
  });
  return {
    rootPem: await sign('root', root, { issuer: 'root', keys: root }, ca),
    intermediatePem: await sign('kubernetes', middle, { issuer: 'root', keys: root }, ca),
    certPem: await sign('kube-apiserver', server, { issuer: 'kubernetes', keys: middle }, names),
    keyPem: String(key.export({ format: 'pem', type: 'pkcs8' })),
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(EC, true, ['sign', 'verify']);
}

async function sign(
  subject: string,
  { publicKey }: webcrypto.CryptoKeyPair,
  by: { readonly issuer: string; readonly keys: webcrypto.CryptoKeyPair },
  extension: Extension,
): Promise<string> {
  const certificate = await X509CertificateGenerator.create({
    serialNumber: '01',
    subject: `CN=${subject}`,
    issuer: `CN=${by.issuer}`,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    publicKey,
    signingKey: by.keys.privateKey,
    signingAlgorithm: EC,
    extensions: [extension],
  });
  return `${certificate.toString('pem')}\n`;
}
