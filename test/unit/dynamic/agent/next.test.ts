import { describe, expect, it } from 'vitest';
import { nextTimer } from '../../../../src/dynamic/agent/next.ts';
import { formatStateFile } from '../../../../src/dynamic/agent/state-file.ts';
import { agentConditionOf } from '../../../../src/dynamic/agent/status.ts';
import { DEFAULT_TIMING, type Observation } from '../../../../src/kubelet/health/assess.ts';
import { baselineFromJson } from '../../../../src/kubelet/health/baseline.ts';
import type { Signal } from '../../../../src/kubelet/health/signals.ts';
import { BASELINE, candidate, healthy, START, testAgent } from './support.ts';

const TRIAL_SECONDS = DEFAULT_TIMING.trialMs / 1000;

describe('a trial', () => {
  it('is reported only after the kubelet was observed healthy', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    expect(agentConditionOf(agent.state)).toMatchObject({ status: 'Unknown', reason: 'Starting' });
    agent.run(3, (pointer) => healthy(pointer, { healthz: { ok: false, why: '500' } }));
    expect(agentConditionOf(agent.state)).toMatchObject({ status: 'Unknown', reason: 'Starting' });
    agent.run(1);
    expect(agentConditionOf(agent.state)).toMatchObject({ status: 'True', reason: 'Trial' });
  });

  it('ends after ten healthy minutes', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS);
    expect(agent.state.phase).toBe('trial');
    agent.run(2);
    expect(agent.state.phase).toBe('good');
    expect(agent.announced.at(-1)).toBe(
      'KubeletConfigGood: kube-system/a/kubelet@1 is the last known good configuration (the pods of the node were not checked; the start of new pods was not tried, because no probe pod was started: no image)',
    );
  });

  it.each([
    [
      'the kubelet exited',
      { unit: { activeState: 'activating', subState: 'auto-restart', restarts: 0 }, cause: 'open /x: no such file' },
      0,
      'the kubelet exited: open /x: no such file',
    ],
    [
      'systemd restarted the kubelet',
      { unit: { activeState: 'active', subState: 'running', restarts: 1 } },
      0,
      'the kubelet exited: unit active (running), 1 restarts',
    ],
    [
      'the unit failed',
      { unit: { activeState: 'failed', subState: 'failed', restarts: 0 } },
      0,
      'the kubelet exited: unit failed (failed), 0 restarts',
    ],
    ['configz differs', { differing: ['maxPods', 'port'] }, 0, 'the kubelet does not use the new values of maxPods, port'],
    ['healthz fails', { healthz: { ok: false, why: '500' } }, 5, 'healthz: 500'],
    ['NotReady', { ready: { is: false, why: 'KubeletNotReady: no CNI' } }, 30, 'the Node is not Ready: KubeletNotReady: no CNI'],
    ['new pressure', { pressures: ['DiskPressure'] }, 20, 'the Node has DiskPressure'],
    [
      'pods are rejected',
      { losses: [1, 2, 3, 4, 5, 6, 7].map((n) => ({ kind: 'pod-rejected' as const, pod: `default/p${n}`, seen: 'OutOfpods' })) },
      0,
      'the kubelet rejected 7 pods that ran before: default/p1 (OutOfpods), default/p2 (OutOfpods), default/p3 (OutOfpods), default/p4 (OutOfpods), default/p5 (OutOfpods) and 2 more',
    ],
    [
      'a pod is evicted',
      { losses: [{ kind: 'pod-evicted', pod: 'a/b', seen: 'low' }] },
      0,
      'the kubelet evicted 1 pod that ran before: a/b (low)',
    ],
    [
      'a static pod is gone',
      { losses: [{ kind: 'static-pod-gone', pod: 'a/b', seen: 'gone' }] },
      10,
      'the kubelet stopped 1 static pod that ran before: a/b (gone)',
    ],
    [
      'a container does not start again',
      { losses: [{ kind: 'pod-not-started', pod: 'a/b', seen: 'container c: RunContainerError' }] },
      10,
      'the kubelet cannot restart containers of 1 pod that ran before: a/b (container c: RunContainerError)',
    ],
    ['a probe pod fails', { probe: { state: 'failed', why: 'RunContainerError' } }, 15, 'a probe pod cannot be started: RunContainerError'],
    ['another configuration', { runs: 'local' }, 10, 'the kubelet runs with another configuration than the assigned one'],
  ] as const)('ends when %s', (_, seen, seconds, cause) => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(30);
    agent.run(seconds, () => healthy('a', seen));
    if (seconds > 0) expect(agent.state.phase).toBe('trial');
    agent.run(1, () => healthy('a', seen));
    expect(agent.state).toMatchObject({ phase: 'fallen-back', fault: { code: 'RUN_FAILED', cause }, rejected: [{ hash: 'a' }] });
    expect(agent.pointer).toBeNull();
    expect(agentConditionOf(agent.state)).toEqual({
      status: 'False',
      reason: 'FallenBack',
      message: `${cause}; the kubelet runs the local configuration (config.yaml)`,
    });
  });

  it('allows 45 s for a kubelet that an administrator stops or restarts', () => {
    const stopped = () =>
      healthy('a', {
        unit: { activeState: 'inactive', subState: 'dead', restarts: 0 },
        runs: null,
        healthz: { ok: false, why: 'connection refused' },
        differing: null,
      });
    const young = () => healthy('a', { ageMs: 3_000, healthz: { ok: false, why: 'connection refused' }, differing: null });
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(30);
    agent.run(30, stopped);
    agent.run(10, young);
    expect(agent.state.phase).toBe('trial');
    agent.run(605);
    expect(agent.state.phase).toBe('good');
    agent.assign('B@1', 'b');
    agent.run(30);
    agent.run(47, stopped);
    expect(agent.state).toMatchObject({
      phase: 'fallen-back',
      fault: { cause: 'the kubelet was stopped: unit inactive (dead), 0 restarts' },
    });
  });

  it('gives a kubelet that starts slowly 45 s', () => {
    const slow = () => healthy('a', { healthz: { ok: false, why: 'connection refused' }, differing: null });
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(45, slow);
    agent.run(10);
    expect(agent.state.phase).toBe('trial');
    const late = testAgent();
    late.assign('A@1', 'a');
    late.run(46, slow);
    expect(late.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'start' } });
  });

  it('does not end before its probe pod has started', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(2 * TRIAL_SECONDS, () => healthy('a', { probe: { state: 'starting', seen: 'ContainerCreating' } }));
    expect(agent.state.phase).toBe('trial');
    agent.run(TRIAL_SECONDS + 2, () => healthy('a', { probe: { state: 'started' } }));
    expect(agent.state.phase).toBe('good');
  });

  it('continues without a probe pod that shows nothing', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS + 2, () => healthy('a', { probe: { state: 'unusable', why: 'no image' } }));
    expect(agent.state.phase).toBe('good');
  });

  it('keeps the state before it when the agent is restarted, and drops that at its end', () => {
    const agent = testAgent();
    agent.before = { ...BASELINE, pods: [{ uid: 'u', name: 'default/a', isStatic: false }], pressures: ['DiskPressure'] };
    agent.assign('A@1', 'a');
    expect(agent.state.baseline).toEqual(agent.before);
    const { before } = agent;
    agent.before = { ...BASELINE, isCredentialAccepted: false };
    agent.reboot();
    expect(agent.state.baseline).toEqual(before);
    agent.run(TRIAL_SECONDS + 2);
    expect(agent.state).toMatchObject({ phase: 'good', baseline: null });
  });

  it('compares the next configuration with the state before an unfinished trial as well', () => {
    const agent = testAgent();
    const pod = (name: string, isStatic: boolean) => ({ uid: `uid-${name}`, name, isStatic });
    agent.before = { ...BASELINE, pods: [pod('a', false), pod('s', true)], noProbe: null, staticPodPath: '/manifests' };
    agent.assign('A@1', 'a');
    agent.before = {
      pods: [pod('b', false)],
      noProbe: 'a probe pod did not start before the change',
      staticPodPath: '/other',
      isReady: false,
      pressures: ['DiskPressure'],
      isCredentialAccepted: false,
    };
    agent.assign('B@1', 'b');
    expect(agent.state.baseline).toEqual({
      ...BASELINE,
      pods: [pod('b', false), pod('s', true)],
      noProbe: null,
      staticPodPath: '/manifests',
    });
    agent.run(40, (hash) => healthy(hash, { credentialRefusal: { why: 'returned 401', isRejection: true } }));
    expect(agent.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'locked-out' }, baseline: null });
  });

  it.each<[string, Partial<Observation>, Signal]>([
    ['rejects the credential of the node', { credentialRefusal: { why: 'returned 401', isRejection: true } }, 'locked-out'],
    ['is NotReady', { ready: { is: false, why: 'no CNI' } }, 'not-ready'],
    ['has a pressure condition', { pressures: ['DiskPressure'] }, 'pressure'],
  ])('takes an unknown state before it for healthy: the kubelet %s', (_, seen, signal) => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    // The state file of an earlier version, which kept the pods alone.
    const written = JSON.parse(formatStateFile({ generation: 1, state: agent.state })).state;
    for (const member of ['isReady', 'pressures', 'isCredentialAccepted']) delete written.workload[member];
    expect(baselineFromJson(written.workload)).toEqual({ ...BASELINE, isReady: null, isCredentialAccepted: null });
    for (const baseline of [baselineFromJson(written.workload), null]) {
      agent.state = { ...agent.state, baseline };
      agent.reboot();
      const { state } = agent;
      agent.run(40, (hash) => healthy(hash, seen));
      expect(agent.state).toMatchObject({ phase: 'fallen-back', fault: { signal } });
      [agent.state, agent.pointer] = [state, 'a'];
    }
  });

  it('tolerates problems that existed before the switch', () => {
    const agent = testAgent();
    agent.before = { ...BASELINE, isReady: false, pressures: ['DiskPressure'], isCredentialAccepted: false };
    agent.assign('A@1', 'a');
    const seen = {
      ready: { is: false, why: 'no CNI' },
      pressures: ['DiskPressure'],
      credentialRefusal: { why: 'returned 401', isRejection: true },
    };
    agent.run(120, (hash) => healthy(hash, seen));
    expect(agent.state.phase).toBe('trial');
  });

  it('is paused while the API server is unreachable', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(10_000, (hash) => healthy(hash, { differing: null, ready: null }));
    expect(agent.state.phase).toBe('trial');
    agent.run(TRIAL_SECONDS + 1);
    expect(agent.state.phase).toBe('good');
  });

  it('restarts after every interruption', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS - 10);
    agent.run(3, (hash) => healthy(hash, { healthz: { ok: false, why: '500' } }));
    agent.run(20);
    expect(agent.state.phase).toBe('trial');
  });

  it.each([
    ['forward', 86_400_000],
    ['back', -86_400_000],
  ])('is unaffected by a clock that jumps %s', (_, jump) => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(60);
    agent.nowMs += jump;
    agent.run(60, (hash) => healthy(hash));
    expect(agent.state.phase).toBe('trial');
    agent.run(3, (hash) => healthy(hash, { ready: { is: false, why: 'just now' } }));
    agent.nowMs += jump;
    agent.run(3, (hash) => healthy(hash, { ready: { is: false, why: 'just now' } }));
    expect(agent.state.phase).toBe('trial');
    agent.run(TRIAL_SECONDS + 1);
    expect(agent.state.phase).toBe('good');
  });
});

