import { describe, expect, it } from 'vitest';
import { keepToken } from '../../../src/agent/keep-token.ts';
import { agentAccount, agentAccountName } from '../../../src/core/dynamic/agent/account.ts';
import { readTokenClaims, TOKEN_SECONDS } from '../../../src/core/dynamic/agent/token-claims.ts';
import { AppError } from '../../../src/core/errors.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const FILE = '/var/lib/kubelet/kubeletadm-agent/token';
const DAY = 86_400_000;
const NAME = agentAccountName('node1');
const account = { namespace: 'kube-system', name: NAME };

/** An agent with a token of its own account, and the rights of that account alone. */
async function world() {
  const clock = fakeClock(new Date('2030-01-01T00:00:00Z'));
  const now = (): Date => clock.now();
  const admin = fakeCluster({ now, objects: agentAccount({ nodeName: 'node1', namespace: 'kube-system', isProxied: true }) });
  const user = { name: `system:serviceaccount:kube-system:${NAME}`, groups: ['system:serviceaccounts'] };
  const cluster = fakeCluster({ now, user, sharedWith: admin });
  const { token } = await admin.requestToken(account, TOKEN_SECONDS);
  const host = fakeHost({ files: { [FILE]: { type: 'file', mode: 0o600, owner: 'root:root', content: `${token.reveal()}\n` } } });
  const stop = new AbortController();
  const reporter = recordingReporter();
  const start = (): Promise<void> => keepToken({ cluster, host, file: FILE, clock, reporter, random: () => 0.5, signal: stop.signal });
  const runFor = async (ms: number): Promise<void> => {
    const end = clock.elapsedMs + ms;
    while (clock.elapsedMs < end && !stop.signal.aborted) await new Promise((resolve) => setImmediate(resolve));
  };
  const days = (): number => ((readTokenClaims(host.text(FILE))?.expiresAt ?? 0) - Date.parse('2030-01-01T00:00:00Z')) / DAY;
  return { clock, admin, cluster, host, stop, reporter, start, runFor, days };
}

describe("the agent's token", () => {
  it('is renewed after a third of its life, by the agent itself, and for its owner alone', async () => {
    const { start, stop, runFor, days, host, cluster, reporter } = await world();
    const running = start();
    await runFor(29 * DAY);
    expect(days()).toBe(90);
    expect(cluster.calls).toEqual([]);
    await runFor(2 * DAY);
    expect(days()).toBeCloseTo(120, 0);
    expect(host.files.get(FILE)).toMatchObject({ mode: 0o600, owner: 'root:root' });
    expect(cluster.calls).toHaveLength(1);
    expect(JSON.stringify(reporter.events)).not.toContain(host.text(FILE).trim());
    stop.abort();
    await running;
  });

  it('outlives an API server that is away for weeks', async () => {
    const { start, stop, runFor, days, cluster } = await world();
    const away = new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no route' });
    const real = cluster.requestToken;
    Object.assign(cluster, { requestToken: () => Promise.reject(away) });
    const running = start();
    await runFor(85 * DAY);
    expect(days()).toBe(90);
    Object.assign(cluster, { requestToken: real });
    await runFor(DAY / 4);
    expect(days()).toBeGreaterThan(170);
    stop.abort();
    await running;
  });

  it('can be had for no other account', async () => {
    const { cluster } = await world();
    await expect(cluster.requestToken({ namespace: 'kube-system', name: 'default' }, 3600)).rejects.toMatchObject({
      code: 'CLUSTER_FORBIDDEN',
    });
  });

  it.each(['', 'x', 'a.b.c', `e30.${Buffer.from('{"sub":"x","exp":1}').toString('base64url')}.c`])(
    'is left alone when it is none (%j)',
    async (text) => {
      const { start, host, reporter } = await world();
      host.files.set(FILE, { type: 'file', mode: 0o600, owner: 'root:root', content: text });
      await start();
      expect(reporter.events.map(({ code }) => code)).toEqual(['AGENT_TOKEN_UNKNOWN']);
    },
  );
});
