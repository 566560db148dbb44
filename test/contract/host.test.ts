import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { localTransport } from '../../src/host/adapters/transport-local.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import { fakeHost } from '../support/fake-host.ts';
import { describeHost } from './host.ts';

const top = mkdtempSync(join(tmpdir(), 'host-contract-'));
afterAll(() => rmSync(top, { recursive: true, force: true }));

describeHost('the fake host', () => fakeHost());
describeHost('the local host, in a directory', () =>
  hostOverTransport(localTransport(), { rootDir: mkdtempSync(join(top, 'root-')), nonce: () => 'd1b2a3f4c5e60718' }),
);
