import { isAppError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import { isActive } from '../../src/kubelet/workload/pod.ts';
import { NODE, type World } from '../../test/unit/dynamic/agent/world.ts';

export const MANIFESTS = '/etc/kubernetes/manifests';
const PODS = resourceOf('v1', 'Pod') as ResourceType;
const NAMESPACES = ['default', 'other'];
const STATIC_PODS = ['static-a', 'static-b'];
const MOST_PODS = 40;
const FEWEST_PODS = 10;
const LONGEST_OUTAGE_MS = 20_000;

/** Changes of the pods of a node that no configuration causes. */
export interface Churn {
  /** The number of changes by kind. */
  readonly counts: ReadonlyMap<string, number>;
  /** Errors of the simulation. */
  readonly errors: readonly string[];
  /** Causes changes from now on, one after at most three seconds. */
  start(): Promise<void>;
  stop(): void;
}

/** @param random from 0 to 1; the same numbers cause the same changes */
export function churnOf(world: World, random: () => number): Churn {
  const { cluster, clock, host } = world;
  const { store } = cluster;
  const counts = new Map<string, number>();
  const errors: string[] = [];
  let isStopped = false;
  let serial = 0;

  const oneOf = <T>(values: readonly T[]): T | undefined => values[Math.floor(random() * values.length)];
  const failed = (error: unknown): void => {
    // Two changes can create the same pod.
    if (!isAppError(error, 'CLUSTER_CONFLICT')) errors.push(String(error));
  };
  const podsHere = (): readonly KubeObject[] =>
    store
      .list(PODS)
      .filter(({ spec, metadata }) => (spec as JsonObject).nodeName === NODE && !metadata.name.startsWith('kubeletadm-probe'));
  // Not readPod, which parses the requests: these are read at each change.
  const phaseOf = ({ status }: KubeObject): string => String((status as JsonObject | undefined)?.phase ?? '');
  const isStatic = ({ metadata }: KubeObject): boolean => metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined;
  const isPresent = (pod: KubeObject): boolean => isActive({ phase: phaseOf(pod) });
  const isRunning = (pod: KubeObject): boolean => phaseOf(pod) === 'Running' && !isStatic(pod);
  const running = (): KubeObject | undefined => oneOf(podsHere().filter(isRunning));
  const setStatus = (pod: KubeObject | undefined, status: JsonObject): void => {
    if (pod !== undefined) store.put(PODS, { ...pod, status: { ...(pod.status as JsonObject), ...status } });
  };
  const container = (state: JsonObject, more: JsonObject = {}): JsonObject => ({
    containerStatuses: [
      { name: 'main', image: 'example.org/main:1', imageID: '', ready: 'running' in state, restartCount: 1, state, ...more },
    ],
  });
  const terminated = (reason: string, exitCode: number): JsonObject => ({ terminated: { reason, exitCode } });
  const ready = (is: boolean): JsonObject => ({
    conditions: [
      { type: 'Ready', status: is ? 'True' : 'False' },
      { type: 'PodScheduled', status: 'True' },
    ],
  });
  const add = async (options: { readonly name?: string; readonly namespace?: string; readonly image?: string } = {}): Promise<void> => {
    const { name = `web-${serial++}`, namespace = oneOf(NAMESPACES) ?? 'default', image = 'example.org/main:1' } = options;
    const initContainers = random() < 0.3 ? [{ name: 'init', image: 'example.org/init:1' }] : [];
    const requests = { cpu: `${10 + Math.floor(random() * 40)}m`, memory: '32Mi', 'ephemeral-storage': '16Mi' };
    const pod = await cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { nodeName: NODE, initContainers, containers: [{ name: 'main', image, resources: { requests } }] },
    });
    await world.pods.settled();
    const started = store.get(PODS, namespace, name);
    if (initContainers.length > 0 && started !== null && started.metadata.uid === pod.metadata.uid)
      setStatus(started, { initContainerStatuses: [{ name: 'init', ready: true, restartCount: 0, state: terminated('Completed', 0) }] });
  };
  const remove = (pod: KubeObject | undefined): void => {
    if (pod !== undefined) store.remove(PODS, pod.metadata.namespace ?? '', pod.metadata.name);
  };
  const fileOf = (name: string): string => `${MANIFESTS}/${name}.yaml`;
  const writeManifest = (name: string): Promise<void> =>
    host.perform([{ kind: 'write-file', path: fileOf(name), mode: 0o600, owner: 'root:root', content: manifestOf(name, serial++) }]);
  const finish = (reason: string, message: string, exitCode = 1): void =>
    setStatus(running(), { phase: 'Failed', reason, message, ...container(terminated('Error', exitCode)) });
  const hasRoom = (): boolean => podsHere().filter(isPresent).length < MOST_PODS;
  const hasMany = (): boolean => podsHere().filter(isRunning).length > FEWEST_PODS;

  /** Kinds of changes; those that end pods happen only while the node has many. */
  const ending: Readonly<Record<string, () => void | Promise<void>>> = {
    'scaled down, deleted at once': () => remove(running()),
    'scaled down, with a grace period': () => {
      const pod = running();
      const deletionTimestamp = clock.now().toISOString();
      if (pod !== undefined) store.put(PODS, { ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 } });
    },
    'a job succeeded': () => setStatus(running(), { phase: 'Succeeded', ...container(terminated('Completed', 0)) }),
    'a job failed': () =>
      finish(oneOf(['', 'DeadlineExceeded', 'Error']) ?? '', 'Pod was active on the node longer than the specified deadline'),
    'evicted for its own limit': () =>
      finish('Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ', 137),
    'evicted for a limit of its volume': () => finish('Evicted', 'Usage of EmptyDir volume "cache" exceeds the limit "1Gi". ', 137),
    'killed for its memory limit, not restarted': () => finish('OOMKilled', '', 137),
  };
  const other: Readonly<Record<string, () => void | Promise<void>>> = {
    'scaled up': () => (hasRoom() ? add() : undefined),
    'scaled up by five': async () => {
      for (let i = 0; i < 5 && hasRoom(); i++) await add();
    },
    'one name in two namespaces': async () => {
      const name = `same-${serial++}`;
      for (const namespace of NAMESPACES) if (hasRoom()) await add({ name, namespace });
    },
    'an image cannot be pulled': () => (hasRoom() ? add({ image: 'registry.invalid/app:1' }) : undefined),
    'a new image cannot be pulled': () => setStatus(running(), container({ waiting: { reason: 'ImagePullBackOff', message: 'Back-off' } })),
    'a container crash-loops': () =>
      setStatus(running(), { ...container({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }), ...ready(false) }),
    'a container has no configuration': () =>
      setStatus(running(), container({ waiting: { reason: 'CreateContainerConfigError', message: 'secret "x" not found' } })),
    'not ready': () => setStatus(running(), ready(false)),
    'healthy again': () => setStatus(running(), { ...container({ running: {} }), ...ready(true) }),
    'restarted after OOMKilled': () => setStatus(running(), container({ running: {} }, { lastState: terminated('OOMKilled', 137) })),
    'an old rejected pod': async () => {
      const name = `old-${serial++}`;
      const status = { phase: 'Failed', reason: 'OutOfcpu', message: "Node didn't have enough resource: cpu" };
      const spec = { nodeName: NODE, containers: [{ name: 'main', image: 'example.org/main:1' }] };
      await cluster.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec, status });
    },
    'ended pods are collected': () => {
      for (const pod of podsHere()) if (!isPresent(pod)) remove(pod);
    },
    'a user removes or adds a static pod': () => {
      const name = oneOf(STATIC_PODS) ?? '';
      return host.files.has(fileOf(name)) ? host.perform([{ kind: 'remove-file', path: fileOf(name) }]) : writeManifest(name);
    },
    'a user edits a static pod': () => writeManifest(oneOf(STATIC_PODS) ?? ''),
    'a mirror pod is created again': () => remove(oneOf(podsHere().filter(isStatic))),
    'the API server is away': () => {
      // Outages pause a trial.
      if (random() > 0.3) return;
      world.away(true);
      clock.at(clock.elapsedMs + random() * LONGEST_OUTAGE_MS, () => world.away(false));
    },
  };

  const step = (): void => {
    if (isStopped) return;
    const kinds = Object.entries({ ...(hasMany() ? ending : {}), ...other });
    const [kind, change] = kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number];
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    void Promise.resolve(change()).catch(failed);
    clock.at(clock.elapsedMs + random() * 3_000, step);
  };
  return {
    counts,
    errors,
    start: async () => {
      await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } });
      for (const name of STATIC_PODS) await writeManifest(name);
      for (let i = 0; i < 2 * FEWEST_PODS; i++) await add();
      step();
    },
    stop: () => {
      isStopped = true;
    },
  };
}

function manifestOf(name: string, version: number): string {
  return `apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: kube-system, labels: {version: "${version}"}}
spec: {containers: [{name: main, image: "example.org/main:1"}]}
`;
}
