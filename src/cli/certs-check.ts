import { AppError, type ExitCode } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type CheckCertificatesRequest, checkCertificates, type HostCertificates } from '../fleet/use-cases/check-certificates.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';

export interface CertsCheckRequest extends CheckCertificatesRequest {
  readonly format: DocumentFormat;
}

/** `certs check`: exit code 1 when a certificate of a host is not valid. */
export async function runCertsCheck(services: Services, request: CertsCheckRequest): Promise<ExitCode> {
  const { format } = request;
  const { reports, problems } = await checkCertificates(services, request);
  if (reports.length > 0) services.output.stdout(format === 'text' ? renderReports(reports) : renderDocument(document(reports), format));
  if (problems.length > 0) throw new AppError(problems);
  return 0;
}

function renderReports(reports: readonly HostCertificates[]): string {
  const node = nodeColumn(reports.map(({ name, node }) => ({ host: name, node })));
  const header = ['HOST', ...node.header, 'CERTIFICATE', 'SUBJECT', 'ISSUER', 'EXPIRES', 'RESIDUAL TIME', 'STATE'];
  const rows = reports.flatMap(({ name, certificates }) =>
    certificates.map((one) => [
      name,
      ...node.cells(name),
      one.role,
      one.subject ?? '-',
      one.issuer ?? '-',
      one.notAfter === null ? '-' : one.notAfter.toISOString().replace('.000', ''),
      one.residualMs === null ? '-' : one.residualMs < 0 ? 'expired' : formatAge(one.residualMs),
      one.notes.length === 0 ? one.state : `${one.state}: ${one.notes.join('; ')}`,
    ]),
  );
  const issues = reports.flatMap(({ name, issue }) => (issue === null ? [] : [`${name}: ${issue}`]));
  return joinLines([...renderTable([header, ...rows]), ...issues]);
}

function document(reports: readonly HostCertificates[]): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'CertificateReport',
    hosts: reports.map(({ name, node, certificates, issue }) => ({
      name,
      node,
      ok: issue === null && certificates.every(({ state }) => state !== 'error'),
      ...(issue === null ? {} : { issue }),
      certificates: certificates.map(({ role, path, subject, issuer, notBefore, notAfter, residualMs, state, notes }) => ({
        role,
        path,
        subject,
        issuer,
        notBefore: notBefore?.toISOString() ?? null,
        notAfter: notAfter?.toISOString() ?? null,
        residualSeconds: residualMs === null ? null : Math.floor(residualMs / 1000),
        state,
        notes,
      })),
    })),
  };
}
