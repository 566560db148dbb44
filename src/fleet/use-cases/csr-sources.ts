import { AppError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { observe } from '../../host/access/observe.ts';
import { ownAddresses } from '../../host/facts/addresses.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { argValue } from '../../kubeadm/config/model.ts';
import { nodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { KnownNames } from '../../kubeadm/node-identity/validate-serving-csr.ts';
import { type KubeconfigRequest, type OpenedCluster, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ServingSources } from '../../kubeadm/workflows/certificates/serving-csrs.ts';
import { challengeHost, identifyBy, type NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import { parseSshDestination } from '../../ssh/destination.ts';
import type { ResolvedFleet, ResolvedHost } from '../file/model.ts';
import { type HostTarget, targetName } from '../host-target.ts';
import { type NodeCommandPorts, onHost } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readFleet, resolveFleetPath } from './load-fleet.ts';
import { readHostTargets } from './named-hosts.ts';

/** The sources that names and addresses are compared with, and the cluster of the CSRs. */
export interface CsrSourcesRequest {
  /** A fleet file; undefined: none. */
  readonly fleetFile: string | undefined;
  readonly hosts: HostsRequest;
  readonly cluster: KubeconfigRequest;
}

const FACTS = combineFacts({ os: operatingSystem, addresses: ownAddresses });

/**
 * Names and addresses that a fleet file declares: `nodeName` (default: the name of the host),
 * `hostname-override`, `address` and `nodeIP`. The author of the file vouches for them; nothing is read from
 * the hosts.
 */
function namesOfFleet({ hosts }: ResolvedFleet): readonly KnownNames[] {
  return hosts.map(({ name, position, ssh, nodeRegistration }: ResolvedHost) => {
    const nodeName = nodeRegistration.name ?? argValue(nodeRegistration.kubeletExtraArgs, 'hostname-override') ?? name;
    const nodeIps = (argValue(nodeRegistration.kubeletExtraArgs, 'node-ip') ?? '').split(',').map((address) => address.trim());
    const addresses = nodeIps.filter((address) => address !== '' && !address.includes('/'));
    return {
      node: nodeName.trim().toLowerCase(),
      values: [nodeName.trim(), ssh.address, ...addresses],
      source: `${position.file}:${position.line}`,
    };
  });
}

/**
 * Names and addresses of the hosts of `--host`: the address of the connection, given by the user, and the
 * host name and addresses, reported by the host. They are valid for the Node that the host proves to be.
 * @param opened the cluster of these Nodes
 * @throws AppError NODE_NOT_PROVEN and similar errors (exit code 3), when a host does not prove its Node or
 * another host proves the same one; the errors of the connection
 */
async function namesOfHosts(
  services: NodeCommandPorts,
  hosts: HostsRequest,
  opened: Pick<OpenedCluster, 'cluster' | 'apiServer'>,
): Promise<readonly KnownNames[]> {
  if (hosts.addresses.length === 0) return [];
  const trust = operatorNodeTrust(services, opened, 'declare the host in a fleet file, and pass -f instead of --host');
  const claims = nodeClaims();
  const found: KnownNames[] = [];
  for (const target of await readHostTargets(services, hosts)) {
    const { claim, host, names } = await namesOfHost(services, target, { trust, cluster: opened.cluster });
    const own = claims.of(targetName(target));
    own.set(host, claim);
    if (own.problems().length > 0) throw new AppError(own.problems(), { exitCode: 3 });
    found.push(...names);
  }
  return found;
}

async function namesOfHost(
  services: NodeCommandPorts,
  target: HostTarget,
  { trust, cluster }: { readonly trust: NodeTrust; readonly cluster: Cluster | null },
) {
  return onHost(services, target, async (host) => {
    const { challenge, fact } = await challengeHost({ trust });
    const { facts, evidence } = await observe(host, combineFacts({ facts: FACTS, evidence: fact }), services.signal);
    const { os, addresses } = facts;
    const { claim, refusals } = await identifyBy({ host, cluster, clock: services.clock }, { challenge, evidence }, { trust, named: null });
    if (claim === null || refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
    const node = claim.nodeName;
    const reported = [...(os.hostname === null ? [] : [os.hostname]), ...(addresses ?? [])];
    const { address = target.member?.ssh.address } = target;
    const given = address === undefined ? [] : [parseSshDestination(address).host];
    const names = [
      { node, values: given, source: `--host ${targetName(target)}` },
      { node, values: reported, source: `host ${host.name}` },
    ];
    return { host: host.name, claim, names };
  });
}

/** Opens the cluster (of the fleet file, if one is given) and reads the sources of names apart from Nodes. */
export async function withCsrSources<T>(
  services: NodeCommandPorts,
  { fleetFile, hosts, cluster }: CsrSourcesRequest,
  writes: Reporter | null,
  use: (cluster: Cluster, sources: Required<ServingSources> & { readonly hosts: ReadonlySet<string> | null }) => Promise<T>,
): Promise<T> {
  const fleet = fleetFile === undefined ? null : await readFleet(services, { file: fleetFile });
  const inFleet: KubeconfigRequest = fleet === null ? {} : clusterOfFleet(services, fleet);
  // The command line overrides the fleet file.
  const named = {
    ...(cluster.kubeconfig === undefined ? inFleet : { kubeconfig: cluster.kubeconfig }),
    context: cluster.context ?? inFleet.context,
  };
  const opened = await openCluster(services, named, { writes });
  try {
    const byHosts = await namesOfHosts(services, hosts, opened);
    return await use(opened.cluster as Cluster, {
      known: [...(fleet === null ? [] : namesOfFleet(fleet)), ...byHosts],
      serverNames: opened.tlsServerName === undefined ? [] : [opened.tlsServerName],
      hosts: hosts.addresses.length === 0 ? null : new Set(byHosts.map(({ node }) => node)),
    });
  } finally {
    await opened.cluster?.close();
  }
}

function clusterOfFleet({ homeDirectory }: Pick<LocalFiles, 'homeDirectory'>, { cluster, file }: ResolvedFleet): KubeconfigRequest {
  const { kubeconfig, context, kubeconfigSource: origin } = cluster;
  return {
    kubeconfig: kubeconfig === null ? undefined : resolveFleetPath(kubeconfig, file, homeDirectory),
    context: context ?? undefined,
    origin,
  };
}
