import { argValue } from '../core/config/model.ts';
import { AppError } from '../core/errors.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { type ClientIdentity, clientIdentity } from '../core/facts/kubelet-identity.ts';
import { operatingSystem } from '../core/facts/operating-system.ts';
import { ownAddresses } from '../core/facts/own-addresses.ts';
import type { ResolvedFleet, ResolvedHost } from '../core/fleet/model.ts';
import type { KnownNames } from '../core/kubernetes/judge-serving-csr.ts';
import { parseSshDestination } from '../core/ssh/destination.ts';
import { observe } from '../engine/observe.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import type { CommandOptions } from './program.ts';
import { flagList, readHostTargets } from './read-options.ts';

const FACTS = combineFacts({ os: operatingSystem, addresses: ownAddresses, identity: clientIdentity });

/**
 * Names and addresses that a fleet file declares: `nodeName` (default: the name of the host), `hostname-override`, `address` and `nodeIP`. They are the word
 * of the person who wrote the file; nothing is read from the hosts.
 */
export function namesOfFleet({ hosts }: ResolvedFleet): readonly KnownNames[] {
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
 * Names and addresses of the hosts of `--host`: the address of the connection, which the user gives, and the host name and addresses, which the host reports.
 * @throws AppError HOST_NO_NAME, and the errors of the connection
 */
export async function namesOfHosts(services: Services, options: CommandOptions): Promise<readonly KnownNames[]> {
  if (flagList(options, 'host').length === 0) return [];
  const found: KnownNames[] = [];
  for (const target of await readHostTargets(services, options)) found.push(...(await namesOfHost(services, target)));
  return found;
}

async function namesOfHost(services: Services, target: HostTarget): Promise<readonly KnownNames[]> {
  const host = await services.connectHost(target);
  try {
    const { os, addresses, identity } = await observe(host, FACTS, services.signal);
    const node = nodeNameOf(identity) ?? os.hostname;
    if (node === null) throw new AppError({ host: host.name, code: 'HOST_NO_NAME', message: 'the host does not report its name' });
    const reported = [...(os.hostname === null ? [] : [os.hostname]), ...(addresses ?? [])];
    const given = target.address === undefined ? [] : [parseSshDestination(target.address).host];
    return [
      { node, values: given, source: `--host ${target.address}` },
      { node, values: reported, source: `host ${host.name}` },
    ];
  } finally {
    await host.close();
  }
}

function nodeNameOf(identity: ClientIdentity): string | undefined {
  return identity.state === 'usable' ? /^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] : undefined;
}
