import { memberOf, textOf } from '../../../lab/api-server/members.ts';
import { timestamp } from '../../../lab/api-server/timestamp.ts';
import { loadPayload } from '../../../lab/hosts/load-payload.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../../src/base/json.ts';
import { CONFIG_ERRORS } from '../../../src/dynamic/error-texts.ts';
import type { MetaFile } from '../../../src/dynamic/native/native-store.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import type { Catalogue, Minor } from '../../../src/kubelet/catalogue/catalogue.ts';
import {
  type ConfigIdentity,
  type ConfigStatus,
  formatConfigStatus,
  LOCAL_STATUS,
  sameIdentity,
} from '../../../src/kubelet/layers/config-source.ts';
import { nativeMetrics } from './native-metrics.ts';
import { FatalStoreError, StoreOnDisk } from './store-on-disk.ts';

export interface NativeKubeletOptions {
  readonly nodeName: string;
  /** `--dynamic-config-dir`, a directory of the local host. */
  readonly dynamicConfigDir: string;
  /** `--config`, a file of the local host. */
  readonly configFile: string;
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  /** A client with the node's credentials. */
  readonly cluster: Pick<Cluster, 'get' | 'patch' | 'create'>;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** `Restart=` of its unit; default `always`. */
  readonly restart?: 'always' | 'on-failure' | 'no';
  /** `RestartSec=` in milliseconds; default 1 s. */
  readonly restartMs?: number;
  /** Milliseconds from the start of the process to its loops; default 5 s. */
  readonly startupMs?: number;
  /**
   * The crash that an accepted configuration causes, and its delay after the start of the loops; null: the
   * kubelet runs.
   */
  readonly crash?: (config: JsonObject) => { readonly afterMs: number; readonly why: string } | null;
  /** From 0 to 1: the share of the jitter in a period. Default: random. */
  readonly jitter?: () => number;
}

/** The exit of a process. */
export interface KubeletExit {
  readonly at: number;
  readonly code: number;
  readonly why: string;
}

const TRIAL_MS = 10 * 60_000;
const PERIOD_MS = 10_000;
/** Duration of a request and its answer. */
const ROUND_TRIP_MS = 50;
const GATE = 'DynamicKubeletConfig';

/**
 * The dynamic configuration of a kubelet 1.11 to 1.23 with its defects: which files it reads and writes, when
 * and in which order, and how systemd reacts to its exits. Its clock is advanced with `runUntil`.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig (1.21), and recordings of a real kubelet
 */
export class NativeKubelet {
  readonly #options: NativeKubeletOptions;
  readonly #store: StoreOnDisk;
  #now: number;
  #timers: { readonly at: number; readonly order: number; readonly run: () => void | Promise<void> }[] = [];
  #order = 0;
  #state: 'stopped' | 'running' | 'waiting' = 'stopped';
  /** The number of restarts by systemd. */
  restarts = 0;
  readonly exits: KubeletExit[] = [];
  readonly log: string[] = [];

  // State of the process.
  #config: JsonObject = {};
  #status: ConfigStatus = LOCAL_STATUS;
  #syncError: string | null = null;
  #statusIsSet = false;
  #isPoked = false;
  #onTrial = false;
  #watched: ConfigIdentity | null = null;
  #node: KubeObject | null = null;
  #configMap: KubeObject | null = null;
  #metrics = '';

  constructor(options: NativeKubeletOptions) {
    this.#options = options;
    this.#now = options.startedAt;
    this.#store = new StoreOnDisk(options.dynamicConfigDir, () => this.#now);
  }

  get state(): 'stopped' | 'running' | 'waiting' {
    return this.#state;
  }

  /** The content of `/configz`; null while no process has read its configuration. */
  get configz(): JsonObject | null {
    return this.#state === 'running' ? this.#config : null;
  }

  /** The lines of `/metrics` about dynamic configuration. */
  get metrics(): string {
    return this.#metrics;
  }

  start(): void {
    this.stop();
    this.#boot();
  }

  stop(): void {
    this.#timers = [];
    this.#state = 'stopped';
  }

