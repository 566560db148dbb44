import type { Clock } from '../../src/base/clock.ts';
import { next } from '../../src/dynamic/agent/next.ts';
import { patchesFor } from '../../src/dynamic/agent/report-status.ts';
import { type AgentEvent, type AgentState, desiredPayload, newAgentState } from '../../src/dynamic/agent/state.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { DEFAULT_TIMING, type Observation } from '../../src/kubelet/health/assess.ts';
import type { TrialBaseline } from '../../src/kubelet/health/baseline.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  describeSource,
  parseSourceAnnotation,
} from '../../src/kubelet/layers/config-source.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';

const BASELINE: TrialBaseline = {
  pods: null,
  noProbe: null,
  staticPodPath: null,
  isReady: true,
  pressures: [],
  isCredentialAccepted: true,
};

/** The kubelet's observations for payloads that contain a word, by seconds since the payload was applied. */
export type Behaviour = (seconds: number, node: string) => Partial<Observation>;

/** Nodes whose agents decide with the real state machine, on scripted kubelets. All on one clock. */
export interface AgentFleet {
  readonly cluster: FakeCluster;
  /** A clock whose sleeps let the agents run. */
  readonly clock: Clock;
  readonly elapsedSeconds: number;
  /** By a word of the payload. */
  readonly behaviours: Map<string, Behaviour>;
  /** Words of payloads that agents reject unless the assignment may end pods. */
  readonly riskyWords: Set<string>;
  /** Actions by second of the clock. */
  readonly plan: Map<number, () => void | Promise<void>>;
  /** The number of restarts of each kubelet. */
  readonly restarts: Map<string, number>;
  /** The maximum number of nodes that were restarting or down at the same time. */
  mostUnavailable(): number;
  /** The name of the ConfigMap that each kubelet runs; `local`. */
  runs(): Readonly<Record<string, string>>;
  setReady(node: string, isReady: boolean): Promise<void>;
  pass(seconds: number): Promise<void>;
}

interface Agent {
  readonly name: string;
  state: AgentState;
  isRefused: boolean;
  /** Seconds since a rejected configuration was permitted. */
  delay: number;
  runs: string | null;
  since: number;
  isReady: boolean;
}

const START = Date.parse('2030-01-01T00:00:00Z');
const RESTART_SECONDS = 2;

