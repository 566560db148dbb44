import { usageError } from '../../base/errors.ts';
import { parseIp } from '../../base/text/ip.ts';
import type { ResolvedHost } from '../file/model.ts';
import { hostNamed, patternOf, selectHosts, unknownHost } from '../file/select.ts';
import type { HostTarget } from '../host-target.ts';
import type { FleetFilePorts, NamedHostPorts } from '../ports.ts';
import { hostsOfNodes, selectFleetHosts } from './find-node-names.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { type ConnectionRequest, commandLimit, fleetTargets, type HostsRequest, readSshOptions } from './host-access.ts';
import { fleetFileOf, readFleet } from './load-fleet.ts';

/** Names of hosts on a command line. */
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
  /** A name that is not in the file of `--fleet` is an address. Default: it is refused. */
  readonly allowsAddresses?: boolean;
}

/**
 * Finds the hosts of a fleet file by name: of the host, else of its Node. Commands that name Nodes use `findNodeNames`.
 * @throws AppError with exit code 2 for an invalid fleet file, and for an unknown name
 */
async function findHosts(services: NamedHostPorts, { names, file, connection }: HostNames, { changes, allowsAddresses = false }: NameUse) {
  // `user@address` and `address:port` are no names; an IP address is looked up only in the file of `--fleet`.
  const asked = names.filter((name) => !/[@:]/.test(name) && (file !== undefined || parseIp(name) === null));
  const isRead = asked.length > 0 && (file !== undefined || (await isFleetFile(services, fleetFileOf(file))));
  const fleet = isRead ? await readFleet(services, { file }) : null;
  const hosts = new Map<string, ResolvedHost>();
  const others = asked.filter((name) => {
    const host = fleet === null ? undefined : hostNamed(fleet.hosts, name);
    if (host !== undefined) hosts.set(name, host);
    return host === undefined;
  });
  const refused = others.find((name) => patternOf(name).isNode || (file !== undefined && !allowsAddresses));
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
export async function readHostTargets(
  services: NamedHostPorts,
  { addresses, rootDir, file, connection }: HostsRequest,
): Promise<readonly HostTarget[]> {
  const staged = { rootDir, ...commandLimit(connection) };
  if (addresses.length === 0) return [staged];
  const found = await findTargets(services, { names: addresses, file, connection }, { changes: true, allowsAddresses: true });
  // Unlike arguments of commands for hosts, `--host localhost` is a host with an SSH server.
  const ssh = found.some(({ target }) => target.ssh === undefined) ? await readSshOptions(services, connection) : undefined;
  return found.map(({ name, target }) => ({ ...(target.ssh === undefined ? { address: name, ssh } : target), ...staged }));
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
