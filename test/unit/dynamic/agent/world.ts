import { nodeResources } from '../../../../lab/hosts/stand-in-admission.ts';
import { isJsonObject, type JsonObject } from '../../../../src/base/json.ts';
import { Secret } from '../../../../src/base/text/secret.ts';
import { parseSource, sourceToJson } from '../../../../src/codec/source.ts';
import type { AccessProblem } from '../../../../src/dynamic/agent/cluster-access.ts';
import { runAgent } from '../../../../src/dynamic/agent/run-agent.ts';
import type { AgentState } from '../../../../src/dynamic/agent/state.ts';
import { CONFIG_CONDITION } from '../../../../src/dynamic/agent/status.ts';
import type { CommandFact } from '../../../../src/host/facts/query.ts';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import { clusterRefused, clusterUnreachable } from '../../../../src/kube/cluster-problems.ts';
import type { HttpsRequest } from '../../../../src/kube/https-client.ts';
import { clientCertificateKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../../src/kube/resources.ts';
import { agentRights } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import type { LiveChange } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { DEFAULT_TIMING, type Timing } from '../../../../src/kubelet/health/assess.ts';
import { CONFIG_SOURCE_ANNOTATION, CONFIG_STATUS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { hashInPath, pointerFile } from '../../../../src/kubelet/node-agent/layout.ts';
import { type FakeClock, fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { type FakePods, fakePods } from '../../../support/fake-pods.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { type FakeReply, fakeWeb } from '../../../support/fake-web.ts';

const catalogue = await loadCatalogue();
const NODES = resourceOf('v1', 'Node') as ResourceType;
export const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
export const NODE = 'node-1';
const LOCAL = '/var/lib/kubelet/config.yaml';
const KUBELET_CONF = '/etc/kubernetes/kubelet.conf';
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nserving\n-----END CERTIFICATE-----\n';
const DROP_IN = '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf';

const KUBECONFIG = clientCertificateKubeconfig({
  clusterName: 'kubernetes',
  server: 'https://cluster.test:6443',
  caPem: CERTIFICATE,
  user: `system:node:${NODE}`,
  certificatePem: CERTIFICATE,
  keyPem: new Secret('-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n'),
}).reveal();

/** Behaviour of the simulated kubelet with a configuration. */
export interface Behaviour {
  /** Seconds between the start and a crash. */
  readonly crashesAfter?: number;
  readonly logs?: string;
  /** The kubelet does not exit, but is killed by this signal. The journal is empty. */
  readonly killedBy?: number;
  /** CPUs that the kubelet uses since its start, by the age of the process in seconds; default: unknown. */
  readonly cpus?: (seconds: number) => number;
  readonly healthz?: number;
  readonly notReady?: boolean;
  readonly pressure?: string;
  readonly configz?: JsonObject;
  /** The kubelet refuses the credential of its own node. */
  readonly lockedOut?: boolean;
  /** Status of configz in place of 200. */
  readonly configzStatus?: number;
  /** The kubelet cannot reach the API server: after 40 s its Node is Unknown. */
  readonly silent?: boolean;
}

/** A node with systemd, a kubelet and an API server in memory, and an agent that can be killed. */
export interface World {
  readonly host: FakeHost;
  /** Client of an administrator. */
  readonly cluster: FakeCluster;
  /** Client with the kubelet's credential, which the agent uses. */
  readonly asNode: FakeCluster;
  readonly clock: FakeClock;
  /** The pods of the kubelet, with the option `pods`. */
  readonly pods: FakePods;
  /** Behaviours by maxPods of the configuration. */
  readonly behaviours: Map<number, Behaviour>;
  state: AgentState | null;
  /** maxPods of the kubelet's running configuration. */
  runs(): number | null;
  starts(): number;
  /** Simulates the restart of an exited kubelet by systemd. */
  restartKubelet(): void;
  /** Start time of the kubelet, in milliseconds of the clock. */
  readonly startTimes: number[];
  push(
    name: string,
    text: string,
    more?: { readonly immutable?: boolean; readonly data?: Readonly<Record<string, string>> },
  ): Promise<void>;
  edit(name: string, change: JsonObject): Promise<void>;
  remove(name: string): Promise<void>;
  assign(name: string | null, key?: string): Promise<void>;
  annotate(annotations: Readonly<Record<string, string | null>>): Promise<void>;
  /** Makes the API server unreachable or reachable for the agent. */
  away(isAway: boolean): void;
  /** Makes the API server reject (401) or accept the agent's credential. */
  refuse(isRefused: boolean): void;
  /** Writes the local configuration of the host and notifies its watcher. */
  editLocal(text: string): void;
  /** Requests that the agent reports as refused. */
  access: readonly AccessProblem[];
  /**
   * @param killAt the agent is killed instead of its n-th program on the host, counted from 1; 0: never
   * @param policy another policy than that of the world
   */
  start(killAt?: number, policy?: LiveChange): void;
  /** Programs that the running agent has started on the host. */
  programs(): number;
  wasKilled(): boolean;
  stop(): Promise<void>;
  /** Runs the event loop until the condition is true. */
  until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void>;
  status(): Promise<JsonObject>;
  condition(): Promise<JsonObject>;
  events(): Promise<readonly string[]>;
}

export interface WorldOptions {
  readonly timing?: Partial<Timing>;
  readonly allow?: LiveChange;
  readonly spreadMs?: number;
  /** The file of signers; default: signatures are not required. */
  readonly signersFile?: string;
  /** Runs the script that verifies a signature; default: the host has no ssh-keygen. */
  readonly verifies?: (argv: readonly string[], stdin: string) => Partial<CommandFact>;
  /** Flags of the kubelet, in addition to its configuration. */
  readonly flags?: readonly string[];
  /** The kubelet runs the pods of its node, and those of staticPodPath; default false. */
  readonly pods?: boolean;
  /** Version of the kubelet; before 1.33 it does not serve configz to its own node. */
  readonly version?: string;
  /** Default: `fakeClock`. */
  readonly clock?: FakeClock;
  /** From 0 to 1; default: always 0.5. */
  readonly random?: () => number;
  /** The local configuration; default: maxPods 110. */
  readonly local?: string;
  /** The locks of systemd-logind by maxPods of the running configuration, as `busctl` prints them; default: no logind. */
  readonly locks?: (maxPods: number | null) => string;
  /** State files of managers: their content by cpuManagerPolicy, which the kubelet creates at its start. */
  readonly managerStates?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export function payload(maxPods: number, more = ''): string {
  return `${HEADER}maxPods: ${maxPods}\n${more}`;
}

function configOf(text: string): JsonObject {
  const root = parseSource(text, 'kubelet.yaml').documents[0]?.root ?? null;
  const config = root === null ? null : sourceToJson(root);
  return isJsonObject(config) ? config : {};
}

export function newWorld(options: WorldOptions = {}): World {
  const { timing = {}, allow = 'unsafe', spreadMs = 0, flags = [], version = 'v1.36.2', pods: hasPods = false } = options;
  const { clock = fakeClock(new Date('2030-01-01T00:00:00Z')), random = () => 0.5, local = payload(110), managerStates = {} } = options;
  const behaviours = new Map<number, Behaviour>();
  let pid = 100;
  let startedAt = 0;
  let configPath = LOCAL;
  let isCrashed = false;
  const unit = fakeUnit({
    fragmentPath: '/usr/lib/systemd/system/kubelet.service',
    dropInPaths: [DROP_IN],
    activeState: 'active',
    subState: 'running',
  });
  const host = fakeHost({
    name: NODE,
    files: {
      '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\n',
      [DROP_IN]: `[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=${LOCAL}"\nEnvironmentFile=-${pointerFile(AGENT_DIRECTORY)}\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS ${flags.join(' ')}\n`,
      [LOCAL]: local,
      [KUBELET_CONF]: KUBECONFIG,
      '/var/lib/kubelet/pki/kubelet.crt': CERTIFICATE,
      ...(hasPods ? { '/etc/resolv.conf': 'nameserver 10.0.0.1\n' } : {}),
    },
    commands: {
      sh: (called, stdin) => {
        const [, , script = ''] = called;
        tick();
        if (script.includes('ssh-keygen')) return options.verifies?.(called, stdin) ?? { exitCode: 43 };
        if (script.includes('command -v kubelet')) return { stdout: '/usr/bin/kubelet\n' };
        // 85% of the blocks and inodes are free, as the eviction of the simulated kubelet assumes.
        if (hasPods && script.includes('stat -f')) return { stdout: '85 100 1073741824 85000 100000\n'.repeat(2) };
        if (!script.includes('/cmdline')) return { exitCode: 127 };
        if (isCrashed || unit.state.activeState === 'inactive') return { exitCode: 3 };
        const argv = [`/usr/bin/kubelet`, `--config=${configPath}`, ...flags].map((word) => `${word}\0`).join('');
        return {
          stdout: script.includes('--version')
            ? `${pid}\nKubernetes ${version}\n${argv}`
            : `${pid} ${ticks(startedAt)} ${ticks(clock.elapsedMs)} ${cpuTicks()}\n${argv}`,
        };
      },
      kubelet: { stdout: `Kubernetes ${version}\n` },
      'containerd config dump': {
        stdout: "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n  SystemdCgroup = false\n",
      },
      id: { stdout: '0\n' },
      uname: { stdout: `${NODE}\n` },
      'systemctl reset-failed kubelet': {},
      'systemd-analyze': { exitCode: 1 },
      busctl: (argv) =>
        argv.includes('ListInhibitors') && options.locks !== undefined ? { stdout: options.locks(maxPods()) } : { exitCode: 1 },
      rm: (argv) => {
        for (const path of [...host.files.keys()]) if (path === argv[3] || path.startsWith(`${argv[3]}/`)) host.files.delete(path);
        return {};
      },
    },
    units: { kubelet: unit },
    onPerformed: () => pods.filesChanged(),
    http: () => {
      tick();
      if (isCrashed) return { error: 'connection refused' };
      const status = behaviour().healthz ?? 200;
      return { status, body: 'ok' };
    },
  });
  const cluster = fakeCluster({
    now: () => clock.now(),
    objects: [
      { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE }, status: { nodeInfo: { kubeletVersion: version } } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } },
      ...agentRights({ nodeName: NODE, nodeUid: null, namespace: AGENT_NAMESPACE }),
    ],
  });
  const asNode = fakeCluster({
    now: () => clock.now(),
    sharedWith: cluster,
    user: { name: `system:node:${NODE}`, groups: ['system:nodes'] },
  });
  const maxPods = (): number => Number(/maxPods: (\d+)/.exec(host.files.get(configPath)?.content ?? '')?.[1] ?? 110);
  const behaviour = (): Behaviour => behaviours.get(maxPods()) ?? {};
  const pods = fakePods({
    cluster,
    nodeName: NODE,
    now: () => clock.now(),
    files: {
      exists: (path) => host.files.has(path),
      texts: (directory) => {
        if (host.files.get(directory)?.type !== 'directory') return null;
        const below = [...host.files].filter(([path, { content }]) => path.startsWith(`${directory}/`) && content !== undefined);
        return new Map(below.map(([path, { content = '' }]) => [path, content]));
      },
    },
  });
  const startPods = (): void => {
    if (!hasPods) return;
    const config = { clusterDNS: ['10.96.0.10'], ...configOf(host.text(configPath)) };
    const { capacity, allocatable } = nodeResources(config);
    // In the store: the status of a Node is not the subject of the tests.
    const node = cluster.store.get(NODES, '', NODE);
    if (node !== null) cluster.store.put(NODES, { ...node, status: { ...(node.status as JsonObject), capacity, allocatable } });
    pods.start(config);
  };

  /** The kubelet creates missing state files, and exits with those of another policy. */
  function readManagerStates(): void {
    const policy = String(configOf(host.text(configPath)).cpuManagerPolicy ?? 'none');
    for (const [path, contents] of Object.entries(managerStates)) {
      const found = host.files.get(path)?.content;
      if (found === undefined) host.files.set(path, { type: 'file', mode: 0o600, owner: 'root:root', content: contents[policy] ?? '' });
      else if (!found.includes(`"policyName":"${policy}"`)) isCrashed = true;
    }
  }
  function beginProcess(): void {
    const pointer = hashInPath(host.files.get(pointerFile(AGENT_DIRECTORY))?.content ?? '');
    configPath = pointer === null ? LOCAL : `${AGENT_DIRECTORY}/checkpoints/${pointer}/kubelet.yaml`;
    pid++;
    startedAt = clock.elapsedMs;
    isCrashed = false;
    unit.state = { ...unit.state, activeState: 'active', subState: 'running' };
    readManagerStates();
    heartbeat();
    startPods();
    tick();
  }
  const cpuTicks = (): number | '' => {
    const seconds = (clock.elapsedMs - startedAt) / 1000;
    const { cpus } = behaviour();
    return cpus === undefined ? '' : ticks(cpus(seconds) * seconds * 1000);
  };
  const ticks = (ms: number): number => Math.floor(ms / 10);
  const startTimes: number[] = [];
  unit.onStart = () => {
    startTimes.push(clock.elapsedMs);
    unit.state = { ...unit.state, restarts: 0 };
    beginProcess();
  };
  /** Advances the simulation: the kubelet crashes, systemd restarts it. */
  function tick(): void {
    const { crashesAfter, logs, killedBy } = behaviour();
    if (crashesAfter === undefined || isCrashed || clock.elapsedMs - startedAt < crashesAfter * 1000) return;
    isCrashed = true;
    pods.stop();
    unit.state = { ...unit.state, activeState: 'activating', subState: 'auto-restart', restarts: unit.state.restarts + 1 };
    if (killedBy === undefined) unit.journal += `${logs ?? 'E0101 kubelet died'}\nkubelet.service: Failed with result 'exit-code'.\n`;
    else unit.state = { ...unit.state, result: 'signal', execMainCode: 2, execMainStatus: killedBy };
  }
  function heartbeat(): void {
    const { notReady, pressure, silent = false } = behaviour();
    const process = pid;
    if (silent) {
      clock.at(clock.elapsedMs + 40_000, () => {
        const unknown = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
        if (pid === process) notify([unknown]);
      });
      return;
    }
    const time = clock.now().toISOString().replace(/\.\d+/, '');
    const conditions = [
      {
        type: 'Ready',
        status: notReady ? 'False' : 'True',
        reason: notReady ? 'KubeletNotReady' : 'KubeletReady',
        message: 'm',
        lastHeartbeatTime: time,
      },
      ...['DiskPressure', 'MemoryPressure', 'PIDPressure'].map((type) => ({
        type,
        status: type === pressure ? 'True' : 'False',
        lastHeartbeatTime: time,
      })),
    ];
    notify(conditions);
  }
  function notify(conditions: readonly JsonObject[]): void {
    void cluster
      .patch({ apiVersion: 'v1', kind: 'Node', name: NODE }, 'strategic', { status: { conditions } }, { subresource: 'status' })
      .catch(() => undefined);
  }
  const answerConfigz = ({ clientCertificate }: HttpsRequest): FakeReply => {
    if (isCrashed) return { issue: { kind: 'refused' } };
    if (clientCertificate === undefined || behaviour().lockedOut === true) return { status: 401, text: 'Unauthorized' };
    const { configzStatus } = behaviour();
    if (configzStatus !== undefined) return { status: configzStatus, text: 'Authorization error' };
    if (Number(/^v1\.(\d+)/.exec(version)?.[1]) < 33)
      return { status: 403, text: `Forbidden (user=system:node:${NODE}, verb=get, resource=nodes, subresource=proxy)` };
    const config = hasPods ? effectiveConfiguration(configOf(host.text(configPath)), { catalogue, minor: 36 }) : { maxPods: maxPods() };
    return { text: JSON.stringify({ kubeletconfig: { ...config, ...behaviour().configz } }) };
  };
  let isAway = false;
  let isRefused = false;
  let localChanged = (): void => undefined;
  /** The API server as the agent reaches it. */
  const reached = new Proxy(asNode, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: readonly unknown[]): unknown => {
        const unreachable = (): Error => clusterUnreachable(cluster.server, 'connection refused', 'Wait');
        const unauthorized = (): Error => clusterRefused(String(name), { httpStatus: 401, message: 'Unauthorized' });
        if (isRefused && name === 'watch') throw unauthorized();
        if (isRefused) return Promise.reject(unauthorized());
        if (isAway && name === 'watch') throw unreachable();
        if (isAway) return Promise.reject(unreachable());
        return Reflect.apply(member, target, args);
      };
    },
  });
  readManagerStates();
  heartbeat();
  startPods();

  let running: { readonly stop: AbortController; readonly done: Promise<void> } | null = null;
  let programs = 0;
  let wasKilled = false;
  /** The host as an agent reaches it that is killed at a program. */
  const killedAt = (killAt: number, stop: AbortController): FakeHost =>
    new Proxy(host, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name !== 'query' && name !== 'perform') return member;
        return (...args: readonly unknown[]): unknown => {
          if (!stop.signal.aborted) programs++;
          if (programs === killAt && !stop.signal.aborted) {
            wasKilled = true;
            stop.abort(new Error('killed'));
          }
          return stop.signal.aborted ? Promise.reject(stop.signal.reason) : Reflect.apply(member as () => unknown, target, args);
        };
      },
    });
  const getNode = async (): Promise<KubeObject> => (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: NODE })) as KubeObject;
  const mapRef = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name });
  const world: World = {
    host,
    cluster,
    asNode,
    clock,
    pods,
    behaviours,
    state: null,
    runs: () => (isCrashed ? null : maxPods()),
    starts: () => unit.starts,
    restartKubelet: beginProcess,
    startTimes,
    push: async (name, text, { immutable = false, data = {} } = {}) => {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace: AGENT_NAMESPACE },
        data: { kubelet: text, ...data },
        ...(immutable ? { immutable } : {}),
      });
    },
    edit: async (name, change) => {
      await cluster.patch(mapRef(name), 'merge', change);
    },
    remove: async (name) => {
      await cluster.delete(mapRef(name));
    },
    assign: (name, kubeletConfigKey = 'kubelet') =>
      world.annotate({
        [CONFIG_SOURCE_ANNOTATION]:
          name === null ? null : JSON.stringify({ configMap: { namespace: AGENT_NAMESPACE, name, kubeletConfigKey } }),
      }),
    annotate: async (annotations) => {
      await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: NODE }, 'merge', { metadata: { annotations } });
    },
    away: (now) => {
      isAway = now;
      if (now) asNode.endWatches();
    },
    refuse: (now) => {
      isRefused = now;
      if (now) asNode.endWatches();
    },
    editLocal: (text) => {
      host.files.set(LOCAL, { type: 'file', mode: 0o644, owner: 'root:root', content: text });
      localChanged();
    },
    access: [],
    programs: () => programs,
    wasKilled: () => wasKilled,
    start: (killAt = 0, policy = allow) => {
      const stop = new AbortController();
      [programs, wasKilled] = [0, false];
      const done = runAgent({
        nodeName: NODE,
        cluster: reached,
        host: killedAt(killAt, stop),
        web: fakeWeb({ servers: { 'https://127.0.0.1:10250': { certificate: CERTIFICATE, reply: answerConfigz } } }),
        kubeconfig: KUBELET_CONF,
        clock,
        reporter: { report: () => undefined },
        random,
        catalogue,
        directory: AGENT_DIRECTORY,
        localConfig: LOCAL,
        namespace: AGENT_NAMESPACE,
        allow: policy,
        signersFile: options.signersFile ?? null,
        timing: { ...DEFAULT_TIMING, ...timing },
        spareCheckpoints: 2,
        spreadMs,
        signal: stop.signal,
        onState: (state) => {
          world.state = state;
        },
        watchFile: (path, onChange) => {
          if (path === LOCAL) localChanged = onChange;
        },
        onAccess: (problems) => {
          world.access = problems;
        },
      });
      // The failure of the test is reported elsewhere.
      done.catch(() => undefined);
      running = { stop, done };
    },
    stop: async () => {
      running?.stop.abort(new Error('stopped'));
      await running?.done.catch(() => undefined);
      running = null;
    },
    until: async (what, isTrue) => {
      for (let i = 0; i < 30_000; i++) {
        if (await isTrue()) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
      throw new Error(
        `timeout waiting for: ${what}; ${JSON.stringify({ state: world.state?.phase, status: await world.status(), condition: await world.condition() })}`,
      );
    },
    status: async () => {
      const text = (await getNode()).metadata.annotations?.[CONFIG_STATUS_ANNOTATION] ?? '{}';
      return text.startsWith('{') ? (JSON.parse(text) as JsonObject) : { text };
    },
    condition: async () => {
      const { conditions = [] } = ((await getNode()).status ?? {}) as { readonly conditions?: readonly JsonObject[] };
      const { status, reason, message } = conditions.find(({ type }) => type === CONFIG_CONDITION) ?? {};
      return { status: status ?? '', reason: reason ?? '', message: message ?? '' };
    },
    events: async () =>
      (await cluster.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' })).items.map(
        ({ reason, message }) => `${reason}: ${message}`,
      ),
  };
  return world;
}
