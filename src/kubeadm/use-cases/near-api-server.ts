import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/host.ts';
import type { Trust } from '../../kube/web.ts';
import type { ClusterConnections } from '../ports.ts';

type ProbePorts = Pick<ClusterConnections, 'web'> & Pick<RunTime, 'signal'>;

/** Connects to a host other than this machine. */
export type ConnectHost = () => Promise<Host>;

/** An API server, and how its answer is known for its own. */
export interface ApiServerProbe {
  /** `https://ADDRESS:PORT` */
  readonly server: string;
  readonly trust: Trust;
  /** Asked from there. */
  readonly from?: Host;
}

/** Long enough for a network, short enough for whoever waits. */
const PROBE_MS = 5_000;

/** Whether an API server answers there, whatever it says. Where something else answers at its address, the network is another one. */
export async function answers({ web, signal }: ProbePorts, { server, trust, from }: ApiServerProbe): Promise<boolean> {
  const url = `${trimTrailing(server, '/')}/version`;
  const dial = from?.dial === undefined ? {} : { dial: from.dial };
  const answer = await web.get({ url, trust, timeoutMs: PROBE_MS, signal, ...dial });
  return answer.kind === 'answer';
}

export interface ApiServerRoute {
  readonly question: Omit<ApiServerProbe, 'from'>;
  /** The first of them are tried, all at a time: one that is dead delays nobody. */
  readonly hosts: readonly ConnectHost[];
  readonly reporter: Reporter;
  /** At which the way is told; default: always. */
  readonly verbosity?: 0 | 1;
}

/** Where none of so many reaches the API server it is the server's fault, or the network's. */
const MOST_TRIED = 8;

/**
 * The host over whose connection the API server is reached, where it is not reached from here but from there: behind a bastion, say.
 * @returns connected, and the caller's to close; null: from here, as far as can be told
 */
export async function hostNearApiServer(services: ProbePorts, route: ApiServerRoute): Promise<Host | null> {
  const { question, hosts, reporter, verbosity = 0 } = route;
  const others = hosts.slice(0, MOST_TRIED);
  if (others.length === 0 || (await answers(services, question))) return null;
  const from = await firstOf(others.map((connect) => connectNear(services, connect, question)));
  if (from === null) return null;
  const message = `${question.server} is not reached from here: it is asked over the connection to ${from.name}`;
  reporter.report({ level: 'info', code: 'API_SERVER_THROUGH_HOST', message, verbosity });
  return from;
}

/** Null: it is not reached from there, or nobody gets there. What is wrong with a host is said when it is its turn. */
async function connectNear(services: ProbePorts, connect: ConnectHost, question: ApiServerRoute['question']): Promise<Host | null> {
  const from = await connect().catch(() => null);
  if (from === null) return null;
  try {
    if (from.dial !== undefined && (await answers(services, { ...question, from }))) return from;
  } catch (error) {
    await from.close();
    throw error;
  }
  await from.close();
  return null;
}

/** The first that comes; those that come later are closed. */
async function firstOf(hosts: readonly Promise<Host | null>[]): Promise<Host | null> {
  const first = await Promise.any(hosts.map(async (host) => (await host) ?? Promise.reject(new Error('not reached')))).catch(() => null);
  for (const host of hosts) host.then((late) => (late === first ? undefined : late?.close())).catch(() => undefined);
  return first;
}
