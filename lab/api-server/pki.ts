import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  type PublicKey,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const;
const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17';
const YEAR_MS = 365 * 24 * 3600 * 1000;
const BACKDATE_MS = 5 * 60 * 1000;

/** A certificate and its private key, both PEM (`PRIVATE KEY`, PKCS#8). */
export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/**
 * The validity of a certificate. Default: from five minutes ago for one year. TLS peers use the system time,
 * not a test clock.
 */
export interface Validity {
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** A CA that signs certificates. */
export interface CertificateAuthority {
  readonly certPem: string;
  readonly keyPem: string;
  /**
   * A certificate for a TLS server. `names` are DNS names and IP addresses; the first is the default common
   * name.
   */
  issueServer(names: readonly string[], options?: Validity & { readonly commonName?: string }): Promise<KeyPair>;
  /** A client certificate: the API server takes CN as the user and each O as a group. */
  issueClient(subject: Subject, options?: Validity): Promise<KeyPair>;
  /** Signs a CSR unchanged: its subject, names and key. Returns PEM. */
  signRequest(request: ParsedRequest, usages: readonly string[], validity: Required<Validity>): Promise<string>;
}

/** The content of a CSR. */
export interface ParsedRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Other subject alternative names: email addresses and URIs. */
  readonly otherNames: readonly string[];
  /** Whether the CSR is signed with its own key. */
  readonly verify: () => Promise<boolean>;
  readonly subject: Name;
  readonly publicKey: PublicKey;
}

/**
 * Creates a CA with an EC key.
 * @param commonName of the CA certificate; kubeadm's is `kubernetes`
 */
export async function createCa(commonName = 'kubernetes', validity: Validity = {}): Promise<CertificateAuthority> {
  const keys = await generateKeys();
  const name = new Name([{ CN: [commonName] }]);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: name,
    issuer: name,
    ...periodOf({ notAfter: new Date(Date.now() + 10 * YEAR_MS), ...validity }),
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: EC,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment | KeyUsageFlags.keyCertSign, true),
    ],
  });
  return authorityOf(certificate, keys.privateKey, await exportKey(keys.privateKey));
}

/**
 * An existing CA.
 * @param pair its certificate and its EC P-256 or RSA key
 * @throws Error for another key
 */
export async function loadCa({ certPem, keyPem }: KeyPair): Promise<CertificateAuthority> {
  const key = createPrivateKey(keyPem);
  const algorithm = key.asymmetricKeyType === 'rsa' ? RSA : EC;
  const signingKey = await webcrypto.subtle.importKey('pkcs8', key.export({ format: 'der', type: 'pkcs8' }), algorithm, false, ['sign']);
  return authorityOf(new X509Certificate(certPem), signingKey, keyPem, algorithm);
}

function authorityOf(
  certificate: X509Certificate,
  signingKey: webcrypto.CryptoKey,
  keyPem: string,
  signingAlgorithm: typeof EC | typeof RSA = EC,
): CertificateAuthority {
  const issue = async (
    subject: Name,
    publicKey: webcrypto.CryptoKey | PublicKey,
    extensions: Extension[],
    validity: Validity,
  ): Promise<string> => {
    const issued = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject,
      issuer: certificate.subjectName,
      ...periodOf(validity),
      publicKey,
      signingKey,
      signingAlgorithm,
      extensions: [new BasicConstraintsExtension(false, undefined, true), ...extensions],
    });
    return pemOf(issued);
  };
  const issuePair = async (subject: Name, extensions: Extension[], validity: Validity): Promise<KeyPair> => {
    const keys = await generateKeys();
    return { certPem: await issue(subject, keys.publicKey, extensions, validity), keyPem: await exportKey(keys.privateKey) };
  };
  return {
    certPem: pemOf(certificate),
    keyPem,
    issueServer: (names, { commonName = names[0] ?? '', ...validity } = {}) =>
      issuePair(
        nameOf({ commonName }),
        [...usageExtensions(['digital signature', 'key encipherment', 'server auth']), alternativeNames(names)],
        validity,
      ),
    issueClient: (subject, validity = {}) =>
      issuePair(nameOf(subject), usageExtensions(['digital signature', 'key encipherment', 'client auth']), validity),
    signRequest: (request, usages, validity) => {
      const names = [...request.dnsNames, ...request.ipAddresses];
      return issue(
        request.subject,
        request.publicKey,
        [...usageExtensions(usages), ...(names.length > 0 ? [alternativeNames(names)] : [])],
        validity,
      );
    },
  };
}

