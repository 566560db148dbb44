import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeHttpsClient } from '../../src/kube/adapters/https-client.ts';
import { type FakeServer, fakeWeb } from '../support/fake-web.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { webContract } from './https-client.ts';

webContract('fakeWeb', async (machine) => {
  const servers: Record<string, FakeServer> = {};
  let port = 10_000;
  return {
    web: fakeWeb({ servers, machine }),
    serve: async ({ ca, names, validity, answer }) => {
      const origin = `https://127.0.0.1:${port++}`;
      const headers = answer?.headers ?? {};
      servers[origin] = {
        authority: ca.certPem,
        names,
        ...validity,
        reply: () =>
          answer === null
            ? 'silence'
            : {
                status: answer.status,
                text: answer.text,
                contentType: headers['Content-Type']?.split(';')[0] ?? '',
                date: headers.Date === undefined ? null : new Date(headers.Date),
                location: headers.Location ?? null,
              },
      };
      return origin;
    },
    close: async () => undefined,
  };
});

webContract('nodeHttpsClient', async (machine) => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-web-'));
  const bundle = join(directory, 'bundle.pem');
  writeFileSync(bundle, machine.join(''));
  const open: (() => void)[] = [];
  return {
    web: nodeHttpsClient({ SSL_CERT_FILE: bundle }),
    serve: async ({ ca, names, validity, answer }) => {
      const { certPem, keyPem } = await ca.issueServer(names, validity ?? {});
      const server = createServer({ cert: certPem, key: keyPem }, (_, response) => {
        if (answer !== null) response.writeHead(answer.status, answer.headers).end(answer.text);
      });
      const port = await listenOnLoopback(server);
      open.push(() => {
        server.close();
        server.closeAllConnections();
      });
      return `https://127.0.0.1:${port}`;
    },
    close: async () => {
      for (const close of open) close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
});
