import { parseSource } from '../core/config/source.ts';
import type { Observation, Timing } from '../core/dynamic/agent/health.ts';
import { type CheckpointFiles, PAYLOAD_FILE } from '../core/dynamic/agent/layout.ts';
import { type AgentEffect, type AgentEvent, dueAt, next } from '../core/dynamic/agent/next.ts';
import { differingFields, GROUP_LABEL, type PreparedPayload, preparePayload } from '../core/dynamic/agent/prepare-payload.ts';
import { type AgentState, neededHashes, newAgentState, wantedPayload } from '../core/dynamic/agent/state.ts';
import { sameOnDisk } from '../core/dynamic/agent/state-file.ts';
import { conditionOf } from '../core/dynamic/agent/status.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeSource,
  parseSourceAnnotation,
  RETRY_ANNOTATION,
} from '../core/dynamic/config-source.ts';
import { formatProblem, isAppError } from '../core/errors.ts';
import { isJsonObject, type JsonObject } from '../core/json.ts';
import type { Catalogue, LiveChange, Minor } from '../core/kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../core/kubelet/decode.ts';
import { readConfigz } from '../core/kubelet/effective/configz.ts';
import { isNodeReady, nodeTroubles, readyHeartbeat } from '../core/kubernetes/node-conditions.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { healthzUrl } from '../core/render/node-design.ts';
import { checkpointStore } from '../engine/checkpoint-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';
import { askKubelet } from '../workflows/ask-kubelet.ts';
import { type ObservedKubelet, observeKubelet } from '../workflows/observe-kubelet.ts';
import { followObject } from './follow-object.ts';
import { createInbox } from './inbox.ts';
import { CheckpointDamagedError, lookAtKubelet, switchKubelet } from './kubelet-control.ts';
import { statusReporter } from './report-status.ts';

export interface AgentOptions {
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly host: Host;
  readonly clock: Clock;
  readonly reporter: Reporter;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly catalogue: Catalogue;
  /** Where state and checkpoints are kept. */
  readonly directory: string;
  /** What the kubelet reads while nothing is assigned. */
  readonly localConfig: string;
  /** ConfigMaps of other namespaces are not read. */
  readonly namespace: string;
  readonly allow: LiveChange;
  readonly timing: Timing;
  /** How many checkpoints are kept besides those that are needed. */
  readonly spareCheckpoints: number;
  /** An edit of the ConfigMap in place reaches the nodes spread over that time. */
  readonly spreadMs: number;
  readonly signal: AbortSignal;
  /** Told of every step: for metrics and tests. */
  readonly onState?: (state: AgentState) => void;
  /** Told whether the Node is known: false while the API server does not answer, or has no such Node. */
  readonly onNode?: (isKnown: boolean) => void;
}

type Message =
  | { readonly kind: 'node'; readonly node: KubeObject | null }
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly object: KubeObject | null }
  | { readonly kind: 'config-map-trouble'; readonly source: ConfigSource; readonly error: unknown }
  | { readonly kind: 'node-trouble'; readonly error: unknown };

/** Between one look at whether a payload is still what it was, and the next: up to twice that. */
const RESYNC_MS = 900_000;
/** After what could not be prepared or stored. */
const AGAIN_MS = 10_000;
/** After two tries at configz that failed: it may be for good. */
const CONFIGZ_AGAIN_MS = 5_000;

