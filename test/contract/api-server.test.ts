import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type AskedServer, playScenario, type RecordedAnswer } from './api-server.ts';
import { SCENARIOS } from './api-server-requests.ts';

const GOLDEN = new URL('golden/kube-apiserver-1.36.yaml', import.meta.url);
/** Recorded from a real server by RECORD_GOLDEN=1 KUBEBUILDER_ASSETS=folder; the requests are in api-server-requests.ts. */
const golden: Record<string, RecordedAnswer[]> = parse(readFileSync(GOLDEN, 'utf8'));

describe('the API server double answers as kube-apiserver 1.36 did', () => {
  let server: LabApiServer;
  let asked: AskedServer;
  beforeAll(async () => {
    server = await startApiServer();
    asked = {
      url: server.url,
      caPem: server.caPem,
      admin: await server.ca.issueClient({ commonName: 'kubernetes-admin', organizations: ['system:masters'] }),
    };
  });
  afterAll(() => server.close());

  it.each(SCENARIOS)('$name', async (scenario) => {
    expect(await playScenario(asked, scenario)).toEqual(golden[scenario.name]);
  });
});

const binaries = findRealBinaries();

describe.skipIf(requirement('the answers of a real kube-apiserver', typeof binaries === 'string' ? binaries : null))(
  'a real kube-apiserver still answers as recorded',
  () => {
    let server: RealApiServer;
    const recorded: Record<string, readonly RecordedAnswer[]> = {};
    beforeAll(async () => {
      if (typeof binaries !== 'string') server = await startRealApiServer(binaries);
    });
    afterAll(async () => {
      await server?.close();
      if (process.env.RECORD_GOLDEN) writeFileSync(GOLDEN, stringify(recorded, { lineWidth: 0 }));
    });

    it.each(SCENARIOS)('$name', async (scenario) => {
      const answers = await playScenario({ url: server.url, caPem: server.ca.certPem, admin: server.admin }, scenario);
      recorded[scenario.name] = answers;
      if (!process.env.RECORD_GOLDEN) expect(answers).toEqual(golden[scenario.name]);
    });
  },
);
