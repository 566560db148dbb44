import { AppError } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import { waitUntil } from '../base/wait-until.ts';
import { readJournal } from './access/journal.ts';
import { hostPause, observe } from './access/observe.ts';
import { combineFacts, defineFact } from './facts/fact.ts';
import type { HttpFact } from './facts/query.ts';
import { type UnitState, unitState } from './facts/unit.ts';
import type { PhaseContext } from './phase.ts';

const LONGEST_MS = 60_000;
/** Without a health check, a unit must stay active this long. */
const QUIET_MS = 3_000;

/**
 * Waits up to one minute until a service is ready.
 * @param readyUrl returns 200 on the host when the unit works; null: only the state of the unit is checked
 * @throws AppError UNIT_NOT_READY with the last line of its journal
 */
export async function waitForUnit(
  context: PhaseContext,
  phase: string,
  { unit, readyUrl }: { readonly unit: string; readonly readyUrl: string | null },
): Promise<void> {
  const { host, signal } = context;
  let upSince: number | null = null;
  await waitUntil(
    { ...context, phase },
    {
      timeoutMs: LONGEST_MS,
      pauseMs: hostPause(host),
      probe: async (elapsedMs) => {
        const { state, ready } = await observe(host, combineFacts({ state: unitState(unit), ready: answerOf(readyUrl) }), signal);
        const waitedMs = elapsedMs();
        const isActive = state?.activeState === 'active';
        upSince = isActive ? (upSince ?? waitedMs) : null;
        const isReady = ready === null ? waitedMs - (upSince ?? waitedMs) >= QUIET_MS : 'status' in ready && ready.status === 200;
        return isActive && isReady ? { done: undefined } : { pending: describe(unit, state, ready) };
      },
      describe: (seen, waitedMs) => `waiting, ${Math.round(waitedMs / 1000)} s: ${seen}`,
      timedOut: async (seen, waitedMs) => {
        const why = await lastWord(context, unit, Math.ceil(waitedMs / 1000) + 5);
        const message = `${phase}: ${unit} was not ready after ${Math.round(waitedMs / 1000)}s: ${seen}${why === '' ? '' : `: ${why}`}`;
        throw new AppError({ host: host.name, code: 'UNIT_NOT_READY', message, hint: `See journalctl -u ${unit} on the host` });
      },
    },
  );
}

/** The answer of a health check on the host; null: no URL is checked. */
export function answerOf(url: string | null, limits: { readonly timeoutSeconds?: number; readonly attempts?: number } = {}) {
  return url === null
    ? defineFact({}, (): HttpFact | null => null)
    : defineFact({ get: { kind: 'http', url, timeoutSeconds: 5, ...limits } }, ({ get }): HttpFact | null => get);
}

function describe(unit: string, state: UnitState | null, ready: HttpFact | null): string {
  if (state?.activeState !== 'active') return `${unit} is ${state?.activeState ?? 'not installed'}`;
  if (ready === null) return `${unit} is active, but started only a moment ago`;
  return `${unit} is active, but its health check ${'status' in ready ? `returned ${ready.status}: ${printable(ready.body.trim(), 200)}` : `failed: ${ready.error}`}`;
}

async function lastWord({ host, signal }: Pick<PhaseContext, 'host' | 'signal'>, unit: string, seconds: number): Promise<string> {
  const journal = await readJournal(host, { unit, since: `-${seconds}s`, lines: 20, bootOnly: false }, signal);
  const lines = journal?.trim().split('\n') ?? [];
  // The state messages of systemd are already in the error.
  return printable(lines.findLast((line) => !/\.service: |^(?:Started|Stopped|Stopping|Starting) /.test(line)) ?? '', 400);
}
