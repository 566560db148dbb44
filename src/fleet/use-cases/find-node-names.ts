import { type AppError, isAppError, usageError } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { observe } from '../../host/access/observe.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { statusFacts, statusOf } from '../drift/host-status.ts';
import type { ResolvedFleet, ResolvedHost } from '../file/model.ts';
import { declaredNode, hostsOfPattern, knownNames, patternOf, type Selection, selectHosts } from '../file/select.ts';
import { type NamedHostPorts, onHost } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { fleetTargets } from './host-access.ts';

const PARALLEL = 50;

/**
 * The Node of each host, by the name of the host: declared, with the name of the host, or as its kubelet has registered.
 * @throws AppError USAGE if the Nodes are changed and only the host could name its Node
 */
export async function nodesOfHosts(
  services: NamedHostPorts,
  fleet: ResolvedFleet,
  chosen: {
    readonly hosts: readonly ResolvedHost[];
    readonly connection: ConnectionRequest;
    readonly cluster: Cluster;
    readonly changes: boolean;
  },
): Promise<ReadonlyMap<string, string>> {
  const { hosts, connection, cluster, changes } = chosen;
  const declared = new Set(fleet.hosts.map(declaredNode));
  const names = await inParallel(hosts, PARALLEL, async (host) => {
    const own = host.name.toLowerCase();
    return declaredNode(host) ?? (!declared.has(own) && (await hasNode(cluster, own)) ? own : null);
  });
  const unnamed = hosts.filter((_, i) => names[i] === null);
  if (changes && unnamed.length > 0)
    throw usageError(
      `${fleet.file} sets no nodeName for ${namesText(unnamed.map(({ name }) => name))}, and no Node has the name of the host`,
      `Set nodeName for each host, or pass the names of the Nodes. List them: kubeletadm fleet status -f ${fleet.file}`,
    );
  const { nodes: observed } = await observeNodes(services, fleet, { hosts: unnamed, connection });
  return new Map(hosts.map(({ name }, i) => [name, names[i] ?? observed.get(name) ?? name.toLowerCase()]));
}

async function hasNode(cluster: Cluster, name: string): Promise<boolean> {
  return (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) !== null;
}

/**
 * The Node of each host according to the host, which proves nothing: only for reading.
 * @returns `nodes` and the errors of hosts that `failed`, by the name of the host; hosts that have not joined are in neither
 */
async function observeNodes(
  services: NamedHostPorts,
  { file }: Pick<ResolvedFleet, 'file'>,
  { hosts, connection }: { readonly hosts: readonly ResolvedHost[]; readonly connection: ConnectionRequest },
) {
  const targetOf = await fleetTargets(services, connection, file);
  const nodes = new Map<string, string>();
  const failed = new Map<string, AppError>();
  await inParallel(hosts, PARALLEL, async (member) => {
    try {
      await onHost(services, targetOf(member), async (host) => {
        const { nodeName } = statusOf(await observe(host, statusFacts));
        if (nodeName !== null) nodes.set(member.name, nodeName);
      });
    } catch (error) {
      if (!isAppError(error)) throw error;
      failed.set(member.name, error);
    }
  });
  return { nodes, failed };
}

/**
 * Selects hosts as `selectHosts`, for reading: the hosts are asked for a Node that the fleet file does not name.
 * @throws AppError USAGE (exit code 2)
 */
export async function selectFleetHosts(
  services: NamedHostPorts,
  fleet: ResolvedFleet,
  { selection, connection }: { readonly selection: Selection; readonly connection: ConnectionRequest },
): Promise<readonly ResolvedHost[]> {
  const { hosts } = fleet;
  const unknown = selection.limit.filter((text) => !/[*?[\]]/.test(text) && hostsOfPattern(hosts, text).length === 0);
  const nodes = await hostsOfNodes(services, fleet, { names: unknown, connection });
  const limit = selection.limit.map((text) => {
    const host = nodes.get(text);
    return host === undefined ? text : `${patternOf(text).isNegated ? '!' : ''}host/${host}`;
  });
  return selectHosts(hosts, { ...selection, limit });
}

/**
 * The host of each name of a Node: as declared, otherwise as the hosts report. Only for reading, because the hosts prove
 * nothing.
 * @param request.names as for `patternOf`
 * @throws AppError USAGE (exit code 2) for a Node that no host or several hosts have, and for a probable typo
 */
export async function hostsOfNodes(
  services: NamedHostPorts,
  fleet: ResolvedFleet,
  { names, connection }: { readonly names: readonly string[]; readonly connection: ConnectionRequest },
): Promise<ReadonlyMap<string, string>> {
  const hostOf = (node: string) => fleet.hosts.find((host) => declaredNode(host) === node.toLowerCase())?.name;
  const declared = names.map((text) => [text, hostOf(patternOf(text).name)] as const);
  const asked = declared.flatMap(([name, host]) => (host === undefined ? [name] : []));
  const known = new Map(declared.flatMap(([name, host]) => (host === undefined ? [] : [[name, host] as const])));
  if (asked.length === 0) return known;
  for (const text of asked) {
    const { name, isNode } = patternOf(text);
    const likely = isNode ? null : closestName(name, knownNames(fleet.hosts));
    if (likely !== null) throw usageError(`${fleet.file} has no host ${name}`, `Did you mean ${likely}? To ask the hosts: node/${name}`);
  }
  const unnamed = fleet.hosts.filter((host) => declaredNode(host) === null);
  const observed = await observeNodes(services, fleet, { hosts: unnamed, connection });
  return new Map([...known, ...asked.map((name) => [name, hostOfNode(fleet, patternOf(name).name, observed)] as const)]);
}

function hostOfNode({ file, hosts }: ResolvedFleet, node: string, { nodes, failed }: Awaited<ReturnType<typeof observeNodes>>): string {
  const claimants = hosts.flatMap(({ name }) => (nodes.get(name) === node.toLowerCase() ? [name] : []));
  const [host] = claimants;
  if (host !== undefined && claimants.length === 1) return host;
  if (host !== undefined)
    throw usageError(
      `the hosts ${claimants.join(' and ')} have certificates of the same Node ${node}`,
      `Name the host, or set nodeName in ${file} for the host of this Node`,
    );
  const missing = `${file} has no host ${node}, and no host has registered a Node of this name`;
  if (failed.size === 0) throw usageError(missing, `List the hosts: kubeletadm fleet inventory -f ${file}`);
  const byCode = groupBy(
    hosts.filter(({ name }) => failed.has(name)),
    ({ name }) => failed.get(name)?.code,
  );
  const reasons = [...byCode].map(([code, members]) => `${namesText(members.map(({ name }) => name))} (${code})`);
  throw usageError(`${missing}; not asked: ${reasons.join(', ')}`, `Fix the connection, or set nodeName for these hosts in ${file}`);
}
