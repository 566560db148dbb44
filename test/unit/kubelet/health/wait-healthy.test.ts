import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { isHealthy } from '../../../../src/kubelet/health/observe.ts';
import { waitForHealthyKubelet, waitForStartedKubelet } from '../../../../src/kubelet/health/wait-healthy.ts';
import { type FakeClock, fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit, runs } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const URL = 'http://127.0.0.1:10248/healthz';
const TARGET = { url: URL, timeoutMs: 240_000 };
const SWAP =
  'E1120 13:20:06.468731   26671 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap"';
const MISSING_CONFIG =
  'E1120 13:18:47.445566   25420 run.go:72] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: open /var/lib/kubelet/config.yaml: no such file or directory"';
const NO_RUNTIME =
  'E1120 13:19:26.465869   26267 run.go:72] "command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \\"unix:///run/containerd/containerd.sock\\": rpc error: connection error: desc = \\"transport: dial unix /run/containerd/containerd.sock: connect: no such file or directory\\""';

interface World {
  readonly clock: FakeClock;
  readonly host: FakeHost;
  readonly unit: FakeUnit;
  readonly reporter: ReturnType<typeof recordingReporter>;
  wait(target?: { readonly url: string | null; readonly timeoutMs: number }, signal?: AbortSignal): Promise<void>;
}

function world(unit: FakeUnit = fakeUnit({ activeState: 'active', subState: 'running' })): World {
  const clock = fakeClock();
  const host = fakeHost({ units: { kubelet: unit } });
  const reporter = recordingReporter();
  return {
    clock,
    host,
    unit,
    reporter,
    wait: (target = TARGET, signal) =>
      waitForHealthyKubelet({ host, cluster: null, clock, reporter, ...(signal ? { signal } : {}) }, 'kubelet-start', target),
  };
}

const healthy = (host: FakeHost) => (): void => {
  host.http = (url) => (url === URL ? { status: 200, body: 'ok' } : { error: 'another url' });
};

/** Crashes and restarts every ten seconds, like the unit of the packages. */
function crashLoop({ clock, unit }: World, line: string, times: number): void {
  for (let i = 1; i <= times; i++) clock.at(i * 10_000, () => crashes(unit, line));
}

async function failureOf(promise: Promise<void>): Promise<AppError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppError);
  return error as AppError;
}

