import { AppError, isAppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { assessNodeConfig, type ConfigVerdict } from '../status/assess-node-config.ts';
import {
  CONFIG_EVENT_REASON,
  type ConfigEvent,
  type ConfigHistoryEntry,
  readConfigEvent,
  readHistoryEntry,
} from '../status/config-event.ts';
import { noSuchNode } from '../status/dynamic-problems.ts';
import { type Backend, type NodeConfig, readNodeConfig } from '../status/node-config.ts';

/** A Node's dynamic configuration and its assessment. */
export interface AssessedNode {
  readonly config: NodeConfig;
  readonly verdict: ConfigVerdict;
}

const NODES = { apiVersion: 'v1', kind: 'Node' };

interface ReadNodesOptions {
  /** Undefined: detected from each Node. */
  readonly backend?: Backend | undefined;
  /** Without names: only Nodes with these labels. */
  readonly labelSelector?: string | undefined;
}

/**
 * Reads the Nodes of these names, in that order; without names all.
 * @throws AppError NODE_NOT_FOUND (exit code 2), one problem per name
 */
export async function readNodes(
  cluster: Cluster,
  names: readonly string[],
  { backend, labelSelector }: ReadNodesOptions = {},
): Promise<readonly NodeConfig[]> {
  if (names.length === 0) {
    const { items } = await cluster.list(NODES, { labelSelector });
    return items.map((node) => readNodeConfig(node, backend)).sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  const nodes = await findNodes(cluster, names);
  const missing = names.filter((_, i) => nodes[i] === null);
  if (missing.length > 0)
    throw new AppError(
      missing.map((name) => noSuchNode(name, cluster.server)),
      { exitCode: 2 },
    );
  return nodes.flatMap((node) => (node === null ? [] : [readNodeConfig(node, backend)]));
}

/** Above this number the nodes are listed in one request. */
const MOST_ALONE = 10;

async function findNodes(cluster: Cluster, names: readonly string[]): Promise<readonly (KubeObject | null)[]> {
  if (names.length <= MOST_ALONE) return Promise.all(names.map((name) => cluster.get({ ...NODES, name })));
  const { items } = await cluster.list(NODES);
  const byName = new Map(items.map((node) => [node.metadata.name, node]));
  return names.map((name) => byName.get(name) ?? null);
}

/**
 * Reads the configuration Events by node, oldest first. Empty without the right to read Events. API servers
 * keep Events for an hour.
 */
async function readConfigEvents(cluster: Cluster, node?: string): Promise<ReadonlyMap<string, readonly ConfigEvent[]>> {
  const about = node === undefined ? '' : `,involvedObject.name=${node}`;
  try {
    const options = { fieldSelector: `involvedObject.kind=Node,reason=${CONFIG_EVENT_REASON}${about}` };
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }, options);
    return eventsByNode(items);
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    return new Map();
  }
}

export function eventsByNode(items: readonly KubeObject[]): ReadonlyMap<string, readonly ConfigEvent[]> {
  const found = new Map<string, ConfigEvent[]>();
  for (const item of items) {
    const event = readConfigEvent(item);
    const { name = '' } = (item.involvedObject ?? {}) as { readonly name?: string };
    if (event !== null) found.set(name, [...(found.get(name) ?? []), event]);
  }
  for (const events of found.values()) events.sort((a, b) => a.at.getTime() - b.at.getTime());
  return found;
}

/** Reads the configuration history of a node, oldest first, as far as the API server keeps Events. */
export async function readConfigHistory(cluster: Cluster, node: string): Promise<readonly ConfigHistoryEntry[]> {
  const fieldSelector = `involvedObject.kind=Node,involvedObject.name=${node}`;
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }, { fieldSelector });
  return items.flatMap((item) => readHistoryEntry(item) ?? []).sort((a, b) => a.at.getTime() - b.at.getTime());
}

export async function assessNodes(
  cluster: Cluster,
  names: readonly string[],
  { now, ...options }: { readonly now: Date } & ReadNodesOptions,
): Promise<readonly AssessedNode[]> {
  const [configs, events] = await Promise.all([
    readNodes(cluster, names, options),
    readConfigEvents(cluster, names.length === 1 ? names[0] : undefined),
  ]);
  return configs.map((config) => ({ config, verdict: assessNodeConfig(config, events.get(config.name)?.at(-1) ?? null, now) }));
}
