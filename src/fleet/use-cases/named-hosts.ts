import { usageError } from '../../base/errors.ts';
import { parseIp } from '../../base/text/ip.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ResolvedHost } from '../file/model.ts';
import { hostNamed, patternOf, selectHosts, unknownHost } from '../file/select.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetFilePorts, NamedHostPorts } from '../ports.ts';
import { hostsOfNodes, nodesOfHosts, selectFleetHosts } from './find-node-names.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { type ConnectionRequest, commandLimit, fleetTargets, type HostsRequest, readSshOptions } from './host-access.ts';
import { type FleetRequest, fleetFileOf, readFleet } from './load-fleet.ts';

interface HostNames {
  /** A host or a Node of the fleet file, or an address. `node/NAME` is always a Node. */
  readonly names: readonly string[];
  /** Undefined: `fleet.yaml`, if it is a fleet file. */
  readonly file?: string | undefined;
  readonly connection: ConnectionRequest;
}

/** The use of hosts that are found by name. */
interface NameUse {
  /** The hosts or their Nodes are changed: the hosts are not asked for their Nodes, because a host could claim any Node. */
  readonly changes: boolean;
  /** Meaning of a name that the fleet file does not contain. Default: an address, but refused with `--fleet`. */
  readonly others?: 'addresses' | 'nodes';
}

/**
 * Finds the hosts of a fleet file by name: of the host, else of its Node. `node/NAME` is always a Node.
 * @throws AppError with exit code 2 for an invalid fleet file, and for an unknown name
 */
async function findHosts(services: NamedHostPorts, { names, file, connection }: HostNames, { changes, others: kind }: NameUse) {
  // `user@address` and `address:port` are no names; an IP address is looked up only in the file of `--fleet`.
  const isName = (name: string): boolean => !/[@:]/.test(name) && (file !== undefined || parseIp(name) === null);
  const asked = names.filter((name) => isName(name) && !(kind === 'nodes' && patternOf(name).isNode));
  const isRead = asked.length > 0 && (file !== undefined || (await isFleetFile(services, fleetFileOf(file))));
  const fleet = isRead ? await readFleet(services, { file }) : null;
  const hosts = new Map<string, ResolvedHost>();
  const others = asked.filter((name) => {
    const host = fleet === null ? undefined : hostNamed(fleet.hosts, name);
    if (host !== undefined) hosts.set(name, host);
    return host === undefined;
  });
  if (kind === 'nodes') return { fleet, hosts };
  const refused = others.find((name) => patternOf(name).isNode || (file !== undefined && kind === undefined));
  if (refused === undefined) return { fleet, hosts };
  if (fleet === null)
    throw usageError(
      `${refused} names a Node, but the command connects to a host over SSH, and no fleet file names the host of the Node`,
      'Pass the address of the host',
    );
  if (changes) throw unknownHost(fleet, refused);
  const byNode = await hostsOfNodes(services, fleet, { names: others, connection });
  for (const [name, host] of byNode) hosts.set(name, hostNamed(fleet.hosts, host) as ResolvedHost);
  return { fleet, hosts };
}

/** Whether a file exists and is a fleet file: Rancher Fleet has files of this name, too. */
async function isFleetFile({ input }: Pick<FleetFilePorts, 'input'>, file: string): Promise<boolean> {
  return (await input.exists(file)) && (await input.readText(file)).includes('kubeletadm.dev/');
}

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

/**
 * The names of the selected nodes, in processing order: as given, in the order of the fleet file, or sorted
 * by name. A given name is that of a host of the fleet file, else of a Node.
 * @param use.changes the Nodes are changed: the hosts are not asked, because the answer of a host is not proven
 * @throws AppError USAGE for an empty selection, and for a host without a Node in the fleet file if the Nodes are changed;
 * errors of reading the fleet file and the Nodes
 */
export async function findNodeNames(
  services: NamedHostPorts,
  cluster: Cluster,
  choice: NodeChoice,
  { changes }: { readonly changes: boolean },
): Promise<readonly string[]> {
  if (choice.kind === 'selector') {
    const { text } = choice.selector;
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: text });
    if (items.length === 0) throw usageError(`--selector ${text}: no Node matches`, 'List the labels: kubectl get nodes --show-labels');
    return items.map(({ metadata }) => metadata.name).sort();
  }
  const { connection } = choice;
  if (choice.kind === 'fleet') {
    const fleet = await readFleet(services, choice);
    const hosts = changes ? selectHosts(fleet.hosts, choice.selection) : await selectFleetHosts(services, fleet, choice);
    return [...new Set((await nodesOfHosts(services, fleet, { hosts, connection, cluster, changes })).values())];
  }
  const { fleet, hosts } = await findHosts(services, choice, { changes, others: 'nodes' });
  const nodes =
    fleet === null ? null : await nodesOfHosts(services, fleet, { hosts: [...new Set(hosts.values())], connection, cluster, changes });
  return [...new Set(choice.names.map((name) => nodes?.get(hosts.get(name)?.name ?? '') ?? patternOf(name).name))];
}