  /** Runs all events up to the given time. */
  async runUntil(time: number): Promise<void> {
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= time).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      await next.run();
    }
    this.#now = Math.max(this.#now, time);
  }

  #after(ms: number, run: () => void | Promise<void>): void {
    this.#timers.push({ at: this.#now + ms, order: this.#order++, run });
  }

  #every(period: () => number, run: () => void | Promise<void>, firstMs: number): void {
    this.#after(firstMs, async () => {
      await run();
      if (this.#state === 'running') this.#every(period, run, period());
    });
  }

  #boot(): void {
    this.#state = 'running';
    this.#status = LOCAL_STATUS;
    this.#syncError = null;
    this.#statusIsSet = true;
    this.#isPoked = false;
    this.#onTrial = false;
    this.#node = null;
    this.#configMap = null;
    this.#metrics = '';
    try {
      this.#config = this.#choose();
      // The kubelet checks the age of the file before it tries the configuration.
      if (this.#onTrial) this.#startTrial();
      refuseGateOff(this.#config);
    } catch (error) {
      this.#exit(1, (error as Error).message);
      return;
    }
    const death = this.#options.crash?.(this.#config) ?? null;
    const startupMs = this.#options.startupMs ?? 5_000;
    if (death !== null && death.afterMs < 0) this.#after(Math.max(0, startupMs + death.afterMs), () => this.#exit(1, death.why));
    this.#after(startupMs, () => this.#startLoops(death));
  }

  /** Selects the configuration to run with; sets status, trial and watches. */
  #choose(): JsonObject {
    const { configFile } = this.#options;
    const local = loadPayload(configFile, this.#options);
    if (local.config === null) throw new Error(`failed to load or validate ${configFile}: ${local.why}`);
    refuseGateOff(local.config);
    this.#store.ensure();
    const [assigned, lastKnownGood] = [identityIn(this.#store.assigned()), identityIn(this.#store.lastKnownGood())];
    this.#status = { ...LOCAL_STATUS, assigned, lastKnownGood };
    this.#watched = assigned;
    if (assigned === null) return local.config;
    const loaded = this.#load(assigned);
    if (loaded.config !== null) {
      this.#status = { ...this.#status, active: assigned };
      this.#onTrial = true;
      return loaded.config;
    }
    this.log.push(`E "Kubelet config controller" err="${loaded.why}" reason="${loaded.error}"`);
    this.#status = { ...this.#status, error: loaded.error };
    if (lastKnownGood === null) return local.config;
    const fallback = this.#load(lastKnownGood);
    if (fallback.config === null) throw new FatalStoreError(`failed to determine a valid configuration, error: ${fallback.why}`);
    this.#status = { ...this.#status, active: lastKnownGood };
    return fallback.config;
  }

  #load(identity: ConfigIdentity) {
    if (identity.uid === '' || identity.resourceVersion === '') {
      const what = identity.uid === '' ? 'UID' : 'ResourceVersion';
      const why = `failed to check whether the checkpoint exists: empty ${what} is ambiguous`;
      return { config: null, error: CONFIG_ERRORS.LOAD_FAILED.text, why } as const;
    }
    if (!this.#store.hasCheckpoint(identity)) {
      const why = `no checkpoint for source ${sourceText(identity)}`;
      return { config: null, error: CONFIG_ERRORS.LOAD_FAILED.text, why } as const;
    }
    return loadPayload(this.#store.payloadFile(identity), this.#options);
  }

  #startLoops(death: { readonly afterMs: number; readonly why: string } | null): void {
    if (death !== null && death.afterMs >= 0) this.#after(death.afterMs, () => this.#exit(1, death.why));
    const period = (): number => PERIOD_MS * (1 + 0.2 * (this.#options.jitter ?? Math.random)());
    this.#after(ROUND_TRIP_MS, () => this.#refresh());
    this.#every(period, () => this.#syncStatus(), ROUND_TRIP_MS);
    this.#every(
      period,
      async () => {
        await this.#refresh();
        await this.#syncConfig();
      },
      period(),
    );
  }

  #startTrial(): void {
    this.#checkTrial();
    this.#every(
      () => PERIOD_MS,
      () => this.#checkTrial(),
      PERIOD_MS,
    );
  }

  #checkTrial(): void {
    const { assigned, lastKnownGood } = this.#status;
    if (this.#store.assignedAgeMs() <= TRIAL_MS || sameIdentity(assigned, lastKnownGood)) return;
    this.#store.setLastKnownGood(assigned);
    this.#setStatus({ lastKnownGood: assigned });
    this.log.push('I "Kubelet config controller updated last-known-good config to new checkpointStore"');
  }

  /**
   * Delivers pending changes to the informers. They receive nothing while the API server does not answer, or
   * rejects requests.
   */
  async #refresh(): Promise<void> {
    const node = await this.#read({ apiVersion: 'v1', kind: 'Node', name: this.#options.nodeName });
    if (node !== undefined) {
      const before = this.#node;
      if (node !== null && (before === null || !jsonEqual(sourceOf(node), sourceOf(before)))) this.#isPoked = true;
      this.#node = node;
    }
    if (this.#watched === null) return;
    const { namespace, name } = this.#watched;
    const configMap = await this.#read({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
    if (configMap === undefined) return;
    if (!jsonEqual(configMap, this.#configMap)) this.#isPoked = true;
    this.#configMap = configMap;
  }

  async #read(ref: Parameters<Cluster['get']>[0]): Promise<KubeObject | null | undefined> {
    return this.#options.cluster.get(ref).catch(() => undefined);
  }

  async #syncConfig(): Promise<void> {
    if (!this.#isPoked) return;
    this.#isPoked = false;
    try {
      await this.#sync();
    } catch (error) {
      if (!(error instanceof SyncError)) throw error;
      this.#syncError = error.text;
      this.#statusIsSet = true;
      this.#isPoked = true;
      this.log.push(`E "Kubelet config controller" err="${error.text}, error: ${error.message}"`);
    }
  }

  async #sync(): Promise<void> {
    if (this.#node === null) throw new SyncError(CONFIG_ERRORS.SYNC_INTERNAL_FAILURE.text, 'the Node is not in the cache');
    const source = sourceOf(this.#node);
    if (source === null) {
      const before = this.#assignedOnDisk();
      this.#store.setLastKnownGood(null);
      this.#store.setAssigned(null);
      if (before !== null) await this.#leave('Kubelet restarting to use local config');
      return;
    }
    const map = isJsonObject(source) ? source.configMap : undefined;
    if (!isJsonObject(map)) throw new SyncError(CONFIG_ERRORS.UNKNOWN_SOURCE.text, 'no member is set');
    const configMap = await this.#findConfigMap(textOf(map, 'namespace'), textOf(map, 'name'));
    const identity: ConfigIdentity = {
      namespace: textOf(map, 'namespace'),
      name: textOf(map, 'name'),
      kubeletConfigKey: textOf(map, 'kubeletConfigKey'),
      uid: configMap.metadata.uid ?? '',
      resourceVersion: configMap.metadata.resourceVersion ?? '',
    };
    const before = this.#save(identity, configMap);
    if (!sameIdentity(before, identity)) {
      await this.#leave(`Kubelet restarting to use ${sourceText(identity)}, KubeletConfigKey: ${identity.kubeletConfigKey}`);
      return;
    }
    // Also without a change: a lost report is sent again with the first sync after a start.
    this.#syncError = null;
    this.#statusIsSet = true;
  }

  async #findConfigMap(namespace: string, name: string): Promise<KubeObject> {
    const cached = this.#configMap;
    if (cached !== null && cached.metadata.namespace === namespace && cached.metadata.name === name) return cached;
    const failed = (why: string): SyncError => new SyncError(CONFIG_ERRORS.DOWNLOAD_FAILED.text, why);
    const found = await this.#options.cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name }).catch((error: Error) => {
      throw failed(error.message);
    });
    if (found === null) throw failed(`configmaps "${name}" not found`);
    return found;
  }

  /** Writes checkpoint and `meta/assigned`, like every sync; returns the previous assignment. */
  #save(identity: ConfigIdentity, configMap: KubeObject): ConfigIdentity | null {
    try {
      if (!this.#store.hasCheckpoint(identity)) this.#store.saveCheckpoint(identity, stringsOf(configMap.data));
      const before = this.#assignedOnDisk();
      this.#store.setAssigned(identity);
      return before;
    } catch (error) {
      throw new SyncError(CONFIG_ERRORS.SYNC_INTERNAL_FAILURE.text, (error as Error).message);
    }
  }

  #assignedOnDisk(): ConfigIdentity | null {
    return identityIn(this.#store.assigned());
  }

  /** Sends an event, which may get lost, and exits. */
  async #leave(message: string): Promise<void> {
    const { nodeName, cluster } = this.#options;
    const at = timestamp(new Date(this.#now));
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'default', name: `${nodeName}.${(BigInt(Math.round(this.#now)) * 1_000_000n).toString(16)}` },
      type: 'Normal',
      reason: 'KubeletConfigChanged',
      message,
      involvedObject: { kind: 'Node', name: nodeName, uid: nodeName },
      source: { component: 'kubelet', host: nodeName },
      count: 1,
      firstTimestamp: at,
      lastTimestamp: at,
    };
    await cluster.create(event).catch((error: Error) => this.log.push(`E failed to send event, error: ${error.message}`));
    this.log.push(`I "Kubelet config controller event" message="${message}"`);
    this.#exit(0, message);
  }

  #setStatus(change: Partial<ConfigStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#statusIsSet = true;
  }

  async #syncStatus(): Promise<void> {
    if (!this.#statusIsSet) return;
    this.#statusIsSet = false;
    const { cluster, nodeName } = this.#options;
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const node = await this.#read(ref);
    if (!node) {
      this.#statusIsSet = true;
      return;
    }
    const status = { ...this.#status, error: this.#syncError ?? this.#status.error };
    this.#metrics = nativeMetrics(status);
    const patch = statusPatch(memberOf(node, 'status').config, formatConfigStatus(status));
    // A failed patch is not sent again until the status is set again.
    await cluster.patch(ref, 'strategic', patch, { subresource: 'status' }).catch((error: Error) => this.log.push(`E ${error.message}`));
  }

  #exit(code: number, why: string): void {
    this.#timers = [];
    this.exits.push({ at: this.#now, code, why });
    if (code !== 0) this.log.push(`E ${why}`);
    const { restart = 'always', restartMs = 1_000 } = this.#options;
    const comesBack = restart === 'always' || (restart === 'on-failure' && code !== 0);
    this.#state = comesBack ? 'waiting' : 'stopped';
    if (!comesBack) return;
    this.#after(restartMs, () => {
      this.restarts++;
      this.#boot();
    });
  }
}

