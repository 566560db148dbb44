import { type ExitCode, usageError } from '../base/errors.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { RENEWABLE_NAMES } from '../kubeadm/pki/renewable.ts';
import { openPkiSettings, type PkiRequest } from '../kubeadm/use-cases/pki-settings.ts';
import { renewCertsWorkflow } from '../kubeadm/workflows/renew-certs.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface RenewCertsRequest extends PkiRequest {
  /** Names as the user wrote them. */
  readonly names: readonly string[] | 'all';
  /** Only certificates that expire within this time; null: all of them. */
  readonly withinMs: number | null;
  readonly hosts: HostsRequest;
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
}

/** `certs renew NAME... | all`. */
export async function runCertsRenewControlPlane(services: Services, request: RenewCertsRequest): Promise<ExitCode> {
  const { withinMs, plan } = request;
  const names = renewableNames(request.names);
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const { settings, warnings, cluster, clusterOf } = await openPkiSettings(services, request, reporter);
  try {
    const options = { ...settings, withinMs, issuer: await services.certificateIssuer() };
    return await runOnHosts(services, {
      targets: await readHostTargets(services, request.hosts),
      cluster,
      clusterOf,
      planHost: (context, run) => planWorkflow(renewCertsWorkflow(names), context, options, run),
      plan,
      writing: request.writing,
      reporter,
      warnings,
      dryRun: plan.dryRun,
      skipPhases: [],
    });
  } finally {
    await cluster?.close();
  }
}

/** @throws AppError USAGE (exit code 2) for an unknown name */
function renewableNames(names: RenewCertsRequest['names']): readonly string[] {
  if (names === 'all') return RENEWABLE_NAMES;
  const unknown = names.find((name) => !RENEWABLE_NAMES.includes(name));
  if (unknown === undefined) return names;
  throw usageError(`unknown certificate ${unknown}`, `Name all, or some of ${RENEWABLE_NAMES.join(', ')}`);
}
