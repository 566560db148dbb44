import { describe, expect, it } from 'vitest';
import type { ReportEvent } from '../../../src/base/reporter.ts';
import { hostBlocks } from '../../../src/fleet/imports/host-blocks.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const noopOf = (host: string) => ({ level: 'info', code: 'PHASE_NOOP', host, phase: 'p', message: 'all is well' }) as const;
const doneOf = (host: string) => ({ level: 'info', code: 'CHANGE_DONE', host, phase: 'p', message: 'created /a' }) as const;

describe('hostBlocks', () => {
  it('keeps the output of a host together, and prints single changes and unchanged phases only with -v', () => {
    const reporter = recordingReporter();
    const blocks = hostBlocks(reporter, { applies: true });
    for (const event of [doneOf, noopOf]) for (const host of ['a', 'b']) blocks.of(host).report(event(host));
    expect(reporter.events).toEqual([]);
    blocks.ended({ host: 'b' });
    expect(reporter.events).toEqual([
      { ...doneOf('b'), verbosity: 1 },
      { ...noopOf('b'), verbosity: 1 },
    ]);
  });

  it('always prints warnings, errors, the difference to the plan and the undone change, and keeps a higher verbosity', () => {
    const reporter = recordingReporter();
    const blocks = hostBlocks(reporter, { applies: true });
    const events: readonly ReportEvent[] = [
      { ...doneOf('a'), level: 'warning', code: 'PLAN_CHANGED' },
      { ...doneOf('a'), level: 'error' },
      { ...doneOf('a'), code: 'PLAN_DIFFERENCE' },
      { ...doneOf('a'), code: 'UNDO_CHANGE' },
      { ...doneOf('a'), verbosity: 3 },
    ];
    for (const event of events) blocks.of('a').report(event);
    blocks.ended({ host: 'a' });
    expect(reporter.events).toEqual(events);
  });

  it('prints the messages of a command that only reads', () => {
    const reporter = recordingReporter();
    const blocks = hostBlocks(reporter, { applies: false });
    blocks.of('a').report(doneOf('a'));
    blocks.ended({ host: 'a' });
    expect(reporter.events).toEqual([doneOf('a')]);
  });
});
