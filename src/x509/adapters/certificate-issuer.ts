import 'reflect-metadata';
import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { Secret } from '../../base/text/secret.ts';
import type { CertificateIssuer, CertificateSpec, EncryptionAlgorithm, Signer } from '../certificate-issuer.ts';

/**
 * Keys and certificates as Go's crypto/x509 creates them for kubeadm 1.36: PKCS#1 and SEC 1 keys, 63-bit
 * serial numbers, names as printable strings if possible, key identifiers that link certificates to their CA.
 */
export const certificateIssuer: CertificateIssuer = {
  generateKey,
  publicKeyOf: (keyPem) => String(createPublicKey(keyPem.reveal()).export({ format: 'pem', type: 'spki' })),
  issue,
  request: async (spec, keyPem) => {
    const key = createPrivateKey(keyPem.reveal());
    const [privateKey, publicKey] = [await signingKey(key), await verifyingKey(key)];
    const names = alternativeNames(spec);
    const request = await Pkcs10CertificateRequestGenerator.create({
      name: nameOf(spec),
      keys: { privateKey, publicKey },
      signingAlgorithm: algorithmOf(key),
      extensions: names === null ? [] : [names],
    });
    return pemOf(request.toString('pem'));
  },
  secureRandomBytes: (count) => randomBytes(count),
};

const generatePair = promisify(generateKeyPair);

async function generateKey(algorithm: EncryptionAlgorithm): Promise<Secret> {
  if (algorithm === 'ECDSA-P256' || algorithm === 'ECDSA-P384') {
    const { privateKey } = await generatePair('ec', { namedCurve: algorithm === 'ECDSA-P256' ? 'P-256' : 'P-384' });
    return new Secret(String(privateKey.export({ format: 'pem', type: 'sec1' })));
  }
  const { privateKey } = await generatePair('rsa', { modulusLength: Number(algorithm.slice('RSA-'.length)) });
  return new Secret(String(privateKey.export({ format: 'pem', type: 'pkcs1' })));
}

async function issue(spec: CertificateSpec, keyPem: Secret, signer: Signer): Promise<string> {
  const publicKey = createPublicKey(keyPem.reveal()).export({ format: 'der', type: 'spki' });
  const signerKey = createPrivateKey((signer === 'self' ? keyPem : signer.keyPem).reveal());
  const ca = signer === 'self' ? null : new X509Certificate(signer.certificatePem);
  const subject = nameOf(spec);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject,
    issuer: ca?.subjectName ?? subject,
    // X.509 times have a resolution of one second.
    notBefore: wholeSeconds(spec.notBefore),
    notAfter: wholeSeconds(spec.notAfter),
    publicKey,
    signingKey: await signingKey(signerKey),
    signingAlgorithm: algorithmOf(signerKey),
    extensions: extensionsOf(spec, publicKey, ca),
  });
  return pemOf(certificate.toString('pem'));
}

function extensionsOf(spec: CertificateSpec, publicKey: Uint8Array, ca: X509Certificate | null): Extension[] {
  const usage = KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment | (spec.isCa ? KeyUsageFlags.keyCertSign : 0);
  const names = alternativeNames(spec);
  const caKeyId = ca?.getExtension(SubjectKeyIdentifierExtension)?.keyId;
  return [
    new KeyUsagesExtension(usage, true),
    ...(spec.usages.length === 0 ? [] : [new ExtendedKeyUsageExtension(spec.usages.map((each) => ExtendedKeyUsage[each]))]),
    new BasicConstraintsExtension(spec.isCa, undefined, true),
    ...(spec.isCa ? [new SubjectKeyIdentifierExtension(keyIdentifier(publicKey))] : []),
    ...(caKeyId === undefined ? [] : [new AuthorityKeyIdentifierExtension(caKeyId)]),
    ...(names === null ? [] : [names]),
  ];
}

/**
 * 160 bits of the SHA-256 of the public key (RFC 7093, method 1, over the whole SubjectPublicKeyInfo). Any
 * identifier unique to the key is valid.
 */
function keyIdentifier(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, 40);
}

function alternativeNames({ dnsNames, ipAddresses }: Pick<CertificateSpec, 'dnsNames' | 'ipAddresses'>): Extension | null {
  const names = [
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...ipAddresses.map((value) => ({ type: 'ip' as const, value })),
  ];
  return names.length === 0 ? null : new SubjectAlternativeNameExtension(names);
}

/** Organizations first, as one SET in DER order, then the common name. */
function nameOf({ commonName, organizations }: Pick<CertificateSpec, 'commonName' | 'organizations'>): Name {
  const named = (type: string, values: readonly string[]) => ({ [type]: values.map(text) }) as unknown as JsonName[number];
  return new Name([...(organizations.length === 0 ? [] : [named('O', organizations.toSorted(byEncoding))]), named('CN', [commonName])]);
}

function byEncoding(a: string, b: string): number {
  return Buffer.byteLength(a) - Buffer.byteLength(b) || Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Explicitly typed, because the library would interpret escapes in a plain string. */
function text(value: string): { readonly printableString: string } | { readonly utf8String: string } {
  return /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? { printableString: value } : { utf8String: value };
}

function serialNumber(): string {
  const bytes = randomBytes(8);
  bytes[0] = (bytes[0] as number) & 0x7f;
  return bytes.every((byte) => byte === 0) ? '01' : bytes.toString('hex');
}

function wholeSeconds(time: Date): Date {
  return new Date(Math.floor(time.getTime() / 1000) * 1000);
}

const CURVES: Readonly<Record<string, readonly [curve: string, hash: string]>> = {
  prime256v1: ['P-256', 'SHA-256'],
  secp384r1: ['P-384', 'SHA-384'],
  secp521r1: ['P-521', 'SHA-512'],
};

function algorithmOf(key: KeyObject) {
  if (key.asymmetricKeyType === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const [namedCurve, hash] = CURVES[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? [];
  if (namedCurve === undefined || hash === undefined)
    throw new Error(`cannot sign certificates with a key of type ${key.asymmetricKeyType}`);
  return { name: 'ECDSA', namedCurve, hash };
}

function signingKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', key.export({ format: 'der', type: 'pkcs8' }), algorithmOf(key), false, ['sign']);
}

function verifyingKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return webcrypto.subtle.importKey('spki', der, algorithmOf(key), true, ['verify']);
}

function pemOf(pem: string): string {
  return `${pem.trim()}\n`;
}
