import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError, formatProblem, messageOf } from '../../base/errors.ts';
import { parseJsonObject } from '../../base/json.ts';
import type { LocalRequest, LocalResponse, LocalServer, LocalStream } from '../../base/local-server.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { isLoopback, isUnspecified, parseIp } from '../../base/text/ip.ts';
import type { Services } from '../output/services.ts';
import type { RenderedPage } from './render-report.ts';

/** `--serve`: where the page is served; port 0: a free one. */
export interface PageAddress {
  readonly host: string;
  readonly port: number;
}

/** Ports of a live page. */
export type LivePagePorts = Pick<Services, 'clock' | 'output' | 'hostname' | 'newId' | 'serveLocal'>;

/** Renders the page at any time. */
interface PageSource {
  render(): RenderedPage;
  document(page: RenderedPage): string;
  /**
   * Does what a reader requests with a POST of the page; never fails. Absent: the page is read-only.
   * @param request JSON from the network
   * @returns the answer, as JSON
   */
  readonly act?: (request: unknown) => Promise<object>;
}

/** A page that is served. */
interface LivePage {
  /** Sends the last state to all readers, and closes the server; never fails, and takes at most a second. */
  end(): Promise<void>;
}

const EVERY_MS = 1_000;
/** At most this part of the time is spent on rendering. */
const SHARE = 1 / 20;
const LAST_MS = 1_000;
/** A reader with more unsent text gets no more until it has caught up. */
const MOST_PENDING = 4_000_000;
/** A browser opens two connections. */
const MOST_READERS = 12;
const TEXT = 'text/plain; charset=utf-8';
/** The policy for scripts and styles is part of the page, as in a report. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * Serves a page that follows a run or a cluster, and prints its URL. Its changes are sent as server-sent events, at most once a second
 * and less often if rendering is slow; without a reader nothing is rendered.
 * @throws AppError PAGE_NOT_SERVED (exit code 2)
 */
export async function serveLivePage(services: LivePagePorts, address: PageAddress, source: PageSource): Promise<LivePage> {
  const { clock, output, hostname } = services;
  const secret = `${await services.newId()}${await services.newId()}`;
  const readers = new Map<LocalStream, RenderedPage['parts']>();
  const page = cachedPage(services, source);
  const names = new Set(['localhost', hostname.toLowerCase(), address.host.toLowerCase()]);
  const server = await listen(services, address, (request) => {
    if (!isAllowedHost(request.host, names)) return refusal(421, 'unknown Host header');
    const [, given = '', rest] = /^\/([^/]*)\/(events|act)?$/.exec(request.path) ?? [];
    if (!isEqual(given, secret)) return null;
    if (rest === 'act') return source.act === undefined ? null : actionResponse(request, source.act);
    if (request.method !== 'GET') return wrongMethod('GET');
    if (rest === undefined)
      return { status: 200, type: 'text/html; charset=utf-8', headers: HEADERS, body: source.document(page.latest()) };
    if (readers.size >= MOST_READERS) return refusal(503, 'too many readers');
    const stream = (reader: LocalStream): void => {
      readers.set(reader, {});
      reader.onClose(() => readers.delete(reader));
      sendChanges(reader, readers, page.latest());
    };
    return { status: 200, type: 'text/event-stream', headers: HEADERS, body: 'retry: 2000\n\n', stream };
  });
  const stop = new AbortController();
  const follow = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(page.pauseMs(), stop.signal);
      if (readers.size === 0) continue;
      const latest = page.latest();
      for (const reader of readers.keys()) sendChanges(reader, readers, latest);
    }
  };
  follow().catch((error: unknown) => {
    // The run is more important than its page.
    if (!stop.signal.aborted) output.stderr(`warning: the live page stopped: ${messageOf(error)}\n`);
  });
  announce(services, address, { port: server.port, secret });
  return {
    end: async () => {
      stop.abort();
      try {
        const last = source.render();
        const sent = [...readers].map(([reader, known]) => reader.end(eventOf('end', last, changedParts(known, last))));
        await Promise.race([Promise.all(sent), clock.sleep(LAST_MS)]);
      } catch (error) {
        output.stderr(`warning: cannot send the final state to the live page: ${messageOf(error)}\n`);
      }
      await server.close();
    },
  };
}

