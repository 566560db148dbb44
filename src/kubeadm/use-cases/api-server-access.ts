import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { localAddresses } from '../../host/facts/addresses.ts';
import type { HostKubeconfig } from '../../kube/host-kubeconfig.ts';
import type { HttpsResponse, Trust, WebFailure } from '../../kube/https-client.ts';
import type { ClusterConnections } from '../ports.ts';

type ProbePorts = Pick<ClusterConnections, 'web'> & Pick<RunTime, 'signal'>;

interface ApiServerProbe {
  /** `https://ADDRESS:PORT` */
  readonly server: string;
  readonly trust: Trust;
  /** The host that opens the connection; default: the local host. */
  readonly from?: Host;
}

/** Long enough for a slow network, short enough for an interactive command. */
const PROBE_MS = 5_000;

/**
 * Whether an API server answers, with any status. TLS verification fails when another server has the same address in
 * another network; without a CA, an answer that is not JSON is one of another server.
 */
async function isApiServerReachable(services: ProbePorts, probe: ApiServerProbe): Promise<boolean> {
  const answer = await probeApiServer(services, probe);
  return answer.kind === 'answer' && (probe.trust.kind !== 'unverified' || /^\s*\{/.test(answer.text));
}

function probeApiServer({ web, signal }: ProbePorts, { server, trust, from }: ApiServerProbe): Promise<HttpsResponse | WebFailure> {
  const url = `${trimTrailing(server, '/')}/version`;
  return web.get({ url, trust, timeoutMs: PROBE_MS, signal, dial: from?.dial });
}

/**
 * The host that opens the connections to the API server of its own kubeconfig: the host itself if the API server is
 * unreachable from the local host, or if its address is one of the host, which may be another machine in the network of
 * the local host. A host that forbids forwarding opens none.
 * @returns undefined: the local host
 */
export async function hostOpeningConnections(
  services: ProbePorts,
  host: Host,
  { server, caPem }: Pick<HostKubeconfig, 'server' | 'caPem'>,
): Promise<Host | undefined> {
  if (host.dial === undefined) return undefined;
  const probe = { server, trust: { kind: 'ca', pem: caPem } } as const;
  const addresses = await observe(host, localAddresses, services.signal);
  if (addresses?.includes(new URL(server).hostname.replace(/^\[|\]$/g, '')) === true) {
    const answer = await probeApiServer(services, { ...probe, from: host });
    const isForbidden = answer.kind === 'failed' && answer.issue.kind === 'other' && answer.issue.code === 'HOST_FORWARD_REFUSED';
    if (!isForbidden) return host;
  }
  return (await isApiServerReachable(services, probe)) ? undefined : host;
}

export interface ApiServerRoute {
  readonly probe: Omit<ApiServerProbe, 'from'>;
  /** Candidates; the first `MAX_PROBED_HOSTS` are probed in parallel, so that a dead host delays no other. */
  readonly hosts: readonly (() => Promise<Host>)[];
  readonly reporter: Reporter;
  /** Verbosity at which the chosen host is logged; default: always. */
  readonly verbosity?: 0 | 1;
}

/** If none of these hosts reaches the API server, further hosts would fail as well. */
const MAX_PROBED_HOSTS = 8;

/**
 * A host whose connection reaches the API server when the local host cannot reach it, for instance behind a bastion.
 * @returns the connected host, which the caller closes; null: use the local host
 */
export async function findHostWithApiServerAccess(services: ProbePorts, route: ApiServerRoute): Promise<Host | null> {
  const { probe, hosts, reporter, verbosity = 0 } = route;
  const others = hosts.slice(0, MAX_PROBED_HOSTS);
  if (others.length === 0 || (await isApiServerReachable(services, probe))) return null;
  const from = await firstOf(others.map((connect) => connectNear(services, connect, probe)));
  if (from === null) return null;
  const message = `${probe.server} is unreachable from the local host: connecting through ${from.name}`;
  reporter.report({ level: 'info', code: 'API_SERVER_THROUGH_HOST', message, verbosity });
  return from;
}

/** Null: the host or, from it, the API server is unreachable. Errors of a host are reported when the host is processed. */
async function connectNear(services: ProbePorts, connect: () => Promise<Host>, probe: ApiServerRoute['probe']): Promise<Host | null> {
  const from = await connect().catch(() => null);
  if (from === null) return null;
  try {
    if (from.dial !== undefined && (await isApiServerReachable(services, { ...probe, from }))) return from;
  } catch (error) {
    await from.close();
    throw error;
  }
  await from.close();
  return null;
}

/** The first host that connects; hosts that connect later are closed. */
async function firstOf(hosts: readonly Promise<Host | null>[]): Promise<Host | null> {
  const first = await Promise.any(hosts.map(async (host) => (await host) ?? Promise.reject(new Error('unreachable')))).catch(() => null);
  for (const host of hosts) host.then((late) => (late === first ? undefined : late?.close())).catch(() => undefined);
  return first;
}
