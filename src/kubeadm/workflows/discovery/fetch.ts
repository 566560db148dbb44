import type { Clock } from '../../../base/clock.ts';
import { AppError, type Problem } from '../../../base/errors.ts';
import type { Reporter } from '../../../base/reporter.ts';
import { formatGoDuration } from '../../../base/text/go-duration.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import type { HttpsClient, Trust } from '../../../kube/https-client.ts';
import type { ClockReading } from '../../discovery/clock-reading.ts';
import { CLUSTER_INFO_PATH } from '../../discovery/cluster-info.ts';
import { documentUnavailable } from '../../discovery/discovery-problems.ts';
import { explainFailure } from '../../discovery/explain-failure.ts';
import { type ClusterInfoReading, readClusterInfoAnswer } from '../../discovery/read-cluster-info.ts';

export interface DiscoveryContext {
  readonly web: HttpsClient;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal?: AbortSignal;
}

/** End of discovery: `timeouts.discovery` limits all steps together. */
export interface Deadline {
  readonly timeoutMs: number;
  readonly endsAt: number;
}

/** Result of one attempt; an attempt that throws is not retried. */
export type Attempt<T> = { readonly done: T } | { readonly retryReason: Problem };

/** Timeout of one request, as in kubeadm. */
const REQUEST_MS = 10_000;
/** kubeadm 1.36 retries every five seconds; the first pauses are shorter, because usually little is missing. */
const PAUSES_MS = [1_000, 2_000, 5_000];
const PROGRESS_MS = 30_000;

/** A deadline that starts now. */
export function deadlineIn(timeoutMs: number, clock: Clock): Deadline {
  return { timeoutMs, endsAt: clock.now().getTime() + timeoutMs };
}

/** Timeout of one request: the remaining time up to `REQUEST_MS`, at least one second. */
export function requestTimeoutMs({ endsAt }: Deadline, clock: Clock): number {
  return Math.max(Math.min(REQUEST_MS, endsAt - clock.now().getTime()), 1_000);
}

/**
 * Retries until an attempt succeeds or the deadline has passed; at least once. Reports the pending problem immediately,
 * when it changes, and every 30 seconds.
 * @throws AppError with the last problem (exit code 1) after the deadline; the signal's reason
 */
export async function waitFor<T>(context: DiscoveryContext, deadline: Deadline, attempt: () => Promise<Attempt<T>>): Promise<T> {
  const { clock } = context;
  return waitUntil(context, {
    probe: async () => {
      const result = await attempt();
      return 'done' in result ? result : { pending: result.retryReason };
    },
    timeoutMs: deadline.endsAt - clock.now().getTime(),
    pauseMs: (_, tries) => PAUSES_MS[tries - 1] ?? 5_000,
    progressMs: PROGRESS_MS,
    changed: ({ message }) => message,
    describe: ({ message }) => `${message}; retrying for up to ${duration(deadline.endsAt - clock.now().getTime())} (Ctrl-C stops)`,
    timedOut: (problem, waitedMs) => {
      throw new AppError({ ...problem, message: `${problem.message} (gave up after ${duration(waitedMs)})` });
    },
  });
}

function duration(ms: number): string {
  return formatGoDuration(BigInt(Math.max(Math.round(ms / 1000), 0)) * 1_000_000_000n);
}

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

const MAX_REDIRECTS = 10;
const MAX_BYTES = 1024 * 1024;

/**
 * Fetches the discovery kubeconfig from an https URL. System CAs of the local host verify the server. Redirects are
 * followed to https URLs only.
 * @throws AppError DISCOVERY_*, exit code 3 for an error that waiting cannot fix, otherwise 1
 * @see kubeadm 1.36 discovery/https, which follows any redirect and accepts every status
 */
export async function fetchKubeconfig(context: DiscoveryContext, deadline: Deadline, url: string): Promise<string> {
  return waitFor(context, deadline, async () => {
    let next = url;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const result = await fetchOnce(context, deadline, next);
      if (!('redirect' in result)) return result;
      next = result.redirect;
    }
    throw refusal(documentUnavailable(withoutSecrets(url), `more than ${MAX_REDIRECTS} redirects`));
  });
}

async function fetchOnce(
  { web, clock, signal }: DiscoveryContext,
  deadline: Deadline,
  url: string,
): Promise<Attempt<string> | { readonly redirect: string }> {
  const shown = withoutSecrets(url);
  const request = { url, trust: { kind: 'machine' }, timeoutMs: requestTimeoutMs(deadline, clock), maxBytes: MAX_BYTES } as const;
  const answer = await web.get({ ...request, signal });
  if (answer.kind === 'failed') {
    const about = { endpoint: shown, expectedCa: 'a system CA of the local host', clock: { local: clock.now(), remote: null } };
    const { kind, problem } = explainFailure(answer.issue, about);
    if (kind === 'wait') return { retryReason: problem };
    throw refusal(problem);
  }
  const { status, text, location, contentType } = answer;
  const unavailable = (why: string): Problem => documentUnavailable(shown, why);
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.canParse(location, url) ? new URL(location, url) : null;
    if (target?.protocol !== 'https:') throw refusal(unavailable('the server redirects to a URL that is not https'));
    return { redirect: target.href };
  }
  if (status === 429 || status >= 500) return { retryReason: unavailable(`the server answered ${status}`) };
  if (status !== 200) throw refusal(unavailable(`the server answered ${status}`));
  if (contentType === 'text/html' || /^\s*<(?:!doctype|html)/i.test(text))
    throw refusal(unavailable('the server answered with a web page'));
  return { done: text };
}

/** The URL without user, password and query, which may contain secrets. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function refusal(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}
