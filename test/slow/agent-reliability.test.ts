import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { stateFiles } from '../../src/kubelet/node-agent/layout.ts';
import { THOROUGH } from '../support/thorough.ts';
import { type Behaviour, HEADER, newWorld, payload, type World, type WorldOptions } from '../unit/dynamic/agent/world.ts';

let world: World;
const begin = (options?: WorldOptions): World => {
  world = newWorld(options);
  world.start();
  return world;
};
afterEach(() => world.stop());

const reason = async (): Promise<string> => (await world.condition()).reason as string;
const message = async (): Promise<string> => (await world.condition()).message as string;
const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
/** `a` is the last known good configuration. */
const withGood = async (options?: WorldOptions): Promise<void> => {
  begin(options);
  await world.push('a', payload(50));
  await world.assign('a');
  await world.until('a is good', phase('good'));
};
const corrupt = (path: string, content = 'torn'): void => {
  const found = world.host.files.get(path);
  if (found === undefined) throw new Error(`no file ${path}`);
  world.host.files.set(path, { ...found, content });
};
const payloadsOnDisk = (): readonly string[] => [...world.host.files.keys()].filter((path) => path.endsWith('/kubelet.yaml'));

interface BadCase {
  readonly behaviour?: Behaviour;
  readonly text?: string;
  /** Seconds after the start until the failure shows. */
  readonly shows?: number;
  /** A part of the reported cause. */
  readonly names: string;
}

/** A kubelet that logs an error and exits. */
const dies = (failure: string, crashesAfter = 0): Behaviour => ({
  crashesAfter,
  logs: `E0101 00:00:00.000000       1 run.go:72] "command failed" err="${failure}"`,
});

/** Bad configurations that are rejected without a trial. */
const REFUSED: Readonly<Record<string, BadCase>> = {
  unparsable: { text: '{0xdeadbeef}', names: 'kubelet' },
  invalid: { text: `${HEADER}kubeAPIQPS: -1\n`, names: 'kubeAPIQPS' },
  'known to fail at kubelet startup': { text: `${HEADER}evictionHard: {memory.available: lots}\n`, names: 'evictionHard' },
};

const RUN: Readonly<Record<string, BadCase>> = {
  'crashing at start': { behaviour: dies('failed to run Kubelet: open /no/cert: no such file or directory'), names: '/no/cert' },
  'crashing after 5 s': { behaviour: { crashesAfter: 5 }, shows: 5, names: 'the kubelet exited: ' },
  'crashing after 30 s': { behaviour: { crashesAfter: 30 }, shows: 30, names: 'the kubelet exited: ' },
  'crashing after 90 s': { behaviour: { crashesAfter: 90 }, shows: 90, names: 'the kubelet exited: ' },
  'a crash loop slower than the trial check': { behaviour: { crashesAfter: 500 }, shows: 500, names: 'the kubelet exited: ' },
  'not Ready': { behaviour: { notReady: true }, names: 'the Node is not Ready: Ready is False: KubeletNotReady' },
  'wrong cgroup driver': {
    behaviour: dies(
      'failed to run Kubelet: misconfiguration: kubelet cgroup driver: cgroupfs is different from docker cgroup driver: systemd',
    ),
    names: 'cgroup driver',
  },
  'port taken': {
    behaviour: dies('failed to listen and serve: listen tcp 0.0.0.0:10250: bind: address already in use', 2),
    shows: 2,
    names: '10250',
  },
  'healthz 500': { behaviour: { healthz: 500 }, names: 'healthz: returned 500' },
  'configz differs': { behaviour: { configz: { maxPods: 7 } }, names: 'the kubelet does not use the new value of maxPods' },
  'API lock-out': {
    behaviour: { lockedOut: true },
    names: 'the kubelet API no longer accepts the credential of this node',
  },
  'DNS loss: the API server is not found': { behaviour: { silent: true }, shows: 40, names: 'Ready is Unknown: NodeStatusUnknown' },
  'disk filled by logs': { behaviour: { pressure: 'DiskPressure' }, names: 'the Node has DiskPressure' },
  'eviction storm': { behaviour: { pressure: 'MemoryPressure' }, names: 'the Node has MemoryPressure' },
};

