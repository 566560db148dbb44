import { describe, expect, it } from 'vitest';
import type { HostOutcome } from '../../../src/fleet/fleet.ts';
import { hostBlocks } from '../../../src/fleet/host-blocks.ts';
import type { PhasePlan } from '../../../src/host/plan/change.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

function outcome(host: string, plan: PhasePlan, status: HostOutcome['status'] = 'unchanged'): HostOutcome {
  return { host, status, error: null, plan: { host: { name: host, phases: [{ phase: 'p', plan }] }, warnings: [], refusals: [] } };
}

const NOOP: PhasePlan = { changes: [], noop: 'all is well' };
const noopOf = (host: string) => ({ level: 'info', code: 'PHASE_NOOP', host, phase: 'p', message: 'all is well' }) as const;
const doneOf = (host: string) => ({ level: 'info', code: 'CHANGE_DONE', host, phase: 'p', message: 'created /a' }) as const;

describe('hostBlocks', () => {
  it('keeps the output of a host together, and prints unchanged phases only with -v', () => {
    const reporter = recordingReporter();
    const blocks = hostBlocks(reporter, { applies: true });
    for (const event of [doneOf, noopOf]) for (const host of ['a', 'b']) blocks.of(host).report(event(host));
    expect(reporter.events).toEqual([]);
    blocks.ended(outcome('b', { changes: [] }, 'changed'));
    expect(reporter.events).toEqual([doneOf('b'), { ...noopOf('b'), verbosity: 1 }]);
  });

  it('prints one line for an unchanged host', () => {
    const reporter = recordingReporter();
    const blocks = hostBlocks(reporter, { applies: true });
    blocks.of('a').report(noopOf('a'));
    blocks.ended(outcome('a', NOOP));
    expect(reporter.events.filter(({ verbosity = 0 }) => verbosity === 0)).toEqual([
      { level: 'info', code: 'HOST_UNCHANGED', host: 'a', message: 'up to date' },
    ]);
  });

  it.each<[string, boolean, HostOutcome]>([
    ['was only planned', false, outcome('a', NOOP)],
    ['has a deferred change', true, outcome('a', { changes: [], deferred: 'at boot' })],
    ['was unreachable', true, { host: 'a', status: 'unreachable', plan: null, error: null }],
    ['was not started', true, outcome('a', NOOP, 'stopped')],
  ])('does not print that line for a host that %s', (_, applies, ended) => {
    const reporter = recordingReporter();
    hostBlocks(reporter, { applies }).ended(ended);
    expect(reporter.events).toEqual([]);
  });
});
