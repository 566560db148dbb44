import { AppError, type ExitCode } from '../../base/errors.ts';
import { formatGoDuration } from '../../base/text/go-duration.ts';
import { API_PAUSE, type WaitContext, waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Rollout } from '../api/rollout.ts';
import type { RolloutStatus } from '../api/schema.ts';
import { type FoundRollout, findRollout } from './find-rollouts.ts';

/** The phase, null before a controller has processed the object, and the message of the condition that is True. */
export function rolloutPhase({ generation, status }: Rollout): {
  readonly phase: NonNullable<RolloutStatus['phase']> | null;
  readonly message: string;
} {
  const { phase = null, conditions = [], observedGeneration } = status;
  if (phase === null || observedGeneration !== generation) return { phase: null, message: 'not processed yet by a controller' };
  return { phase, message: conditions.find((condition) => condition.status === 'True')?.message ?? '' };
}

/** Both in one line: `Progressing: 2 of 4 nodes updated, 1 in progress`. */
export function rolloutState(rollout: Rollout): string {
  const { phase, message } = rolloutPhase(rollout);
  return [phase ?? '', message].filter((text) => text !== '').join(': ');
}

/** The end of a rollout; null: it continues. */
export function rolloutEnd({
  name,
  generation,
  status,
}: Rollout): { readonly exitCode: ExitCode; readonly problem: AppError | null } | null {
  const { phase, counts, observedGeneration, conditions = [] } = status;
  if (observedGeneration !== generation) return null;
  if (phase === 'Complete') return { exitCode: 0, problem: null };
  const { selected = 0, updated = 0 } = counts ?? {};
  const codes: Readonly<Partial<Record<NonNullable<typeof phase>, ExitCode>>> = {
    Failed: selected === 1 ? 1 : 4,
    Reverted: 5,
    Refused: updated === 0 ? 3 : 4,
  };
  const exitCode = phase === undefined ? undefined : codes[phase];
  if (exitCode === undefined) return null;
  const why = conditions.find(({ type }) => type === 'Stalled')?.message ?? '';
  const hint =
    phase === 'Refused'
      ? `Correct the object: kubectl edit kcr ${name}`
      : `Return to the previous configuration: kubeletadm rollout undo ${name}`;
  const code = phase === 'Refused' ? 'ROLLOUT_REFUSED' : 'ROLLOUT_FAILED';
  const problem = { code, message: `rollout ${name} is ${phase}: ${why}`, ...(phase === 'Reverted' ? {} : { hint }) };
  return { exitCode, problem: new AppError(problem, { exitCode }) };
}

/**
 * Waits until a rollout is complete or stalled.
 * @param options.timeoutMs 0: no limit
 * @throws AppError ROLLOUT_NOT_COMPLETE (exit code 1) after the time limit, ROLLOUT_NOT_FOUND if the object is deleted meanwhile
 */
export async function waitForRollout(
  cluster: Cluster,
  name: string,
  { timeoutMs, ...context }: WaitContext & { readonly timeoutMs: number },
): Promise<FoundRollout> {
  return waitUntil<FoundRollout, FoundRollout>(context, {
    probe: async () => {
      const found = await findRollout(cluster, name);
      return rolloutEnd(found.rollout) === null ? { pending: found } : { done: found };
    },
    timeoutMs: timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs,
    pauseMs: API_PAUSE,
    describe: ({ rollout }) => `rollout ${name}: ${rolloutState(rollout)}`,
    changed: ({ rollout }) => rolloutState(rollout),
    progressMs: 60_000,
    timedOut: ({ rollout }, waitedMs) => {
      const message = `rollout ${name} is not complete after ${formatGoDuration(BigInt(waitedMs) * 1_000_000n)}: ${rolloutState(rollout)}`;
      throw new AppError({
        code: 'ROLLOUT_NOT_COMPLETE',
        message,
        hint: `The rollout continues. Wait again: kubeletadm rollout status ${name} --wait`,
      });
    },
  });
}
