import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { KUBELET_CLIENT_PEM, KUBELET_CONF } from '../../kube/well-known.ts';
import type { FoundCertificate, NodeCertificates } from '../../kubelet/facts/node-certificates.ts';
import { certificateBlocks, privateKeyBlock } from '../../x509/pem-blocks.ts';
import { x509CertificateOf } from '../../x509/x509-certificates.ts';

type CertificateState = 'ok' | 'warning' | 'error';

/** A certificate of a host and the result of its validation. */
export interface CertificateVerdict {
  /** `client`, `serving` and `ca` belong to the kubelet; other roles are named as in `certs renew`. */
  readonly role: string;
  readonly path: string;
  readonly subject: string | null;
  readonly issuer: string | null;
  readonly notBefore: Date | null;
  readonly notAfter: Date | null;
  /** Milliseconds until expiration, by the host's clock; negative: expired. */
  readonly residualMs: number | null;
  readonly state: CertificateState;
  readonly notes: readonly string[];
}

export interface ValidationOptions {
  /** A certificate that expires sooner is an error. */
  readonly withinMs: number;
  /** Used for hosts whose clock is not known. */
  readonly now: Date;
}

/**
 * Share of its lifetime after which a kubelet should have rotated its certificate: the kubelet rotates
 * between 70 and 90 percent.
 */
const OVERDUE = 0.9;
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

/** Validates the certificates of a host: validity period, subject, usages, key and issuer. */
export function validateCertificates(found: NodeCertificates, options: ValidationOptions): readonly CertificateVerdict[] {
  const now = found.now ?? options.now;
  const cas = found.certificates.filter(({ role }) => role.startsWith('ca')).flatMap(({ pem }) => readAll(pem ?? ''));
  const readable = found.certificates.map((each) => ({ each, read: readAll(each.pem ?? '')[0] ?? null }));
  return readable.map(({ each, read }) => {
    if (read === null) return unreadable(each);
    const [notBefore, notAfter] = [new Date(read.validFrom), new Date(read.validTo)];
    const errors = [
      ...timeIssues(notBefore, notAfter, now, options.withinMs),
      ...keyIssues(read, each),
      ...nameIssues(read, each),
      ...issuerIssues(read, each, cas),
    ];
    const warnings = errors.length > 0 ? [] : [...overdue(each, notBefore, notAfter, now), ...embedded(each), ...selfSigned(read, each)];
    return {
      role: each.role,
      path: each.path,
      subject: oneLine(read.subject),
      issuer: oneLine(read.issuer),
      notBefore,
      notAfter,
      residualMs: notAfter.getTime() - now.getTime(),
      state: errors.length > 0 ? 'error' : warnings.length > 0 ? 'warning' : 'ok',
      notes: [...errors, ...warnings],
    };
  });
}

function unreadable({ role, path, pem }: FoundCertificate): CertificateVerdict {
  const note = pem === null ? 'does not exist' : 'contains no certificate';
  const nothing = { subject: null, issuer: null, notBefore: null, notAfter: null, residualMs: null };
  return { role, path, ...nothing, state: 'error', notes: [note] };
}

/** Issues with the validity period of a certificate, as clauses. */
export function timeIssues(notBefore: Date, notAfter: Date, now: Date, withinMs: number): readonly string[] {
  if (notAfter < now) return [`expired on ${notAfter.toISOString()}`];
  if (notBefore > now) return [`not valid before ${notBefore.toISOString()}: check the clock of the host`];
  return notAfter.getTime() - now.getTime() < withinMs ? [`expires on ${notAfter.toISOString()}`] : [];
}

function keyIssues(read: X509Certificate, { key }: FoundCertificate): readonly string[] {
  if (key === undefined) return [];
  if (key === null) return ['its private key does not exist'];
  try {
    const pem = privateKeyBlock(key.reveal())?.pem ?? '';
    return read.checkPrivateKey(createPrivateKey(pem)) ? [] : ['the private key does not match the certificate'];
  } catch {
    return ['its private key cannot be read'];
  }
}

