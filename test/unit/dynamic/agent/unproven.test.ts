import { expect, it } from 'vitest';
import { newAgentState } from '../../../../src/dynamic/agent/state.ts';
import { agentConditionOf } from '../../../../src/dynamic/agent/status.ts';
import {
  assessTrial,
  DEFAULT_TIMING,
  EMPTY_HEALTH_HISTORY,
  type HealthHistory,
  type Observation,
} from '../../../../src/kubelet/health/assess.ts';

const HASH = 'a'.repeat(64);
const WELL: Observation = {
  unit: { activeState: 'active', subState: 'running', restarts: 0 },
  runs: HASH,
  healthz: { ok: true },
  isProven: true,
  differing: [],
  ready: { is: true, why: '' },
  pressures: [],
  cause: null,
};
const UNSEEN: Observation = { ...WELL, isProven: false, differing: null, unknown: ['the start time of the kubelet is not known'] };
const identity = { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', kubeletConfigKey: 'kubelet' };

/** Observes the kubelet once a second. */
function looks(watch: HealthHistory, seen: Observation, seconds: number): HealthHistory {
  let after = watch;
  const from = watch.lastAt ?? 0;
  for (let i = 1; i <= seconds; i++)
    after = assessTrial(after, { hash: HASH, baseline: null }, seen, from + i * 1000, DEFAULT_TIMING).history;
  return after;
}
const messageOf = (watch: HealthHistory): string =>
  agentConditionOf({ ...newAgentState(0), phase: 'trial', assigned: { identity, hash: HASH, changes: ['maxPods from 1 to 2'] }, watch })
    .message;

it('names the missing observation of a paused trial until it is available', () => {
  const early = looks(EMPTY_HEALTH_HISTORY, UNSEEN, 20);
  expect(messageOf(early)).toBe('in trial: maxPods from 1 to 2');
  const late = looks(early, UNSEEN, 700);
  expect(late).toMatchObject({ healthyMs: 0, signals: {} });
  expect(messageOf(late)).toBe(
    'in trial, paused because the configuration cannot be verified (the start time of the kubelet is not known): maxPods from 1 to 2',
  );
  const seen = looks(late, WELL, 5);
  expect(seen.healthyMs).toBe(5000);
  expect(messageOf(seen)).toBe('in trial: maxPods from 1 to 2');
});

it('needs no configz if the process evidently read the configuration', () => {
  expect(looks(EMPTY_HEALTH_HISTORY, { ...WELL, differing: null }, 100)).toMatchObject({ healthyMs: 99_000, unproven: null, signals: {} });
});
