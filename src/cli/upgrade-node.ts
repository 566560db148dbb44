import type { ExitCode } from '../base/errors.ts';
import { type UpgradeNodeRequest as CommandRequest, openUpgradeNode } from '../fleet/use-cases/open-upgrade-node.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface UpgradeNodeRequest extends CommandRequest {
  readonly plan: PlanRequest;
}

/** `upgrade node` and `upgrade node phase NAME...`. */
export function runUpgradeNode(services: Services, request: UpgradeNodeRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'upgrade node', open: (reporter) => openUpgradeNode(services, request, reporter) });
}
