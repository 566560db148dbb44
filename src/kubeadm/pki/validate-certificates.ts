import { createPrivateKey, type KeyObject } from 'node:crypto';
import { KUBELET_CLIENT_PEM, KUBELET_CONF, NODE_USER_PREFIX, NODES_GROUP_NAME } from '../../kube/well-known.ts';
import type { FoundCertificate, NodeCertificates } from '../../kubelet/facts/node-certificates.ts';
import { chainsTo } from '../../x509/certificate-checks.ts';
import { formatName, nameInOrder } from '../../x509/describe-certificate.ts';
import { certificateBlocks, privateKeyBlock } from '../../x509/pem-blocks.ts';
import { readPrivateKey } from '../../x509/private-key.ts';
import { type CertificateContent, readCertificate, whyNoCertificate } from '../../x509/read-certificate.ts';
import type { findCertificates } from './renewable.ts';
import type { HostFileReader } from './validate-kubeconfig.ts';

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
  readonly state: 'ok' | 'warning' | 'error';
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
const CLIENT_AUTH = 'TLS Web Client Authentication';
const SERVER_AUTH = 'TLS Web Server Authentication';

/** Validates the certificates of a host's kubelet: validity period, subject, usages, key and issuer. */
export function validateCertificates(found: NodeCertificates, options: ValidationOptions): readonly CertificateVerdict[] {
  const now = found.now ?? options.now;
  const cas = found.certificates.filter(({ role }) => role.startsWith('ca')).flatMap(({ pem }) => readAll(pem ?? ''));
  return found.certificates.map((each) => {
    const certificate = each.pem === null ? null : (readAll(each.pem)[0] ?? whyNoCertificate(each.pem));
    return verdictOf({ ...each, certificate, format: nameInOrder }, { ...options, now }, (read) => ({
      errors: [
        ...(each.key === undefined ? [] : keyIssues(read, each.key?.reveal() ?? null, anyPrivateKey)),
        ...nameIssues(read, each),
        ...kubeletIssuerIssues(read, each, cas),
      ],
      warnings: [...overdue(each, read, now), ...embedded(each), ...selfSigned(read, each)],
    }));
  });
}

/**
 * Validates the certificates of a control plane: validity period, key and issuer. Returns nothing on a host
 * without control plane certificates.
 */
export function validateControlPlane(
  { certificates, cas, found }: ReturnType<typeof findCertificates> & { readonly found: HostFileReader },
  options: ValidationOptions,
): readonly CertificateVerdict[] {
  if (!certificates.some(({ key, certificate }) => key !== null && certificate !== null)) return [];
  const verdicts = certificates
    .filter(({ certificate }) => certificate !== null)
    .map(({ name, crt, key, certificate, ca: by }) =>
      verdictOf({ role: name, path: crt, certificate, format: formatName }, options, (read) => {
        const ca = cas.find((each) => each.name === by)?.certificate ?? null;
        const isForeign = ca !== null && typeof ca !== 'string' && !chainsTo(read, [], ca);
        return {
          errors: [
            ...(key === null ? [] : keyIssues(read, found(key), readPrivateKey)),
            ...(isForeign ? [`not issued by the CA on this host (${formatName(ca.subject)})`] : []),
          ],
        };
      }),
    );
  // The cluster CA is already among the kubelet's certificates.
  const others = cas
    .filter(({ name }) => name !== 'ca')
    .map(({ name, crt, certificate }) =>
      verdictOf({ role: name, path: crt, certificate, format: formatName }, options, (read) => ({
        errors: read.isCa ? [] : ['not a CA certificate'],
      })),
    );
  return [...verdicts, ...others];
}

/** @param issues the issues besides those of the validity period; warnings are omitted if the certificate has errors */
function verdictOf(
  one: Pick<CertificateVerdict, 'role' | 'path'> & {
    readonly certificate: CertificateContent | string | null;
    readonly format: typeof formatName;
  },
  { now, withinMs }: ValidationOptions,
  issues: (read: CertificateContent) => { readonly errors: readonly string[]; readonly warnings?: readonly string[] },
): CertificateVerdict {
  const { role, path, certificate, format } = one;
  if (certificate === null || typeof certificate === 'string') {
    const notes = [certificate ?? 'does not exist'];
    return { role, path, subject: null, issuer: null, notBefore: null, notAfter: null, residualMs: null, state: 'error', notes };
  }
  const { notBefore, notAfter } = certificate;
  const { errors: found, warnings = [] } = issues(certificate);
  const errors = [...timeIssues(certificate, now, withinMs), ...found];
  return {
    role,
    path,
    subject: format(certificate.subject),
    issuer: format(certificate.issuer),
    notBefore,
    notAfter,
    residualMs: notAfter.getTime() - now.getTime(),
    state: errors.length > 0 ? 'error' : warnings.length > 0 ? 'warning' : 'ok',
    notes: errors.length > 0 ? errors : warnings,
  };
}

