import { usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { RENEWABLE_NAMES } from '../../kubeadm/pki/renewable.ts';
import { openPkiSettings, type PkiRequest } from '../../kubeadm/use-cases/pki-settings.ts';
import type { ExistingCertificates } from '../../kubeadm/workflows/certificates/inspect-certificates.ts';
import { renewCertsWorkflow } from '../../kubeadm/workflows/certificates/renew-certs.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import { readHostTargets } from './named-hosts.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface RenewCertsRequest extends PkiRequest {
  /** Names as the user wrote them. */
  readonly names: readonly string[] | 'all';
  /** Only certificates that expire within this time; null: all of them. */
  readonly withinMs: number | null;
  readonly hosts: HostsRequest;
  readonly run: RunSettings;
  readonly writing: WritingRequest;
}

/** A renewal, with the certificates of each planned host before it. */
interface OpenedRenewal extends OpenedCommand {
  readonly inspected: readonly ExistingCertificates[];
}

/**
 * Prepares `certs renew NAME... | all`.
 * @throws AppError USAGE (exit code 2) for an unknown name; the errors of `openPkiSettings`
 */
export async function openRenewCerts(services: NodeCommandPorts, request: RenewCertsRequest, reporter: Reporter): Promise<OpenedRenewal> {
  const { withinMs, run } = request;
  const names = renewableNames(request.names);
  const { settings, warnings, cluster, clusterOf } = await openPkiSettings(services, request, reporter);
  const close = async (): Promise<void> => cluster?.close();
  try {
    const inspected: ExistingCertificates[] = [];
    const onInspected = (existing: ExistingCertificates): void => void inspected.push(existing);
    const options = { ...settings, withinMs, issuer: await services.certificateIssuer(), onInspected };
    return {
      workflow: {
        targets: await readHostTargets(services, request.hosts),
        cluster,
        clusterOf,
        planHost: (context, own) => planWorkflow(renewCertsWorkflow(names), context, options, own),
        writing: request.writing,
        run,
      },
      warnings,
      inspected,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws AppError USAGE (exit code 2) for an unknown name */
function renewableNames(names: RenewCertsRequest['names']): readonly string[] {
  if (names === 'all') return RENEWABLE_NAMES;
  const unknown = names.find((name) => !RENEWABLE_NAMES.includes(name));
  if (unknown === undefined) return names;
  throw usageError(`unknown certificate ${unknown}`, `Pass all, or one or more of these names: ${RENEWABLE_NAMES.join(', ')}`);
}
