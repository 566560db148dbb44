import type { ExitCode } from '../base/errors.ts';
import { openRenewCerts, type RenewCertsRequest as RenewRequest } from '../fleet/use-cases/open-renew-certs.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface RenewCertsRequest extends RenewRequest {
  readonly plan: PlanRequest;
}

/** `certs renew NAME... | all`. */
export function runCertsRenewControlPlane(services: Services, request: RenewCertsRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'certs renew', open: (reporter) => openRenewCerts(services, request, reporter) });
}
