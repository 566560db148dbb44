import { describe, expect, it } from 'vitest';
import {
  assessGood,
  assessSignals,
  assessTrial,
  DEFAULT_TIMING,
  EMPTY_HEALTH_HISTORY,
  type FoundSignal,
  hasSignal,
  type Observation,
  podSignals,
  type SignalTimes,
} from '../../../../src/kubelet/health/assess.ts';
import type { PodLoss } from '../../../../src/kubelet/health/baseline.ts';
import { limitsOf, SIGNAL_NAMES, SIGNALS, type Signal } from '../../../../src/kubelet/health/signals.ts';
import { signalsOf } from '../../../../src/kubelet/health/verify-change.ts';

const LIMITS = limitsOf('ssh');
const gone = (pod: string): FoundSignal => ({ signal: 'static-pod-gone', seen: 'the static pod is gone', pod });

/** The failures of observations that are four seconds apart. */
function failuresOf(observations: readonly (readonly FoundSignal[])[]): readonly (string | null)[] {
  let times: SignalTimes = {};
  return observations.map((found) => {
    const assessed = assessSignals(times, found, 4_000, LIMITS);
    times = assessed.times;
    return assessed.failure?.cause ?? null;
  });
}

describe('the signals of a kubelet', () => {
  it('have a time of their own for each lost pod: pods that return one after the other are no failure', () => {
    expect(failuresOf([[gone('a/x')], [gone('a/x'), gone('a/y')], [gone('a/y')], [gone('a/y'), gone('a/z')], [gone('a/z')]])).toEqual(
      Array(5).fill(null),
    );
    const lost = failuresOf([[gone('a/x')], [gone('a/x')], [gone('a/x'), gone('a/y')], [gone('a/x')]]);
    expect(lost).toEqual([null, null, null, 'the kubelet stopped 1 static pod that ran before: a/x (the static pod is gone)']);
  });

  it('are no failure for any duration if another wait ends the change', () => {
    const unready: FoundSignal = { signal: 'not-ready', seen: 'Ready is False' };
    expect(failuresOf(Array(200).fill([unready]))).toEqual(Array(200).fill(null));
  });

  it('show the worst first', () => {
    const [cause] = failuresOf([
      [
        { signal: 'pod-rejected', seen: 'OutOfcpu', pod: 'a/x' },
        { signal: 'pod-evicted', seen: 'low', pod: 'a/y' },
      ],
    ]);
    expect(cause).toBe('the kubelet rejected 1 pod that ran before: a/x (OutOfcpu)');
  });

  it.each([
    [['DiskPressure'], []],
    [[], ['pod-evicted']],
  ])('count evictions only on a node without pressure before: %j', (pressures, signals) => {
    const losses = [{ kind: 'pod-evicted', pod: 'a/b', seen: 'The node was low on resource' }] as const;
    expect(podSignals({ isReady: true, pressures }, { losses }).map(({ signal }) => signal)).toEqual(signals);
  });
});

const HEALTHY: Observation = {
  unit: { activeState: 'active', subState: 'running', restarts: 0 },
  runs: 'new',
  ageMs: 200_000,
  cpuShare: 0.1,
  healthz: { ok: true },
  isProven: true,
  differing: [],
  ready: { is: true, why: '' },
  pressures: [],
  cause: null,
};
const BASELINE = { pods: [], noProbe: null, staticPodPath: null, isReady: true, pressures: [], isCredentialAccepted: true, cpuShare: 0.1 };
const inState = (activeState: string): Partial<Observation> => ({ unit: { activeState, subState: activeState, restarts: 0 } });
const losing = (kind: PodLoss['kind']): Partial<Observation> => ({ losses: [{ kind, pod: 'a/b', seen: 'why' }] });

/** An observation that shows each signal. */
const SHOWN: Readonly<Record<Signal, Partial<Observation>>> = {
  crash: inState('failed'),
  start: inState('inactive'),
  healthz: { healthz: { ok: false, why: 'status 500' } },
  configz: { differing: ['maxPods'] },
  'wrong-payload': { runs: 'old' },
  'not-ready': { ready: { is: false, why: 'PLEG is not healthy' } },
  pressure: { pressures: ['DiskPressure'] },
  cpu: { cpuShare: 1 },
  shutdown: { shutdownIssue: 'no lock' },
  'locked-out': { credentialRefusal: { why: '401', isRejection: true } },
  'not-serving': { credentialRefusal: { why: 'refused', isRejection: false } },
  'not-signed': { credentialRefusal: { why: 'no certificate', isRejection: false, needsApproval: true } },
  'not-reached': { unreached: 'refused' },
  'pod-rejected': losing('pod-rejected'),
  'pod-evicted': losing('pod-evicted'),
  'static-pod-gone': losing('static-pod-gone'),
  'pod-not-started': losing('pod-not-started'),
  'probe-pod': { probe: { state: 'failed', why: 'no sandbox' } },
};

describe('each signal with a time limit', () => {
  const FINDS = {
    agent: (seen: Partial<Observation>, signal: Signal): boolean => {
      const watch = { ...EMPTY_HEALTH_HISTORY, wasHealthy: true };
      const { history } = assessTrial(watch, { hash: 'new', baseline: BASELINE }, { ...HEALTHY, ...seen }, 0, DEFAULT_TIMING);
      return hasSignal(history.signals, signal);
    },
    ssh: (seen: Partial<Observation>, signal: Signal): boolean =>
      signalsOf(BASELINE, { ...HEALTHY, ...seen }).some((found) => found.signal === signal),
  };
  const limited = (['agent', 'ssh'] as const).flatMap((user) =>
    SIGNAL_NAMES.filter((signal) => 'ms' in SIGNALS[signal].limits[user])
      // `verifyShutdown` waits for the lock on the host, before the API server is asked.
      .filter((signal) => user !== 'ssh' || signal !== 'shutdown')
      .map((signal) => [user, signal] as const),
  );

  it.each(limited)('is found by its user: %s, %s', (user, signal) => {
    expect([{}, SHOWN[signal]].map((seen) => FINDS[user](seen, signal))).toEqual([false, true]);
  });
});

describe('a kubelet with a good configuration', () => {
  const MINUTE = 60_000;

  /** The failures after observations of systemd's counter. */
  const failuresAt = (seen: readonly (readonly [minutes: number, restarts: number])[]): readonly (string | null)[] => {
    let history = EMPTY_HEALTH_HISTORY;
    return seen.map(([minutes, restarts]) => {
      const unit = { activeState: 'active', subState: 'running', restarts };
      const assessed = assessGood(history, { ...HEALTHY, unit }, 1_000 * MINUTE + minutes * MINUTE, DEFAULT_TIMING);
      history = assessed.history;
      return assessed.failure?.cause ?? null;
    });
  };

  it('crash-loops after three exits within ten minutes', () => {
    const loop = 'the kubelet crash-loops: 3 failures within 10 minutes';
    expect(failuresAt([0, 1, 2, 3].map((at) => [at, at] as const))).toEqual([null, null, null, loop]);
    expect(failuresAt([0, 1, 2, 3].map((at) => [at * 6, at] as const))).toEqual([null, null, null, null]);
  });

  it('does not crash-loop when exits before the clock was set back come again in the last ten minutes', () => {
    // Two exits with a clock that is an hour ahead, and one an hour after it was set right.
    const seen = [
      [60, 0],
      [61, 2],
      [2, 2],
      [62, 3],
    ] as const;
    expect(failuresAt(seen)).toEqual([null, null, null, null]);
  });
});
