import { usageError } from '../../base/errors.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { RENEWABLE_NAMES } from '../../kubeadm/pki/renewable.ts';
import { openPkiSettings, type PkiRequest } from '../../kubeadm/use-cases/pki-settings.ts';
import type { ExistingCertificates } from '../../kubeadm/workflows/certificates/inspect-certificates.ts';
import { renewCertsWorkflow } from '../../kubeadm/workflows/certificates/renew-certs.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface RenewCertsRequest extends PkiRequest, HostsSettings {
  /** Names as the user wrote them. */
  readonly names: readonly string[] | 'all';
  /** Restart the static Pods that use the renewed certificates. */
  readonly restarts: boolean;
  /** Only certificates that expire within this time; null: all of them. */
  readonly withinMs: number | null;
  readonly hosts: HostsRequest;
}

/**
 * Prepares `certs renew NAME... | all`.
 * @returns the command, with the certificates of each planned host before it
 * @throws AppError USAGE (exit code 2) for an unknown name; the errors of `openPkiSettings`
 */
export async function openRenewCerts(
  services: NodeCommandPorts,
  request: RenewCertsRequest,
  scope: CommandScope,
): Promise<HostsCommand & { readonly inspected: readonly ExistingCertificates[] }> {
  const { withinMs, run } = request;
  const names = renewableNames(request.names);
  const { settings, warnings, cluster, clusterOf } = await openPkiSettings(services, request, scope.reporter);
  if (cluster !== null) scope.opened(cluster);
  const inspected: ExistingCertificates[] = [];
  const onInspected = (existing: ExistingCertificates): void => void inspected.push(existing);
  const options = { ...settings, withinMs, issuer: await services.certificateIssuer(), onInspected };
  return {
    targets: await readHostTargets(services, request.hosts),
    cluster,
    clusterOf,
    planHost: (context, own) => planWorkflow(renewCertsWorkflow(names, request), context, options, own),
    run,
    changesOneAtATime: request.restarts,
    warnings,
    inspected,
  };
}

/** @throws AppError USAGE (exit code 2) for an unknown name */
function renewableNames(names: RenewCertsRequest['names']): readonly string[] {
  if (names === 'all') return RENEWABLE_NAMES;
  const unknown = names.find((name) => !RENEWABLE_NAMES.includes(name));
  if (unknown === undefined) return names;
  throw usageError(`unknown certificate ${unknown}`, `Pass all, or one or more of these names: ${RENEWABLE_NAMES.join(', ')}`);
}
