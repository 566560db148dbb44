import { expect, it } from 'vitest';
import { timelineView } from '../../../../src/cli/report/report-timeline.ts';
import type { HostTimeline } from '../../../../src/fleet/run/run-timeline.ts';

it('marks a host that was not started as left out, and only a rolled back one as bad', () => {
  const host = (name: string, batch: number | null, status: HostTimeline['status']): HostTimeline => ({
    ...{ host: name, batch, status, isCanary: batch !== null, confirmedMs: null, beganMs: batch === null ? null : 0, endedMs: 10 },
    phases: [{ phase: batch === null ? 'queued' : 'rolling-back', startMs: 0, endMs: 10 }],
  });
  const hosts = [host('n1', 1, 'rolled-back'), host('n2', null, 'not-started')];
  expect(timelineView({ totalMs: 10, slowLimitMs: Number.POSITIVE_INFINITY, hosts }, 'host')).toMatchObject({
    batches: [
      { bad: '1 not ok: n1', hosts: [{ tag: { kind: 'error', text: 'rolled back' } }] },
      { bad: null, hosts: [{ style: '', tag: { kind: 'warning', text: 'not started' } }] },
    ],
  });
});
