import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import { hostPause, observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { LOGIND_NAME, LOGIND_OBJECT } from '../../host/systemd/logind.ts';
import { shutdownField, shutdownSeconds } from '../workload/shutdown-risks.ts';
import { limitsOf } from './signals.ts';

/** Whether the kubelet holds a lock that delays a shutdown; null: unknown, for example without logind. */
const shutdownLock = defineFact(
  { locks: { kind: 'command', argv: ['busctl', 'call', LOGIND_NAME, LOGIND_OBJECT, `${LOGIND_NAME}.Manager`, 'ListInhibitors'] } },
  ({ locks }): boolean | null => (locks.exitCode === 0 ? locks.stdout.includes('"shutdown" "kubelet" ') : null),
);

/**
 * After a change of the graceful shutdown of a kubelet, waits until the restarted kubelet holds its lock. Without the lock
 * the kubelet stays healthy.
 * @param change the effective configurations; null: unknown. `mayLosePods`: a missing lock is a warning. A lock that cannot be
 *   looked up always is
 * @throws AppError SHUTDOWN_NOT_DELAYED with the kubelet's error; the signal's reason
 * @see kubernetes/kubernetes pkg/kubelet/kubelet.go initializeRuntimeDependentModules: "Failed to start node shutdown
 *   manager" (1.36)
 */
export async function verifyShutdown(
  context: PhaseContext,
  phase: string,
  {
    before,
    after,
    mayLosePods = false,
  }: { readonly before: JsonObject | null; readonly after: JsonObject | null; readonly mayLosePods?: boolean },
): Promise<void> {
  const { host, signal, reporter } = context;
  if (before === null || after === null || shutdownSeconds(before) === shutdownSeconds(after)) return;
  const field = shutdownField(after);
  if (field === null) return;
  const warn = (message: string): void =>
    reporter.report({ level: 'warning', code: 'SHUTDOWN_NOT_DELAYED', host: host.name, phase, message });
  await waitUntil<void, string>(
    { ...context, phase },
    {
      timeoutMs: limitsOf('ssh').shutdown,
      pauseMs: hostPause(host),
      probe: async () => {
        const isHeld = await observe(host, shutdownLock, signal);
        if (isHeld === null)
          warn(`${field} was not verified: busctl cannot list the locks of systemd-logind, so a reboot may terminate the pods at once`);
        return isHeld === false ? { pending: await describeMissing(host, field, signal) } : { done: undefined };
      },
      describe: (_, waitedMs) => `waiting for the lock of the kubelet that delays a shutdown, ${Math.round(waitedMs / 1000)} s`,
      timedOut: (why) => {
        const message = `${phase}: ${why}`;
        const hint = 'See systemd-inhibit --list, and systemd-analyze cat-config systemd/logind.conf for InhibitDelayMaxSec';
        if (mayLosePods) return warn(`${message}. The change is kept because of --allow-pod-loss. ${hint}`);
        throw new AppError({ host: host.name, code: 'SHUTDOWN_NOT_DELAYED', message, hint });
      },
    },
  );
}

/**
 * Why a kubelet does not delay a shutdown of its host, as a clause; null: it does, or not known.
 * @param field as of `shutdownField`
 */
export async function missingShutdownLock(host: Host, field: string, signal?: AbortSignal): Promise<string | null> {
  return (await observe(host, shutdownLock, signal)) === false ? describeMissing(host, field, signal) : null;
}

async function describeMissing(host: Host, field: string, signal: AbortSignal | undefined): Promise<string> {
  const cause = await causeOf(host, signal);
  return `${field} is not in force: the kubelet holds no lock of systemd-logind that delays a shutdown${cause === '' ? '' : ` (${cause})`}`;
}

/** The error that the kubelet logged; empty: none. */
async function causeOf(host: Host, signal?: AbortSignal): Promise<string> {
  const journal = await readJournal(host, { unit: 'kubelet', since: '-60s', lines: 500, bootOnly: false }, signal);
  const line = journal?.split('\n').findLast((one) => one.includes('node shutdown manager'));
  return (line?.split(' err="')[1]?.slice(0, 400) ?? '').replace(/"$/, '');
}