describe('waitForHealthyKubelet', () => {
  it('returns immediately for a healthy kubelet', async () => {
    const { host, clock, reporter, wait } = world();
    healthy(host)();
    await wait();
    expect([clock.elapsedMs, host.roundTrips, reporter.events]).toEqual([0, 1, []]);
  });

  it('reports its progress every ten seconds', async () => {
    const { host, clock, reporter, wait } = world();
    clock.at(25_000, healthy(host));
    await wait();
    expect(clock.elapsedMs).toBe(25_000);
    expect(reporter.messages('WAITING')).toEqual([
      'waiting for the kubelet to become healthy, 10 s: unit active (running), 0 restarts, healthz: connection refused',
      'waiting for the kubelet to become healthy, 20 s: unit active (running), 0 restarts, healthz: connection refused',
    ]);
  });

  it.each([
    ['an answer that is not 200', { status: 500, body: '[-]syncloop failed' }, 'healthz returns 500'],
    ['no answer', { error: 'connection refused' }, 'healthz: connection refused'],
  ])('times out on %s', async (_, answer, reported) => {
    const { host, clock, reporter, wait } = world();
    host.http = () => answer;
    const error = await failureOf(wait({ url: URL, timeoutMs: 15_000 }));
    expect(error).toMatchObject({ code: 'KUBELET_UNHEALTHY', exitCode: 1 });
    expect(error.message).toBe(
      'node1: kubelet-start: kubelet not healthy after 15s: unit active (running). See journalctl -u kubelet on the host, then rerun the command. [KUBELET_UNHEALTHY]',
    );
    expect(clock.elapsedMs).toBe(15_000);
    expect(reporter.messages('WAITING')[0]).toContain(reported);
  });

  it('finds the cause in the journal, and keeps the journal for -v 5', async () => {
    const { host, unit, wait } = world();
    unit.journal =
      'E1120 13:21:53.692109   28155 server.go:951] "Failed to start healthz server" err="listen tcp 127.0.0.1:10248: bind: address already in use"\n';
    const error = await failureOf(wait());
    expect(error.message).toContain(
      'after 4m0s: port 10248 is in use by another process. Find the process with ss -ltnp and stop it, then rerun the command.',
    );
    expect(error.detail).toBe(unit.journal.trimEnd());
    expect(host.performed).toEqual([]);
  });

  it('reads the journal since the restart, and ignores older crashes', async () => {
    const it = world();
    crashLoop(it, SWAP, 2);
    const asked: (readonly string[])[] = [];
    const query = it.host.query;
    it.host.query = (queries, options) => {
      if (queries.journal?.kind === 'command') asked.push(queries.journal.argv);
      return query(queries, options);
    };
    await failureOf(it.wait());
    expect(asked.at(-1)).toEqual(expect.arrayContaining(['--unit=kubelet', '--since=-25s']));
  });

  it('shortens a long cause', async () => {
    const it = world();
    crashLoop(it, SWAP.replace('running with swap', `${'x'.repeat(40_000)} running with swap`).replace('swap is not', 'swap is'), 30);
    expect((await failureOf(it.wait())).message.length).toBeLessThan(800);
  });

  it('ends early when the kubelet crashes twice with a permanent error', async () => {
    const it = world();
    crashLoop(it, SWAP, 9);
    const error = await failureOf(it.wait());
    expect(error.message).toContain('after 20s: swap is on. Disable swap');
  });

  it('keeps waiting for a temporary cause, and reads the journal once per crash', async () => {
    const it = world();
    crashLoop(it, NO_RUNTIME, 4);
    it.clock.at(45_000, () => {
      runs(it.unit);
      healthy(it.host)();
    });
    let journals = 0;
    const query = it.host.query;
    it.host.query = (queries, options) => {
      if ('journal' in queries) journals++;
      return query(queries, options);
    };
    await it.wait();
    expect(it.clock.elapsedMs).toBe(55_000);
    // After the second to the fourth crash, and for the messages about the progress.
    expect(journals).toBe(3 + it.reporter.messages('WAITING').length);
  });

  it.each([
    ['a temporary cause', NO_RUNTIME, 'no container runtime responds at unix:///run/containerd/containerd.sock'],
    [
      'an unknown one, with other numbers each time',
      'E1128 11:00:00.1   77 x.go:1] "command failed" err="failed to run Kubelet: odd 0xc0001234 at 17"',
      'failed to run Kubelet: odd 0xc0001234 at 17',
    ],
    ['no message at all', '', 'unit activating (auto-restart), last exit code 1'],
  ])('ends after six equal exits for %s', async (_, line, cause) => {
    const it = world();
    crashLoop(it, line, 40);
    expect((await failureOf(it.wait())).message).toContain(`after 1m0s: ${cause}`);
  });

  it('does not end within half a minute for a unit that restarts at once', async () => {
    const it = world();
    for (let i = 1; i <= 20; i++) it.clock.at(i * 1_000, () => crashes(it.unit, NO_RUNTIME));
    it.clock.at(20_500, () => {
      runs(it.unit);
      healthy(it.host)();
    });
    await it.wait();
  });

  it('does not add up exits for different reasons', async () => {
    const it = world();
    for (let i = 1; i <= 20; i++)
      it.clock.at(i * 10_000, () =>
        crashes(it.unit, `E1128 11:00:00.1   ${i} x.go:1] "command failed" err="failed to run Kubelet: ${i % 2 === 0 ? 'odd' : 'even'}"`),
      );
    expect((await failureOf(it.wait())).message).toContain('after 4m0s');
  });

  it('does not end at the first answer of a kubelet that exits after it', async () => {
    const it = world();
    const manager =
      'E1128 11:00:00.1   77 kubelet.go:1] "Failed to start ContainerManager" err="start cpu manager error: could not restore state from checkpoint: checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file \\"/var/lib/kubelet/cpu_manager_state\\" before restarting Kubelet"';
    healthy(it.host)();
    runs(it.unit);
    it.unit.starts = 1;
    runs(it.unit);
    for (let i = 0; i < 10; i++) {
      it.clock.at(i * 2_000 + 300, () => crashes(it.unit, manager));
      it.clock.at(i * 2_000 + 1_900, () => runs(it.unit));
    }
    const error = await failureOf(it.wait());
    expect(error.message).toContain('the state file /var/lib/kubelet/cpu_manager_state of the CPU manager does not fit');
    expect(it.clock.elapsedMs).toBeLessThan(10_000);
  });

  it.each([
    ['Ready', 'True', undefined, 5, 0],
    ['not Ready because of the pod network alone', 'False', 'container runtime network not ready: NetworkReady=false', 5, 0],
    ['not Ready because CSI is not initialized', 'False', 'CSINode is not yet initialized', 5, 0],
    [
      'not Ready because of the pod network and CSI',
      'False',
      '[container runtime network not ready: NetworkReady=false, CSINode is not yet initialized]',
      5,
      0,
    ],
    [
      'not Ready because of its runtime and CSI',
      'False',
      '[container runtime status check may not have completed yet, CSINode is not yet initialized]',
      5,
      10_000,
    ],
    ['not Ready because its runtime was not checked', 'False', '[container runtime status check may not have completed yet]', 5, 10_000],
    ['Ready by an earlier process', 'True', undefined, 0, 10_000],
  ])('a Node that is %s: waits until it has stayed healthy, or not', async (_, status, message, heartbeat, expected) => {
    const it = world();
    it.unit.starts = 1;
    runs(it.unit);
    healthy(it.host)();
    const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
    const cluster = fakeCluster();
    const conditions = [{ type: 'Ready', status, message: message ?? '', lastHeartbeatTime: at(heartbeat) }];
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' }, status: { conditions } });
    const context = { host: it.host, cluster, clock: it.clock, reporter: it.reporter };
    const stays = await waitForStartedKubelet(context, 'kubelet-start', TARGET, 'node1');
    expect(it.clock.elapsedMs).toBe(0);
    await stays();
    expect(it.clock.elapsedMs).toBe(expected);
  });

  it('believes a Node that was registered in the second of the start, if it did not exist before', async () => {
    const it = world();
    it.unit.starts = 1;
    runs(it.unit);
    healthy(it.host)();
    const cluster = fakeCluster();
    const context = { host: it.host, cluster, clock: it.clock, reporter: it.reporter };
    const stays = await waitForStartedKubelet(context, 'kubelet-start', TARGET, 'node1');
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date(0).toISOString() }];
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' }, status: { conditions } });
    await stays();
    expect(it.clock.elapsedMs).toBe(0);
  });

  it('sees within 100 ms that a Node which was just registered is Ready', async () => {
    const it = world();
    it.unit.starts = 1;
    runs(it.unit);
    healthy(it.host)();
    const cluster = fakeCluster();
    const context = { host: it.host, cluster, clock: it.clock, reporter: it.reporter };
    const stays = await waitForStartedKubelet(context, 'kubelet-start', TARGET, 'node1');
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date(1_000).toISOString() }];
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' }, status: { conditions } };
    it.clock.at(320, () => void cluster.create(node));
    await stays();
    expect(it.clock.elapsedMs).toBe(400);
  });

  it('does not believe the report of a process that followed a killed one, but waits until it has stayed healthy', async () => {
    const it = world();
    it.unit.starts = 1;
    runs(it.unit);
    healthy(it.host)();
    const cluster = fakeCluster();
    const context = { host: it.host, cluster, clock: it.clock, reporter: it.reporter };
    const stays = await waitForStartedKubelet(context, 'kubelet-start', TARGET, 'node1');
    crashes(it.unit, '');
    runs(it.unit);
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date(5_000).toISOString() }];
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' }, status: { conditions } });
    await stays();
    expect(it.clock.elapsedMs).toBe(10_000);
  });

  it('takes only the rest of the time after later waits', async () => {
    const it = world();
    it.unit.starts = 1;
    runs(it.unit);
    healthy(it.host)();
    const context = { host: it.host, cluster: null, clock: it.clock, reporter: it.reporter };
    const stays = await waitForStartedKubelet(context, 'kubelet-start', TARGET);
    await it.clock.sleep(8_000);
    await stays();
    expect(it.clock.elapsedMs).toBe(10_000);
  });

  it('ends immediately when the unit has failed permanently', async () => {
    const { unit, clock, wait } = world();
    unit.state = { ...unit.state, activeState: 'failed', subState: 'failed', execMainStatus: 1 };
    unit.journal = `${SWAP}\n`;
    expect((await failureOf(wait())).message).toContain('after 0s: swap is on');
    expect(clock.elapsedMs).toBe(0);
  });

  it('ignores crashes before the start of the wait', async () => {
    // Before a join the unit of the packages dies every ten seconds, and `systemctl restart` does not reset systemd's counter.
    const it = world(fakeUnit({ activeState: 'active', subState: 'running', restarts: 37 }));
    it.unit.journal = `${`Started kubelet.service - kubelet: The Kubernetes Node Agent.\n${MISSING_CONFIG}\n`.repeat(5)}Started kubelet.service - kubelet: The Kubernetes Node Agent.\n`;
    it.clock.at(3_000, healthy(it.host));
    await it.wait();
    expect(it.clock.elapsedMs).toBe(3_000);
  });

  it('ends when such a unit crashes again with a permanent error', async () => {
    const it = world(fakeUnit({ activeState: 'active', subState: 'running', restarts: 37 }));
    it.clock.at(2_000, () => crashes(it.unit, SWAP));
    expect((await failureOf(it.wait())).message).toContain('after 2s: swap is on');
  });

  it('does not report the error of an earlier run for a running kubelet that does not respond', async () => {
    const it = world(fakeUnit({ activeState: 'active', subState: 'running', restarts: 37 }));
    it.unit.journal = `Started kubelet.service - kubelet.\n${MISSING_CONFIG}\nStarted kubelet.service - kubelet.\nI1120 13:21:54.0   28155 server.go:545] "Kubelet version"\n`;
    expect((await failureOf(it.wait())).message).toContain('unit active (running)');
  });

  it('detects crashes after a reset of the restart counter', async () => {
    const it = world(fakeUnit({ activeState: 'activating', subState: 'auto-restart', restarts: 9 }));
    it.clock.at(1_000, () => {
      it.unit.state = { ...it.unit.state, restarts: 0 };
    });
    it.clock.at(5_000, () => crashes(it.unit, SWAP));
    it.clock.at(12_000, () => crashes(it.unit, SWAP));
    expect((await failureOf(it.wait())).message).toContain('after 12s: swap is on');
  });

  it.each([
    ['masked', { loadState: 'masked', unitFileState: 'masked' }, 'kubelet.service is masked'],
    ['missing', { loadState: 'not-found', unitFileState: '' }, 'kubelet.service does not exist'],
    ['without its binary', { activeState: 'activating', subState: 'auto-restart', execMainStatus: 203 }, '203/EXEC'],
  ])('reports a unit that is %s', async (_, state, cause) => {
    const { wait } = world(fakeUnit(state));
    expect((await failureOf(wait({ url: URL, timeoutMs: 5_000 }))).message).toContain(cause);
  });

  it('reports an unknown unit state', async () => {
    const host = fakeHost({ units: null });
    const wait = waitForHealthyKubelet({ host, cluster: null, clock: fakeClock(), reporter: recordingReporter() }, 'p', {
      url: URL,
      timeoutMs: 1_000,
    });
    expect((await failureOf(wait)).message).toContain('unit state unknown');
  });

  describe('with healthzPort 0', () => {
    const quiet = { url: null, timeoutMs: 60_000 };

    it('sends no HTTP request, and accepts a unit that runs for five seconds', async () => {
      const { host, clock, wait } = world();
      host.http = () => expect.unreachable();
      await wait(quiet);
      expect(clock.elapsedMs).toBe(5_000);
    });

    it('restarts the five seconds when the unit crashes in between', async () => {
      const it = world();
      it.clock.at(3_000, () => crashes(it.unit, NO_RUNTIME));
      it.clock.at(13_000, () => runs(it.unit));
      await it.wait(quiet);
      expect(it.clock.elapsedMs).toBe(28_000);
    });
  });

  it('stops when it is aborted', async () => {
    const { clock, wait } = world();
    const stop = new AbortController();
    clock.at(2_000, () => stop.abort(new Error('stopped by the user')));
    await expect(wait(TARGET, stop.signal)).rejects.toThrow('stopped by the user');
    expect(clock.elapsedMs).toBeLessThan(3_000);
  });
});

describe('isHealthy', () => {
  const { state } = fakeUnit({ activeState: 'active' });

  it.each([
    [state, { status: 200, body: 'ok' }, true],
    [state, null, true],
    [state, { status: 500, body: '' }, false],
    [state, { error: 'refused' }, false],
    [{ ...state, activeState: 'activating' }, { status: 200, body: 'ok' }, false],
    [null, { status: 200, body: 'ok' }, false],
    [null, null, false],
  ])('%j with %j: %s', (unit, healthz, expected) => {
    expect(isHealthy({ unit, healthz })).toBe(expected);
  });
});
