import type { ExitCode } from '../base/errors.ts';
import { type ResetRequest as CommandRequest, openReset } from '../fleet/use-cases/open-reset.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface ResetRequest extends CommandRequest {
  readonly plan: PlanRequest;
}

/** `reset` and `reset phase NAME...`. */
export function runReset(services: Services, request: ResetRequest): Promise<ExitCode> {
  const confirm = (hosts: readonly string[]): Promise<boolean | null> =>
    services.confirm(`Reset ${hosts.join(', ')}? All changes made by init or join are reverted. [y/N] `);
  return runOpened(services, request.plan, { title: 'reset', open: (reporter) => openReset(services, request, { reporter, confirm }) });
}
