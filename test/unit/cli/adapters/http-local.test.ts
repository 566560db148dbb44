import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { LocalRequest, LocalResponse, LocalServer, LocalStream } from '../../../../src/base/local-server.ts';
import { serveLocal } from '../../../../src/cli/adapters/http-local.ts';

async function withServer(
  answer: (request: LocalRequest) => LocalResponse | null,
  work: (url: string, server: LocalServer) => Promise<void>,
): Promise<void> {
  const server = await serveLocal('127.0.0.1', 0, answer);
  try {
    await work(`http://127.0.0.1:${server.port}`, server);
  } finally {
    await server.close();
  }
}

describe('a server on the local host', () => {
  it('answers GET with the method, the path and the host, and 404 otherwise', async () => {
    const requests: LocalRequest[] = [];
    const answer = (request: LocalRequest): LocalResponse | null => {
      requests.push(request);
      return request.path === '/a' ? { status: 200, type: 'text/plain', body: 'x', headers: { 'x-own': '1' } } : null;
    };
    await withServer(answer, async (url, { port }) => {
      const found = await fetch(`${url}/a?query`);
      expect([found.status, await found.text(), found.headers.get('x-own')]).toEqual([200, 'x', '1']);
      expect((await fetch(`${url}/b`)).status).toBe(404);
      expect(requests[0]).toEqual({ method: 'GET', path: '/a', host: `127.0.0.1:${port}` });
    });
  });

  it('refuses other methods, and survives an error of an answer', async () => {
    const broken = (): never => {
      throw new Error('a bug');
    };
    await withServer(broken, async (url) => {
      const put = await fetch(url, { method: 'PUT', body: 'x' });
      expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
      expect((await fetch(url, { method: 'POST', body: 'x' })).status).toBe(500);
      expect((await fetch(url)).status).toBe(500);
      expect((await fetch(url)).status).toBe(500);
    });
  });

  it('answers a POST with its body and its origin, up to 16 KiB', async () => {
    const requests: LocalRequest[] = [];
    const answer = (request: LocalRequest): LocalResponse => {
      requests.push(request);
      return { status: 200, type: 'text/plain', body: 'done' };
    };
    await withServer(answer, async (url) => {
      const headers = { 'content-type': 'application/json', origin: 'http://other.example' };
      const posted = await fetch(url, { method: 'POST', headers, body: '{"name":"ä"}' });
      expect([posted.status, await posted.text()]).toEqual([200, 'done']);
      expect(requests[0]).toMatchObject({
        method: 'POST',
        post: { origin: 'http://other.example', contentType: 'application/json', body: '{"name":"ä"}' },
      });
      expect((await fetch(url, { method: 'POST', body: 'x'.repeat(16_385) })).status).toBe(413);
      expect(requests).toHaveLength(1);
    });
  });

  it('sends a stream in pieces until its end', async () => {
    let stream: LocalStream | null = null;
    const answer = (): LocalResponse => ({
      status: 200,
      type: 'text/event-stream',
      body: 'first\n',
      stream: (opened) => {
        stream = opened;
        opened.send('second\n');
      },
    });
    await withServer(answer, async (url) => {
      const response = await fetch(url);
      await (stream as LocalStream | null)?.end('last\n');
      expect(await response.text()).toBe('first\nsecond\nlast\n');
    });
  });

  it('closes a stream that fails at its start, and survives the error', async () => {
    const stream = (): never => {
      throw new Error('a bug');
    };
    await withServer(
      ({ path }) => ({ status: 200, type: 'text/plain', body: 'x', ...(path === '/events' ? { stream } : {}) }),
      async (url) => {
        await expect(fetch(`${url}/events`).then((response) => response.text())).rejects.toThrow();
        expect((await fetch(url)).status).toBe(200);
      },
    );
  });

  it('closes open streams, and reports that a reader has left', async () => {
    const left: string[] = [];
    const streams: LocalStream[] = [];
    const answer = (): LocalResponse => ({
      status: 200,
      type: 'text/event-stream',
      body: '',
      stream: (stream) => {
        streams.push(stream);
        stream.onClose(() => left.push('left'));
        stream.send('x');
      },
    });
    await withServer(answer, async (url, server) => {
      const response = await fetch(url);
      await server.close();
      await expect(response.text()).rejects.toThrow();
      await expect.poll(() => left).toEqual(['left']);
      await streams[0]?.end('too late');
    });
  });

  it('throws the error of listen', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(serveLocal('127.0.0.1', port, () => null)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await new Promise((resolve) => other.close(resolve));
  });
});
