import { isAppError, usageError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { observe } from '../../host/observe.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { type KubeconfigRequest, type OpenClusterPorts, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { statusFacts, statusOf } from '../host-status.ts';
import type { ResolvedFleet, ResolvedHost } from '../model.ts';
import type { FleetFilePorts, HostConnections } from '../ports.ts';
import { hostMatcher, type Selection, selectHosts } from '../select.ts';
import { fleetTargets } from './fleet-members.ts';
import type { ConnectionRequest } from './host-access.ts';
import { directoryOf, type FleetRequest, fleetFileOf, readFleet } from './load-fleet.ts';

/** Selection of nodes on the command line. */
export type NodeChoice =
  | {
      readonly kind: 'names';
      readonly names: readonly string[];
      readonly file?: string | undefined;
      readonly connection: ConnectionRequest;
    }
  | { readonly kind: 'selector'; readonly selector: LabelSelector }
  | ({ readonly kind: 'fleet'; readonly connection: ConnectionRequest } & FleetRequest);

type NamePorts = FleetFilePorts & Pick<HostConnections, 'connectHost'>;

const PARALLEL = 50;

/**
 * The names of the selected nodes, in processing order: as given, in the order of the fleet file, or sorted
 * by name. A given name without a Node is that of a host of the fleet file.
 * @throws AppError USAGE for an empty selection; errors of reading the fleet file and the Nodes
 */
export async function findNodeNames(services: NamePorts, cluster: Cluster, choice: NodeChoice): Promise<readonly string[]> {
  if (choice.kind === 'selector') {
    const { text } = choice.selector;
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: text });
    if (items.length === 0) throw usageError(`--selector ${text}: no Node matches`, 'List the labels: kubectl get nodes --show-labels');
    return items.map(({ metadata }) => metadata.name).sort();
  }
  const { file, connection } = choice;
  if (choice.kind === 'fleet') {
    const fleet = await readFleet(services, { file });
    const hosts = await selectFleetHosts(services, fleet, choice);
    return [...new Set((await nodesOfHosts(services, fleet, { hosts, connection, cluster })).values())];
  }
  const isNode = await Promise.all(choice.names.map((name) => hasNode(cluster, name)));
  const others = choice.names.filter((_, i) => !isNode[i]);
  if (others.length === 0 || (file === undefined && !(await services.input.exists(fleetFileOf(file))))) return choice.names;
  const fleet = await readFleet(services, { file });
  const hosts = fleet.hosts.filter(({ name }) => others.includes(name));
  const nodes = await nodesOfHosts(services, fleet, { hosts, connection, cluster });
  return [...new Set(choice.names.map((name) => nodes.get(name) ?? name))];
}

/** As `findNodeNames`, over a connection of its own. */
export async function openNodeNames(
  services: NamePorts & OpenClusterPorts,
  request: KubeconfigRequest,
  choice: NodeChoice,
): Promise<readonly string[]> {
  const { cluster } = await openCluster(services, request, { dryRun: false, staged: false, writes: null });
  try {
    return await findNodeNames(services, cluster as Cluster, choice);
  } finally {
    await cluster?.close();
  }
}

/** The Node of each host, by the name of the host: declared, with the name of the host, or as its kubelet has registered. */
async function nodesOfHosts(
  services: NamePorts,
  fleet: ResolvedFleet,
  chosen: { readonly hosts: readonly ResolvedHost[]; readonly connection: ConnectionRequest; readonly cluster: Cluster },
): Promise<ReadonlyMap<string, string>> {
  const { hosts, connection, cluster } = chosen;
  const names = await inParallel(hosts, PARALLEL, async (host) => {
    const assumed = declaredNode(host) ?? host.name.toLowerCase();
    return declaredNode(host) !== null || (await hasNode(cluster, assumed)) ? assumed : null;
  });
  const unnamed = hosts.filter((_, i) => names[i] === null);
  const observed = await observeNodes(services, fleet, { hosts: unnamed, connection });
  return new Map(hosts.map(({ name }, i) => [name, names[i] ?? observed.get(name) ?? name.toLowerCase()]));
}

async function hasNode(cluster: Cluster, name: string): Promise<boolean> {
  return (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) !== null;
}

function declaredNode({ nodeRegistration: { name } }: Pick<ResolvedHost, 'nodeRegistration'>): string | null {
  return name?.trim().toLowerCase() ?? null;
}

/** The Node that the kubelet of each host has registered. Hosts that cannot be reached or have not joined are missing. */
async function observeNodes(
  services: NamePorts,
  { file }: Pick<ResolvedFleet, 'file'>,
  { hosts, connection }: { readonly hosts: readonly ResolvedHost[]; readonly connection: ConnectionRequest },
): Promise<ReadonlyMap<string, string>> {
  const targetOf = await fleetTargets(services, connection, directoryOf(services, file));
  const found = new Map<string, string>();
  await inParallel(hosts, PARALLEL, async (member) => {
    try {
      const host = await services.connectHost(targetOf(member));
      try {
        const { nodeName } = statusOf(await observe(host, statusFacts));
        if (nodeName !== null) found.set(member.name, nodeName);
      } finally {
        await host.close();
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
    }
  });
  return found;
}

/**
 * Selects hosts as `selectHosts`, by names of Nodes too. The hosts are asked for a Node name that neither the file nor its
 * groups contain.
 * @throws AppError USAGE (exit code 2)
 */
export async function selectFleetHosts(
  services: NamePorts,
  fleet: ResolvedFleet,
  { selection, connection }: { readonly selection: Selection; readonly connection: ConnectionRequest },
): Promise<readonly ResolvedHost[]> {
  const { hosts } = fleet;
  const names = selection.limit.map((text) => patternOf(text).name);
  const unknown = names.filter((name) => !/[*?[\]]/.test(name) && !hosts.some(hostMatcher(name)));
  if (unknown.length === 0) return selectHosts(hosts, selection);
  const nodes = await hostsOfNodes(services, fleet, { names: unknown, connection });
  const limit = selection.limit.map((text) => {
    const { sign, name } = patternOf(text);
    return unknown.includes(name) && nodes.has(name) ? `${sign}${nodes.get(name)}` : text;
  });
  return selectHosts(hosts, { ...selection, limit });
}

/** The host of each Node, at least of the named ones that are declared or registered. */
export async function hostsOfNodes(
  services: NamePorts,
  fleet: ResolvedFleet,
  { names, connection }: { readonly names: readonly string[]; readonly connection: ConnectionRequest },
): Promise<ReadonlyMap<string, string>> {
  const declared = fleet.hosts.map((host) => ({ host, node: declaredNode(host) }));
  const hosts = new Map(declared.flatMap(({ host, node }) => (node === null ? [] : [[node, host.name] as const])));
  if (names.every((name) => hosts.has(name))) return hosts;
  const unnamed = declared.flatMap(({ host, node }) => (node === null ? [host] : []));
  for (const [host, node] of await observeNodes(services, fleet, { hosts: unnamed, connection })) hosts.set(node, host);
  return hosts;
}

/** `!node/uxn1`: its sign, and the name without the type. */
function patternOf(text: string): { readonly sign: string; readonly name: string } {
  const [, sign = '', name = ''] = /^(!?)(?:(?:hosts?|nodes?)\/)?(.*)$/s.exec(text) ?? [];
  return { sign, name };
}
