import { chainsTo } from '../../x509/certificate-checks.ts';
import { formatName } from '../../x509/describe-certificate.ts';
import { readPrivateKey } from '../../x509/private-key.ts';
import type { CertificateContent } from '../../x509/read-certificate.ts';
import type { FoundCa, FoundRenewable } from './renewable.ts';
import { type CertificateVerdict, timeIssues, type ValidationOptions } from './validate-certificates.ts';

interface ControlPlaneCertificates {
  readonly certificates: readonly FoundRenewable[];
  readonly cas: readonly FoundCa[];
  /** Content of the file at a path; null: no such file. */
  readonly found: (path: string) => string | null;
}

/**
 * Validates the certificates of a control plane: validity period, key and issuer. Returns nothing on a host
 * without control plane certificates.
 */
export function validateControlPlane(
  { certificates, cas, found }: ControlPlaneCertificates,
  options: ValidationOptions,
): readonly CertificateVerdict[] {
  const isControlPlane = certificates.some(({ key, certificate }) => key !== null && certificate !== null);
  if (!isControlPlane) return [];
  const byName = new Map(cas.map((each) => [each.name, each]));
  const verdicts = certificates
    .filter(({ certificate }) => certificate !== null)
    .map(({ name, crt, key, certificate, ca }) =>
      verdictOf({ role: name, path: crt, certificate }, options, (read) => [
        ...keyIssues(read, key, found),
        ...issuerIssues(read, byName.get(ca)?.certificate ?? null),
      ]),
    );
  // The cluster CA is already among the kubelet's certificates.
  const others = cas
    .filter(({ name }) => name !== 'ca')
    .map(({ name, crt, certificate }) =>
      verdictOf({ role: name, path: crt, certificate }, options, (read) => (read.isCa ? [] : ['not a CA certificate'])),
    );
  return [...verdicts, ...others];
}

type One = Pick<CertificateVerdict, 'role' | 'path'> & { readonly certificate: CertificateContent | 'unreadable' | null };

function verdictOf(
  { role, path, certificate }: One,
  { now, withinMs }: ValidationOptions,
  issues: (read: CertificateContent) => readonly string[],
): CertificateVerdict {
  if (certificate === null || certificate === 'unreadable') {
    const notes = [certificate === null ? 'does not exist' : 'contains no certificate'];
    return { role, path, subject: null, issuer: null, notBefore: null, notAfter: null, residualMs: null, state: 'error', notes };
  }
  const { notBefore, notAfter } = certificate;
  const notes = [...timeIssues(notBefore, notAfter, now, withinMs), ...issues(certificate)];
  return {
    ...{ role, path, notBefore, notAfter, notes },
    subject: formatName(certificate.subject),
    issuer: formatName(certificate.issuer),
    residualMs: notAfter.getTime() - now.getTime(),
    state: notes.length === 0 ? 'ok' : 'error',
  };
}

function keyIssues({ x509 }: CertificateContent, path: string | null, found: ControlPlaneCertificates['found']): readonly string[] {
  if (path === null) return [];
  const text = found(path);
  if (text === null) return ['its private key does not exist'];
  const key = readPrivateKey(text);
  if (key === null) return ['its private key cannot be read'];
  return x509.checkPrivateKey(key) ? [] : ['the private key does not match the certificate'];
}

function issuerIssues(certificate: CertificateContent, ca: CertificateContent | 'unreadable' | null): readonly string[] {
  if (ca === null || ca === 'unreadable' || chainsTo(certificate, [], ca)) return [];
  return [`not issued by the CA on this host (${formatName(ca.subject)})`];
}