/**
 * Runs an agent until its signal is aborted: follows the Node and what it is assigned, and has the kubelet run it. Whatever is decided is decided by `next`;
 * here is only what has to be done for it. The state is on disk before anything is done.
 */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { nodeName, cluster, host, clock, random, signal, directory, timing } = options;
  const store = checkpointStore(host, directory);
  const status = statusReporter({ cluster, nodeName, clock, random });
  const inbox = createInbox<Message>(clock, signal);
  const configzPath = `/api/v1/nodes/${encodeURIComponent(nodeName)}/proxy/configz`;
  const now = (): number => clock.now().getTime();
  const report = (level: 'info' | 'warning' | 'debug', code: string, message: string): void =>
    options.reporter.report({ level, code, message, host: nodeName });

  const loaded = await store.load(signal);
  let { generation } = loaded;
  let state: AgentState = loaded.state ?? newAgentState(now());
  for (const path of loaded.damaged)
    report(
      'warning',
      'AGENT_STATE_DAMAGED',
      `${path} can't be read, ${loaded.state === null ? 'and no other copy' : 'the other copy counts'}`,
    );

  let node: KubeObject | null = null;
  let switchedAt = now();
  let expected: { readonly hash: string; readonly fields: JsonObject } | null = null;
  let configzTrouble: { readonly why: string; readonly againAt: number; readonly isAnswer: boolean } | null = null;
  /** The API server got through to the kubelet right before it was switched. */
  let wasReachable = false;
  let proven: { readonly pid: number; readonly differing: readonly string[] } | null = null;
  let following: { readonly source: ConfigSource; readonly stop: AbortController } | null = null;
  let configMap: { readonly object: KubeObject; readonly source: ConfigSource } | null = null;
  let preparedFor = '';
  let spreadUntil: number | null = null;
  /** When it is prepared anew though nothing was heard: after a failure, and now and then because the local configuration may have changed. */
  let againAt: number | null = null;

  const dispatch = async (event: AgentEvent): Promise<void> => {
    const before = state;
    const step = next(state, event, now(), timing);
    state = step.state;
    if (!sameOnDisk(before, state) || event.kind === 'booted') await save();
    for (const effect of step.effects) await carryOut(effect);
    const isToldOtherwise = JSON.stringify(conditionOf(before)) !== JSON.stringify(conditionOf(state));
    if (!sameOnDisk(before, state) || before.sync !== state.sync || before.switching !== state.switching || isToldOtherwise) {
      status.stateIs(state);
      options.onState?.(state);
    }
  };

  const save = async (): Promise<void> => {
    try {
      await store.saveState(state, generation + 1);
      generation++;
    } catch (error) {
      // The kubelet is better off with what was decided than with nothing; what is on disk is older and whole.
      report('warning', 'AGENT_STATE_NOT_WRITTEN', messageOf(error));
    }
  };

  const carryOut = async (effect: AgentEffect): Promise<void> => {
    switch (effect.kind) {
      case 'announce':
        report(effect.type === 'Normal' ? 'info' : 'warning', 'AGENT_STEP', effect.message);
        return status.announce(effect);
      case 'collect':
        await store
          .collect(neededHashes(state), options.spareCheckpoints)
          .catch((error: unknown) => report('warning', 'AGENT_COLLECT', messageOf(error)));
        return;
      case 'switch':
        return switchTo(effect);
    }
  };

  const switchTo = async ({ id, to }: Extract<AgentEffect, { readonly kind: 'switch' }>): Promise<void> => {
    try {
      const before = await look().catch(() => null);
      wasReachable = to !== null && node !== null && (await readsConfigz());
      switchedAt = now();
      proven = null;
      configzTrouble = null;
      const { restarts, wasRestarted } = await switchKubelet(host, store, to);
      if (wasRestarted)
        report(
          'info',
          'KUBELET_RESTARTED',
          `the kubelet was restarted with ${to === null ? 'the local configuration' : `payload ${to.slice(0, 12)}`}`,
        );
      await dispatch({ kind: 'switched', id, before, restarts });
    } catch (error) {
      if (signal.aborted) throw error;
      report('warning', 'KUBELET_NOT_SWITCHED', messageOf(error));
      await dispatch({ kind: 'switch-failed', id, why: messageOf(error), damaged: error instanceof CheckpointDamagedError });
    }
  };

  const look = async (): Promise<Observation> => {
    const wanted = wantedPayload(state)?.hash ?? null;
    const files = wanted === null ? null : await payloadFiles(wanted);
    const config = files === null ? {} : configOf(files[PAYLOAD_FILE] ?? '', options.catalogue, minorOf(node));
    const seen = await lookAtKubelet(host, {
      healthzUrl: healthzUrl(config),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const { pid, ...rest } = seen;
    const isOurs = wanted !== null && seen.runs === wanted && seen.healthz?.ok !== false;
    const found = isOurs && pid !== null ? await differing(wanted, pid, config) : null;
    const word = nodeWord();
    const lockedOut = wasReachable && found === null && configzTrouble?.isAnswer === true ? configzTrouble.why : null;
    return { ...rest, differing: found, ...word, lockedOut, unknown: unknownOf(found, word) };
  };

  const readsConfigz = async (): Promise<boolean> =>
    cluster.getRaw(configzPath).then(
      () => true,
      () => false,
    );

  const unknownOf = (found: readonly string[] | null, { ready }: Pick<Observation, 'ready'>): readonly string[] => {
    if (node === null) return ['the API server does not answer'];
    return [
      ...(found === null && configzTrouble !== null ? [configzTrouble.why] : []),
      ...(ready === null ? ['the Node has not said whether it is Ready since the kubelet was restarted'] : []),
    ];
  };

  /** The configuration that runs does not change while its process lives: configz is asked until it answers, and not again. */
  const differing = async (hash: string, pid: number, config: JsonObject): Promise<readonly string[] | null> => {
    if (proven?.pid === pid) return proven.differing;
    if (node === null || (configzTrouble !== null && now() < configzTrouble.againAt)) return null;
    try {
      const { apiVersion: _version, kind: _kind, ...fields } = config;
      const minor = minorOf(node);
      const answer = await cluster.getRaw(configzPath);
      const wanted = expected?.hash === hash ? expected.fields : fields;
      const found = differingFields(readConfigz(answer, nodeName, { minor, catalogue: options.catalogue }), wanted, {
        minor,
        catalogue: options.catalogue,
      });
      proven = { pid, differing: found };
      configzTrouble = null;
      return found;
    } catch (error) {
      report('debug', 'CONFIGZ_NOT_TOLD', messageOf(error));
      const again = configzTrouble === null ? 0 : CONFIGZ_AGAIN_MS;
      configzTrouble = {
        why: `configz can't be read: ${messageOf(error)}`,
        againAt: now() + again,
        isAnswer: !isAppError(error, 'CLUSTER_UNREACHABLE'),
      };
      return null;
    }
  };

  /** What the Node says of the kubelet that runs now; what it said of the one before is old. */
  const nodeWord = (): Pick<Observation, 'ready' | 'pressures'> => {
    if (node === null) return { ready: null, pressures: [] };
    const troubles = nodeTroubles(node);
    const heartbeat = Date.parse(readyHeartbeat(node) ?? '');
    const isFresh = Number.isNaN(heartbeat) ? false : heartbeat >= Math.floor(switchedAt / 1000) * 1000;
    const pressures = troubles.flatMap((text) => /^(\w+Pressure) is True/.exec(text)?.[1] ?? []);
    if (isNodeReady(node)) return { ready: isFresh ? { is: true, why: '' } : null, pressures };
    const why = troubles.find((text) => text.startsWith('Ready ')) ?? 'it does not say why';
    // Unknown is the word of the node controller: the kubelet says nothing.
    return { ready: isFresh || why.startsWith('Ready is Unknown') ? { is: false, why } : null, pressures };
  };

  let payloadCache: { readonly hash: string; readonly files: CheckpointFiles } | null = null;
  const payloadFiles = async (hash: string): Promise<CheckpointFiles | null> => {
    if (payloadCache?.hash === hash) return payloadCache.files;
    const files = await store.readCheckpoint(hash);
    if (files !== null) payloadCache = { hash, files };
    return files;
  };

  const follow = (source: ConfigSource | null): void => {
    if (following !== null && source !== null && describeSource(following.source) === describeSource(source)) return;
    following?.stop.abort();
    following = null;
    configMap = null;
    preparedFor = '';
    spreadUntil = null;
    againAt = null;
    if (source === null) return;
    const stop = new AbortController();
    following = { source, stop };
    const both = AbortSignal.any([signal, stop.signal]);
    void followObject(
      { apiVersion: 'v1', kind: 'ConfigMap', namespace: source.namespace, name: source.name },
      {
        cluster,
        clock,
        random,
        signal: both,
        onObject: (object) => inbox.put({ kind: 'config-map', source, object }),
        onTrouble: (error) => inbox.put({ kind: 'config-map-trouble', source, error }),
        // One that can't change is read once: one watch less for the API server.
        isFinal: (object) => object.immutable === true,
      },
    );
  };

  const assignment = async (): Promise<void> => {
    if (node === null) return;
    const { source, trouble } = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
    if (trouble !== null)
      return dispatch({ kind: 'unavailable', trouble: { code: 'UNKNOWN_SOURCE', cause: `${CONFIG_SOURCE_ANNOTATION}: ${trouble}` } });
    if (source === null) {
      follow(null);
      return dispatch({ kind: 'unassigned' });
    }
    if (source.namespace !== options.namespace) {
      follow(null);
      const cause = `${describeSource(source)}: this agent reads ConfigMaps of ${options.namespace} only`;
      return dispatch({ kind: 'unavailable', trouble: { code: 'DOWNLOAD_FAILED', cause } });
    }
    follow(source);
    await prepareIfNew();
  };

  /** Prepares what is assigned, when the ConfigMap or what of the Node decides on it has changed. */
  const prepareIfNew = async (): Promise<void> => {
    if (node === null || configMap === null || following === null || spreadUntil !== null) return;
    const { object, source } = configMap;
    const retry = node.metadata.annotations?.[RETRY_ANNOTATION] ?? null;
    const isCordoned = isJsonObject(node.spec) && node.spec.unschedulable === true;
    const group = node.metadata.labels?.[GROUP_LABEL] ?? null;
    const { uid = '', resourceVersion = '' } = object.metadata;
    const key = JSON.stringify([source, uid, resourceVersion, retry, isCordoned, group]);
    if (key === preparedFor && state.sync === null) return;
    try {
      const kubelet = await observeKubelet(host, options.catalogue, signal);
      const prepared = await preparedPayload({ object, source, kubelet, isCordoned, group });
      if (prepared.files !== null && prepared.candidate.hash !== null) {
        await store.saveCheckpoint(prepared.candidate.hash, prepared.files, prepared.candidate.identity);
        expected = { hash: prepared.candidate.hash, fields: prepared.expected };
      }
      preparedFor = key;
      againAt = now() + RESYNC_MS * (1 + random());
      await dispatch({ kind: 'assigned', candidate: prepared.candidate, refusal: prepared.refusal, retry });
    } catch (error) {
      if (signal.aborted) throw error;
      preparedFor = '';
      againAt = now() + AGAIN_MS * (0.5 + random());
      await dispatch({ kind: 'unavailable', trouble: { code: 'SYNC_INTERNAL_FAILURE', cause: messageOf(error) } });
    }
  };

  const preparedPayload = async (input: {
    readonly object: KubeObject;
    readonly source: ConfigSource;
    readonly kubelet: ObservedKubelet;
    readonly isCordoned: boolean;
    readonly group: string | null;
  }): Promise<PreparedPayload> => {
    const { object, source, kubelet } = input;
    const { uid = '', resourceVersion = '' } = object.metadata;
    const { local } = await host.ask({ local: { kind: 'file', path: options.localConfig } }, { signal });
    const data = isJsonObject(object.data) ? (object.data as Readonly<Record<string, string>>) : {};
    const prepared = preparePayload(
      { identity: { ...source, uid, resourceVersion }, data },
      {
        name: nodeName,
        group: input.group,
        minor: kubelet.minor,
        catalogue: options.catalogue,
        local: { path: options.localConfig, text: local?.content ?? '' },
        flags: kubelet.flags,
        dropIns: kubelet.files.flatMap(({ path, file }) =>
          path.endsWith('.conf') && file?.content !== undefined ? [{ path, text: file.content }] : [],
        ),
        running: kubelet.kubelet === null ? null : kubelet.running.layered.config,
        cgroupVersion: null,
      },
      { allow: options.allow, isCordoned: input.isCordoned },
    );
    const hash = prepared.candidate.hash;
    const isKnown = hash !== null && [state.active?.hash, state.lastKnownGood?.hash].includes(hash);
    if (prepared.files === null || isKnown) return prepared;
    const asked = {
      host,
      path: 'kubelet',
      version: kubelet.version,
      minor: kubelet.minor,
      flags: kubelet.flags,
      running: null,
      cgroupVersion: null,
    };
    const word = await askKubelet(asked, prepared.files[PAYLOAD_FILE] ?? '', { catalogue: options.catalogue, signal });
    if (word.verdict !== 'refused' || word.isHost) return prepared;
    return { ...prepared, files: null, refusal: { code: 'VALIDATION_FAILED', cause: `the kubelet refuses it: ${word.cause}` } };
  };

  const receive = async (message: Message): Promise<void> => {
    switch (message.kind) {
      case 'node':
        node = message.node;
        options.onNode?.(node !== null);
        status.nodeIs(node);
        return assignment();
      case 'node-trouble':
        // What the Node said last is old from now on.
        node = null;
        options.onNode?.(false);
        status.nodeIs(null);
        return report('warning', 'NODE_NOT_FOLLOWED', messageOf(message.error));
      case 'config-map-trouble':
        if (following === null || describeSource(following.source) !== describeSource(message.source)) return;
        return dispatch({
          kind: 'unavailable',
          trouble: { code: 'DOWNLOAD_FAILED', cause: `${describeSource(message.source)} can't be read: ${messageOf(message.error)}` },
        });
      case 'config-map': {
        const { source, object } = message;
        if (following === null || describeSource(following.source) !== describeSource(source)) return;
        if (object === null) {
          configMap = null;
          preparedFor = '';
          const cause = `there is no ConfigMap ${source.namespace}/${source.name}`;
          return dispatch({ kind: 'unavailable', trouble: { code: 'DOWNLOAD_FAILED', cause } });
        }
        const isEdit = configMap !== null && configMap.object.metadata.resourceVersion !== object.metadata.resourceVersion;
        configMap = { object, source };
        if (isEdit && options.spreadMs > 0) spreadUntil ??= now() + random() * options.spreadMs;
        return prepareIfNew();
      }
    }
  };

  const background = Promise.all([
    followObject(
      { apiVersion: 'v1', kind: 'Node', name: nodeName },
      {
        cluster,
        clock,
        random,
        signal,
        onObject: (object) => inbox.put({ kind: 'node', node: object }),
        onTrouble: (error) => inbox.put({ kind: 'node-trouble', error }),
      },
    ),
    status.run(signal),
  ]);

  try {
    const intact = loaded.checkpoints.flatMap(({ hash, files }) => (files === null ? [] : [hash]));
    await dispatch({ kind: 'booted', intact, kubelet: await kubeletVersion(host) });
    status.stateIs(state);
    options.onState?.(state);
    while (!signal.aborted) {
      const due = dueAt(state, timing);
      const waits = [due?.at, spreadUntil, againAt].flatMap((at) => (at === undefined || at === null ? [] : [at - now()]));
      // A clock that was put back must not have it wait for long.
      const waitMs = waits.length === 0 ? null : Math.min(Math.max(0, Math.min(...waits)), 60_000);
      const message = await inbox.take(waitMs);
      if (message !== null) await receive(message);
      if (spreadUntil !== null && (now() >= spreadUntil || spreadUntil - now() > options.spreadMs)) {
        spreadUntil = null;
        await prepareIfNew();
      }
      if (againAt !== null && (now() >= againAt || againAt - now() > 2 * RESYNC_MS)) {
        againAt = null;
        preparedFor = '';
        await prepareIfNew();
      }
      const isDue = dueAt(state, timing);
      if (isDue === null || (isDue.at > now() && isDue.at - now() <= 60_000)) continue;
      await dispatch(isDue.kind === 'switch' ? { kind: 'tick' } : { kind: 'observed', seen: await look() });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await background;
  }
}

async function kubeletVersion(host: Host): Promise<string | null> {
  const { version } = await host.ask({ version: { kind: 'command', argv: ['kubelet', '--version'] } });
  return /^Kubernetes (v\S+)/.exec(version.stdout)?.[1] ?? null;
}

function minorOf(node: KubeObject | null): Minor {
  const info = isJsonObject(node?.status) && isJsonObject(node.status.nodeInfo) ? node.status.nodeInfo.kubeletVersion : undefined;
  return Number(/^v1\.(\d+)/.exec(String(info ?? ''))?.[1] ?? 36);
}

function configOf(text: string, catalogue: Catalogue, minor: Minor): JsonObject {
  const document = parseSource(text, PAYLOAD_FILE).documents[0];
  return document === undefined ? {} : decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
}

function messageOf(error: unknown): string {
  if (isAppError(error)) return error.problems.map((problem) => formatProblem({ ...problem, code: problem.code })).join('; ');
  return error instanceof Error ? error.message : String(error);
}
