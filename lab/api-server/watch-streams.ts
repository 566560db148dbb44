import type { ServerResponse } from 'node:http';
import type { Clock } from '../../src/base/clock.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { isTrue } from './request-info.ts';
import type { Store } from './store.ts';
import { renderTable } from './table.ts';
import { openWatch, type Watch, type WatchRequest, type WatchSink } from './watch.ts';

/** The open watches over HTTP. */
export interface WatchStreams {
  /**
   * Streams events, one JSON object per line, until the client disconnects, `timeoutSeconds` elapse or
   * `endAll` is called.
   */
  serve(request: WatchRequest, query: URLSearchParams, response: ServerResponse, asTable: boolean): void;
  count(): number;
  bookmarkAll(): void;
  endAll(): void;
}

const BOOKMARK_INTERVAL_MS = 60_000;
/** A client with more unread data is disconnected. */
const MAX_UNREAD_BYTES = 32 * 1024 * 1024;

/** Creates an empty set of watches. Timers run only while watches are open. */
export function createWatchStreams(store: Store, clock: Clock): WatchStreams {
  const open = new Set<{ readonly watch: Watch; readonly bookmarks: boolean; readonly end: () => void }>();
  return {
    serve: (request, query, response, asTable) => {
      const done = new AbortController();
      const end = () => {
        done.abort();
        response.end();
      };
      const sink: WatchSink = {
        send: (type, object) => writeEvent(response, type, asTable ? asRow(request, type, object, clock) : object),
        end,
      };
      const headers = { 'Cache-Control': 'no-cache, private', 'Content-Type': 'application/json' };
      // Opened before the headers are sent, so that an invalid request gets an error response.
      const lines: (() => void)[] = [];
      let buffering = true;
      const watch = openWatch(store, request, {
        send: (type, object) => (buffering ? lines.push(() => sink.send(type, object)) : sink.send(type, object)),
        end: () => (buffering ? lines.push(end) : end()),
      });
      response.writeHead(200, headers);
      response.flushHeaders();
      buffering = false;
      for (const line of lines) line();
      const entry = { watch, bookmarks: isTrue(query.get('allowWatchBookmarks')), end };
      open.add(entry);
      const close = () => {
        watch.stop();
        open.delete(entry);
        done.abort();
      };
      response.on('close', close);
      const seconds = Number(query.get('timeoutSeconds') ?? '');
      if (seconds > 0) endLater(clock, seconds * 1000, done.signal, entry.bookmarks ? () => watch.bookmark() : () => {}, end);
      if (entry.bookmarks) void bookmarkRegularly(clock, done.signal, watch);
    },
    count: () => open.size,
    bookmarkAll: () => {
      for (const { watch, bookmarks } of open) if (bookmarks) watch.bookmark();
    },
    endAll: () => {
      for (const { end } of [...open]) end();
    },
  };
}

function endLater(clock: Clock, ms: number, signal: AbortSignal, before: () => void, end: () => void): void {
  clock.sleep(ms, signal).then(
    () => {
      before();
      end();
    },
    () => {},
  );
}

async function bookmarkRegularly(clock: Clock, signal: AbortSignal, watch: Watch): Promise<void> {
  try {
    for (;;) {
      await clock.sleep(BOOKMARK_INTERVAL_MS, signal);
      watch.bookmark();
    }
  } catch {
    // The watch has ended.
  }
}

function writeEvent(response: ServerResponse, type: string, object: JsonObject): void {
  if (response.writableEnded || response.destroyed) return;
  response.write(`${JSON.stringify({ type, object })}\n`);
  if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
}

function asRow({ type }: WatchRequest, event: string, object: JsonObject, clock: Clock): JsonObject {
  if (event === 'ERROR' || event === 'BOOKMARK') return object;
  return renderTable(type, [object as KubeObject], {}, clock.now());
}
