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

/** The command of a run over a fleet file, after hosts were not started because others failed. */
const FLEET_HINT =
  'Fix the cause and run the same command again. To process only the unfinished hosts, add --retry failed. To allow more failures, but none of canaries, add --max-fail NUMBER';

const BLOCKED_HINT =
  'Repair these hosts or exclude them from the run, and run the same command again. To permit more, raise --max-unavailable';

const UNCHANGED: ReadonlySet<HostOutcome['status']> = new Set(['refused', 'not-started', 'unreachable', 'unchanged']);

/**
 * The failure of a run.
 * @param options.only `reads`: exit code 4 also when all hosts failed for the same reason; `plans`: exit code 3 also when only
 *   some hosts were refused; absent: the run changes hosts
 * @param options.hint how to process the hosts that were not started because others failed
 * @returns null when all hosts succeeded; otherwise the problems: exit code 3 when hosts were refused, or too many were
 * down, before any host was changed, 4 when some hosts succeeded, else the exit code that all failures share
 */
export function fleetFailure(
  { outcomes, stopped, isBlocked = false, gate }: FleetResult,
  {
    signal,
    only,
    hint = FLEET_HINT,
  }: { readonly signal: AbortSignal; readonly only?: 'reads' | 'plans' | undefined; readonly hint?: string },
): AppError | null {
  const failures = outcomes.filter(({ error }) => error !== null);
  const left = outcomes.filter(({ status, error }) => error === null && (status === 'not-started' || status === 'interrupted'));
  const isInterrupted = signal.aborted && (gate?.kind === 'interrupted' || outcomes.some(({ status }) => status === 'interrupted'));
  if (failures.length + left.length === 0 && gate === undefined) return null;
  const problems = [...distinctProblems(failures.filter(({ status }) => status !== 'interrupted'))];
  if (gate !== undefined && !isInterrupted) problems.push(gate.problem);
  if (stopped !== null && left.length > 0 && gate?.kind !== 'interrupted') {
    const message = `the run stopped before it processed ${left.length === 1 ? '1 host' : `${left.length} hosts`}: ${stopped}`;
    problems.push({ code: 'FLEET_STOPPED', message, hint: gate !== undefined ? undefined : isBlocked ? BLOCKED_HINT : hint });
  }
  if (isInterrupted) {
    const reason = isAppError(signal.reason) ? signal.reason : interrupted('SIGINT');
    return new AppError([...problems, ...reason.problems], { exitCode: reason.exitCode });
  }
  const isUnchanged = only === 'plans' || outcomes.every(({ status }) => status === 'refused' || status === 'not-started');
  const [exitCode = isUnchanged ? 3 : 4, ...others] = new Set(failures.map(({ error }) => error?.exitCode ?? 1));
  const isShared = others.length === 0 && (failures.length === outcomes.length || (exitCode === 3 && isUnchanged));
  const wasRefused = isBlocked || gate !== undefined || outcomes.some(({ status }) => status === 'refused');
  const isRefused = stopped !== null && wasRefused && outcomes.every(({ status }) => UNCHANGED.has(status));
  return new AppError(problems, { exitCode: isShared && only !== 'reads' ? exitCode : isRefused ? 3 : 4 });
}

/** An error that several hosts share, for example of their cluster, is reported once and names no host. */
function distinctProblems(failures: readonly HostOutcome[]): readonly Problem[] {
  return [...new Set(failures.map(({ error }) => error))].flatMap((error) => {
    const hosts = failures.filter((failure) => failure.error === error);
    return hosts.length === 1 ? problemsOf(hosts) : (error?.problems ?? []);
  });
}