/**
 * Parses a CSR.
 * @param pem `CERTIFICATE REQUEST`
 * @throws Error for an invalid CSR
 */
export function parseCertificateRequest(pem: string): ParsedRequest {
  const request = new Pkcs10CertificateRequest(pem);
  const extension = request.getExtension(SUBJECT_ALTERNATIVE_NAME);
  const names = extension instanceof SubjectAlternativeNameExtension ? extension.names.items : [];
  const ofType = (...types: string[]) => names.filter(({ type }) => types.includes(type)).map(({ value }) => value);
  return {
    commonName: request.subjectName.getField('CN')[0] ?? '',
    organizations: request.subjectName.getField('O'),
    dnsNames: ofType('dns'),
    ipAddresses: ofType('ip'),
    otherNames: ofType('email', 'url'),
    verify: () => request.verify(),
    subject: request.subjectName,
    publicKey: request.publicKey,
  };
}

/**
 * Creates a key and a CSR for it, as a kubelet does.
 * @param names DNS names and IP addresses
 * @returns PEM: `CERTIFICATE REQUEST` and `PRIVATE KEY`
 */
export async function createCertificateRequest(
  subject: Subject,
  names: readonly string[] = [],
): Promise<{ readonly requestPem: string; readonly keyPem: string }> {
  const keys = await generateKeys();
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: nameOf(subject),
    keys,
    signingAlgorithm: EC,
    extensions: names.length === 0 ? [] : [alternativeNames(names)],
  });
  return { requestPem: `${request.toString('pem').trim()}\n`, keyPem: await exportKey(keys.privateKey) };
}

function usageExtensions(usages: readonly string[]): Extension[] {
  const flags = [
    ...(usages.includes('digital signature') ? [KeyUsageFlags.digitalSignature] : []),
    ...(usages.includes('key encipherment') ? [KeyUsageFlags.keyEncipherment] : []),
  ].reduce((all, flag) => all | flag, 0);
  const extended = [
    ...(usages.includes('server auth') ? [ExtendedKeyUsage.serverAuth] : []),
    ...(usages.includes('client auth') ? [ExtendedKeyUsage.clientAuth] : []),
  ];
  return [
    ...(flags === 0 ? [] : [new KeyUsagesExtension(flags, true)]),
    ...(extended.length === 0 ? [] : [new ExtendedKeyUsageExtension(extended)]),
  ];
}

function alternativeNames(names: readonly string[]): SubjectAlternativeNameExtension {
  return new SubjectAlternativeNameExtension(
    names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
  );
}

function nameOf({ commonName, organizations = [] }: Subject): Name {
  return new Name([...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }]);
}

function periodOf({ notBefore, notAfter }: Validity): { readonly notBefore: Date; readonly notAfter: Date } {
  const from = notBefore ?? new Date(Math.min(Date.now(), notAfter?.getTime() ?? Number.POSITIVE_INFINITY) - BACKDATE_MS);
  return { notBefore: from, notAfter: notAfter ?? new Date(Date.now() + YEAR_MS) };
}

function serialNumber(): string {
  return `4${randomBytes(8).toString('hex').slice(1)}`;
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(EC, true, ['sign', 'verify']);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return String(createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' }).export({ format: 'pem', type: 'pkcs8' }));
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem').trim()}\n`;
}
