import type { ExitCode } from '../base/errors.ts';
import { openRenewKubelet, type RenewKubeletRequest as RenewRequest } from '../fleet/use-cases/open-renew-kubelet.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface RenewKubeletRequest extends RenewRequest {
  readonly plan: PlanRequest;
}

/** `certs renew-kubelet`. */
export function runCertsRenew(services: Services, request: RenewKubeletRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'certs renew', open: (reporter) => openRenewKubelet(services, request, reporter) });
}
