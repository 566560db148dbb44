import type { ExitCode } from '../base/errors.ts';
import { type JoinRequest, openJoin } from '../fleet/use-cases/open-join.ts';
import { joinDone } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOpened } from './run-on-hosts.ts';

export interface JoinCommandRequest extends JoinRequest {
  readonly plan: PlanRequest;
}

/** `join` and `join phase NAME...`. */
export function runJoin(services: Services, request: JoinCommandRequest): Promise<ExitCode> {
  const { plan } = request;

  return runOpened(services, plan, {
    title: 'join',
    open: (reporter) => openJoin(services, request, reporter),
    afterwards: ({ workflow, joins }, changes) => {
      if (services.programName !== 'kubeadm' || workflow.run.dryRun || request.run.onlyPhase !== undefined || plan.format !== 'text')
        return;
      if (changes.length > 0) services.output.stdout(joinDone(joins, changes));
    },
  });
}
