import { expect, it } from 'vitest';
import { timelineView } from '../../../../src/cli/report/report-timeline.ts';
import type { HostTimeline } from '../../../../src/fleet/run/run-timeline.ts';

const FOREVER = Number.POSITIVE_INFINITY;

/** @param phase the last one; those of hosts without a batch were not started */
function host(name: string, phase: 'queued' | 'confirming' | 'rolling-back', status: HostTimeline['status'], endMs = 10): HostTimeline {
  const isStarted = phase !== 'queued';
  const batch = { batch: isStarted ? 1 : null, isCanary: isStarted, beganMs: isStarted ? 0 : null };
  return {
    host: name,
    ...batch,
    status,
    confirmedMs: null,
    endedMs: status === null ? null : endMs,
    phases: [{ phase, startMs: 0, endMs }],
  };
}

it('marks a host that was not started as left out, and only a rolled back one as bad', () => {
  const hosts = [host('n1', 'rolling-back', 'rolled-back'), host('n2', 'queued', 'not-started')];
  expect(timelineView({ totalMs: 10, slowLimitMs: FOREVER, hosts }, 'host')).toMatchObject({
    batches: [
      { bad: '1 not ok: n1', hosts: [{ tag: { kind: 'error', text: 'rolled back' } }] },
      { name: 'Not changed', bad: null, hosts: [{ style: '', tag: { kind: 'warning', text: 'not started' } }] },
    ],
  });
});

it('counts a host that was rolled back as such, not as changed', () => {
  const hosts = [
    host('n1', 'confirming', 'changed', 4_000),
    host('n2', 'rolling-back', 'rolled-back', 14_000),
    host('n3', 'queued', 'not-started'),
  ];
  expect(timelineView({ totalMs: 15_000, slowLimitMs: FOREVER, hosts }, 'host')).toMatchObject({
    summary: expect.stringMatching(/^In 15 s: 1 host changed \(median 4\.0 s\), 1 rolled back\. /),
  });
});

it('marks a host while it rolls back, and says that the others are not changed yet', () => {
  expect(
    timelineView({ totalMs: 10, slowLimitMs: FOREVER, hosts: [host('n1', 'rolling-back', null), host('n2', 'queued', null)] }, 'host'),
  ).toMatchObject({
    summary: expect.stringMatching(/^In 0\.0 s: 0 hosts changed, 1 rolling back\. /),
    batches: [
      { bad: '1 not ok: n1', hosts: [{ tag: { kind: 'error', text: 'rolling back' } }] },
      { name: 'Not changed yet', bad: null, hosts: [{ style: '', tag: null }] },
    ],
  });
});
