import type { JsonObject } from '../../../../src/base/json.ts';
import { type AgentTransition, next } from '../../../../src/dynamic/agent/next.ts';
import {
  type AgentEffect,
  type AgentEvent,
  type AgentState,
  type Candidate,
  desiredPayload,
  type Fault,
  newAgentState,
} from '../../../../src/dynamic/agent/state.ts';
import { formatStateFile, parseStateFile } from '../../../../src/dynamic/agent/state-file.ts';
import { configStatusOf } from '../../../../src/dynamic/agent/status.ts';
import { DEFAULT_TIMING, type Observation, type Timing } from '../../../../src/kubelet/health/assess.ts';
import type { TrialBaseline } from '../../../../src/kubelet/health/baseline.ts';
import { formatConfigStatus } from '../../../../src/kubelet/layers/config-source.ts';

/** `A@1`, `B@2.bad`: a version of ConfigMap a, and its key unless that is `kubelet`. */
export function candidate(text: string, hash: string | null): Candidate {
  const match = /^([A-Z])@(\d+)(?:\.(\w+))?$/.exec(text);
  if (match === null) throw new Error(`not a version: ${text}`);
  const name = (match[1] as string).toLowerCase();
  const kubeletConfigKey = match[3] ?? 'kubelet';
  const identity = { namespace: 'kube-system', name, kubeletConfigKey, uid: `uid-${name}`, resourceVersion: match[2] as string };
  return { identity, hash, changes: [] };
}

/** The status in the notation of `candidate`. */
export function shortStatus(state: AgentState): JsonObject {
  const status = formatConfigStatus(configStatusOf(state));
  return Object.fromEntries(
    Object.entries(status).map(([name, value]) => {
      if (typeof value === 'string') return [name, value];
      const map = (value as { configMap: { name: string; resourceVersion: string; kubeletConfigKey: string } }).configMap;
      const key = map.kubeletConfigKey === 'kubelet' ? '' : `.${map.kubeletConfigKey}`;
      return [name, `${map.name.toUpperCase()}@${map.resourceVersion}${key}`];
    }),
  );
}

/** The observation of a kubelet that is healthy with a payload. */
export function healthy(hash: string | null, over: Partial<Observation> = {}): Observation {
  return {
    unit: { activeState: 'active', subState: 'running', restarts: 0 },
    runs: hash ?? 'local',
    healthz: { ok: true },
    isProven: hash !== null,
    differing: [],
    ready: { is: true, why: '' },
    pressures: [],
    cause: null,
    ...over,
  };
}

/** A healthy node without pods, and without a probe pod. */
export const BASELINE: TrialBaseline = {
  pods: [],
  noProbe: 'no image',
  staticPodPath: null,
  isReady: true,
  pressures: [],
  isCredentialAccepted: true,
};

/** An agent's state machine with a clock, a disk and a kubelet on which every operation succeeds. */
export interface TestAgent {
  state: AgentState;
  nowMs: number;
  /** What the kubelet runs: a hash, or null for the local configuration. */
  pointer: string | null;
  /** Number of kubelet restarts. */
  restarts: number;
  /** The node before the next trial. */
  before: TrialBaseline;
  readonly announced: string[];
  readonly log: AgentEffect[];
  send(event: AgentEvent): AgentTransition;
  assign(version: string, hash: string | null, more?: { refusal?: Fault; retry?: string }): void;
  unassign(): void;
  /** Advances the clock and observes the kubelet once a second; `seen` is the observation. */
  run(seconds: number, seen?: (pointer: string | null) => Observation): void;
  /** Kills the agent and starts it again. */
  reboot(intact?: (hash: string) => boolean): void;
  status(): JsonObject;
}

export const START = Date.parse('2030-01-01T00:00:00Z');

export function testAgent(timing: Timing = DEFAULT_TIMING): TestAgent {
  const agent: TestAgent = {
    state: newAgentState(START),
    nowMs: START,
    pointer: null,
    restarts: 0,
    before: BASELINE,
    announced: [],
    log: [],
    send: (event) => {
      const step = next(agent.state, event, agent.nowMs, timing);
      agent.state = step.state;
      for (const effect of step.effects) {
        agent.log.push(effect);
        if (effect.kind === 'announce') agent.announced.push(`${effect.reason}: ${effect.message}`);
        if (effect.kind === 'record')
          agent.send({ kind: 'recorded', id: effect.id, baseline: effect.to === agent.pointer ? null : agent.before });
        if (effect.kind !== 'switch') continue;
        if (effect.to !== agent.pointer) agent.restarts++;
        agent.pointer = effect.to;
        agent.send({ kind: 'switched', id: effect.id, restarts: 0, runs: agent.pointer ?? 'local' });
      }
      return step;
    },
    assign: (version, hash, { refusal = null, retry = null } = {}) => {
      agent.send({ kind: 'assigned', candidate: candidate(version, hash), refusal, retry });
    },
    unassign: () => {
      agent.send({ kind: 'unassigned' });
    },
    run: (seconds, seen = (pointer) => healthy(pointer)) => {
      for (let i = 0; i < seconds; i++) {
        agent.nowMs += 1000;
        agent.send({ kind: 'observed', seen: seen(agent.pointer) });
      }
    },
    reboot: (intact = () => true) => {
      const read = parseStateFile(formatStateFile({ generation: 1, state: agent.state }));
      if (read === null) throw new Error('the state file cannot be read');
      agent.state = read.state;
      const hashes = ['a', 'b', 'c', 'd', 'e'].filter(intact);
      agent.send({ kind: 'booted', intact: hashes, kubelet: 'v1.36.2' });
    },
    status: () => shortStatus(agent.state),
  };
  return agent;
}

/** Hash of the payload that the state requires. */
export function wantedHash(state: AgentState): string | null {
  return desiredPayload(state)?.hash ?? null;
}
