import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../../src/base/clock.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { clusterUnreachable } from '../../../../src/kube/cluster-problems.ts';
import { type Leadership, whileLeader } from '../../../../src/rollouts/controller/lease.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { virtualClock } from '../../../support/virtual-clock.ts';

const NAMESPACE = 'kubeletadm-system';

interface Candidate {
  leadership: Leadership | null;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** Candidates for one Lease, on one clock. */
async function election() {
  const time = virtualClock();
  const clock: Clock = { ...time, now: time.now, steadyMs: () => time.elapsedMs };
  const cluster = fakeCluster({ now: time.now });
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const join = (identity: string, own: { readonly cluster?: Cluster; readonly clock?: Clock } = {}): Candidate => {
    const stop = new AbortController();
    const options = {
      cluster,
      clock,
      random: () => 0.5,
      signal: stop.signal,
      namespace: NAMESPACE,
      identity,
      onIssue: () => undefined,
      onAnswer: () => undefined,
      onChange: () => undefined,
    };
    const candidate: Candidate = {
      leadership: null,
      stop,
      ended: whileLeader({ ...options, ...own }, async (leadership, signal) => {
        candidate.leadership = leadership;
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        candidate.leadership = null;
      }),
    };
    return candidate;
  };
  const isLeader = ({ leadership }: Candidate): boolean => leadership?.isValid() === true;
  return { time, clock, cluster, join, isLeader };
}

describe('whileLeader', () => {
  it('lets one candidate act, and the next one as soon as that ends', async () => {
    const { time, join, isLeader, cluster } = await election();
    const first = join('first');
    await time.sleep(1_000);
    const second = join('second');
    await time.sleep(60_000);
    expect([first, second].map(isLeader)).toEqual([true, false]);
    first.stop.abort();
    await time.sleep(4_000);
    expect([first, second].map(isLeader)).toEqual([false, true]);
    const lease = await cluster.get({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      namespace: NAMESPACE,
      name: 'kubeletadm-controller',
    });
    expect(lease?.spec).toMatchObject({ holderIdentity: 'second', leaseDurationSeconds: 15, leaseTransitions: 1 });
    second.stop.abort();
    await Promise.all([first.ended, second.ended]);
  });

  it('stops a leader that does not reach the API server, before another one takes over', async () => {
    const { time, join, isLeader, cluster } = await election();
    let isCut = false;
    const cut = async (): Promise<never> => {
      throw clusterUnreachable('https://cluster.test:6443', 'get', 'no route to host');
    };
    const first = join('first', {
      cluster: {
        ...cluster,
        get: (ref) => (isCut ? cut() : cluster.get(ref)),
        update: (object) => (isCut ? cut() : cluster.update(object)),
      },
    });
    await time.sleep(3_000);
    const second = join('second');
    await time.sleep(10_000);
    isCut = true;
    const seen: string[] = [];
    for (let i = 0; i < 60; i++) {
      await time.sleep(500);
      seen.push([isLeader(first) ? '1' : '', isLeader(second) ? '2' : ''].join(''));
    }
    expect(seen).not.toContain('12');
    expect(seen[0]).toBe('1');
    expect(seen.at(-1)).toBe('2');
    // Without a leader, until the Lease expires.
    expect(seen).toContain('');
    for (const { stop } of [first, second]) stop.abort();
    await Promise.all([first.ended, second.ended]);
  });

  it('ends the right of a process that was stopped, although its requests had been sent', async () => {
    const { time, join, isLeader, cluster } = await election();
    let isStopped = false;
    const never = new Promise<never>(() => undefined);
    const first = join('first', { cluster: { ...cluster, get: (ref) => (isStopped ? never : cluster.get(ref)) } });
    await time.sleep(3_000);
    const { leadership } = first;
    const second = join('second');
    isStopped = true;
    await time.sleep(40_000);
    expect(leadership?.isValid()).toBe(false);
    expect(isLeader(second)).toBe(true);
    second.stop.abort();
    await second.ended;
  });

  it('does not extend the right of a leader whose system time is set back, and ends it early if it is set forward', async () => {
    const { time, join, cluster, clock } = await election();
    let shiftMs = 0;
    let isCut = false;
    const own: Clock = { ...clock, now: () => new Date(clock.now().getTime() + shiftMs), sleep: clock.sleep };
    const get: Cluster['get'] = async (ref) => {
      if (isCut) throw clusterUnreachable('https://cluster.test:6443', 'get', 'no route to host');
      return cluster.get(ref);
    };
    const first = join('first', { clock: own, cluster: { ...cluster, get } });
    await time.sleep(3_000);
    const { leadership } = first;
    isCut = true;
    shiftMs = -3_600_000;
    await time.sleep(9_000);
    await time.sleep(3_000);
    expect(leadership?.isValid()).toBe(false);
    isCut = false;
    shiftMs = 0;
    await time.sleep(30_000);
    const again = first.leadership;
    expect(again?.isValid()).toBe(true);
    shiftMs = 3_600_000;
    expect(again?.isValid()).toBe(false);
    first.stop.abort();
    await first.ended;
  });
});
