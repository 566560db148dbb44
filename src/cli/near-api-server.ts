import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { HostTarget, Services } from '../ports/services.ts';
import type { Trust } from '../ports/web.ts';

/** An API server, and how its answer is known for its own. */
export interface ApiServerQuestion {
  /** `https://ADDRESS:PORT` */
  readonly server: string;
  readonly trust: Trust;
  /** Asked from there. */
  readonly from?: Host;
}

/** Long enough for a network, short enough for whoever waits. */
const PROBE_MS = 5_000;

/** Whether an API server answers there, whatever it says. Where something else answers at its address, the network is another one. */
export async function answers({ web, signal }: Services, { server, trust, from }: ApiServerQuestion): Promise<boolean> {
  const url = `${server.replace(/\/+$/, '')}/version`;
  const dial = from?.dial === undefined ? {} : { dial: from.dial };
  const answer = await web.get({ url, trust, timeoutMs: PROBE_MS, signal, ...dial });
  return answer.kind === 'answer';
}

export interface WayToApiServer {
  readonly question: Omit<ApiServerQuestion, 'from'>;
  readonly targets: readonly HostTarget[];
  readonly reporter: Reporter;
}

/**
 * The host over whose connection the API server is reached, where it is not reached from here but from there: behind a bastion, say.
 * @returns connected; null: from here, as far as can be told
 */
export async function hostNearApiServer(services: Services, { question, targets, reporter }: WayToApiServer): Promise<Host | null> {
  const target = targets.find(({ address }) => address !== undefined);
  if (target === undefined || (await answers(services, question))) return null;
  // What is wrong with the host is said when it is its turn.
  const from = await services.connectHost(target).catch(() => null);
  if (from === null) return null;
  if (from.dial !== undefined && (await answers(services, { ...question, from }))) {
    const message = `${question.server} is not reached from here: it is asked over the connection to ${from.name}`;
    reporter.report({ level: 'info', code: 'API_SERVER_THROUGH_HOST', message });
    return from;
  }
  await from.close();
  return null;
}
