import type { Problem } from '../../../base/errors.ts';
import type { Trust } from '../../../kube/https-client.ts';
import type { ClockReading } from '../../discovery/clock-reading.ts';
import { CLUSTER_INFO_PATH } from '../../discovery/cluster-info.ts';
import { type ClusterInfoReading, readClusterInfoAnswer } from '../../discovery/read-cluster-info.ts';
import { type Deadline, type DiscoveryContext, requestTimeoutMs } from './wait-for.ts';

interface ClusterInfoRequest {
  /** e.g. `https://10.0.0.1:6443`. */
  readonly server: string;
  /** Name of the server in messages. */
  readonly endpoint: string;
  readonly trust: Trust;
  /** The CA that must have signed the server certificate, as a noun phrase for messages. */
  readonly expectedCa: string;
  readonly serverName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** Server time of an earlier response: a rejected certificate hides the response. */
  readonly remote: Date | null;
  /** The local host queries the API server on behalf of other hosts. */
  readonly forOthers: boolean;
}

/** Reads cluster-info once, anonymously. Returns the classified response and both clocks. */
export async function fetchClusterInfo(
  { web, clock, signal }: DiscoveryContext,
  deadline: Deadline,
  request: ClusterInfoRequest,
): Promise<{ readonly reading: ClusterInfoReading; readonly clock: ClockReading }> {
  const { server, endpoint, trust, expectedCa, serverName, proxyUrl, remote, forOthers } = request;
  const answer = await web.get({
    url: `${server}${CLUSTER_INFO_PATH}`,
    trust,
    timeoutMs: requestTimeoutMs(deadline, clock),
    serverName,
    proxyUrl,
    signal,
  });
  const reported = answer.kind === 'answer' ? answer.date : null;
  const clocks = { local: clock.now(), remote: reported ?? remote };
  const reading = readClusterInfoAnswer(answer, { endpoint, expectedCa, clock: clocks });
  if (reading.kind === 'found' || !forOthers) return { reading, clock: clocks };
  return { reading: { ...reading, problem: withLocalHostHint(reading.problem) }, clock: clocks };
}

function withLocalHostHint(problem: Problem): Problem {
  if (problem.code !== 'DISCOVERY_UNREACHABLE') return problem;
  const hint =
    'With --host, kubeletadm connects to the API server from the local host. If only the hosts can reach the API server, run join on the hosts, or set HTTPS_PROXY';
  return { ...problem, hint: problem.hint === undefined ? hint : `${problem.hint}. ${hint}` };
}
