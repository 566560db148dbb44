import { describe, expect, it } from 'vitest';
import type { ReportEvent } from '../../../src/base/reporter.ts';
import { estimateRestMs, medianOf, medianStepMs, runSteps } from '../../../src/fleet/run/run-steps.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const START = Date.parse('2030-01-01T00:00:00Z');
const event = (code: string, more: Partial<ReportEvent> = {}): ReportEvent => ({ level: 'info', code, message: '', ...more });
const restarted = event('CHANGE_DONE', { data: { kind: 'restart-unit', unit: 'kubelet' } });

describe('the steps of a run', () => {
  const world = () => {
    const [clock, reporter] = [fakeClock(), recordingReporter()];
    const steps = runSteps(clock);
    return { clock, reporter, steps, of: (host: string) => steps.of(host, reporter) };
  };

  it('records the steps of a host and how long each took', () => {
    const { clock, steps, of } = world();
    steps.progress({ looking: ['n1'], changing: [] });
    clock.advance(1_000);
    steps.progress({ looking: [], changing: [] });
    clock.advance(2_000);
    steps.progress({ looking: [], changing: ['n1'] });
    steps.begins('n1');
    of('n1').report(event('PHASE_STARTED', { phase: 'kubelet-start' }));
    of('n1').report(event('REVERT_ARMED', { data: { timeoutSeconds: 300 } }));
    clock.advance(3_000);
    of('n1').report(restarted);
    expect(steps.hosts()[0]).toMatchObject({ endedAt: null, status: null, revertsAt: START + 303_000 });
    clock.advance(4_000);
    of('n1').report(event('COMMIT_CONFIRMED'));
    steps.ended({ host: 'n1', status: 'changed' });
    expect(steps.hosts()).toEqual([
      {
        host: 'n1',
        startedAt: START,
        endedAt: START + 10_000,
        status: 'changed',
        steps: [
          { name: 'inspect', startedAt: START, endedAt: START + 1_000 },
          { name: 'queued', startedAt: START + 1_000, endedAt: START + 3_000 },
          { name: 'change', startedAt: START + 3_000, endedAt: START + 3_000 },
          { name: 'kubelet-start', startedAt: START + 3_000, endedAt: START + 6_000 },
          { name: 'confirm', startedAt: START + 6_000, endedAt: START + 10_000 },
        ],
        beganAt: START + 3_000,
        phases: [
          { name: 'planning', startedAt: START, endedAt: START + 1_000 },
          { name: 'queued', startedAt: START + 1_000, endedAt: START + 3_000 },
          { name: 'changing', startedAt: START + 3_000, endedAt: START + 3_000 },
          { name: 'restarting', startedAt: START + 3_000, endedAt: START + 6_000 },
          { name: 'verifying', startedAt: START + 6_000, endedAt: START + 10_000 },
          { name: 'finishing', startedAt: START + 10_000, endedAt: START + 10_000 },
        ],
        confirmedAt: START + 10_000,
        activity: null,
        revertsAt: null,
      },
    ]);
  });

  it('knows what a host waits for, without the duration and the name of the host, so that equal waits are equal', () => {
    const { steps, of } = world();
    of('n1').report(event('PHASE_STARTED', { phase: 'wait-node' }));
    of('n1').report(event('WAITING', { message: 'waiting for Node n1 to be Ready, 12 s: no network' }));
    expect(steps.hosts()[0]?.activity).toBe('waiting for Node to be Ready: no network');
    of('n1').report(event('WAITING', { message: 'waiting for probe pod kube-system/probe-n1-x: of n11' }));
    expect(steps.hosts()[0]?.activity).toBe('waiting for probe pod: of n11');
    of('n1').report(event('ROLLBACK_STARTED'));
    expect(steps.hosts()[0]).toMatchObject({ activity: null, confirmedAt: null });
    expect(steps.host('n1')?.steps.at(-1)?.name).toBe('roll back');
  });

  it('keeps the restart of a rollback in the step and the phase of the rollback', () => {
    const { steps, of } = world();
    steps.begins('n1');
    of('n1').report(event('REVERT_ARMED', { data: { timeoutSeconds: 300 } }));
    for (const one of [restarted, event('ROLLBACK_STARTED'), restarted]) of('n1').report(one);
    expect(steps.host('n1')?.steps.at(-1)?.name).toBe('roll back');
    expect(steps.host('n1')?.phases.at(-1)?.name).toBe('rolling-back');
  });

  it('passes every event on', () => {
    const { reporter, of } = world();
    of('n1').report(restarted);
    expect(reporter.events).toEqual([restarted]);
  });

  it('gives the median of a step once three hosts have finished it', () => {
    const { clock, steps } = world();
    const end = (host: string): void => steps.ended({ host, status: 'unchanged' });
    steps.progress({ looking: ['n1', 'n2', 'n3'], changing: [] });
    for (const host of ['n1', 'n2']) {
      clock.advance(1_000);
      end(host);
    }
    expect(medianStepMs(steps.hosts()).get('inspect')).toBeUndefined();
    clock.advance(10_000);
    end('n3');
    expect(medianStepMs(steps.hosts()).get('inspect')).toBe(2_000);
  });
});

it('medianOf averages the two middle values of an even number', () => {
  expect([medianOf([5]), medianOf([9, 1, 5]), medianOf([1, 2, 4, 100])]).toEqual([5, 5, 3]);
});

describe('the estimate of the rest', () => {
  it('is unknown while fewer than four hosts have ended', () => {
    expect(estimateRestMs([1_000, 2_000, 3_000], 97, 4_000)).toBeNull();
  });

  it('follows the rate of the later half, without a slow canary', () => {
    expect(estimateRestMs([60_000, 61_000, 62_000, 63_000, 64_000, 65_000], 10, 65_000)).toBe(10_000);
  });

  it('grows while no host ends, and is 0 at the end', () => {
    expect(estimateRestMs([1_000, 2_000, 3_000, 4_000], 10, 32_000)).toBe(150_000);
    expect(estimateRestMs([], 0, 32_000)).toBe(0);
  });
});
