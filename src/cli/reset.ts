import type { ExitCode } from '../base/errors.ts';
import { openReset, type ResetRequest } from '../fleet/use-cases/open-reset.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOpened } from './run-on-hosts.ts';

export interface ResetCommandRequest extends ResetRequest {
  readonly plan: PlanRequest;
}

/** `reset` and `reset phase NAME...`. */
export function runReset(services: Services, request: ResetCommandRequest): Promise<ExitCode> {
  const confirm = (hosts: readonly string[]): Promise<boolean | null> =>
    services.confirm(`Reset ${hosts.join(', ')}? All changes made by init or join are reverted. [y/N] `);
  return runOpened(services, request.plan, { title: 'reset', open: (reporter) => openReset(services, request, { reporter, confirm }) });
}
