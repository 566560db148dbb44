import { isAppError } from '../../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { printable } from '../../../base/text/printable.ts';
import { trimTrailing } from '../../../base/text/trim-trailing.ts';
import { parseSource, sourceToJson } from '../../../codec/source.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { defineFact } from '../../../host/facts/fact.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { type Catalogue, formatMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { defaultKubeletConfiguration, effectiveConfiguration } from '../../../kubelet/defaults/effective-configuration.ts';
import { masked } from '../../../kubelet/effective/field-changes.ts';
import { configPathOf, healthzUrl, observeHealthzUrl } from '../../../kubelet/effective/healthz-url.ts';
import { assessNextStart } from '../../../kubelet/effective/next-start.ts';
import {
  attributeToConfigMap,
  type ConfigDrift,
  compareWithConfigz,
  compareWithInstanceConfig,
  type ExplainedField,
  explainConfigz,
  explainLayers,
  type LayerValue,
  type NodeExplanation,
} from '../../../kubelet/effective/node-explanation.ts';
import { assignedAt, type NodeSource, reportedStatus, resolveNodeSource } from '../../../kubelet/effective/node-source.ts';
import { type ObservedKubelet, observeKubelet } from '../../../kubelet/effective/observe-kubelet.ts';
import { explainFailure } from '../../../kubelet/health/crash-watch.ts';
import { healthText, kubeletHealthNow } from '../../../kubelet/health/observe.ts';
import { missingShutdownLock } from '../../../kubelet/health/shutdown-lock.ts';
import { shutdownField } from '../../../kubelet/workload/shutdown-risks.ts';
import { observeNodeSource } from './observe-node-source.ts';
import { observeLocalWords } from './observe-setups.ts';
import { readNodeConfig } from './read-node-config.ts';

/** Explains the kubelet configuration of a host from disk and process, and lists the differences between them and /configz. */
export async function explainHostKubelet(
  host: Host,
  {
    catalogue,
    cluster,
    signal,
  }: {
    readonly catalogue: Catalogue;
    /** Serves /configz of the kubelet; null: no cluster is used. */
    readonly cluster: Cluster | null;
    readonly signal?: AbortSignal;
  },
): Promise<NodeExplanation> {
  const observed = await observeKubelet(host, catalogue, signal);
  const { minor, nodeName } = observed;
  const configz = cluster === null || nodeName === null ? null : await readNodeConfig(cluster, nodeName, catalogue);
  const nextStart = assessNextStart(observed, catalogue);
  const health = await observeHealth(host, observed, nextStart, signal);
  const found = await observeNodeSource(host, signal);
  const source = resolveNodeSource(found.host, configz?.node ?? null);
  const explanation: NodeExplanation = {
    node: host.name,
    kubernetesVersion: observed.version,
    process: observed.kubelet === null ? null : { pid: observed.kubelet.pid, startedAt: startedAt(observed) },
    health: health.state,
    source: explainedSource(source, configz?.node ?? null),
    fields: explainLayers(observed.running.layered).map(withoutCredentials),
    flags: observed.flags.map(({ name, value, source }) => ({
      name,
      value: String(masked(name, value)),
      source,
      field: catalogue.flag(name, minor)?.field ?? null,
    })),
    disagreements: [
      ...(await findIgnoredDropIns(host, observed, signal)),
      ...(await findMissingLock(host, observed, signal)),
      ...health.problems,
      ...nextStart.changes,
      ...nextStart.failures.map(
        (why): ConfigDrift => ({ code: 'START_WOULD_FAIL', message: `a restart of the kubelet would fail: ${why}` }),
      ),
      ...(observed.instanceConfig === null ? [] : compareWithInstanceConfig(observed.instanceConfig, observed.running.layered)),
      ...(configz === null ? [] : compareWithConfigz(configz.config, observed.running.layered, { minor, catalogue })),
      ...observed.running.problems.map(
        ({ path, message }): ConfigDrift => ({
          code: 'PASSED_OVER',
          message: path === undefined ? message : `${path}: ${message}`,
          ...(path === undefined ? {} : { field: path }),
        }),
      ),
    ],
  };
  const payload = source?.kind === 'config-map' ? await found.payload(configz?.node ?? null) : null;
  if (source?.kind !== 'config-map' || payload === null) return explanation;
  const name = `ConfigMap ${source.source.namespace}/${source.source.name}`;
  return attributeToConfigMap(explanation, { path: payload.path, name }, payload, configPathOf(await observeLocalWords(host, signal)));
}

/** Files in the directory of --config-dir that look like a configuration and are not read because of their names. */
async function findIgnoredDropIns(host: Host, { flags }: ObservedKubelet, signal?: AbortSignal): Promise<readonly ConfigDrift[]> {
  const directory = flags.findLast(({ name }) => name === 'config-dir')?.value;
  if (!directory) return [];
  const listed = defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names ?? []);
  const ignored = (await observe(host, listed, signal)).filter((name) => /\.(?:ya?ml|json)$/i.test(name));
  return ignored.map((name) => ({
    code: 'PASSED_OVER',
    message: `${trimTrailing(directory, '/')}/${name} is ignored: the kubelet reads only files whose names end in .conf from the directory of --config-dir`,
  }));
}

