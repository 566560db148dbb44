import { afterEach, describe, expect, it } from 'vitest';
import { inspectKubelet } from '../../../../src/dynamic/agent/kubelet-control.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { newWorld, payload, type World } from './world.ts';

const KILLED = "the kubelet was killed by SIGKILL, by the kernel's OOM killer or by another process";
const EXITED =
  'E1128 11:00:01.1   76 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported"\nkubelet.service: Failed with result \'exit-code\'.\n';
const LATER = 'Starting kubelet.service...\nE1128 11:00:12.1   77 reflector.go:1] "Unhandled Error" err="connection refused"\n';
const URL = 'http://127.0.0.1:10248/healthz';

function hostWith(change: Parameters<typeof fakeUnit>[0], journal: string, { journalExit = 0, healthz = 500 } = {}): FakeHost {
  const kubelet = fakeUnit(change);
  kubelet.journal = journal;
  return fakeHost({
    units: { kubelet },
    commands: { sh: { exitCode: 3 }, ...(journalExit === 0 ? {} : { journalctl: { exitCode: journalExit, stderr: 'No journal files' } }) },
    http: () => ({ status: healthz, body: '' }),
  });
}

const causeOn = async (host: FakeHost, restarts = 0): Promise<string | null> =>
  (await inspectKubelet(host, { healthzUrl: URL, restarts, sinceSeconds: 0 })).cause;

describe('the cause of a kubelet failure', () => {
  let world: World | null = null;
  afterEach(() => world?.stop());

  it('names the signal that killed the kubelet in a trial, without a journal', async () => {
    world = newWorld();
    world.behaviours.set(50, { crashesAfter: 5, killedBy: 9 });
    world.start();
    await world.push('a', payload(50));
    await world.assign('a');
    const { state, condition } = { state: () => world?.state, condition: world.condition };
    await world.until('rolled back', () => state()?.phase === 'fallen-back');
    await world.until('reported', async () => (await condition()).reason === 'FallenBack');
    expect((await condition()).message).toContain(`the kubelet exited: ${KILLED}`);
  });

  const killed = { activeState: 'activating', subState: 'auto-restart', restarts: 1, result: 'signal', execMainCode: 2, execMainStatus: 9 };

  it.each([
    ['killed, with an empty journal', killed, '', {}, KILLED],
    ['killed, with an unreadable journal', killed, '', { journalExit: 1 }, KILLED],
    [
      'killed by the OOM killer',
      { ...killed, result: 'oom-kill' },
      '',
      {},
      "the kubelet was killed by SIGKILL, by the kernel's OOM killer",
    ],
    [
      'exited',
      { ...killed, result: 'exit-code', execMainCode: 1, execMainStatus: 2 },
      '',
      {},
      'unit activating (auto-restart), last exit code 2',
    ],
    ['restarted since, with an empty journal', { activeState: 'active', subState: 'running', restarts: 1 }, '', {}, null],
    [
      'restarted since, with the journal of the new process alone',
      { activeState: 'active', subState: 'running', restarts: 1 },
      LATER,
      {},
      'unit active (running)',
    ],
    [
      'restarted since, with the journal of both',
      { activeState: 'active', subState: 'running', restarts: 1 },
      `${EXITED}${LATER}`,
      {},
      'swap is on',
    ],
    [
      'starting with Type=notify',
      { activeState: 'activating', subState: 'start' },
      `E1128 11:00:01.1   76 reflector.go:1] "of the previous configuration"\nkubelet.service: Deactivated successfully.\n${LATER}`,
      {},
      'unit activating (start). Its last error: Unhandled Error: connection refused',
    ],
  ])('%s', async (_, unit, journal, options, cause) => {
    expect(await causeOn(hostWith(unit, journal, options))).toBe(cause);
  });

  const ended =
    'E0101 10:00:00.000000       7 run.go:72] "command failed" err="failed to run Kubelet: a is b"\nkubelet.service: Main process exited, code=killed, status=9/KILL\n';
  const runs = 'Started kubelet: The Kubernetes Node Agent.\nE0101 10:00:01.000000       8 x.go:1] "Something" err="odd"\n';

  it('is not the end of an earlier process while the last one runs', async () => {
    const active = { activeState: 'active', subState: 'running' };
    expect(await causeOn(hostWith(active, ended + runs))).toBe('unit active (running). Its last error: Something: odd');
    expect(await causeOn(hostWith({ ...active, restarts: 1 }, ended + runs))).toBe(KILLED);
  });
});