/** Creates a fleet; each node has reported that it runs its local configuration. */
export async function agentFleet(
  names: readonly string[],
  { trialSeconds = 600, requiresSignature = false }: { readonly trialSeconds?: number; readonly requiresSignature?: boolean } = {},
): Promise<AgentFleet> {
  let time = START;
  let most = 0;
  const now = (): Date => new Date(time);
  const timing = { ...DEFAULT_TIMING, trialMs: trialSeconds * 1000 };
  const cluster = fakeCluster({ now });
  const agents: readonly Agent[] = names.map((name) => ({
    name,
    state: newAgentState(time),
    isRefused: false,
    delay: 0,
    runs: null,
    since: -1e9,
    isReady: true,
  }));
  const behaviours = new Map<string, Behaviour>();
  const riskyWords = new Set<string>();
  const plan = new Map<number, () => void | Promise<void>>();
  const restarts = new Map(names.map((name) => [name, 0]));

  const observation = async (agent: Agent): Promise<Observation> => {
    const payload = agent.runs === null ? '' : await textOf(agent.runs);
    const word = [...behaviours.keys()].find((key) => payload.includes(key));
    const seconds = (time - agent.since) / 1000;
    return {
      unit: { activeState: 'active', subState: 'running', restarts: 0 },
      runs: agent.runs,
      healthz: { ok: true },
      isProven: agent.runs !== null,
      differing: [],
      ready: { is: agent.isReady, why: 'KubeletNotReady' },
      pressures: [],
      cause: null,
      ...(word === undefined ? {} : behaviours.get(word)?.(seconds, agent.name)),
    };
  };
  const configMap = (name: string): Promise<KubeObject | null> =>
    cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name });
  const textOf = async (name: string): Promise<string> => {
    const map = await configMap(name);
    return (map?.data as Readonly<Record<string, string>> | undefined)?.kubelet ?? '';
  };
  const send = (agent: Agent, event: AgentEvent): void => {
    const { state, effects } = next(agent.state, event, time, timing);
    agent.state = state;
    for (const effect of effects) {
      if (effect.kind === 'record') send(agent, { kind: 'recorded', id: effect.id, baseline: { ...BASELINE, isReady: agent.isReady } });
      if (effect.kind !== 'switch') continue;
      if (effect.to !== agent.runs) {
        agent.runs = effect.to;
        agent.since = time;
        restarts.set(agent.name, (restarts.get(agent.name) ?? 0) + 1);
      }
      send(agent, { kind: 'switched', id: effect.id, restarts: 0, runs: agent.runs ?? 'local' });
    }
  };
  const live = async (agent: Agent): Promise<void> => {
    const ref = { apiVersion: 'v1', kind: 'Node', name: agent.name };
    const node = await cluster.get(ref);
    if (node === null || !agent.isReady) return;
    const { source } = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
    if (source === null) send(agent, { kind: 'unassigned' });
    else {
      // The name is unique per content, so it replaces the hash.
      const { uid = '', resourceVersion = '' } = (await configMap(source.name))?.metadata ?? {};
      const identity = { ...source, uid, resourceVersion };
      const isAllowed = node.metadata.annotations?.[ALLOW_POD_LOSS_ANNOTATION] === describeSource(source);
      const payload = isAllowed ? '' : await textOf(source.name);
      const refusal = [...riskyWords].some((word) => payload.includes(word))
        ? ({ code: 'NOT_ALLOWED', cause: 'pods would end' } as const)
        : null;
      const isKnown = agent.state.phase !== 'local' && agent.state.assigned.hash === source.name && agent.isRefused === (refusal !== null);
      // An agent validates a permitted configuration for some seconds.
      agent.delay = isKnown || !agent.isRefused ? 0 : agent.delay + 1;
      if (!isKnown && agent.delay < 4 && agent.isRefused) return;
      agent.isRefused = refusal !== null;
      if (!isKnown) send(agent, { kind: 'assigned', candidate: { identity, hash: source.name, changes: [] }, refusal, retry: null });
    }
    if (desiredPayload(agent.state) !== null) send(agent, { kind: 'observed', seen: await observation(agent) });
    let reported: KubeObject = node;
    for (const { subresource, patch } of patchesFor(reported, agent.state, now(), {
      timing,
      signersFile: requiresSignature ? '/signers.yaml' : null,
    }))
      reported = await cluster.patch(
        ref,
        subresource === undefined ? 'merge' : 'strategic',
        patch,
        subresource === undefined ? {} : { subresource },
      );
  };
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      time += 1000;
      await plan.get((time - START) / 1000)?.();
      // A real agent continues without the API server; this one continues a second later.
      for (const agent of agents) await live(agent).catch(() => undefined);
      const isAway = ({ isReady, since }: Agent): boolean => !isReady || time - since < RESTART_SECONDS * 1000;
      most = Math.max(most, agents.filter(isAway).length);
    }
  };
  const fleet: AgentFleet = {
    cluster,
    clock: {
      now,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        await pass(Math.ceil(ms / 1000));
        signal?.throwIfAborted();
      },
    },
    get elapsedSeconds() {
      return (time - START) / 1000;
    },
    behaviours,
    riskyWords,
    plan,
    restarts,
    mostUnavailable: () => most,
    runs: () => Object.fromEntries(agents.map(({ name, runs }) => [name, runs ?? 'local'])),
    setReady: async (name, isReady) => {
      const agent = agents.find((one) => one.name === name);
      if (agent !== undefined) agent.isReady = isReady;
      const condition = { type: 'Ready', status: isReady ? 'True' : 'Unknown', reason: isReady ? 'KubeletReady' : 'NodeStatusUnknown' };
      const patch = { status: { conditions: [{ ...condition, lastHeartbeatTime: now().toISOString() }] } };
      await cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'strategic', patch, { subresource: 'status' });
    },
    pass,
  };
  for (const [i, name] of names.entries()) {
    const labels = { pool: i % 2 === 0 ? 'even' : 'odd' };
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const status = { nodeInfo: { kubeletVersion: 'v1.36.2' } };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'strategic', { status }, { subresource: 'status' });
    await fleet.setReady(name, true);
  }
  await pass(2);
  return fleet;
}