describe('a good configuration', () => {
  it('is replaced by the local configuration when the kubelet crash-loops', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS + 2);
    agent.run(1, () => healthy('a', { unit: { activeState: 'active', subState: 'running', restarts: 2 } }));
    expect(agent.state.phase).toBe('good');
    agent.run(1, () => healthy('a', { unit: { activeState: 'active', subState: 'running', restarts: 3 } }));
    expect(agent.state).toMatchObject({ phase: 'fallen-back', lastKnownGood: null });
    expect(agent.pointer).toBeNull();
  });

  it('is kept otherwise: with months between exits, NotReady, a stopped unit', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS + 2);
    for (let restarts = 1; restarts < 20; restarts++) {
      agent.nowMs += 86_400_000;
      agent.run(1, () => healthy('a', { unit: { activeState: 'active', subState: 'running', restarts } }));
    }
    agent.run(500, () =>
      healthy('a', { unit: { activeState: 'inactive', subState: 'dead', restarts: 0 }, ready: { is: false, why: 'x' } }),
    );
    expect(agent.state.phase).toBe('good');
  });
});

describe('a switch that fails', () => {
  it('is retried with growing delays and reported', () => {
    const agent = testAgent();
    agent.state = { ...agent.state };
    const failing = { kind: 'switch-failed', id: 99, why: 'no space left on device', damaged: false } as const;
    const start = { kind: 'assigned', candidate: candidate('A@1', 'a'), refusal: null, retry: null } as const;
    agent.assign('B@1', 'b');
    const waits: number[] = [];
    // The switch fails explicitly, as on a full disk.
    const step = agent.send(start);
    expect(step.effects[0]).toMatchObject({ kind: 'record', to: 'a' });
    agent.state = { ...step.state, switching: { id: 99, to: 'a', issue: null, failures: 0, againAt: null } };
    for (let i = 0; i < 8; i++) {
      agent.send(failing);
      const due = nextTimer(agent.state);
      expect(due?.kind).toBe('switch');
      waits.push((due?.at ?? 0) - agent.nowMs);
      agent.state = { ...agent.state, switching: { id: 99, to: 'a', issue: 'x', failures: i + 1, againAt: null } };
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    expect(agentConditionOf(agent.state)).toMatchObject({ status: 'False', reason: 'Unavailable' });
    expect(agent.status().error).toBe('failed to sync: internal failure, see Kubelet log for details');
  });
});

describe('a rejected configuration', () => {
  it('is retried only after a new value of the annotation', () => {
    const agent = testAgent();
    const crashing = () => healthy('a', { unit: { activeState: 'failed', subState: 'failed', restarts: 0 } });
    agent.assign('A@1', 'a');
    agent.run(1, crashing);
    agent.assign('A@2', 'a');
    agent.unassign();
    agent.assign('A@3', 'a');
    expect(agent.state).toMatchObject({ phase: 'fallen-back', assigned: { identity: { resourceVersion: '3' } } });
    expect(agent.pointer).toBeNull();
    agent.assign('A@3', 'a', { retry: 'please' });
    expect(agent.pointer).toBe('a');
    agent.run(1, crashing);
    agent.assign('A@3', 'a', { retry: 'please' });
    expect(agent.pointer).toBeNull();
    agent.assign('A@3', 'a', { retry: 'once more' });
    expect(agent.pointer).toBe('a');
  });

  it('is tried again with another kubelet version', () => {
    const agent = testAgent();
    agent.reboot();
    agent.assign('A@1', 'a');
    agent.run(1, () => healthy('a', { unit: { activeState: 'failed', subState: 'failed', restarts: 0 } }));
    agent.send({ kind: 'booted', intact: ['a'], kubelet: 'v1.36.3' });
    agent.assign('A@1', 'a');
    expect(agent.pointer).toBe('a');
  });
});

describe('an agent that starts', () => {
  it('continues, with a new trial', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS - 5);
    agent.reboot();
    expect(agent.pointer).toBe('a');
    agent.run(TRIAL_SECONDS - 5);
    expect(agent.state.phase).toBe('trial');
    agent.run(10);
    expect(agent.state.phase).toBe('good');
  });

  it.each([
    ['the assigned checkpoint is lost', (hash: string) => hash !== 'b', 'a'],
    ['both checkpoints are lost', () => false, null],
  ])('rolls back when %s', (_, intact, runs) => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.run(TRIAL_SECONDS + 2);
    agent.assign('B@1', 'b');
    agent.reboot(intact);
    expect(agent.pointer).toBe(runs);
    expect(agent.status().error).toBe('failed to load config, see Kubelet log for details');
    // A lost checkpoint is fetched again and is not rejected.
    agent.assign('B@1', 'b');
    expect(agent.pointer).toBe('b');
  });

  it('needs no checks while the local configuration runs', () => {
    const agent = testAgent();
    agent.reboot();
    expect(nextTimer(agent.state)).toBeNull();
    agent.assign('A@1', 'a');
    expect(nextTimer(agent.state)).toEqual({ kind: 'look', at: START + 1000 });
  });
});
