import { AppError, type ExitCode } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { type CheckExpirationRequest, checkExpiration, type HostExpiration } from '../fleet/use-cases/check-expiration.ts';
import { expirationDocument, expirationTables } from '../kubeadm/pki/expiration-info.ts';
import { certsConfigSource } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderKubeadmDocument } from './output/show-document.ts';

export interface CheckExpirationCommandRequest extends CheckExpirationRequest {
  readonly output: { readonly format: ReadFormat; readonly verbosity: number };
}

/** `certs check-expiration`: one host in kubeadm's format, several hosts one after the other. */
export async function runCertsCheckExpiration(services: Services, request: CheckExpirationCommandRequest): Promise<ExitCode> {
  const { format, verbosity } = request.output;
  const { reports, problems } = await checkExpiration(services, request, services.reporter({ verbosity, format: 'text' }));
  if (reports.length > 0 && format === 'text')
    services.output.stdout(
      `${services.programName === 'kubeadm' && reports.length === 1 ? certsConfigSource('check-expiration', reports[0]?.hasReadCluster ?? null) : ''}${renderText(reports)}`,
    );
  else if (reports.length > 0 && format !== 'text') services.output.document(renderKubeadmDocument(documentOf(reports), format));
  if (problems.length > 0) throw new AppError(problems);
  return 0;
}

function renderText(reports: readonly HostExpiration[]): string {
  const [only, another] = reports;
  if (only !== undefined && another === undefined) return expirationTables(only.info);
  return reports.map(({ name, info }) => `host ${name}\n${expirationTables(info)}`).join('\n');
}

function documentOf(reports: readonly HostExpiration[]): JsonObject {
  const [only, another] = reports;
  if (only !== undefined && another === undefined) return expirationDocument(only.info);
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'CertificateExpirationList',
    hosts: reports.map(({ name, info }) => ({ name, ...expirationDocument(info) })),
  };
}