function timeIssues({ notBefore, notAfter }: CertificateContent, now: Date, withinMs: number): readonly string[] {
  if (notAfter < now) return [`expired on ${notAfter.toISOString()}`];
  if (notBefore > now) return [`not valid before ${notBefore.toISOString()}: check the clock of the host`];
  return notAfter.getTime() - now.getTime() < withinMs ? [`expires on ${notAfter.toISOString()}`] : [];
}

/** @param key the text of its file; null: no such file */
function keyIssues({ x509 }: CertificateContent, key: string | null, parse: typeof anyPrivateKey): readonly string[] {
  if (key === null) return ['its private key does not exist'];
  const read = parse(key);
  if (read === null) return ['its private key cannot be read'];
  return x509.checkPrivateKey(read) ? [] : ['the private key does not match the certificate'];
}

/** A kubelet serves with keys that kubeadm does not accept for a control plane, such as Ed25519. */
function anyPrivateKey(text: string): KeyObject | null {
  try {
    return createPrivateKey(privateKeyBlock(text)?.pem ?? '');
  } catch {
    return null;
  }
}

function nameIssues({ subject, extKeyUsage, isCa }: CertificateContent, { role }: FoundCertificate): readonly string[] {
  const allows = (usage: string): boolean => extKeyUsage.length === 0 || extKeyUsage.includes(usage);
  if (role === 'client') {
    const isNode =
      subject.some(({ type, value }) => type === 'CN' && value.startsWith(NODE_USER_PREFIX)) &&
      subject.some(({ type, value }) => type === 'O' && value === NODES_GROUP_NAME);
    return [
      ...(isNode ? [] : [`its subject is ${nameInOrder(subject)}, not a node's`]),
      ...(allows(CLIENT_AUTH) ? [] : ['it does not allow client authentication']),
    ];
  }
  if (role === 'serving') return allows(SERVER_AUTH) ? [] : ['it does not allow server authentication'];
  return isCa ? [] : ['not a CA certificate'];
}

/**
 * The API server rejects a client certificate of another CA; a serving certificate must be from the cluster
 * CA unless self-signed by the kubelet.
 */
function kubeletIssuerIssues(read: CertificateContent, { role }: FoundCertificate, cas: readonly CertificateContent[]): readonly string[] {
  if ((role !== 'client' && role !== 'serving') || cas.length === 0 || isSelfIssued(read, role)) return [];
  if (cas.some((ca) => read.x509.checkIssued(ca.x509) && read.x509.verify(ca.x509.publicKey))) return [];
  return [`not issued by the cluster CA on this host (${cas.map(({ subject }) => nameInOrder(subject)).join('; ')})`];
}

function overdue({ role }: FoundCertificate, { notBefore, notAfter }: CertificateContent, now: Date): readonly string[] {
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

function selfSigned(read: CertificateContent, { role }: FoundCertificate): readonly string[] {
  return role === 'serving' && isSelfIssued(read, role)
    ? ['self-signed by the kubelet: clients cannot verify it (serverTLSBootstrap: true requests one from the cluster)']
    : [];
}

/** The kubelet signs with its own CA, `NAME-ca@TIME`, which it appends to the certificate. */
function isSelfIssued({ issuer }: CertificateContent, role: FoundCertificate['role']): boolean {
  return role === 'serving' && issuer.some(({ type, value }) => type === 'CN' && /-ca@\d+$/.test(value));
}

/** More than any real chain has. */
const MAX_CERTIFICATES = 100;

/** Damaged ones are passed over. */
function readAll(pem: string): readonly CertificateContent[] {
  return certificateBlocks(pem)
    .slice(0, MAX_CERTIFICATES)
    .flatMap((block) => readCertificate(block.pem) ?? []);
}