describe('a bad configuration ends in the last known good configuration', () => {
  it.each(Object.entries(REFUSED))('%s: rejected before the kubelet is changed', async (_, { text = '', names }) => {
    await withGood();
    const starts = world.starts();
    await world.push('b', text);
    await world.assign('b');
    await world.until('it is refused', async () => (await reason()) === 'Rejected');
    expect([world.starts(), world.runs()]).toEqual([starts, 50]);
    expect(await message()).toContain(names);
    expect(await message()).toContain('runs the last known good configuration');
    expect((await world.status()).error).toMatch(/^failed to (load|validate) config/);
  });

  it.each(Object.entries(RUN))(
    '%s: rolled back within a minute of the first sign, with the cause',
    async (_, { behaviour = {}, shows = 0, names }) => {
      await withGood();
      world.behaviours.set(60, behaviour);
      await world.push('b', payload(60));
      await world.assign('b');
      await world.until('it rolls back', phase('fallen-back'));
      const [, started = 0, back = 0] = world.startTimes;
      expect(world.startTimes).toHaveLength(3);
      expect(back - started).toBeGreaterThanOrEqual(shows * 1000);
      expect(back - started - shows * 1000).toBeLessThanOrEqual(60_000);
      expect(world.runs()).toBe(50);
      await world.until('the status reports it', async () => (await reason()) === 'FallenBack');
      expect(await message()).toContain(names);
      const { error, active, lastKnownGood, assigned } = await world.status();
      expect(error).toMatch(/^failed to run config: /);
      expect([JSON.stringify(active), JSON.stringify(assigned)]).toEqual([
        JSON.stringify(lastKnownGood),
        expect.stringContaining('"name":"b"'),
      ]);
    },
  );

  it('wrong cgroup driver: rejected by policy on a node that is not drained', async () => {
    await withGood({ allow: 'new-pods-only' });
    await world.push('b', payload(60, 'cgroupDriver: systemd\n'));
    await world.assign('b');
    await world.until('it is refused', async () => (await reason()) === 'Rejected');
    expect(await message()).toContain('cgroupDriver (unsafe');
    expect(world.runs()).toBe(50);
  });

  it('wrong cgroup driver: rejected when the runtime reports its driver, because the kubelet would start with it', async () => {
    await withGood();
    await world.push('b', payload(60, 'cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n'));
    await world.assign('b');
    await world.until('it is refused', async () => (await reason()) === 'Rejected');
    expect(await message()).toContain('cgroupDriver is systemd, but the container runtime uses cgroupfs (containerd config dump)');
    expect(world.runs()).toBe(50);
  });

  it('two in a row', async () => {
    await withGood();
    world.behaviours.set(60, { healthz: 500 });
    world.behaviours.set(61, { crashesAfter: 3 });
    for (const [i, pods] of [60, 61].entries()) {
      await world.push(`b${pods}`, payload(pods));
      await world.assign(`b${pods}`);
      // Started with the bad configuration, and again with the good one.
      const starts = 3 + 2 * i;
      await world.until(
        'it rolls back',
        async () =>
          world.startTimes.length === starts && phase('fallen-back')() && JSON.stringify(await world.status()).includes(`b${pods}`),
      );
      expect(world.runs()).toBe(50);
    }
    await world.assign('b60');
    await world.until('the first is reported again', async () => (await message()).includes('500'));
    expect(world.startTimes).toHaveLength(5);
  });

  it('a good configuration that starts to crash-loop: back to the local configuration', async () => {
    await withGood();
    world.behaviours.set(50, { crashesAfter: 100 });
    const unit = world.host.units.get('kubelet');
    await world.until('it is left', () => {
      // systemd starts it again each time.
      if (unit?.state.subState === 'auto-restart') world.restartKubelet();
      return phase('fallen-back')();
    });
    expect(world.runs()).toBe(110);
    await world.until('the status reports it', async () => (await message()).includes('the kubelet crash-loops'));
  });
});

const CHANGES = THOROUGH ? 500 : 100;

describe('a good configuration is never rolled back', () => {
  it(`in ${CHANGES} changes, a tenth of them while the API server is unreachable`, async () => {
    begin({ timing: { trialMs: 3_000 } });
    let outages = 0;
    for (let i = 0; i < CHANGES; i++) {
      const pods = 100 + i;
      await world.push(`c${i}`, payload(pods));
      await world.assign(`c${i}`);
      await world.until('it runs', () => world.runs() === pods && phase('trial')());
      if (i % 10 === 3) {
        outages++;
        world.away(true);
        const until = world.clock.elapsedMs + 60_000;
        await world.until('an outage has passed', () => world.clock.elapsedMs > until);
        expect([world.runs(), world.state?.phase]).toEqual([pods, 'trial']);
        world.away(false);
      }
      await world.until('it is good', phase('good'));
      await world.remove(`c${i}`);
    }
    expect(outages).toBe(CHANGES / 10);
    expect([world.starts(), world.state?.rejected]).toEqual([CHANGES, []]);
    const events = await world.events();
    expect(events.filter((text) => /FallenBack|Rejected/.test(text))).toEqual([]);
  }, 120_000);
});

