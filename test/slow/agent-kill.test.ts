import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { type AgentHost, agentHost, NODE, OTHER_CA, writeHostTools } from '../support/agent-host.ts';
import { assignPayload, clusterWithPayloads } from '../support/agent-objects.ts';
import type { FakeCluster } from '../support/fake-cluster.ts';
import { THOROUGH } from '../support/thorough.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const PAYLOADS: Readonly<Record<string, string>> = {
  a: `${HEADER}maxPods: 50\n`,
  bad: `${HEADER}maxPods: 60\ntlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key\n`,
  c: `${HEADER}maxPods: 70\n`,
  locked: `${HEADER}maxPods: 80\nauthentication: {x509: {clientCAFile: ${OTHER_CA}}}\n`,
};

interface Transition {
  /** Whether `a` is the last known good configuration at the start. */
  readonly fromGood: boolean;
  readonly assign: string | null;
  readonly result: { readonly phase: string; readonly maxPods: number };
  /** The kubelet may be down temporarily: the assigned configuration crashes it. */
  readonly mayBeDown?: boolean;
}

const TRANSITIONS: Readonly<Record<string, Transition>> = {
  'from local to good': { fromGood: false, assign: 'a', result: { phase: 'good', maxPods: 50 } },
  'from one good configuration to another': { fromGood: true, assign: 'c', result: { phase: 'good', maxPods: 70 } },
  'to a bad configuration, and back': { fromGood: true, assign: 'bad', result: { phase: 'fallen-back', maxPods: 50 }, mayBeDown: true },
  'to a configuration that locks the API server out, and back': {
    fromGood: true,
    assign: 'locked',
    result: { phase: 'fallen-back', maxPods: 50 },
  },
  'back to local': { fromGood: true, assign: null, result: { phase: 'local', maxPods: 110 } },
};

describe('a killed agent, on a real directory', () => {
  const directory = mkdtempSync(join(tmpdir(), 'agent-kill-'));
  const tools = join(directory, 'tools');
  const good = join(directory, 'good/root');
  let catalogue: Awaited<ReturnType<typeof loadCatalogue>>;
  let worlds = 0;

  const newCluster = async (assigned: string | null): Promise<FakeCluster> => {
    const cluster = await clusterWithPayloads(NODE, PAYLOADS);
    await assign(cluster, assigned);
    return cluster;
  };
  const assign = (cluster: FakeCluster, name: string | null): Promise<void> => assignPayload(cluster, NODE, name);
  const newHost = async (
    transition: Transition,
  ): Promise<{ readonly host: AgentHost; readonly cluster: FakeCluster; readonly close: () => void }> => {
    const at = join(directory, `world${worlds++}`);
    mkdirSync(at);
    const cluster = await newCluster(transition.assign);
    const host = await agentHost({ directory: at, tools, cluster, catalogue, ...(transition.fromGood ? { from: good } : {}) });
    return {
      host,
      cluster,
      close: () => {
        host.close();
        rmSync(at, { recursive: true, force: true });
      },
    };
  };
  const exists =
    (host: AgentHost, { result }: Transition) =>
    (): boolean =>
      host.state?.phase === result.phase && host.standIn.configz?.maxPods === result.maxPods;

  beforeAll(async () => {
    catalogue = await loadCatalogue();
    await writeHostTools(tools);
    mkdirSync(join(directory, 'good'));
    const cluster = await newCluster('a');
    const host = await agentHost({ directory: join(directory, 'good'), tools, cluster, catalogue });
    host.start();
    await host.until(exists(host, TRANSITIONS['from local to good'] as Transition));
    await host.stop();
    host.close();
  }, 60_000);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Kills before call n; every second time the whole host. False: the run finished before. */
  const killAt = async (transition: Transition, n: number): Promise<boolean> => {
    const { host, cluster, close } = await newHost(transition);
    try {
      host.start(n);
      const wasKilled = !(await host.until(exists(host, transition)));
      await host.stop();
      if (!wasKilled) return false;
      if (n % 2 === 0) {
        host.reboot();
        if (transition.mayBeDown !== true) expect(host.standIn.configz, `after a power cut before call ${n}`).not.toBeNull();
      }
      host.start();
      expect(await host.until(exists(host, transition))).toBe(true);
      const reported = async (): Promise<boolean> => {
        const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: NODE });
        const active = JSON.parse(node?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION] ?? '{}').active?.configMap.name ?? null;
        return active === (host.state?.active?.identity.name ?? null);
      };
      await expect.poll(reported, { timeout: 10_000 }).toBe(true);
      await host.stop();
      // Partial files are eventually removed.
      const left = readdirSync(join(host.root, AGENT_DIRECTORY), { recursive: true }).map(String);
      expect(left.filter((name) => /(?:^|\/)state-\d\.json$/.test(name)).length).toBeGreaterThan(0);
      return true;
    } finally {
      await host.stop();
      close();
    }
  };

  it.each(Object.entries(TRANSITIONS))(
    '%s: killed at a step',
    async (name, transition) => {
      const { host, close } = await newHost(transition);
      host.start();
      await host.until(exists(host, transition));
      const calls = host.calls().length;
      await host.stop();
      close();
      let kills = 0;
      // Two at a time; each third step, every one with `npm run test:thorough`.
      const steps = Array.from({ length: calls }, (_, i) => i + 1).filter((n) => THOROUGH || n % 3 === 1);
      await Promise.all(
        [0, 1].map(async (half) => {
          for (const n of steps.filter((_, i) => i % 4 < 2 === (half === 0))) if (await killAt(transition, n)) kills++;
        }),
      );
      process.stderr.write(`${name}: ${kills} kills at ${calls} steps\n`);
      expect(calls).toBeGreaterThan(5);
      expect(kills).toBeGreaterThanOrEqual(steps.length - 2);
    },
    300_000,
  );
});
