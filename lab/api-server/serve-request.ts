import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../src/base/clock.ts';
import { sendAnswer, sendError } from './exchange.ts';
import type { FaultAction, Faults } from './faults.ts';
import { handleRequest, requesterOf } from './handle-request.ts';
import type { HandlerContext } from './handler-context.ts';
import { clientCertificateOf } from './listener.ts';
import { parseRequest } from './request-info.ts';

/** One answered request, without headers and bodies. */
export interface LoggedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly verb: string;
  /** Plural name; empty for a path without a resource. */
  readonly resource: string;
  /** Empty while unknown. */
  readonly user: string;
  /** 0 without a response. */
  readonly status: number;
}

const LOG_LIMIT = 1000;

/** Answers one HTTP request: first faults, then authentication, authorization and execution. */
export async function serveRequest(
  { context, faults, log }: { readonly context: HandlerContext; readonly faults: Faults; readonly log: LoggedRequest[] },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [method, path] = [request.method ?? 'GET', request.url ?? '/'];
  const info = parseRequest(method, path);
  let user = '';
  try {
    if (await meetFault(context.clock, faults.take(info), response)) return;
    const credentials = { certificate: clientCertificateOf(request.socket), authorization: request.headers.authorization ?? '' };
    const requester = requesterOf(context, credentials, request.headers);
    user = requester.name;
    sendAnswer(response, await handleRequest(context, requester, info, request, response));
  } catch (error) {
    if (!response.headersSent) sendError(response, error);
  } finally {
    const status = response.headersSent ? response.statusCode : 0;
    log.push({ method, path, verb: info.verb, resource: info.kind === 'resource' ? info.resource : '', user, status });
    if (log.length > LOG_LIMIT) log.shift();
  }
}

/** Returns true when the fault answered or dropped the request. */
async function meetFault(clock: Clock, fault: FaultAction | null | undefined, response: ServerResponse): Promise<boolean> {
  switch (fault?.kind) {
    case undefined:
      return false;
    case 'answer':
      response.writeHead(fault.status, { 'Content-Type': fault.contentType ?? 'application/json', ...fault.headers });
      response.end(fault.body ?? '');
      return true;
    case 'drop':
      response.destroy();
      return true;
    case 'delay':
      await clock.sleep(fault.ms);
      return meetFault(clock, fault.then, response);
    case 'hold':
      await fault.until;
      return meetFault(clock, fault.then, response);
  }
}
