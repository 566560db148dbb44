import { describe, expect, it } from 'vitest';
import type { HostChange } from '../../../../src/host/plan/change.ts';
import type { HostPlan } from '../../../../src/host/plan/document.ts';
import type { FieldChange, Impact } from '../../../../src/host/plan/impact.ts';
import { formatFieldChange } from '../../../../src/host/plan/impact.ts';
import { impactNotAllowed } from '../../../../src/host/plan/impact-problem.ts';

const field = (name: string, impact: Impact): FieldChange => ({ field: name, before: 'a', after: 'b', impact });
const write = (impact: Impact, fields: readonly FieldChange[]): HostChange => ({
  kind: 'write-file',
  path: '/var/lib/kubelet/config.yaml',
  mode: 0o644,
  owner: 'root:root',
  action: 'update',
  content: '',
  before: null,
  reason: 'a test',
  impact,
  fields,
});
const planOf = (...changes: HostChange[]): HostPlan => ({ name: 'node1', phases: [{ phase: 'kubelet-start', plan: { changes } }] });

describe('impactNotAllowed', () => {
  const plan = planOf(write('unsafe', [field('cgroupDriver', 'unsafe'), field('cpuManagerPolicy', 'drain'), field('maxPods', 'safe')]));

  it('names in one problem the fields above the class, the highest class and the flag', () => {
    expect(impactNotAllowed(plan, 'new-pods-only')).toEqual({
      host: 'node1',
      code: 'IMPACT_NOT_ALLOWED',
      message:
        'the change has the impact unsafe, but --allow permits at most new-pods-only: cgroupDriver: a → b (unsafe), cpuManagerPolicy: a → b (drain)',
      hint: 'Check the plan, then pass --allow unsafe',
    });
  });

  it('names the source of each field', () => {
    const origins = { '/var/lib/kubelet/config.yaml': { cgroupDriver: 'group edge: fleet.yaml:10:7' } };
    expect(impactNotAllowed({ ...plan, origins }, 'new-pods-only')?.message).toContain(
      ': cgroupDriver: a → b (unsafe; group edge: fleet.yaml:10:7), cpuManagerPolicy: a → b (drain)',
    );
  });

  it('names only fields above the class', () => {
    expect(impactNotAllowed(plan, 'drain')?.message).not.toContain('cpuManagerPolicy');
    expect(impactNotAllowed(plan, 'unsafe')).toBeNull();
  });

  it('permits everything without a limit, and changes of no running kubelet', () => {
    expect(impactNotAllowed(plan, undefined)).toBeNull();
    expect(impactNotAllowed(planOf({ kind: 'restart-unit', unit: 'kubelet', reason: 'a test' }), 'safe')).toBeNull();
  });

  it('names a change without fields as a whole', () => {
    const install = { kind: 'install-packages', manager: 'apt', packages: ['kubelet=1.36.*'], repositories: [], reason: '' } as const;
    expect(impactNotAllowed(planOf({ ...install, impact: 'drain' }), 'safe')).toMatchObject({
      message: expect.stringMatching(/: install-packages kubelet=1\.36\.\* \(drain\)$/),
      hint: 'Check the plan, then pass --allow drain',
    });
    expect(impactNotAllowed(planOf(write('unsafe', [])), 'safe')?.message).toMatch(
      /: write-file \/var\/lib\/kubelet\/config\.yaml \(unsafe\)$/,
    );
  });

  it('limits the number of fields', () => {
    const many = Array.from({ length: 8 }, (_, i) => field(`field${i}`, 'drain'));
    expect(impactNotAllowed(planOf(write('drain', many)), 'safe')?.message).toContain('field4: a → b (drain), and 3 more');
  });
});

describe('formatFieldChange', () => {
  it.each<[FieldChange['before'], FieldChange['after'], string]>([
    [20, 33, 'x: 20 → 33'],
    [null, '', 'x: unset → ""'],
    [false, [{ a: 1 }], 'x: false → [{"a":1}]'],
    ['y'.repeat(100), null, `x: ${'y'.repeat(80)}... → unset`],
  ])('%j to %j', (before, after, text) => {
    expect(formatFieldChange({ field: 'x', before, after })).toBe(text);
  });
});
