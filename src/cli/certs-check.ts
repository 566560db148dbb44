import { AppError, type ExitCode, type Problem } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import { observe } from '../host/observe.ts';
import { RENEWABLE_NAMES } from '../kubeadm/pki/renewable.ts';
import { type CertificateVerdict, validateCertificates } from '../kubeadm/pki/validate-certificates.ts';
import { validateControlPlane } from '../kubeadm/pki/validate-control-plane.ts';
import { inspectCertificates } from '../kubeadm/workflows/inspect-certificates.ts';
import { nodeCertificates } from '../kubelet/facts/node-certificates.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

interface HostReport {
  readonly name: string;
  readonly certificates: readonly CertificateVerdict[];
  /** An issue that concerns more than one certificate; null: none. */
  readonly issue: string | null;
}

export interface CertsCheckRequest {
  readonly hosts: HostsRequest;
  readonly format: DocumentFormat;
  /** Certificates that expire within this time are reported too. */
  readonly withinMs: number;
}

/** `certs check`: exit code 1 when a certificate of a host is not valid. */
export async function runCertsCheck(services: Services, { hosts, format, withinMs }: CertsCheckRequest): Promise<ExitCode> {
  const reports: HostReport[] = [];
  const failures: Problem[] = [];
  for (const target of await readHostTargets(services, hosts)) {
    try {
      reports.push(await checkHost(services, target, withinMs));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(...error.problems);
    }
  }
  if (reports.length > 0) services.output.stdout(format === 'text' ? renderReports(reports) : renderDocument(document(reports), format));
  const problems = [...reports.flatMap(problemsOf), ...failures];
  if (problems.length > 0) throw new AppError(problems);
  return 0;
}

async function checkHost(services: Services, target: HostTarget, withinMs: number): Promise<HostReport> {
  const host = await services.connectHost(target);
  try {
    const found = await observe(host, nodeCertificates, services.signal);
    const controlPlane = await inspectCertificates(
      { host, cluster: null, signal: services.signal },
      { cluster: null, certificatesDir: null },
    );
    const options = { withinMs, now: found.now ?? services.clock.now() };
    const certificates = [...validateCertificates(found, options), ...validateControlPlane(controlPlane, options)];
    return { name: host.name, certificates, issue: found.issue };
  } finally {
    await host.close();
  }
}

function renderReports(reports: readonly HostReport[]): string {
  const header = ['HOST', 'CERTIFICATE', 'SUBJECT', 'ISSUER', 'EXPIRES', 'RESIDUAL TIME', 'STATE'];
  const rows = reports.flatMap(({ name, certificates }) =>
    certificates.map((one) => [
      name,
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

function document(reports: readonly HostReport[]): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'CertificateReport',
    hosts: reports.map(({ name, certificates, issue }) => ({
      name,
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

function problemsOf({ name, certificates, issue }: HostReport): readonly Problem[] {
  const host = name;
  const bad = certificates.flatMap((one) =>
    one.state !== 'error'
      ? []
      : one.notes.map((note): Problem => {
          const hint = hintOf(one.role, name);
          return {
            host,
            code: 'CERTIFICATE_BAD',
            message: `${one.role} certificate in ${one.path}: ${note}`,
            ...(hint === undefined ? {} : { hint }),
          };
        }),
  );
  return issue === null ? bad : [...bad, { host, code: 'CERTIFICATE_BAD', message: issue }];
}

function hintOf(role: string, host: string): string | undefined {
  if (role === 'client') return `certs renew-kubelet --host ${host} gets another`;
  return RENEWABLE_NAMES.includes(role) ? `certs renew ${role} --host ${host} gets another` : undefined;
}
