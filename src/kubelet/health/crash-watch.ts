import { AppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { type Wait, waitUntil } from '../../base/wait-until.ts';
import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import { observe } from '../../host/access/observe.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { isConnectionLost } from '../../host/run-host.ts';
import { explainKubeletFailure, type KubeletFailure, lastKubeletError, shortened } from '../facts/kubelet-failure.ts';
import { countExits, explainExits, isCrashing, NO_EXITS } from './exits.ts';
import { CRASHES } from './signals.ts';

/** Older kubelets print hundreds of lines of usage after an unknown flag. */
const JOURNAL_LINES = 500;
/** Journal entries before the restart belong to another configuration. The restart was shortly before the wait. */
const RESTART_SECONDS = 5;
const LONGEST_CAUSE = 500;
/** Interval between two checks of the unit in a wait for something else. */
const CHECK_MS = 2_000;

/**
 * Follows the exits of a kubelet. The kubelet answers healthz before it has started its managers, so that a wait for
 * anything later may be for a kubelet that exits again and again (kubelet 1.36, `initializeRuntimeDependentModules`).
 */
export function crashWatch(context: PhaseContext, phase: string) {
  let exits = NO_EXITS;
  let crashing = false;
  return {
    /** Whether the kubelet was in a crash loop when it was seen last. */
    isCrashing: () => crashing,
    /**
     * @param unit null: not known
     * @throws AppError KUBELET_UNHEALTHY as soon as waiting longer cannot help
     */
    see: async (unit: UnitState | null, waitedMs: number): Promise<void> => {
      if (unit === null) return;
      exits = countExits(exits, unit, waitedMs);
      crashing = isCrashing(exits, unit, { times: CRASHES.fatal, waiting: CRASHES.fatal }, waitedMs);
      if (!crashing || unit.restarts === exits.equal?.at) return;
      const failure = await explainFailure(context, unit, { waitedMs, lastRunOnly: false });
      exits = explainExits(exits, failure.cause, waitedMs);
      const { count = 0, sinceMs = waitedMs } = exits.equal ?? {};
      const isPermanent = count >= CRASHES.equal && waitedMs - sinceMs >= CRASHES.equalMs;
      if (failure.fatal || isPermanent || unit.activeState === 'failed') throw kubeletUnhealthy(context, phase, failure, waitedMs);
    },
  };
}

/** A function that checks, at most every two seconds, whether the kubelet exits again and again. */
export function checkCrashes(context: PhaseContext, phase: string, watch = crashWatch(context, phase)): () => Promise<void> {
  const { clock, host, signal } = context;
  const startedAt = clock.now().getTime();
  let nextMs = CHECK_MS;
  return async () => {
    const waitedMs = clock.now().getTime() - startedAt;
    if (waitedMs < nextMs) return;
    nextMs = waitedMs + CHECK_MS;
    let unit: UnitState | null;
    try {
      unit = await observe(host, unitState('kubelet'), signal);
    } catch (error) {
      // The change may have cut the connection, or the host boots.
      if (isConnectionLost(error)) return;
      throw error;
    }
    await watch.see(unit, clock.now().getTime() - startedAt);
  };
}

/**
 * `waitUntil` for something that the kubelet does: the wait ends when the kubelet exits again and again, and its progress
 * shows the last error of the kubelet.
 * @param phase shown in messages
 * @throws as `waitUntil`; AppError KUBELET_UNHEALTHY
 */
export function waitOnKubelet<T, P>(context: PhaseContext, phase: string, wait: Wait<T, P>): Promise<T> {
  const watch = crashWatch(context, phase);
  const check = checkCrashes(context, phase, watch);
  const { describe } = wait;
  return waitUntil<T, P>(
    { ...context, phase },
    {
      ...wait,
      probe: async (elapsedMs) => {
        const probed = await wait.probe(elapsedMs);
        if ('pending' in probed) await check();
        return probed;
      },
      ...(describe && {
        describe: async (pending, waitedMs) => {
          const text = await describe(pending, waitedMs);
          const error = await readLastError(context, waitedMs);
          return error === null || isShown(text, error) ? text : `${text}. Last error of the kubelet: ${error}`;
        },
      }),
      timedOut: async (pending, waitedMs) => {
        if (watch.isCrashing())
          throw kubeletUnhealthy(context, phase, await explainFailure(context, null, { waitedMs, lastRunOnly: false }), waitedMs);
        return wait.timedOut(pending, waitedMs);
      },
    },
  );
}

/** Whether a message ends with an error, or with its last part. */
function isShown(text: string, error: string): boolean {
  const end = text.slice(text.lastIndexOf(': ') + 2);
  return text.includes(error) || error.includes(end);
}

/** The last error line of the kubelet's last run since a wait began; null: none, or not readable. */
export async function readLastError(context: PhaseContext, waitedMs: number): Promise<string | null> {
  try {
    const error = lastKubeletError(await readRecent(context, waitedMs));
    return error === null ? null : printable(shortened(error, LONGEST_CAUSE));
  } catch (error) {
    if (isConnectionLost(error)) return null;
    throw error;
  }
}

/** Finds why the kubelet failed, by its unit and its journal since a wait began. */
export async function explainFailure(
  context: { readonly host: Host; readonly signal?: AbortSignal | undefined },
  unit: UnitState | null,
  { waitedMs, lastRunOnly }: { readonly waitedMs: number; readonly lastRunOnly: boolean },
): Promise<KubeletFailure & { readonly journal: string }> {
  const journal = await readRecent(context, waitedMs);
  return { ...explainKubeletFailure(unit, journal === '' ? null : journal, { lastRunOnly }), journal };
}

async function readRecent({ host, signal }: Parameters<typeof explainFailure>[0], waitedMs: number): Promise<string> {
  const since = `-${Math.ceil(waitedMs / 1000) + RESTART_SECONDS}s`;
  return (await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: true }, signal)) ?? '';
}

export function kubeletUnhealthy(
  { host }: PhaseContext,
  phase: string,
  failure: Awaited<ReturnType<typeof explainFailure>>,
  waitedMs: number,
): AppError {
  const message = `${phase}: kubelet not healthy after ${formatSeconds(waitedMs)}: ${shortened(failure.cause, LONGEST_CAUSE)}`;
  return new AppError(
    { host: host.name, code: 'KUBELET_UNHEALTHY', message, hint: `${failure.hint}, then rerun the command` },
    { detail: failure.journal },
  );
}

function formatSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
