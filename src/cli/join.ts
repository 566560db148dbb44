import type { ExitCode } from '../base/errors.ts';
import { type JoinRequest, openJoin } from '../fleet/use-cases/open-join.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface JoinCommandRequest extends JoinRequest {
  readonly plan: PlanRequest;
}

/** `join` and `join phase NAME...`. */
export function runJoin(services: Services, request: JoinCommandRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'join', open: (reporter) => openJoin(services, request, reporter) });
}
