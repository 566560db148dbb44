import type { ReportEvent } from '../../src/base/reporter.ts';
import type { HostStatus } from '../../src/fleet/run/fleet.ts';
import { type RunSteps, runSteps } from '../../src/fleet/run/run-steps.ts';
import { type HostTimeline, timelinesOf } from '../../src/fleet/run/run-timeline.ts';

/** An observation about a host, in milliseconds since the start of the run. */
export type TimedEvent = { readonly host: string; readonly atMs: number } & (
  | { readonly kind: 'inspecting' | 'planned' | 'began' }
  | { readonly kind: 'reported'; readonly event: Pick<ReportEvent, 'code' | 'phase' | 'data'> }
  | { readonly kind: 'ended'; readonly status: HostStatus }
);

/** The recording of a run with these events, in order of time. */
export function replayRun(events: readonly TimedEvent[]): RunSteps {
  let at = 0;
  const steps = runSteps({ now: () => new Date(at) });
  const looking = new Set<string>();
  for (const event of events) {
    const { host } = event;
    at = event.atMs;
    if (event.kind === 'inspecting') looking.add(host);
    else looking.delete(host);
    switch (event.kind) {
      case 'inspecting':
      case 'planned':
        steps.progress({ looking: [...looking], changing: [] });
        break;
      case 'began':
        steps.begins(host);
        break;
      case 'reported':
        steps.of(host, { report: () => undefined }).report({ level: 'info', message: '', ...event.event });
        break;
      case 'ended':
        steps.ended(event);
    }
  }
  return steps;
}

/** The timelines of a run with these events, in order of time. */
export function timelinesOfEvents(
  events: readonly TimedEvent[],
  { canary, nowMs }: { readonly canary: number; readonly nowMs: number },
): readonly HostTimeline[] {
  return timelinesOf(replayRun(events), { canary, now: nowMs });
}
