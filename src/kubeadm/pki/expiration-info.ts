import type { JsonObject } from '../../base/json.ts';
import { formatAge } from '../../base/text/age.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import { renderTabTable } from '../../base/text/table.ts';
import type { CertificateContent } from '../../x509/read-certificate.ts';
import type { FoundCa, FoundRenewable } from './renewable.ts';

export type ExpirationInfo = ReturnType<typeof expirationInfo>;
type Expiration = ExpirationInfo['cas'][number] & { readonly caName?: string };

/** Expiration of the certificates of a control plane. Unreadable certificates must have been rejected before. */
export function expirationInfo(found: { readonly certificates: readonly FoundRenewable[]; readonly cas: readonly FoundCa[] }, now: Date) {
  const of = (name: string, certificate: CertificateContent | string | null, isExternal: boolean) => {
    const expires = certificate === null || typeof certificate === 'string' ? null : certificate.notAfter;
    const residualSeconds = expires === null ? 0 : Math.trunc((expires.getTime() - now.getTime()) / 1000);
    return { name, expires, residualSeconds, isExternal: expires !== null && isExternal };
  };
  return {
    certificates: found.certificates.map((each) => ({ ...of(each.name, each.certificate, each.isExternal), caName: each.ca })),
    cas: found.cas.map((each) => of(each.name, each.certificate, each.isExternal)),
  };
}

/**
 * The information as a document.
 * @see kubeadm 1.36 output.kubeadm.k8s.io/v1alpha3 CertificateExpirationInfo
 */
export function expirationDocument({ certificates, cas }: ExpirationInfo): JsonObject {
  const entry = ({ name, expires, residualSeconds, isExternal, caName }: Expiration): JsonObject => ({
    name,
    expirationDate: expires === null ? null : formatRfc3339(expires),
    residualTime: residualSeconds,
    externallyManaged: isExternal,
    ...(caName === undefined || expires === null ? {} : { caName }),
    missing: expires === null,
  });
  return {
    kind: 'CertificateExpirationInfo',
    apiVersion: 'output.kubeadm.k8s.io/v1alpha3',
    certificates: certificates.map(entry),
    certificateAuthorities: cas.map(entry),
  };
}

/**
 * The information as two tables.
 * @see kubeadm 1.36 certs check-expiration: columns at least 10 wide, separated by three spaces
 */
export function expirationTables({ certificates, cas }: ExpirationInfo): string {
  const row = ({ name, expires, residualSeconds, isExternal, caName }: Expiration, isCa: boolean): readonly string[] => {
    if (expires === null) return [`!MISSING! ${name}`, '', '', ...(isCa ? [] : ['']), ''];
    const external = (isExternal ? 'yes' : 'no').padEnd(8);
    return [name, formatDay(expires), formatAge(residualSeconds * 1000), ...(isCa ? [] : [caName ?? '']), external];
  };
  return [
    ...renderTabTable([
      ['CERTIFICATE', 'EXPIRES', 'RESIDUAL TIME', 'CERTIFICATE AUTHORITY', 'EXTERNALLY MANAGED'],
      ...certificates.map((each) => row(each, false)),
    ]),
    '',
    ...renderTabTable([['CERTIFICATE AUTHORITY', 'EXPIRES', 'RESIDUAL TIME', 'EXTERNALLY MANAGED'], ...cas.map((each) => row(each, true))]),
    '',
  ].join('\n');
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `Nov 21, 2027 23:16 UTC` */
function formatDay(time: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${MONTHS[time.getUTCMonth()]} ${two(time.getUTCDate())}, ${time.getUTCFullYear()} ${two(time.getUTCHours())}:${two(time.getUTCMinutes())} UTC`;
}
