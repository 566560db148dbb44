import { describe, expect, it } from 'vitest';
import { driftOf, hasDrift, overridesOf } from '../../../src/fleet/drift.ts';
import type { HostOutcome } from '../../../src/fleet/fleet.ts';
import type { Change, Warning } from '../../../src/host/plan/change.ts';

const outcome = (changes: readonly Change[], warnings: readonly Warning[]): HostOutcome => ({
  host: 'w1',
  status: changes.length === 0 ? 'unchanged' : 'pending',
  plan: { host: { name: 'w1', phases: [{ phase: 'kubelet-start', plan: { changes } }] }, warnings, refusals: [] },
  error: null,
});
const OVERRIDDEN: Warning = { code: 'ConfigOverridden', field: 'maxPods', message: 'ConfigMap kube-system/a overrides maxPods' };
const OTHER: Warning = { code: 'FLAG_SHADOWS_FIELD', field: 'maxPods', message: '--max-pods overrides maxPods' };
const RESTART: Change = { kind: 'restart-unit', unit: 'kubelet', reason: 'the kubelet is inactive' };
const DRIFT = { what: 'maxPods', why: 'ConfigMap kube-system/a overrides maxPods' };

describe('the drift of a host', () => {
  it('includes a field that a ConfigMap overrides, even if no file differs', () => {
    const overridden = outcome([], [OVERRIDDEN, OTHER]);
    expect([hasDrift(overridden), driftOf(overridden), overridesOf(overridden)]).toEqual([true, [DRIFT], [DRIFT]]);
  });

  it('lists overridden fields after the changes', () => {
    expect(driftOf(outcome([RESTART], [OVERRIDDEN]))).toEqual([
      { what: 'unit kubelet', why: 'needs a restart: the kubelet is inactive' },
      DRIFT,
    ]);
  });

  it('is none for other warnings, and unknown without a plan', () => {
    const warned = outcome([], [OTHER]);
    expect([hasDrift(warned), driftOf(warned)]).toEqual([false, []]);
    const unknown: HostOutcome = { host: 'w1', status: 'unreachable', plan: null, error: null };
    expect([hasDrift(unknown), driftOf(unknown), overridesOf(unknown)]).toEqual([false, [], []]);
  });
});