/** As `findNodeNames`, for reading, over a connection of its own. */
export async function openNodeNames(
  services: NamedHostPorts & OpenClusterPorts,
  request: KubeconfigRequest,
  choice: NodeChoice,
): Promise<readonly string[]> {
  return withCluster(services, request, (cluster) => findNodeNames(services, cluster, choice, { changes: false }));
}

/** A host of a command line, and its connection. */
interface NamedHost {
  /** As given. */
  readonly name: string;
  readonly target: HostTarget;
  /** Null: an address. */
  readonly member: ResolvedHost | null;
}

/**
 * The hosts of a command line with their connections. The address `localhost` is the local host, without SSH.
 * @throws AppError with exit code 2 for an unknown name, and for a host that is given twice
 */
export async function findTargets(services: NamedHostPorts, request: HostNames, use: NameUse): Promise<readonly NamedHost[]> {
  const { names, connection } = request;
  const { fleet, hosts } = await findHosts(services, request, use);
  const twice = names.find((name, i) => hosts.has(name) && names.findIndex((other) => hosts.get(other) === hosts.get(name)) < i);
  if (twice !== undefined) throw usageError(`the host ${hosts.get(twice)?.name} is given twice`, 'Pass each host once');
  const ofFleet = fleet === null || hosts.size === 0 ? null : await fleetTargets(services, connection, fleet.file);
  const limit = commandLimit(connection);
  const needsSsh = names.some((name) => !hosts.has(name) && name !== 'localhost');
  const ssh = needsSsh ? await readSshOptions(services, connection) : undefined;
  return names.map((name) => {
    const member = hosts.get(name) ?? null;
    if (member !== null && ofFleet !== null) return { name, member, target: ofFleet(member) };
    return { name, member: null, target: name === 'localhost' ? limit : { address: name, ssh, ...limit } };
  });
}

/** As `findTargets`, for one host. */
export async function findTarget(
  services: NamedHostPorts,
  { name, ...request }: Omit<HostNames, 'names'> & { readonly name: string },
  use: NameUse,
): Promise<NamedHost> {
  const [found] = await findTargets(services, { ...request, names: [name] }, use);
  return found as NamedHost;
}

/** The targets of `--host` and `--rootfs`. Passwords are read from standard input or the environment. */
export async function readHostTargets(services: NamedHostPorts, request: HostsRequest): Promise<readonly HostTarget[]> {
  return (await readNamedTargets(services, request)).map(({ target }) => target);
}

/** As `readHostTargets`, with the hosts of the fleet file. */
export async function readNamedTargets(
  services: NamedHostPorts,
  { addresses, rootDir, file, connection }: HostsRequest,
): Promise<readonly Pick<NamedHost, 'target' | 'member'>[]> {
  const staged = { rootDir, ...commandLimit(connection) };
  if (addresses.length === 0) return [{ target: staged, member: null }];
  const found = await findTargets(services, { names: addresses, file, connection }, { changes: true, others: 'addresses' });
  // Unlike arguments of commands for hosts, `--host localhost` is a host with an SSH server.
  const ssh = found.some(({ target }) => target.ssh === undefined) ? await readSshOptions(services, connection) : undefined;
  return found.map(({ name, target, member }) => ({
    target: { ...(target.ssh === undefined ? { address: name, ssh } : target), ...staged },
    member,
  }));
}

/** Hosts by name or address, or by a selection. */
export interface NamedHostsRequest extends FleetHostsRequest {
  /** Names of the fleet file or addresses; empty: the selection applies. */
  readonly hosts: readonly string[];
}

/**
 * The named hosts, or those of `--group` and `--limit`.
 * @throws AppError with exit code 2
 */
export async function namedHosts(services: NamedHostPorts, request: NamedHostsRequest, use: NameUse): Promise<readonly NamedHost[]> {
  const { hosts: names, connection } = request;
  if (names.length > 0) {
    const found = await findTargets(services, { ...request, names: [...new Set(names)] }, use);
    return found.map((one) => ({ ...one, name: one.member?.name ?? one.name }));
  }
  const fleet = await readFleet(services, request);
  const selected = use.changes ? selectHosts(fleet.hosts, request.selection) : await selectFleetHosts(services, fleet, request);
  const targetOf = await fleetTargets(services, connection, fleet.file);
  return selected.map((member) => ({ name: member.name, target: targetOf(member), member }));
}
