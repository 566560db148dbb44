import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../../src/base/clock.ts';
import { AppError } from '../../../../src/base/errors.ts';
import type { LocalRequest, LocalResponse, LocalStream } from '../../../../src/base/local-server.ts';
import { type LivePagePorts, type PageAddress, serveLivePage } from '../../../../src/cli/report/live-page.ts';
import type { RenderedPage } from '../../../../src/cli/report/render-report.ts';
import { PARTS } from '../../../../src/cli/report/report-page.ts';

const LOOPBACK: PageAddress = { host: '127.0.0.1', port: 0 };
const SECRET = 'aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb';

/** A clock that only the test advances. */
function manualClock(): Clock & { pass(ms: number): Promise<void> } {
  let now = 0;
  let sleepers: readonly { readonly at: number; readonly wake: () => void }[] = [];
  return {
    now: () => new Date(now),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        sleepers = [...sleepers, { at: now + ms, wake: resolve }];
      }),
    pass: async (ms) => {
      now += ms;
      const due = sleepers.filter(({ at }) => at <= now);
      sleepers = sleepers.filter(({ at }) => at > now);
      for (const { wake } of due) wake();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

interface Event {
  readonly event: string;
  readonly parts: Readonly<Record<string, string>>;
}

/** A reader that keeps the events, or never receives what was sent. */
function fakeReader({ isSlow = false } = {}) {
  const events: Event[] = [];
  let closed = (): void => undefined;
  const receive = (text: string): void => {
    const [, event = '', data = '{}'] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(text) ?? [];
    events.push({ event, parts: (JSON.parse(data) as { readonly parts: Record<string, string> }).parts });
  };
  const stream: LocalStream = {
    send: receive,
    pending: () => (isSlow && events.length > 0 ? 5_000_000 : 0),
    onClose: (listener) => {
      closed = listener;
    },
    end: async (text) => {
      if (isSlow) return new Promise(() => undefined);
      receive(text);
    },
  };
  return { stream, events, leave: () => closed() };
}

type Act = (request: unknown) => Promise<object>;

/** A served page whose head is the given text. */
async function world({ address = LOOPBACK, listenError = null as Error | null, act = undefined as Act | undefined } = {}) {
  const clock = manualClock();
  const errors: string[] = [];
  const ids = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'];
  let answer: (request: LocalRequest) => LocalResponse | null = () => null;
  const state = { head: 'one', renderings: 0, isBroken: false, isClosed: false };
  const ports: LivePagePorts = {
    clock,
    hostname: 'Laptop',
    output: { stdout: () => undefined, stderr: (text) => void errors.push(String(text)), document: () => undefined },
    newId: async () => ids.shift() ?? '',
    serveLocal: async (_host, _port, given) => {
      if (listenError !== null) throw listenError;
      answer = (request) => given(request) as LocalResponse | null;
      return {
        port: 4711,
        close: async () => {
          state.isClosed = true;
        },
      };
    },
  };
  const page = await serveLivePage(ports, address, {
    render: (): RenderedPage => {
      state.renderings++;
      if (state.isBroken) throw new Error('a bug of the page');
      const parts = Object.fromEntries(PARTS.map((part) => [part, part === 'head' ? state.head : '']));
      return { title: 'a run', footer: '', parts };
    },
    ...(act === undefined ? {} : { act }),
    document: ({ parts }) => `<html>${parts.head}`,
  });
  const get = (request: Partial<LocalRequest> = {}): LocalResponse | null =>
    answer({ method: 'GET', path: `/${SECRET}/`, host: '127.0.0.1:4711', ...request });
  const connect = (reader: ReturnType<typeof fakeReader>): void => get({ path: `/${SECRET}/events` })?.stream?.(reader.stream);
  return { page, state, errors, get, connect, pass: clock.pass };
}

describe('the server of a live page', () => {
  it('prints the URL once, and serves the page only below the token', async () => {
    const { errors, get } = await world();
    expect(errors).toEqual([`live page: http://127.0.0.1:4711/${SECRET}/\n`]);
    expect(get()).toMatchObject({ status: 200, body: '<html>one' });
    for (const path of ['/', '/favicon.ico', `/${SECRET}`, `/${SECRET}x/`, `/${SECRET.slice(1)}/`, '//', `/${SECRET}/other`])
      expect(get({ path }), path).toBeNull();
  });

  it('refuses the name of another site as Host, which a DNS entry of that site could lead here', async () => {
    const { get } = await world();
    for (const host of ['evil.example:4711', 'localhost.evil.example', '', '127.0.0.1.evil.example', '[evil]:1'])
      expect(get({ host }), host).toMatchObject({ status: 421 });
    for (const host of ['127.0.0.1:4711', 'localhost:8080', 'LOCALHOST', '[::1]:4711', 'laptop:4711'])
      expect(get({ host }), host).toMatchObject({ status: 200 });
  });

  it('accepts only GET', async () => {
    const { get } = await world();
    expect(get({ method: 'HEAD' })).toMatchObject({ status: 405, headers: { allow: 'GET' } });
  });

  it('permits no other site to read, embed or cache the page', async () => {
    const { get } = await world();
    const { headers = {} } = get() ?? {};
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': "frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('warns that other hosts read the page without encryption', async () => {
    const all = await world({ address: { host: '0.0.0.0', port: 8080 } });
    expect(all.errors[0]).toMatch(/^warning: the live page is served over plain HTTP.*\[PAGE_NOT_ENCRYPTED\]\n$/);
    expect(all.errors[1]).toBe(`live page: http://Laptop:4711/${SECRET}/\n`);
    const one = await world({ address: { host: '10.0.0.5', port: 8080 } });
    expect(one.errors).toHaveLength(2);
    for (const host of ['127.0.0.2', '::1', 'localhost']) expect((await world({ address: { host, port: 0 } })).errors).toHaveLength(1);
  });

  it('is refused before the run if the address cannot be used', async () => {
    const listenError = Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE' });
    const refused = await world({ listenError }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(AppError);
    expect(refused).toMatchObject({ code: 'PAGE_NOT_SERVED', exitCode: 2 });
  });
});

describe('the actions of a live page', () => {
  const requests: unknown[] = [];
  const act: Act = async (request) => {
    requests.push(request);
    if (JSON.stringify(request).includes('fail')) throw new Error('a bug');
    return { message: 'done' };
  };
  const path = `/${SECRET}/act`;
  const post = { origin: 'http://127.0.0.1:4711', contentType: 'application/json', body: '{"action":"pause"}' };

  /** The JSON of a streamed answer. */
  async function answerOf(response: LocalResponse | null): Promise<unknown> {
    return new Promise((resolve) => {
      const end = async (text: string): Promise<void> => resolve(JSON.parse(text));
      response?.stream?.({ send: () => undefined, pending: () => 0, onClose: () => undefined, end });
    });
  }

  it('are those of the page itself', async () => {
    const { get } = await world({ act });
    const response = get({ method: 'POST', path, post });
    expect(response).toMatchObject({ status: 200, type: 'application/json', headers: { 'cache-control': 'no-store' } });
    expect(await answerOf(response)).toEqual({ message: 'done' });
    expect(requests).toEqual([{ action: 'pause' }]);
    expect(await answerOf(get({ method: 'POST', path, post: { ...post, body: '{"action":"fail"}' } }))).toEqual({ problem: 'a bug' });
    const forwarded = { ...post, origin: 'http://localhost:8080' };
    expect(get({ method: 'POST', path, host: 'localhost:8080', post: forwarded })).toMatchObject({ status: 200 });
  });

  it.each([
    ['another site', { post: { ...post, origin: 'http://evil.example' } }, 403],
    ['another port of this host', { post: { ...post, origin: 'http://127.0.0.1:80' } }, 403],
    ['another scheme', { post: { ...post, origin: 'https://127.0.0.1:4711' } }, 403],
    ['a sandboxed frame', { post: { ...post, origin: 'null' } }, 403],
    ['a client without an origin', { post: { ...post, origin: '' } }, 403],
    ['a form', { post: { ...post, contentType: 'text/plain' } }, 415],
    ['a body that is not JSON', { post: { ...post, body: '{' } }, 400],
    ['a body that is no object', { post: { ...post, body: '"pause"' } }, 400],
    ['a name of another site as Host', { host: 'evil.example', post: { ...post, origin: 'http://evil.example' } }, 421],
  ])('refuses %s', async (_, request, status) => {
    requests.length = 0;
    const { get } = await world({ act });
    expect(get({ method: 'POST', path, ...request })).toMatchObject({ status });
    expect(requests).toEqual([]);
  });

  it('need POST and the token, and a page that has actions', async () => {
    const { get } = await world({ act });
    expect(get({ path })).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(get({ method: 'POST', path: `/${SECRET}x/act`, post })).toBeNull();
    expect(get({ method: 'POST', post })).toMatchObject({ status: 405, headers: { allow: 'GET' } });
    expect((await world()).get({ method: 'POST', path, post })).toBeNull();
  });
});

describe('the events of a live page', () => {
  it('give a new reader all parts, and then only those that changed, at most once a second', async () => {
    const { state, connect, pass } = await world();
    const reader = fakeReader();
    connect(reader);
    expect(Object.keys(reader.events[0]?.parts ?? {})).toEqual([...PARTS]);
    await pass(1_000);
    expect(reader.events).toHaveLength(1);
    state.head = 'two';
    await pass(500);
    state.head = 'three';
    await pass(500);
    expect(reader.events.slice(1)).toEqual([{ event: 'parts', parts: { head: 'three' } }]);
    const again = fakeReader();
    connect(again);
    expect(again.events[0]?.parts.head).toBe('three');
    expect(Object.keys(again.events[0]?.parts ?? {})).toHaveLength(PARTS.length);
  });

  it('render nothing without a reader', async () => {
    const { state, connect, pass } = await world();
    await pass(1_000);
    await pass(1_000);
    expect(state.renderings).toBe(0);
    const reader = fakeReader();
    connect(reader);
    reader.leave();
    await pass(1_000);
    await pass(1_000);
    expect(state.renderings).toBe(1);
  });

  it('wait for a slow reader, and then give it all changes', async () => {
    const { state, connect, pass } = await world();
    const reader = fakeReader({ isSlow: true });
    connect(reader);
    state.head = 'two';
    await pass(1_000);
    expect(reader.events).toHaveLength(1);
  });

  it('end with the last state, and the server is closed', async () => {
    const { page, state, connect } = await world();
    const reader = fakeReader();
    connect(reader);
    state.head = 'the end';
    await page.end();
    expect(reader.events.at(-1)).toEqual({ event: 'end', parts: { head: 'the end' } });
    expect(state.isClosed).toBe(true);
  });

  it('do not delay the end of the run for a reader that receives nothing', async () => {
    const { page, state, connect, pass } = await world();
    connect(fakeReader({ isSlow: true }));
    const ended = page.end();
    await pass(1_000);
    await ended;
    expect(state.isClosed).toBe(true);
  });

  it('do not fail the run if the page has a bug', async () => {
    const { page, state, errors, connect, pass } = await world();
    connect(fakeReader());
    state.isBroken = true;
    await pass(1_000);
    expect(errors.at(-1)).toBe('warning: the live page stopped: a bug of the page\n');
    await page.end();
    expect(state.isClosed).toBe(true);
  });
});
