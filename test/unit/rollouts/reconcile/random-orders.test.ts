import { describe, expect, it } from 'vitest';
import { CONFIG_CONDITION, TRIAL_REASON } from '../../../../src/dynamic/agent/status.ts';
import { assessNodeConfig } from '../../../../src/dynamic/status/assess-node-config.ts';
import { readNodeConfig } from '../../../../src/dynamic/status/node-config.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  type ConfigSource,
  formatConfigStatus,
  formatSourceAnnotation,
  sameSource,
} from '../../../../src/kubelet/layers/config-source.ts';
import { readRollout } from '../../../../src/rollouts/api/rollout.ts';
import type { RolloutStatus } from '../../../../src/rollouts/api/schema.ts';
import { gateKey } from '../../../../src/rollouts/reconcile/between-batches.ts';
import {
  checkKey,
  type GateAttempt,
  type NodeCheck,
  type Observed,
  type ObservedNode,
} from '../../../../src/rollouts/reconcile/observed.ts';
import { type Decision, reconcile } from '../../../../src/rollouts/reconcile/reconcile.ts';
import { seededRandom } from '../../../support/seeded-random.ts';

const START = Date.parse('2030-01-01T00:00:00Z');

/** A simulated Node with an agent that applies each assignment after some time. */
interface FakeNode {
  readonly name: string;
  readonly createdAt: number;
  source: ConfigSource | null;
  runs: ConfigSource | null;
  /** The agent has reported for this Node. */
  isEnabled: boolean;
  isReady: boolean;
}

const BETWEEN_BATCHES = {
  gates: [{ name: 'smoke', timeoutSeconds: 86_400, job: { namespace: 'default', template: { spec: {} } } }],
  windows: [{ startTime: '00:00', endTime: '12:00', timeZone: 'Etc/UTC' }],
};

function sourceOf(revision: number): ConfigSource {
  return { namespace: 'kubeletadm-system', name: `pods-${revision}`, kubeletConfigKey: 'kubelet' };
}

/** A rollout, its Nodes and a controller whose effects may be lost at any time. */
class World {
  readonly nodes = new Map<string, FakeNode>();
  readonly random: () => number;
  readonly maxUnavailable: number;
  readonly canary: number;
  revision = 1;
  paused = false;
  status: RolloutStatus = {};
  now = START;
  checks = new Map<string, NodeCheck>();
  last: Decision | null = null;
  /** With a gate after each batch, and a maintenance window from 00:00 to 12:00. */
  readonly isGated: boolean;
  /** Hour of the day. */
  hour = 6;
  attempt: GateAttempt | null = null;
  /** Jobs of gates by `gateKey`: whether they have passed; null: they run. */
  readonly jobs = new Map<string, boolean | null>();

  constructor(seed: number, isGated = false) {
    this.isGated = isGated;
    this.random = seededRandom(seed);
    this.maxUnavailable = 1 + Math.floor(this.random() * 3);
    this.canary = Math.floor(this.random() * 3);
    for (let i = 0; i < 6; i++) this.join(`n${i}`);
    for (const node of this.nodes.values()) node.isEnabled = true;
  }

  join(name: string): void {
    this.nodes.set(name, { name, createdAt: this.now, source: null, runs: null, isEnabled: false, isReady: true });
  }

  observed(): Observed {
    const object = {
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'KubeletConfigRollout',
      metadata: { name: 'pods', uid: 'u', generation: this.revision },
      spec: {
        nodeSelector: {},
        payload: { configMapRef: { ...sourceOf(this.revision) } },
        strategy: {
          maxUnavailable: this.maxUnavailable,
          canary: { count: this.canary },
          minReadySeconds: 5,
          ...(this.isGated ? BETWEEN_BATCHES : {}),
        },
        paused: this.paused,
      },
      status: JSON.parse(JSON.stringify(this.status)),
    } as KubeObject;
    const read = readRollout(object);
    if (!('rollout' in read)) throw new Error(read.errors.join());
    return {
      rollout: read.rollout,
      nodes: [...this.nodes.values()].map((node) => this.#observe(node)).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      revision: { name: `pods-${this.revision}`, source: sourceOf(this.revision) },
      refusal: null,
      checks: this.checks,
      previous: new Map(),
      now: new Date(this.now),
      localTime: new Date(Date.UTC(2030, 0, 1, this.hour)),
      attempt: this.attempt,
    };
  }

  #observe({ name, createdAt, source, runs, isEnabled, isReady }: FakeNode): ObservedNode {
    const identity = runs === null ? null : { ...runs, uid: 'u', resourceVersion: '1' };
    const status = { assigned: identity, active: identity, lastKnownGood: null, error: null };
    const since = new Date(createdAt).toISOString();
    const condition = (type: string, is: boolean, reason: string) => ({
      type,
      status: is ? 'True' : 'False',
      reason,
      lastTransitionTime: since,
    });
    const annotations = {
      ...(source === null ? {} : { [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation(source) }),
      ...(isEnabled ? { [CONFIG_STATUS_ANNOTATION]: JSON.stringify(formatConfigStatus(status)) } : {}),
    };
    const config = readNodeConfig({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations, creationTimestamp: since },
      status: {
        nodeInfo: { kubeletVersion: 'v1.36.2' },
        conditions: [
          condition('Ready', isReady, 'KubeletReady'),
          ...(runs === null ? [] : [condition(CONFIG_CONDITION, true, TRIAL_REASON)]),
        ],
      },
    });
    const verdict = assessNodeConfig(config, null, new Date(this.now));
    return { name, assessed: { config, verdict }, labels: {}, createdAt: new Date(createdAt), isHeld: false, isBusy: false, issue: null };
  }

