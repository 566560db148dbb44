import { describe, expect, it } from 'vitest';
import { assessSignals, type FoundSignal, podSignals, type SignalTimes } from '../../../../src/kubelet/health/assess.ts';
import { limitsOf } from '../../../../src/kubelet/health/signals.ts';

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
