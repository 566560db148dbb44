import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Json, JsonObject } from '../../src/base/json.ts';
import { parseSource, type SourceLimits, sourceToJson } from '../../src/codec/source.ts';
import { badRequest, StatusError, unsupportedMediaType } from './status.ts';

const MAX_BODY_BYTES = 3 * 1024 * 1024;

/**
 * Reads the complete body of a request.
 * @throws StatusError 413
 */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new StatusError(413, `Request entity too large: limit is ${MAX_BODY_BYTES}`, { reason: 'RequestEntityTooLarge' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The media type of a header, without parameters, in lower case. */
export function mediaType(header: string | undefined): string {
  return (header ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

const UNKNOWN_FORMAT =
  'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml';

/**
 * Parses a body in JSON or YAML. A kubelet sends JSON with `contentType: application/json`.
 * @param what start of the error message
 * @throws StatusError 400, 415
 */
export function parseBody(body: Buffer, type: string, what: string): Json {
  switch (type) {
    case '':
    case 'application/json':
      return parseJson(body.toString('utf8'), what);
    case 'application/yaml':
      return parseYaml(body.toString('utf8'), what);
    default:
      throw unsupportedMediaType(UNKNOWN_FORMAT);
  }
}

/** Limits of a request body. */
const BODY_LIMITS: SourceLimits = { characters: 3 * 1024 * 1024, nodes: 500_000, hint: 'Send a smaller object' };

function parseYaml(text: string, what: string): Json {
  const { documents, problems } = parseSource(text, 'body', BODY_LIMITS);
  const root = documents.find((document) => document.root !== null)?.root;
  if (problems[0] || !root) throw badRequest(`${what}: error converting YAML to JSON: ${problems[0]?.message ?? 'empty'}`);
  return sourceToJson(root);
}

function parseJson(text: string, what: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    const shown = text.length > 30 ? `${text.slice(0, 30)} ...` : text || '<empty>';
    throw badRequest(`${what}: couldn't get version/kind; json parse error: unexpected end of JSON input (${shown})`);
  }
}

/** The response to a request. `streamed`: the handler itself sends it. */
export type Answer =
  | { readonly status: number; readonly body: JsonObject }
  | { readonly status: number; readonly text: string }
  | 'streamed';

/** The response for an unknown path. */
export const PAGE_NOT_FOUND: Answer = { status: 404, text: '404 page not found\n' };

/** Sends a response; a streamed one is sent by its handler. */
export function sendAnswer(response: ServerResponse, answer: Answer, headers: Readonly<Record<string, string>> = {}): void {
  if (answer === 'streamed') return;
  const [type, text] =
    'text' in answer ? ['text/plain; charset=utf-8', answer.text] : ['application/json', `${JSON.stringify(answer.body)}\n`];
  const length = Buffer.byteLength(text);
  response.writeHead(answer.status, { 'Cache-Control': 'no-cache, private', 'Content-Type': type, 'Content-Length': length, ...headers });
  response.end(text);
}

/** Sends the response of a StatusError; other errors are bugs and sent as 500. */
export function sendError(response: ServerResponse, error: unknown): void {
  if (!(error instanceof StatusError)) {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    sendAnswer(response, {
      status: 500,
      body: new StatusError(500, `Internal error occurred: ${why}`, { reason: 'InternalError' }).status,
    });
    return;
  }
  const details = error.status.details;
  const seconds = typeof details === 'object' && details !== null && 'retryAfterSeconds' in details ? details.retryAfterSeconds : undefined;
  sendAnswer(response, { status: error.httpStatus, body: error.status }, seconds === undefined ? {} : { 'Retry-After': String(seconds) });
}