  /** One decision; checks its limits. The status is written, the effects are executed later or lost. */
  decide(): void {
    const observed = this.observed();
    const before = new Set((observed.rollout.status.nodes ?? []).filter(({ state }) => state === 'InProgress').map(({ name }) => name));
    const decision = reconcile(observed);
    const entries = (decision.status.nodes ?? []).filter(({ state }) => state === 'InProgress').map(({ name }) => name);
    const down = [...this.nodes.values()].filter(({ isReady }) => !isReady).map(({ name }) => name);
    const started = entries.filter((name) => !before.has(name));
    const unavailable = new Set([...entries, ...down]);
    if (started.some((name) => !down.includes(name) && this.nodes.get(name)?.runs === null) || started.some((name) => !down.includes(name)))
      expect(unavailable.size, `started ${started.join()}`).toBeLessThanOrEqual(this.maxUnavailable);
    this.checkBatch(observed, decision, started);
    if (decision.status.phase === 'Complete')
      for (const { name, isEnabled, runs } of this.nodes.values())
        if (isEnabled) expect(sameSource(runs, sourceOf(this.revision)), `${name} is complete`).toBe(true);
    // New nodes first.
    const current = observed.rollout.status.currentConfigMap;
    const isNew = (name: string): boolean => {
      const node = this.nodes.get(name);
      return current !== undefined && node !== undefined && node.source === null && node.isEnabled;
    };
    const unchecked = new Set(decision.check.map(({ name }) => name));
    if ([...this.nodes.keys()].some((name) => isNew(name) && !unchecked.has(name)))
      expect(started.filter((name) => !isNew(name))).toEqual([]);
    for (const { name, source } of decision.check) {
      const node = observed.nodes.find((one) => one.name === name);
      if (node !== undefined && this.random() < 0.7)
        this.checks.set(checkKey(node.assessed.config, source), { refusal: null, impact: null });
    }
    this.status = decision.status;
    this.last = decision;
  }

  /** A batch starts in a window, when no other is in progress and the gate after the previous one has passed. */
  checkBatch({ rollout, revision }: Observed, { status }: Decision, started: readonly string[]): void {
    const before = rollout.status.updateRevision === revision.name ? rollout.status.batch?.number : undefined;
    const number = status.batch?.number;
    if (number === undefined || number === (before ?? 0)) return;
    expect(number).toBe((before ?? 0) + 1);
    expect(this.hour).toBeLessThan(12);
    const inProgress = (status.nodes ?? []).filter(({ state }) => state === 'InProgress').map(({ name }) => name);
    expect(inProgress.toSorted()).toEqual(started.toSorted());
    if (before === undefined || rollout.status.currentRevision === revision.name) return;
    expect(status.gates?.findLast(({ batch }) => batch === before)).toMatchObject({ state: 'Passed' });
  }

  /** Attempts the gate of the last decision; its Job has at most one result. */
  attemptGate(): void {
    const run = this.last?.gate ?? null;
    if (run === null) return;
    const key = gateKey(run.result);
    const isRecorded = this.status.gates?.some((result) => gateKey(result) === key && result.state === 'Running') === true;
    expect(isRecorded).toBe(true);
    if (!this.jobs.has(key)) this.jobs.set(key, null);
    this.attempt = { key, attempts: 1, isPassed: this.jobs.get(key) ?? null, answer: 'as it is' };
  }

  /** Executes an assignment of the last decision; a controller that was killed executes none. */
  execute(): void {
    this.attemptGate();
    for (const { name, desired } of this.last?.assign ?? []) {
      const node = this.nodes.get(name);
      const isRecorded = this.status.nodes?.some((entry) => entry.name === name && entry.state === 'InProgress') === true;
      expect(isRecorded).toBe(true);
      if (node !== undefined && this.random() < 0.7) node.source = desired;
    }
    this.last = null;
  }

