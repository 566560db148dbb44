import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import { formatGoDuration } from '../base/text/go-duration.ts';
import { namesText } from '../base/text/name-ranges.ts';
import type { FleetProgress } from '../fleet/run/fleet.ts';
import type { Output } from './output/services.ts';

const EVERY_MS = 60_000;
const MOST_HOSTS = 8;

/**
 * Reports the progress of a run without a terminal: the log of a CI job would otherwise be silent until a
 * host is done. Ansible and k0sctl print each task of each host. This log keeps the output of a host together
 * and prints once a minute the hosts and durations of each phase.
 */
export function progressLog(
  { clock, output }: { readonly clock: Clock; readonly output: Pick<Output, 'status'> },
  reporter: Reporter,
): {
  /** A reporter for a host that records the host's events. */
  of(host: string, reporter: Reporter): Reporter;
  progress(progress: FleetProgress): void;
  close(): void;
} {
  if (output.status !== undefined) return { of: (_, own) => own, progress: () => undefined, close: () => undefined };
  const now = (): number => clock.now().getTime();
  const startedAt = now();
  const phases = new Map<string, { readonly name: string; readonly since: number }>();
  const stop = new AbortController();
  let last: FleetProgress | null = null;
  const since = (time: number): string => formatGoDuration(BigInt(Math.round((now() - time) / 1000)) * 1_000_000_000n);
  const describeHost = (host: string): string => {
    const phase = phases.get(host);
    return phase === undefined ? host : `${host} [${phase.name}] ${since(phase.since)}`;
  };
  const report = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(EVERY_MS, stop.signal);
      const message = last === null ? '' : progressText(last, describeHost);
      if (message !== '') reporter.report({ level: 'info', code: 'PROGRESS', message: `${since(startedAt)}: ${message}` });
    }
  };
  report().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    of: (host, own) => ({
      ...own,
      report: (event) => {
        const { phase } = event;
        if (phase !== undefined && phases.get(host)?.name !== phase) phases.set(host, { name: phase, since: now() });
        own.report(event);
      },
    }),
    progress: (progress) => {
      last = progress;
    },
    close: () => stop.abort(),
  };
}

/** `12/50 hosts done · in progress: edge-003 [kubelet-start] 2m10s, … · planning: 6 · queued: 2 · failed: 1`; empty when nothing is in progress. */
function progressText({ total, looking, waiting, changing, ended }: FleetProgress, describeHost: (host: string) => string): string {
  if (looking.length + changing.length === 0) return '';
  const done = Object.values(ended).reduce((sum, count) => sum + count, 0);
  const failed = (ended.failed ?? 0) + (ended['rolled-back'] ?? 0) + (ended.refused ?? 0);
  const named = changing.slice(0, MOST_HOSTS).map(describeHost).join(', ');
  const parts = [
    total === 1 ? '' : `${done}/${total} hosts done`,
    changing.length === 0 ? '' : `in progress: ${named}${changing.length > MOST_HOSTS ? ` and ${changing.length - MOST_HOSTS} more` : ''}`,
    looking.length === 0 ? '' : `planning: ${looking.length <= 3 ? namesText(looking) : looking.length}`,
    waiting === 0 ? '' : `queued: ${waiting}`,
    failed === 0 ? '' : `failed: ${failed}`,
    ended.unreachable ? `unreachable: ${ended.unreachable}` : '',
  ];
  return parts.filter(Boolean).join(' · ');
}
