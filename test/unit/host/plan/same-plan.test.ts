import { describe, expect, it } from 'vitest';
import type { HostChanges } from '../../../../src/host/plan/fold.ts';
import { planDifference } from '../../../../src/host/plan/same-plan.ts';

const field = (name: string, before: number | null, after: number) => ({ field: name, before, after, impact: 'safe' });
function changes(fields: readonly object[], diff = 'a\n'): HostChanges {
  const file = { kind: 'write-file', phase: 'kubelet-start', path: '/var/lib/kubelet/config.yaml', diff, fields };
  return { changes: [file as unknown as HostChanges['changes'][number]], deferred: [] };
}

describe('the difference of two plans', () => {
  it('has the planned and the present change of each field', () => {
    const planned = changes([field('maxPods', 110, 80), field('a', 1, 2), field('b', 1, 2)], 'one\n');
    const now = changes([field('maxPods', 81, 80), field('b', 1, 2), field('c', null, 3)], 'other\n');
    const fields = ['maxPods 110→80 planned, now 81→80', 'a 1→2 planned, now unchanged', 'c not planned, now unset→3'];
    expect(planDifference(planned, now)).toEqual({ fields, diff: '' });
  });

  it('has the fields of a change that is not needed any more', () => {
    const none: HostChanges = { changes: [], deferred: [] };
    expect(planDifference(changes([field('maxPods', 110, 80)]), none).fields).toEqual(['maxPods 110→80 planned, now unchanged']);
    expect(planDifference(none, changes([field('maxPods', 110, 80)])).fields).toEqual(['maxPods not planned, now 110→80']);
  });

  it('is a unified diff for other changes', () => {
    expect(planDifference(changes([], 'one\n'), changes([], 'other\n')).diff).toMatch(
      /^--- planned\n\+\+\+ now\n[\s\S]*^-.*one[\s\S]*^\+.*other/m,
    );
  });

  it('is empty for equal plans', () => {
    expect(planDifference(changes([field('a', 1, 2)]), changes([field('a', 1, 2)]))).toEqual({ fields: [], diff: '' });
  });
});