  /** A random event. */
  happen(): void {
    const names = [...this.nodes.keys()];
    const node = this.nodes.get(names[Math.floor(this.random() * names.length)] ?? '');
    const dice = this.random();
    if (node === undefined || dice < 0.25) this.now += 1_000 * Math.ceil(this.random() * 8);
    else if (dice < 0.6) this.live(node);
    else if (dice < 0.65) node.isReady = !node.isReady;
    else if (dice < 0.68) {
      this.nodes.delete(node.name);
      this.now += 6_000;
    } else if (dice < 0.72) {
      this.nodes.delete(node.name);
      this.now += 6_000;
      this.join(node.name);
    } else if (dice < 0.74) this.join(`m${Math.floor(this.random() * 3)}`);
    else if (dice < 0.76) this.revision++;
    else if (dice < 0.78) this.paused = !this.paused;
    else if (dice < 0.79) this.hour = Math.floor(this.random() * 24);
    else if (dice < 0.81) this.endJobs();
    else if (dice < 0.82) this.attempt = null;
    else if (dice < 0.9) this.decide();
    else this.execute();
  }

  live(node: FakeNode): void {
    node.isEnabled = true;
    node.runs = node.source;
  }

  endJobs(): void {
    for (const [key, isPassed] of this.jobs) if (isPassed === null) this.jobs.set(key, true);
  }

  /** All that was disturbed ends, and the controller runs on. */
  settle(): void {
    this.paused = false;
    this.hour = 6;
    for (let i = 0; i < 120; i++) {
      for (const node of this.nodes.values()) {
        node.isReady = true;
        this.live(node);
      }
      this.now += 3_000;
      this.endJobs();
      this.decide();
      this.execute();
    }
  }
}

/** Checks that all nodes have the revision after random events. */
function endsAtRevision(world: World, seed: number): void {
  for (let i = 0; i < 150; i++) world.happen();
  world.settle();
  const wrong = [...world.nodes.values()].filter(({ runs }) => !sameSource(runs, sourceOf(world.revision)));
  expect(
    wrong.map(({ name }) => name),
    `seed ${seed}: ${JSON.stringify(world.status)}`,
  ).toEqual([]);
  expect(world.status.phase, `seed ${seed}`).toBe('Complete');
}

describe('reconcile, with events in random order', () => {
  it('never makes more nodes unavailable than permitted, changes new nodes first, and always ends at the revision', () => {
    for (let seed = 1; seed <= 60; seed++) endsAtRevision(new World(seed), seed);
  });

  it('starts a batch only in a window and after the gate of the previous one, and always ends at the revision', () => {
    let [batches, gates] = [0, 0];
    for (let seed = 1; seed <= 60; seed++) {
      const world = new World(seed, true);
      endsAtRevision(world, seed);
      batches += world.status.batch?.number ?? 0;
      gates += world.jobs.size;
    }
    expect(batches).toBeGreaterThan(60);
    expect(gates).toBeGreaterThan(60);
  });

  it('decides the same again when nothing has changed', () => {
    const world = new World(7);
    for (let i = 0; i < 200; i++) world.happen();
    const first = reconcile(world.observed());
    world.status = first.status;
    const second = reconcile(world.observed());
    expect(second.status).toEqual(first.status);
    expect(second.assign).toEqual(first.assign);
  });
});

describe('reconcile, after the payload was edited while the only node was changed', () => {
  /** The node has the assignment of revision 1, which is not confirmed yet, and the payload is that of revision 2. */
  function editedWorld(): { readonly world: World; readonly node: FakeNode } {
    const world = new World(1);
    for (const name of ['n1', 'n2', 'n3', 'n4', 'n5']) world.nodes.delete(name);
    const node = world.nodes.get('n0') as FakeNode;
    while (node.source === null) {
      world.decide();
      world.execute();
    }
    world.revision = 2;
    world.decide();
    expect(world.status.nodes).toMatchObject([{ name: 'n0', state: 'InProgress', source: 'kubeletadm-system/pods-1/kubelet' }]);
    return { world, node };
  }

  it('is complete only when the node has the new payload', () => {
    const { world, node } = editedWorld();
    const revisions: (string | undefined)[] = [];
    for (let i = 0; i < 40; i++) {
      world.live(node);
      world.now += 3_000;
      world.decide();
      const isNew = sameSource(node.source, sourceOf(2));
      if (!isNew) revisions.push(world.status.currentRevision, world.status.phase);
      world.execute();
    }
    expect(new Set(revisions)).toEqual(new Set([undefined, 'Progressing']));
    expect(world.status).toMatchObject({ phase: 'Complete', currentRevision: 'pods-2' });
  });

  it('does not fail because the earlier payload failed', () => {
    const { world } = editedWorld();
    world.now += 1_000_000;
    world.decide();
    expect(world.status).toMatchObject({ phase: 'Progressing', counts: { failed: 0 } });
  });
});
