import { describe, expect, it } from 'vitest';
import { AppError, interrupted } from '../../../../src/base/errors.ts';
import { type ReportMember, type RunState, runVerdict } from '../../../../src/fleet/report/run-verdict.ts';

const FAILED = new AppError({ code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' }, { exitCode: 4 });

/** The verdict about members in these states. */
function verdict(
  states: readonly ReportMember['state'][],
  { command = 'apply', progress = 'ended' as RunState, failure = null as AppError | null } = {},
) {
  const members = states.map((state, i) => ({ name: `n${i}`, state, timeline: null }));
  return runVerdict({ command, noun: 'host', members, progress, failure, impact: 'safe' });
}

describe('the verdict about a run', () => {
  it('counts the hosts of a success', () => {
    expect(verdict(['changed', 'changed', 'unchanged'])).toEqual({ level: 'ok', text: 'Succeeded: 3 hosts, 2 changed, 1 unchanged.' });
    expect(verdict(['unchanged'])).toEqual({ level: 'ok', text: 'Succeeded: 1 host, 1 unchanged.' });
    expect(verdict([])).toEqual({ level: 'ok', text: 'Nothing to do.' });
  });

  it('names the bad results first, and what runs on the hosts', () => {
    const rolledBack = verdict(['rolled-back', 'not-started', 'not-started'], { failure: FAILED });
    expect(rolledBack).toEqual({
      level: 'error',
      text: 'Stopped: of 3 hosts, 1 rolled back, 2 not started. Rolled back: the previous configuration runs again.',
    });
    expect(verdict(['failed', 'changed'], { failure: FAILED }).text).toBe(
      'Failed: of 2 hosts, 1 failed, 1 changed. The failed ones need attention.',
    );
    expect(verdict([], { failure: FAILED })).toEqual({ level: 'error', text: 'Failed: kubelet not healthy.' });
  });

  it('is a warning after an interruption, unless a host failed', () => {
    const failure = interrupted('SIGINT');
    expect(verdict(['changed', 'interrupted', 'interrupted'], { failure })).toEqual({
      level: 'warning',
      text: 'Interrupted: of 3 hosts, 2 interrupted, 1 changed.',
    });
    expect(verdict(['failed', 'interrupted'], { failure }).level).toBe('error');
  });

  it('names what a plan would change', () => {
    expect(verdict(['pending', 'unchanged'], { command: 'plan' }).text).toBe('1 of 2 hosts would be changed; highest impact: safe.');
    expect(verdict(['unchanged'], { command: 'plan' }).text).toBe('No changes: 1 host up to date.');
  });

  const of = (progress: RunState, ...states: ReportMember['state'][]): string => {
    const { level, text } = verdict(states, { progress });
    return `${level}: ${text}`;
  };

  it('is an error as soon as a change has failed, and a warning if hosts are left out', () => {
    expect(of('changing', 'changed', 'rolling-back', 'in-progress')).toBe('error: In progress: 1 of 3 hosts done, 1 rolling back.');
    expect(of('changing', 'changed', 'rolled-back', 'in-progress', 'queued')).toBe('error: In progress: 2 of 4 hosts done, 1 rolled back.');
    expect(of('stopping', 'refused', 'in-progress', 'queued')).toBe('error: Stopping: 1 of 3 hosts done, 1 refused.');
    expect(of('changing', 'unreachable', 'in-progress', 'queued')).toBe('warning: In progress: 1 of 3 hosts done, 1 unreachable.');
  });

  it('is active before the end', () => {
    expect(of('planning', 'pending', 'inspecting', 'waiting')).toBe('active: Planning: 1 of 3 hosts planned.');
    expect(of('approval', 'pending', 'unchanged')).toBe(
      'active: Planned. Waiting for the answer on the terminal: 1 host would be changed.',
    );
    expect(of('changing', 'changed', 'in-progress', 'queued')).toBe('active: In progress: 1 of 3 hosts done.');
    expect(of('changing')).toBe('active: Starting.');
  });
});