describe('a corrupt disk', () => {
  const finds = async (what: string, hint: () => boolean | Promise<boolean>): Promise<void> => {
    await world.stop();
    world.start();
    await world.until(what, hint);
  };

  it('torn checkpoint of the running configuration: the last known good one runs, then the assigned one is downloaded again', async () => {
    await withGood();
    await world.push('b', payload(60));
    await world.assign('b');
    await world.until('b runs', () => world.runs() === 60 && phase('trial')());
    const torn = payloadsOnDisk().find((path) => world.host.text(path).includes('maxPods: 60')) ?? '';
    corrupt(torn, world.host.text(torn).slice(0, 20));
    await finds('b is stored and runs again', async () => world.runs() === 60 && phase('trial')());
    expect(world.host.text(torn)).toContain('maxPods: 60');
    expect(world.startTimes.length).toBeGreaterThanOrEqual(3);
    await world.until('b is good', phase('good'));
  });

  it('both checkpoints torn and the API server unreachable: the local configuration runs, and the status reports it', async () => {
    await withGood();
    await world.push('b', payload(60));
    await world.assign('b');
    await world.until('b runs', () => world.runs() === 60 && phase('trial')());
    for (const path of payloadsOnDisk()) corrupt(path, '');
    world.away(true);
    await finds('the local configuration runs', () => world.runs() === 110 && phase('fallen-back')());
    world.away(false);
    // The checkpoints can be downloaded again, so the trial starts over.
    await world.until('b runs again', () => world.runs() === 60 && phase('trial')());
    await world.until('b is good', phase('good'));
    await world.until('the status reports it', async () => (await reason()) === 'Good');
  });

  it('both copies of the state and all checkpoints torn', async () => {
    await withGood();
    for (const path of [...payloadsOnDisk(), ...stateFiles(AGENT_DIRECTORY).filter((file) => world.host.files.has(file))]) corrupt(path);
    await finds('a runs again, through a trial', () => world.runs() === 50 && phase('good')());
    await world.until('the status reports it', async () => (await reason()) === 'Good');
  });

  it('full disk: the kubelet keeps running, the status reports the cause, and the change continues once space is free', async () => {
    await withGood();
    const full = new AppError({ code: 'HOST_OPERATION_FAILED', message: 'write: No space left on device' });
    const { perform } = world.host;
    let isFull = true;
    world.host.perform = async (operations, options) => {
      if (isFull && operations.some(({ kind }) => kind === 'write-file' || kind === 'make-directory')) throw full;
      return perform(operations, options);
    };
    await world.push('b', payload(60));
    await world.assign('b');
    await world.until('the status reports it', async () => (await message()).includes('No space left on device'));
    expect([world.runs(), await reason()]).toEqual([50, 'Unavailable']);
    isFull = false;
    await world.until('b is good', () => world.runs() === 60 && phase('good')());
    await world.until('no error', async () => (await world.status()).error === undefined);
  });

  it.each([86_400_000 * 400, 3_600_000, 300_000])('a clock that jumps by %d ms does not end a trial', async (ms) => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    const at = world.clock.elapsedMs;
    await world.until('it is some time', () => world.clock.elapsedMs > at + 60_000);
    world.clock.advance(ms);
    const jumped = world.clock.elapsedMs;
    await world.until('it is good', phase('good'));
    expect(world.clock.elapsedMs - jumped).toBeGreaterThan(480_000);
  });
});

describe('a ConfigMap that changes continually', () => {
  it('deleted, recreated and edited 100 times: the last content runs, and the kubelet restarted at most once per change', async () => {
    begin({ timing: { trialMs: 3_000 } });
    await world.push('a', payload(200));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    for (let i = 1; i <= 100; i++) {
      if (i % 3 === 0) {
        await world.remove('a');
        await world.push('a', payload(200 + i));
      } else if (i % 3 === 1) await world.edit('a', { metadata: { labels: { i: String(i) } } });
      else await world.edit('a', { data: { kubelet: payload(200 + i) } });
    }
    const last = 299;
    await world.until('the last runs', () => world.runs() === last && phase('good')());
    await world.until('the status reports it', async () => (await reason()) === 'Good' && (await world.status()).error === undefined);
    expect(world.starts()).toBeLessThanOrEqual(68);
    expect(world.state?.rejected).toEqual([]);
  });
});
