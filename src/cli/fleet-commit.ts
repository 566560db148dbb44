import { AppError, type ExitCode } from '../base/errors.ts';
import { type CommitsRequest, confirmCommits, revertCommits } from '../fleet/use-cases/finish-commits.ts';
import type { Services } from './output/services.ts';

export interface FleetCommitRequest extends Omit<CommitsRequest, 'reporter' | 'onHost'> {
  readonly verbosity: number;
}

/** `fleet confirm HOST... | --group G | --limit P`. */
export function runFleetConfirm(services: Services, request: FleetCommitRequest): Promise<ExitCode> {
  return runFinish(services, request, confirmCommits);
}

/** `fleet revert HOST... | --group G | --limit P`. */
export function runFleetRevert(services: Services, request: FleetCommitRequest): Promise<ExitCode> {
  return runFinish(services, request, revertCommits);
}

async function runFinish(
  services: Services,
  { verbosity, ...request }: FleetCommitRequest,
  work: typeof confirmCommits,
): Promise<ExitCode> {
  const { finishedHosts, exitCode, problems } = await work(services, {
    ...request,
    reporter: services.reporter({ verbosity, format: 'text' }),
    onHost: (name, result) => services.output.stdout(`${name}: ${result}\n`),
  });
  if (problems.length > 0) throw new AppError(problems, { exitCode });
  if (finishedHosts === 0) services.output.stdout('Nothing to do: no change is pending.\n');
  return 0;
}
