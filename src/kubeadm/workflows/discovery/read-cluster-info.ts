import type { Problem } from '../../../base/errors.ts';
import type { Trust } from '../../../kube/web.ts';
import type { ClockReading } from '../../discovery/clock-reading.ts';
import { CLUSTER_INFO_PATH } from '../../discovery/cluster-info.ts';
import { type ClusterInfoReading, readClusterInfoAnswer } from '../../discovery/read-cluster-info.ts';
import { type Deadline, type DiscoveryContext, requestTimeoutMs } from './wait-for.ts';

export interface ClusterInfoRequest {
  /** e.g. `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The server in messages. */
  readonly endpoint: string;
  readonly trust: Trust;
  /** Whose certificate is expected, as a noun. */
  readonly authority: string;
  readonly serverName?: string;
  readonly proxyUrl?: string;
  /** The server's clock as it was told before: a certificate that is refused hides it. */
  readonly remote: Date | null;
  /** The API server is asked from here for hosts elsewhere. */
  readonly forOthers: boolean;
}

/** Asks once, anonymously. Gives what the answer means, and the clocks. */
export async function readClusterInfo(
  { web, clock, signal }: DiscoveryContext,
  deadline: Deadline,
  question: ClusterInfoRequest,
): Promise<{ readonly reading: ClusterInfoReading; readonly clock: ClockReading }> {
  const { server, endpoint, trust, authority, serverName, proxyUrl, remote, forOthers } = question;
  const answer = await web.get({
    url: `${server}${CLUSTER_INFO_PATH}`,
    trust,
    timeoutMs: requestTimeoutMs(deadline, clock),
    ...(serverName === undefined ? {} : { serverName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    ...(signal === undefined ? {} : { signal }),
  });
  const reported = answer.kind === 'answer' ? answer.date : null;
  const clocks = { local: clock.now(), remote: reported ?? remote };
  const reading = readClusterInfoAnswer(answer, { endpoint, authority, clock: clocks });
  if (reading.kind === 'found' || !forOthers) return { reading, clock: clocks };
  return { reading: { ...reading, problem: fromHere(reading.problem) }, clock: clocks };
}

function fromHere(problem: Problem): Problem {
  if (problem.code !== 'DISCOVERY_UNREACHABLE') return problem;
  const hint = 'With --host this machine asks the API server, not the hosts: if only they reach it, run join on them, or set HTTPS_PROXY';
  return { ...problem, hint: problem.hint === undefined ? hint : `${problem.hint}. ${hint}` };
}
