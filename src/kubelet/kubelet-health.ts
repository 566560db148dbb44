import { AppError } from '../base/errors.ts';
import { waitUntil } from '../base/wait-until.ts';
import { combineFacts, defineFact } from '../host/facts/fact.ts';
import type { HttpFact } from '../host/facts/query.ts';
import { type UnitState, unitState } from '../host/facts/unit.ts';
import { hostPause, observe } from '../host/observe.ts';
import type { PhaseContext } from '../host/phase.ts';
import { explainKubeletFailure, type KubeletFailure } from './facts/kubelet-failure.ts';

/** Target of health checks. `url` is null when healthzPort is 0: then only the unit is checked. */
export interface HealthTarget {
  readonly url: string | null;
  readonly timeoutMs: number;
}

/** A unit without healthz must stay active this long. */
const QUIET_MS = 5_000;
/** Number of failed starts with a permanent cause after which the wait ends. */
const ENOUGH_FATAL_STARTS = 2;
/** Older kubelets print hundreds of lines of usage after an unknown flag. */
const JOURNAL_LINES = 500;
/**
 * Journal entries before the restart belong to another configuration. The restart was shortly before the
 * wait.
 */
const RESTART_SECONDS = 5;
const LONGEST_CAUSE = 500;

/** The kubelet's current unit state and healthz response. */
export function kubeletHealth(url: string | null) {
  return healthWith(url, {});
}

/** Attempts of one query during a wait: most kubelets are healthy within less than a second. */
const ATTEMPTS = 24;

function healthWith(url: string | null, attempts: { readonly attempts?: number }) {
  return combineFacts({
    healthz:
      url === null
        ? defineFact({}, (): HttpFact | null => null)
        : defineFact({ get: { kind: 'http', url, timeoutSeconds: 5, ...attempts } }, ({ get }): HttpFact | null => get),
    unit: unitState('kubelet'),
  });
}

/** Whether both indicate a healthy kubelet. */
export function isHealthy({ unit, healthz }: { readonly unit: UnitState | null; readonly healthz: HttpFact | null }): boolean {
  return unit?.activeState === 'active' && (healthz === null || ('status' in healthz && healthz.status === 200));
}

/**
 * Waits until the kubelet is healthy: the unit is active and healthz returns 200 (kubeadm 1.36
 * wait-control-plane, kubelet-wait-bootstrap: every 500 ms up to `timeouts.kubeletHealthCheck`). Ends early
 * if the kubelet keeps failing for a permanent cause.
 * @throws AppError KUBELET_UNHEALTHY with the cause from the unit's state and its journal
 */
export async function waitForHealthyKubelet(context: PhaseContext, phase: string, target: HealthTarget): Promise<void> {
  const { host, signal } = context;
  let quietSince: number | null = null;
  let restartsBefore: number | null = null;
  let explainedRestarts = -1;
  const explain = (unit: UnitState | null, isCrashing: boolean, waitedMs: number) =>
    explainFailure(context, unit, { waitedMs, lastRunOnly: !isCrashing && unit?.activeState === 'active' });
  await waitUntil(
    { ...context, phase },
    {
      timeoutMs: target.timeoutMs,
      pauseMs: hostPause(host),
      probe: async (elapsedMs) => {
        const state = await observe(host, healthWith(target.url, { attempts: ATTEMPTS }), signal);
        const waitedMs = elapsedMs();
        if (isHealthy(state)) {
          quietSince ??= waitedMs;
          if (target.url !== null || waitedMs - quietSince >= QUIET_MS) return { done: undefined };
        } else quietSince = null;
        const restarts = state.unit?.restarts ?? 0;
        restartsBefore = Math.min(restartsBefore ?? restarts, restarts);
        const crashing = state.unit !== null && isCrashing(state.unit, restartsBefore);
        if (crashing && restarts !== explainedRestarts && waitedMs < target.timeoutMs) {
          const failure = await explain(state.unit, crashing, waitedMs);
          if (failure.fatal) throw unhealthy(context, phase, failure, waitedMs);
          explainedRestarts = restarts;
        }
        return { pending: { state, crashing } };
      },
      describe: ({ state }, waitedMs) => `waiting for the kubelet to become healthy, ${Math.round(waitedMs / 1000)} s: ${describe(state)}`,
      timedOut: async ({ state, crashing }, waitedMs) => {
        throw unhealthy(context, phase, await explain(state.unit, crashing, waitedMs), waitedMs);
      },
    },
  );
}

/**
 * Whether the kubelet is in a crash loop. systemd keeps its restart counter across a `systemctl restart` of a
 * unit that waits for its next start, so a high count alone proves nothing about the current process; a unit
 * in auto-restart has failed at least once since.
 */
function isCrashing(unit: UnitState, restartsBefore: number): boolean {
  if (unit.activeState === 'failed' || unit.restarts - restartsBefore >= ENOUGH_FATAL_STARTS) return true;
  return unit.subState === 'auto-restart' && unit.restarts >= ENOUGH_FATAL_STARTS;
}

async function explainFailure(
  context: PhaseContext,
  unit: UnitState | null,
  { waitedMs, lastRunOnly }: { readonly waitedMs: number; readonly lastRunOnly: boolean },
): Promise<KubeletFailure & { readonly journal: string }> {
  const since = `--since=-${Math.ceil(waitedMs / 1000) + RESTART_SECONDS}s`;
  const argv = ['journalctl', '--unit=kubelet', since, `--lines=${JOURNAL_LINES}`, '--output=cat', '--no-pager', '--boot'];
  const { journal } = await context.host.query({ journal: { kind: 'command', argv } }, { signal: context.signal });
  const text = journal.exitCode === 0 ? journal.stdout : '';
  return { ...explainKubeletFailure(unit, text === '' ? null : text, { lastRunOnly }), journal: text };
}

function unhealthy(
  context: PhaseContext,
  phase: string,
  failure: KubeletFailure & { readonly journal: string },
  waitedMs: number,
): AppError {
  const message = `${phase}: kubelet not healthy after ${formatSeconds(waitedMs)}: ${shorten(failure.cause)}`;
  return new AppError(
    { host: context.host.name, code: 'KUBELET_UNHEALTHY', message, hint: `${failure.hint}, then rerun the command` },
    { detail: failure.journal },
  );
}

/** A kubelet may log pages in one line; the journal has the full text. */
function shorten(cause: string): string {
  return cause.length <= LONGEST_CAUSE ? cause : `${cause.slice(0, LONGEST_CAUSE)}...`;
}

function describe({ unit, healthz }: { readonly unit: UnitState | null; readonly healthz: HttpFact | null }): string {
  const reported = healthz === null ? '' : 'status' in healthz ? `, healthz returns ${healthz.status}` : `, healthz: ${healthz.error}`;
  return unit === null ? `no systemd unit${reported}` : `unit ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts${reported}`;
}

function formatSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