function nameIssues(read: X509Certificate, { role }: FoundCertificate): readonly string[] {
  const purposes = read.keyUsage as readonly string[] | undefined;
  if (role === 'client') {
    const parts = read.subject.split('\n');
    const isNode = parts.some((part) => part.startsWith('CN=system:node:')) && parts.includes('O=system:nodes');
    return [
      ...(isNode ? [] : [`its subject is ${oneLine(read.subject)}, not a node's`]),
      ...(purposes === undefined || purposes.includes(CLIENT_AUTH) ? [] : ['it does not allow client authentication']),
    ];
  }
  if (role === 'serving')
    return purposes === undefined || purposes.includes(SERVER_AUTH) ? [] : ['it does not allow server authentication'];
  return read.ca ? [] : ['not a CA certificate'];
}

/**
 * The API server rejects a client certificate of another CA; a serving certificate must be from the cluster
 * CA unless self-signed by the kubelet.
 */
function issuerIssues(read: X509Certificate, { role }: FoundCertificate, cas: readonly X509Certificate[]): readonly string[] {
  if ((role !== 'client' && role !== 'serving') || cas.length === 0 || isSelfIssued(read, role)) return [];
  const isIssued = cas.some((ca) => read.checkIssued(ca) && read.verify(ca.publicKey));
  return isIssued ? [] : [`not issued by the cluster CA on this host (${cas.map(({ subject }) => oneLine(subject)).join('; ')})`];
}

function overdue({ role }: FoundCertificate, notBefore: Date, notAfter: Date, now: Date): readonly string[] {
  if (role !== 'client') return [];
  const used = (now.getTime() - notBefore.getTime()) / (notAfter.getTime() - notBefore.getTime());
  return used < OVERDUE ? [] : [`${Math.floor(used * 100)}% of its lifetime has passed, but the kubelet has not renewed it`];
}

/**
 * A kubelet with `--bootstrap-kubeconfig`, as kubeadm's drop-in starts it, reads the certificate in its kubeconfig at
 * each start. If it is expired, the kubelet requires the bootstrap kubeconfig, and exits without it. A kubelet without
 * this flag starts, but cannot request a new certificate with an expired one.
 * @see kubernetes/kubernetes pkg/kubelet/certificate/bootstrap/bootstrap.go LoadClientConfig, isClientConfigStillValid;
 * cmd/kubelet/app/server.go buildKubeletClientConfig (1.36)
 */
function embedded({ role, path }: FoundCertificate): readonly string[] {
  if (role !== 'client' || path !== KUBELET_CONF) return [];
  return [
    `embedded in ${KUBELET_CONF}: when it expires, the kubelet cannot connect after its next start, although it rotates its certificate (set client-certificate and client-key to ${KUBELET_CLIENT_PEM})`,
  ];
}

function selfSigned(read: X509Certificate, { role }: FoundCertificate): readonly string[] {
  return role === 'serving' && isSelfIssued(read, role)
    ? ['self-signed by the kubelet: clients cannot verify it (serverTLSBootstrap: true requests one from the cluster)']
    : [];
}

/** The kubelet signs with its own CA, `NAME-ca@TIME`, which it appends to the certificate. */
function isSelfIssued(read: X509Certificate, role: FoundCertificate['role']): boolean {
  return role === 'serving' && /-ca@\d+$/.test(oneLine(read.issuer));
}

/** More than any real chain has. */
const MAX_CERTIFICATES = 100;

/** Damaged ones are passed over. */
function readAll(pem: string): readonly X509Certificate[] {
  return certificateBlocks(pem)
    .slice(0, MAX_CERTIFICATES)
    .flatMap((block) => x509CertificateOf(block.pem) ?? []);
}

function oneLine(name: string): string {
  return name.split('\n').filter(Boolean).join(', ');
}