/** The gate is checked after the payload was chosen, too; the kubelet then has no fallback. */
function refuseGateOff(config: JsonObject): void {
  if (memberOf(config, 'featureGates')[GATE] === false)
    throw new Error(`the ${GATE} feature gate must be enabled in order to use the --dynamic-config-dir flag`);
}

/** The error reported by a sync; the message is for the log. */
class SyncError extends Error {
  readonly text: string;

  constructor(text: string, why: string) {
    super(why);
    this.text = text;
  }
}

function identityIn(file: MetaFile): ConfigIdentity | null {
  if (file.kind === 'corrupt') throw new FatalStoreError(`failed to determine a valid configuration, error: ${file.why}`);
  return file.kind === 'local' ? null : file.identity;
}

/** The source as it appears in messages. */
function sourceText({ namespace, name, uid, resourceVersion }: ConfigIdentity): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}, UID: ${uid}, ResourceVersion: ${resourceVersion}`;
}

function sourceOf(node: KubeObject): Json {
  return memberOf(node, 'spec').configSource ?? null;
}

function stringsOf(data: Json | undefined): Readonly<Record<string, string>> {
  return isJsonObject(data) ? (data as Readonly<Record<string, string>>) : {};
}

/** The strategic patch from one `status.config` to another. */
function statusPatch(before: Json | undefined, after: JsonObject): JsonObject {
  const old = isJsonObject(before) ? before : {};
  const changed = Object.entries(after).filter(([name, value]) => !jsonEqual(old[name], value));
  const gone = Object.keys(old).filter((name) => after[name] === undefined);
  if (isJsonObject(before) && changed.length + gone.length === 0) return {};
  return { status: { config: { ...Object.fromEntries(changed), ...Object.fromEntries(gone.map((name) => [name, null])) } } };
}