/** A kubelet without its lock is healthy, but a reboot terminates its pods at once. */
async function findMissingLock(host: Host, { kubelet, running }: ObservedKubelet, signal?: AbortSignal): Promise<readonly ConfigDrift[]> {
  const field = shutdownField(running.layered.config);
  const message = kubelet === null || field === null ? null : await missingShutdownLock(host, field, signal);
  return message === null ? [] : [{ code: 'SHUTDOWN_NOT_DELAYED', message }];
}

function withoutCredentials(field: ExplainedField): ExplainedField {
  const without = <T extends LayerValue>(one: T): T => ({
    ...one,
    ...(one.value === undefined ? {} : { value: masked(field.path, one.value) }),
  });
  return { ...without(field), lost: field.lost.map(without) };
}

function explainedSource(source: NodeSource | null, node: KubeObject | null): NodeExplanation['source'] {
  if (source === null) return null;
  const at = source.kind === 'config-map' ? assignedAt(node, source.source) : null;
  return { ...source, assignedAt: at === null ? null : formatTime(at) };
}

function formatTime(at: Date): string {
  return at.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The health of the kubelet, and why it is not healthy. */
async function observeHealth(
  host: Host,
  { kubelet, unit, setup }: ObservedKubelet,
  { failures }: ReturnType<typeof assessNextStart>,
  signal: AbortSignal | undefined,
): Promise<{ readonly state: string; readonly problems: readonly ConfigDrift[] }> {
  // Without a configuration file the kubelet has the default port.
  const url = (await observeHealthzUrl({ host, signal })) ?? (setup.configFile === null ? healthzUrl({}) : null);
  const now = await observe(host, kubeletHealthNow(url), signal);
  const runs = kubelet !== null;
  // The process was absent a moment ago: it is between two starts.
  const isStarting = !runs && now.state.unit?.activeState === 'active';
  const state = isStarting ? `starting, ${now.state.unit?.restarts ?? 0} restarts` : healthText(now);
  if (state === 'ok') return { state, problems: [] };
  if (unit?.activeState === 'inactive' && unit.result === 'success') {
    const hint = failures.length === 0 ? ': run systemctl start kubelet' : '';
    return { state, problems: [{ code: 'KUBELET_UNHEALTHY', message: `the kubelet is stopped${hint}` }] };
  }
  const { cause, hint } = await explainFailure({ host, signal }, unit, { waitedMs: JOURNAL_MS, lastRunOnly: runs });
  const message = `the kubelet ${runs ? 'is not healthy' : 'does not run'} (${state}): ${printable(cause, LONGEST_CAUSE)}. ${hint}`;
  return { state, problems: [{ code: 'KUBELET_UNHEALTHY', message }] };
}

const LONGEST_CAUSE = 500;
/** Earlier messages in the journal are not shown. */
const JOURNAL_MS = 3_600_000;

function startedAt({ unit }: ObservedKubelet): string | null {
  const seconds = unit?.startedAt ?? null;
  return seconds === null ? null : formatTime(new Date(seconds * 1000));
}

/** Explains the kubelet configuration of a node from /configz alone, without the file or flag that set a value. */
export async function explainNodeKubelet(cluster: Cluster, name: string, catalogue: Catalogue): Promise<NodeExplanation> {
  const { minor, version, config, node } = await readNodeConfig(cluster, name, catalogue);
  const defaults = effectiveConfiguration(defaultKubeletConfiguration(minor, catalogue), { minor, catalogue });
  const source = explainedSource(reportedSource(node), node);
  return {
    node: `node/${name}`,
    kubernetesVersion: version || formatMinor(minor),
    process: null,
    health: null,
    source,
    fields: explainConfigz(config, { defaults, minor, source, configMap: await assignedConfiguration(cluster, source) }),
    flags: [],
    disagreements: [],
  };
}

/** The configuration in the ConfigMap of a Node; null without one, or if it cannot be read. */
async function assignedConfiguration(cluster: Cluster, source: NodeSource | null): Promise<JsonObject | null> {
  if (source?.kind !== 'config-map') return null;
  const { namespace, name, kubeletConfigKey } = source.source;
  try {
    const data = (await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name }))?.data;
    // Keys such as kubelet.node.NAME add fields for groups or single nodes.
    if (!isJsonObject(data) || Object.keys(data).some((key) => key.startsWith(`${kubeletConfigKey}.`))) return null;
    const text = data[kubeletConfigKey];
    const root = typeof text === 'string' ? (parseSource(text, name).documents[0]?.root ?? null) : null;
    const config = root === null ? null : sourceToJson(root);
    return isJsonObject(config) ? config : null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The source that an agent, or a kubelet up to 1.23, reports. */
function reportedSource(node: KubeObject): NodeSource | null {
  if (reportedStatus(node)?.active === null) return { kind: 'file', dropIns: 0 };
  return resolveNodeSource({ kind: 'unknown', why: 'neither an agent nor the kubelet reports it' }, node);
}
