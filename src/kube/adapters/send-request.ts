import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { onAbort } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { isAppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import {
  clusterNotAnApi,
  clusterRefused,
  clusterUnreachable,
  type NamedKubeconfig,
  nameKubeconfig,
  type Refusal,
} from '../cluster-problems.ts';
import type { RequestRateLimiter, RequestUrgency } from '../request-rate-limiter.ts';
import type { Connection } from './connection.ts';
import { explainNetworkError, isBrokenConnection } from './network-failure.ts';
import { readBody } from './read-body.ts';

export interface ApiRequest {
  /** A verb clause for messages: `get ConfigMap kube-system/kubelet-config`. */
  readonly what: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** Name of the object: 404 for this object is a valid result. A 404 for an unknown path remains an error. */
  readonly absent?: string;
  /** Further HTTP statuses that are valid results; requests are not repeated for them. */
  readonly answers?: readonly number[];
  /** A kubelet behind the API server may answer: text responses are passed on, and failures are not retried. */
  readonly proxied?: boolean;
}

interface SenderOptions {
  readonly server: string;
  /** The kubeconfig that errors name; null: none. */
  readonly kubeconfig: NamedKubeconfig | null;
  readonly connection: Connection;
  readonly clock: Clock;
  /** Timeout of one call, retries included; the wait for `pace` is not. */
  readonly requestTimeoutMs: number;
  readonly limiter?: RequestRateLimiter | undefined;
  readonly urgency: RequestUrgency;
  /** Ends the wait of a request for `pace`; a request that was sent continues. */
  readonly turnSignal?: AbortSignal | undefined;
}

export interface Sender {
  /**
   * Only reads are retried after a server failure (5xx) or a broken connection; requests rejected for
   * overload (429) always. All attempts share the timeout of one call.
   * @throws AppError as cluster.ts lists them, except for an expected 404; the reason of `turnSignal`
   */
  send(request: ApiRequest): Promise<{ readonly status: number; readonly body: JsonObject }>;
  /** Starts a stream; resolves when the server has accepted it. The timeout does not apply after that. */
  stream(request: ApiRequest, signal: AbortSignal | undefined): Promise<IncomingMessage>;
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
const LONGEST_RETRY_AFTER_MS = 5_000;
const KEEP_ALIVE_MS = 15_000;
const MAX_BODY_BYTES = 256 * 1024 * 1024;

export function createSender(options: SenderOptions): Sender {
  const { server, connection, clock, requestTimeoutMs, limiter, urgency, turnSignal } = options;

  const tryAgain = async (request: ApiRequest, signal: AbortSignal | undefined): Promise<Attempt> => {
    await limiter?.waitForSlot(signal ?? turnSignal, urgency);
    const deadline = clock.now().getTime() + requestTimeoutMs;
    let renewed = false;
    for (let attempt = 0; ; attempt++) {
      const tried = await attemptOnce(options, request, Math.max(deadline - clock.now().getTime(), 1), signal);
      if (tried.kind === 'answer' && tried.response.statusCode === 401 && !renewed && connection.renew()) {
        renewed = true;
        continue;
      }
      const pause = pauseBefore(request, tried, attempt);
      if (pause === null || clock.now().getTime() + pause >= deadline || signal?.aborted) return tried;
      await clock.sleep(pause, signal);
      await limiter?.waitForSlot(signal ?? turnSignal, urgency);
    }
  };
  return {
    send: async (request) => conclude(options, request, await tryAgain(request, undefined)),
    stream: async (request, signal) => {
      const tried = await tryAgain(request, signal);
      if (tried.kind === 'answer' && tried.text === null) return tried.response;
      conclude(options, request, tried);
      throw clusterNotAnApi(server, request.what, statusOf(tried), '');
    },
  };
}

type Attempt =
  | { readonly kind: 'answer'; readonly response: IncomingMessage /** Null: streamed. */; readonly text: string | null }
  | { readonly kind: 'failed'; readonly error: unknown };

async function attemptOnce(
  options: SenderOptions,
  request: ApiRequest,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Attempt> {
  const { agent, headers } = await options.connection.open();
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const streaming = request.query?.watch === 'true';
  const url = urlOf(options.server, request);
  const requestOptions: RequestOptions = {
    method: request.method,
    agent,
    headers: {
      Accept: 'application/json',
      'User-Agent': 'kubeletadm',
      // Without a length Node would send the body of a DELETE chunked, which servers ignore.
      ...(body === undefined
        ? {}
        : { 'Content-Type': request.contentType ?? 'application/json', 'Content-Length': Buffer.byteLength(body) }),
      ...headers,
    },
  };
  try {
    const response = await exchange(url, requestOptions, body, timeoutMs, signal, streaming);
    return { kind: 'answer', ...response };
  } catch (error) {
    if (isAppError(error)) throw error;
    return { kind: 'failed', error };
  }
}

function exchange(
  url: URL,
  options: RequestOptions,
  body: string | undefined,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  streaming: boolean,
): Promise<{ readonly response: IncomingMessage; readonly text: string | null }> {
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = (url.protocol === 'http:' ? httpRequest : httpsRequest)(url, options);
    const timer = setTimeout(() => sent.destroy(new TimeoutError(timeoutMs)), timeoutMs);
    // Keep-alive probes detect a silently lost connection (unplugged cable, firewall state) within half a
    // minute, also during an idle watch.
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    const forget = onAbort(signal, () => sent.destroy());
    const settle = () => {
      clearTimeout(timer);
      forget();
    };
    sent.on('error', (error) => {
      settle();
      reject(error);
    });
    sent.on('response', (response) => {
      if (streaming && response.statusCode === 200) {
        clearTimeout(timer);
        response.on('close', settle);
        return resolve({ response, text: null });
      }
      const tooLarge = () => sent.destroy(new Error('the response is larger than 256 MiB'));
      const answer = readBody(response, MAX_BODY_BYTES, tooLarge).finally(settle);
      answer.then((text) => resolve({ response, text }), reject);
    });
    sent.end(body);
  });
}

class TimeoutError extends Error {
  readonly timeoutMs: number;
  constructor(timeoutMs: number) {
    super('timed out');
    this.timeoutMs = timeoutMs;
  }
}

/** Delay before the next attempt; null: no further attempt. */
function pauseBefore(request: ApiRequest, tried: Attempt, attempt: number): number | null {
  const backOff = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
  if (tried.kind === 'failed') return request.method === 'GET' && isBrokenConnection(tried.error) ? backOff : null;
  if (request.proxied === true) return null;
  const status = tried.response.statusCode ?? 0;
  if (request.answers?.includes(status) === true) return null;
  if (status === 429) return Math.min(retryAfterMs(tried.response) ?? backOff, LONGEST_RETRY_AFTER_MS);
  return request.method === 'GET' && status >= 500
    ? Math.max(backOff, Math.min(retryAfterMs(tried.response) ?? 0, LONGEST_RETRY_AFTER_MS))
    : null;
}

function retryAfterMs({ headers }: IncomingMessage): number | undefined {
  const seconds = Number(headers['retry-after'] ?? '');
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}

function conclude(options: SenderOptions, request: ApiRequest, tried: Attempt) {
  const { server, kubeconfig, connection } = options;
  if (tried.kind === 'failed') throw unreachable(options, request, tried.error);
  const { response, text } = tried;
  const status = response.statusCode ?? 0;
  const body = parseJsonObject(text ?? '');
  const contentType = response.headers['content-type'] ?? '';
  const hint = status === 401 ? connection.credentialFailure() : undefined;
  if (request.answers?.includes(status) === true) return { status, body: body ?? { message: (text ?? '').trim().split('\n')[0] ?? '' } };
  if (body === null && request.proxied === true && status >= 400)
    throw clusterRefused(request.what, { message: (text ?? '').trim().split('\n')[0], httpStatus: status, kubeconfig });
  if (body === null && status !== 401 && status !== 429) throw clusterNotAnApi(server, request.what, status, contentType);
  if (status >= 200 && status < 300 && body !== null) return { status, body };
  if (status === 404 && body !== null && request.absent !== undefined && absentName(body) === request.absent) return { status, body };
  throw clusterRefused(request.what, { ...refusalOf(body ?? {}), httpStatus: status, hint, kubeconfig });
}

export function refusalOf(status: JsonObject): Pick<Refusal, 'reason' | 'message'> {
  const text = (name: string) => (status.kind === 'Status' && typeof status[name] === 'string' ? status[name] : undefined);
  return { reason: text('reason'), message: text('message') };
}

function absentName({ details }: JsonObject): string | undefined {
  return isJsonObject(details) && typeof details.name === 'string' ? details.name : undefined;
}

function unreachable({ server, kubeconfig, requestTimeoutMs }: SenderOptions, request: ApiRequest, error: unknown): Error {
  const unsure = request.method === 'GET' ? '' : `; the server may still have processed the request (${request.what})`;
  if (error instanceof TimeoutError) {
    const hint = 'Check the address in the kubeconfig, the network and firewalls, and that the API server is not overloaded';
    return clusterUnreachable(server, `no response within ${requestTimeoutMs / 1000} s${unsure}`, nameKubeconfig(hint, kubeconfig));
  }
  const { why, hint, neverSent } = explainNetworkError(error);
  return clusterUnreachable(server, `${why}${neverSent ? '' : unsure}`, nameKubeconfig(hint, kubeconfig), { cause: error });
}

function statusOf(tried: Attempt): number {
  return tried.kind === 'answer' ? (tried.response.statusCode ?? 0) : 0;
}

function urlOf(server: string, { path, query = {} }: ApiRequest): URL {
  const url = new URL(server);
  url.pathname = `${trimTrailing(url.pathname, '/')}${path}`;
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') url.searchParams.set(name, value);
  return url;
}
