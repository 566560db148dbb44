import { AppError, type ExitCode, type Problem } from '../base/errors.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import { type ExpirationInfo, expirationDocument, expirationInfo, expirationTables } from '../kubeadm/pki/expiration-info.ts';
import { pkiUnreadable } from '../kubeadm/pki/pki-problems.ts';
import { type OpenedPkiSettings, openPkiSettings, type PkiRequest } from '../kubeadm/use-cases/pki-settings.ts';
import { inspectCertificates } from '../kubeadm/workflows/inspect-certificates.ts';
import type { Services } from './services.ts';
import { type OutputRequest, renderDocument } from './show-document.ts';

interface HostExpiration {
  readonly name: string;
  readonly info: ExpirationInfo;
}

export interface CheckExpirationRequest extends PkiRequest {
  readonly hosts: HostsRequest;
  readonly output: OutputRequest;
}

/** `certs check-expiration`: one host in kubeadm's format, several hosts one after the other. */
export async function runCertsCheckExpiration(services: Services, request: CheckExpirationRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: request.output.verbosity, format: 'text' });
  const opened = await openPkiSettings(services, request, reporter);
  for (const { code, message } of opened.warnings) reporter.report({ level: 'warning', code, message });
  const reports: HostExpiration[] = [];
  const failures: Problem[] = [];
  try {
    for (const target of await readHostTargets(services, request.hosts)) {
      try {
        reports.push(await checkHost(services, target, opened));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        failures.push(...error.problems);
      }
    }
  } finally {
    await opened.cluster?.close();
  }
  const { format } = request.output;
  if (reports.length > 0) services.output.stdout(format === 'text' ? renderText(reports) : renderDocument(documentOf(reports), format));
  if (failures.length > 0) throw new AppError(failures);
  return 0;
}

async function checkHost(
  services: Services,
  target: HostTarget,
  { settings, cluster, clusterOf }: OpenedPkiSettings,
): Promise<HostExpiration> {
  const host = await services.connectHost(target);
  try {
    const own = cluster ?? (await clusterOf(host));
    try {
      const existing = await inspectCertificates({ host, cluster: own, signal: services.signal }, settings);
      const damaged = [...existing.certificates, ...existing.cas].filter(({ certificate }) => certificate === 'unreadable');
      if (damaged.length > 0) throw new AppError(damaged.map(({ crt }) => ({ ...pkiUnreadable(crt, 'certificate'), host: host.name })));
      return { name: host.name, info: expirationInfo(existing, services.clock.now()) };
    } finally {
      if (cluster === null) await own?.close();
    }
  } finally {
    await host.close();
  }
}

function renderText(reports: readonly HostExpiration[]): string {
  const [only, another] = reports;
  if (only !== undefined && another === undefined) return expirationTables(only.info);
  return reports.map(({ name, info }) => `host ${name}\n${expirationTables(info)}`).join('\n');
}

function documentOf(reports: readonly HostExpiration[]): object {
  const [only, another] = reports;
  if (only !== undefined && another === undefined) return expirationDocument(only.info);
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'CertificateExpirationList',
    hosts: reports.map(({ name, info }) => ({ name, ...expirationDocument(info) })),
  };
}