/** Only the page itself may act: browsers send the origin of the page with each POST, and no other page knows the token. */
function actionResponse({ host, post }: LocalRequest, act: NonNullable<PageSource['act']>): LocalResponse {
  if (post === undefined) return wrongMethod('POST');
  if (post.origin !== `http://${host}`) return refusal(403, 'the request is not from this page');
  if (!/^application\/json(;|$)/.test(post.contentType)) return refusal(415, 'the content type is not application/json');
  const request = parseJsonObject(post.body);
  if (request === null) return refusal(400, 'the request is not a JSON object');
  const stream = (reader: LocalStream): void =>
    void act(request)
      .catch((error: unknown) => ({ problem: messageOf(error) }))
      .then((answer) => reader.end(JSON.stringify(answer)));
  return { status: 200, type: 'application/json', headers: HEADERS, body: '', stream };
}

async function listen(
  { serveLocal }: LivePagePorts,
  { host, port }: PageAddress,
  answer: (request: LocalRequest) => LocalResponse | null,
): Promise<LocalServer> {
  try {
    return await serveLocal(host, port, answer);
  } catch (cause) {
    const message = `cannot serve the page on ${host}, port ${port}: ${systemErrorText(cause)}`;
    throw new AppError(
      { code: 'PAGE_NOT_SERVED', message, hint: 'Pass another address or port with --serve=ADDRESS:PORT; of ui, the port with --port' },
      { exitCode: 2, cause },
    );
  }
}

/** Prints the URL; other hosts read the page without encryption. */
function announce(
  { output, hostname }: LivePagePorts,
  { host }: PageAddress,
  { port, secret }: { readonly port: number; readonly secret: string },
): void {
  const ip = parseIp(host);
  const name = ip === null ? host : isUnspecified(ip) ? hostname : ip.family === 6 ? `[${host}]` : host;
  if (host !== 'localhost' && (ip === null || !isLoopback(ip))) {
    const message = `the live page is served over plain HTTP: everyone who can read the network traffic of ${host} can read the page and its token`;
    const hint = 'To read it from another host over SSH, omit the address and forward the port with ssh -L';
    output.stderr(`warning: ${formatProblem({ code: 'PAGE_NOT_ENCRYPTED', message, hint })}\n`);
  }
  output.stderr(`live page: http://${name}:${port}/${secret}/\n`);
}

/** Renders again after a pause that grows with the time of the last rendering. */
function cachedPage({ clock }: Pick<LivePagePorts, 'clock'>, source: PageSource) {
  let known: { readonly page: RenderedPage; readonly at: number } | null = null;
  let pauseMs = EVERY_MS;
  const now = (): number => clock.now().getTime();
  return {
    pauseMs: () => pauseMs,
    latest: (): RenderedPage => {
      const startedAt = now();
      if (known !== null && startedAt - known.at < pauseMs) return known.page;
      const page = source.render();
      known = { page, at: now() };
      pauseMs = Math.max(EVERY_MS, (now() - startedAt) / SHARE);
      return page;
    },
  };
}

/** Sends the parts that differ from those the reader has. */
function sendChanges(reader: LocalStream, readers: Map<LocalStream, RenderedPage['parts']>, page: RenderedPage): void {
  const known = readers.get(reader);
  if (known === undefined || reader.pending() > MOST_PENDING) return;
  const changed = changedParts(known, page);
  if (Object.keys(changed).length === 0) return;
  readers.set(reader, page.parts);
  reader.send(eventOf('parts', page, changed));
}

function changedParts(known: RenderedPage['parts'], { parts }: RenderedPage): Readonly<Record<string, string>> {
  const before = new Map<string, string>(Object.entries(known));
  return Object.fromEntries(Object.entries(parts).filter(([part, html]) => before.get(part) !== html));
}

function eventOf(event: 'parts' | 'end', { title }: RenderedPage, parts: Readonly<Record<string, string>>): string {
  return `event: ${event}\ndata: ${JSON.stringify({ title, parts })}\n\n`;
}

function wrongMethod(allow: string): LocalResponse {
  return { ...refusal(405, 'method not allowed'), headers: { ...HEADERS, allow } };
}

function refusal(status: number, text: string): LocalResponse {
  return { status, type: TEXT, body: `${text}\n`, headers: HEADERS };
}

/** Compares in a time that does not depend on the given text. */
function isEqual(given: string, secret: string): boolean {
  const [a, b] = [given, secret].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}

/**
 * Whether the Host header is an IP address, the local host or the served name. A name of another site means that its DNS
 * entry leads here (DNS rebinding). The port may be that of a forwarded connection.
 */
function isAllowedHost(header: string, names: ReadonlySet<string>): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(header) ?? [];
  const name = (bracketed ?? plain).toLowerCase();
  return name !== '' && (parseIp(name) !== null || names.has(name));
}
