import type { ExitCode } from '../base/errors.ts';
import { diffUpgrade } from '../fleet/use-cases/diff-upgrade.ts';
import type { PlanClusterUpgradeRequest } from '../fleet/use-cases/plan-cluster-upgrade.ts';
import type { Services } from './services.ts';

export interface UpgradeDiffRequest extends PlanClusterUpgradeRequest {
  readonly verbosity: number;
}

/** `upgrade diff`. */
export async function runUpgradeDiff(services: Services, request: UpgradeDiffRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  services.output.stdout(await diffUpgrade(services, request, reporter));
  return 0;
}
