import { AppError, formatProblem, interrupted, isAppError, type Problem } from '../../base/errors.ts';
import type { FleetResult, HostOutcome } from './fleet.ts';

/** All problems, one line per host; each line names its host. */
export function problemsOf(outcomes: readonly HostOutcome[]): readonly Problem[] {
  return outcomes.flatMap(({ host, error }) => (error === null ? [] : error.problems.map((problem) => ({ host, ...problem }))));
}

/**
 * Refuses a run if a planned host does not accept a value of its configuration.
 * @throws AppError with exit code 2 and each problem once
 */
export function requireValidValues({ outcomes }: Pick<FleetResult, 'outcomes'>): void {
  const found = new Map<string, { readonly problem: Problem; readonly more: number }>();
  const invalid = outcomes.filter(({ error }) => error?.exitCode === 2 && error.problems.some(({ path }) => path !== undefined));
  for (const problem of problemsOf(invalid)) {
    const { host: _, ...shared } = problem;
    const text = formatProblem(shared);
    const known = found.get(text);
    found.set(text, known === undefined ? { problem, more: 0 } : { ...known, more: known.more + 1 });
  }
  const problems = [...found.values()].map(({ problem, more }) =>
    more === 0 ? problem : { ...problem, host: `${problem.host} (and ${more} more)` },
  );
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
}

/**
 * Hosts were not started because others failed.
 * @param why from `FleetResult.stopped`
 */
export function fleetStopped(hosts: number, why: string, hint: string): Problem {
  return {
    code: 'FLEET_STOPPED',
    message: `the run stopped before it processed ${hosts === 1 ? '1 host' : `${hosts} hosts`}: ${why}`,
    hint,
  };
}

/**
 * The failure of a run.
 * @param options.reads the run only reads hosts: exit code 4 also when all hosts failed for the same reason
 * @returns null when all hosts succeeded; otherwise the problems: exit code 4 when some hosts succeeded, else the exit
 * code that all failures share
 */
export function fleetFailure(
  { outcomes, stopped }: FleetResult,
  { signal, reads = false }: { readonly signal: AbortSignal; readonly reads?: boolean },
): AppError | null {
  const failures = outcomes.filter(({ error }) => error !== null);
  const left = outcomes.filter(({ status, error }) => error === null && (status === 'not-started' || status === 'interrupted'));
  const isInterrupted = signal.aborted && outcomes.some(({ status }) => status === 'interrupted');
  if (failures.length + left.length === 0) return null;
  const problems = [...problemsOf(failures.filter(({ status }) => status !== 'interrupted'))];
  if (stopped !== null)
    problems.push(
      fleetStopped(
        left.length,
        stopped,
        'Fix the cause and run the same command again. To process only the unfinished hosts, add --retry failed. To allow more failures, add --max-fail NUMBER',
      ),
    );
  if (isInterrupted) {
    const reason = isAppError(signal.reason) ? signal.reason : interrupted('SIGINT');
    return new AppError([...problems, ...reason.problems], { exitCode: reason.exitCode });
  }
  const [first] = failures;
  const isShared = failures.length === outcomes.length && failures.every(({ error }) => error?.exitCode === first?.error?.exitCode);
  return new AppError(problems, { exitCode: isShared && !reads ? (first?.error?.exitCode ?? 1) : 4 });
}
