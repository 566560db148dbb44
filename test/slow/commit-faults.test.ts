import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Operation } from '../../src/host/operation/operation.ts';
import { renderOperations, shellLoader } from '../../src/host/remote-program.ts';
import { DISK_MODELS, everythingIn, FlushedDisk } from '../support/disk-models.ts';
import { type FaultOptions, type FaultyHost, faultyHost } from '../support/fault-points.ts';
import { requirement } from '../support/requirement.ts';
import { SHELLS, whyNotWatched } from '../support/shells.ts';
import { THOROUGH } from '../support/thorough.ts';
import { untilTrue } from '../support/until-true.ts';

const KUBELET_FILES = [
  '/var/lib/kubelet/config.yaml',
  '/var/lib/kubelet/kubeadm-flags.env',
  '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf',
];
const ID = '0123456789abcdef';
const owner = { id: ID, name: 'alice@laptop', processId: 7, machine: 'laptop/1' };
const write = (path: string, content: string, mode = 0o644): Operation => ({ kind: 'write-file', path, content, mode, owner: 'root:root' });
const run = (...argv: string[]): Operation => ({ kind: 'run', argv });

/**
 * Every kind of change: files that exist or not, behind a link, in a missing directory; modes; removed and
 * moved files.
 */
const CHANGES: readonly Operation[] = [
  run('systemctl', 'stop', 'kubelet'),
  { kind: 'remove-file', path: '/var/lib/kubelet/cpu_manager_state' },
  { kind: 'make-directory', path: '/var/lib/kubelet', mode: 0o700, owner: 'root:root' },
  write('/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', 'new drop-in\n'),
  write('/etc/systemd/system/kubelet.service.d/20-more.conf', 'new\n'),
  write('/var/lib/kubelet/config.yaml', 'maxPods: 2\n'),
  write('/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--new"\n', 0o600),
  write('/var/lib/kubelet/linked.yaml', 'new behind a link\n'),
  write('/etc/kubernetes/tmp/copy-1/config.yaml', 'a copy\n', 0o600),
  { kind: 'remove-file', path: '/etc/kubernetes/bootstrap-kubelet.conf' },
  { kind: 'move-file', path: '/var/lib/kubelet/pki/old.pem', to: '/var/lib/kubelet/pki/moved.pem' },
  run('systemctl', 'daemon-reload'),
  run('systemctl', 'restart', 'kubelet'),
];
const PATHS = [
  ...CHANGES.flatMap((operation) => ('path' in operation ? ('to' in operation ? [operation.path, operation.to] : [operation.path]) : [])),
  '/var/lib/kubelet/kubeadm-node.yaml',
];
const CHANGE: readonly Operation[] = [
  { kind: 'take-lock', lock: { owner, seconds: 360, breaks: { kind: 'none' } } },
  { kind: 'arm-revert', revert: { id: ID, timeoutSeconds: 300, owner: owner.name, paths: PATHS, units: ['kubelet'], reload: true } },
  ...CHANGES,
];
const CONFIRM: readonly Operation[] = [
  run('systemctl', 'is-active', '--quiet', 'kubelet'),
  { kind: 'confirm-commit', id: ID },
  { kind: 'release-lock', id: ID },
];

/** Operations that a run performs later, while its change waits for the confirmation. */
const LATE: readonly Operation[] = [
  { kind: 'take-lock', lock: { owner, seconds: 360, breaks: { kind: 'none' } } },
  { kind: 'check-commit', id: ID },
  write('/var/lib/kubelet/kubeadm-node.yaml', 'the new settings\n', 0o600),
];

const OWN = /^(?:run$|var\/lib\/kubeletadm(?:\/|$)|etc\/systemd\/system\/(?:kubeletadm-revert|kubelet\.service\.wants$))/;

describe.each(SHELLS)('a change on a host with faults at any point, in $name', (shell) => {
  describe.skipIf(requirement(`faults of a change in ${shell.name}`, whyNotWatched(shell)))('here', () => {
    let top = '';
    let command: readonly [string, ...string[]];
    let old: Readonly<Record<string, string>>;
    let changed: Readonly<Record<string, string>>;
    let [kubeletOld, kubeletNew]: [string | null, string | null] = [null, null];
    let count = 0;
    let points = 0;
    /**
     * Every n-th point is tested. `npm run test:thorough` tests every point in dash, the most common shell.
     */
    const stride = THOROUGH ? (shell.name === 'dash' ? 1 : 6) : shell.name === 'dash' ? 15 : 30;
    /**
     * Copies of the state before each call stand for a killed shell; at every n-th of these points a shell is
     * really killed.
     */
    const killStride = shell.name === 'dash' ? 24 : 48;

    const newHost = (from?: { readonly root: string }): FaultyHost => {
      const place = join(top, `host-${++count}`);
      mkdirSync(place);
      if (from !== undefined) cpSync(from.root, join(place, 'root'), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      const host = faultyHost(join(place, 'root'), join(place, 'state'), KUBELET_FILES);
      if (from === undefined) {
        fill(host.root);
        host.startKubelet();
      }
      return host;
    };
    const program = (host: FaultyHost, operations: readonly Operation[], options: FaultOptions = {}) =>
      host.run(command, shellLoader('b0b0').slice(1), {
        ...options,
        stdin: renderOperations(operations, { nonce: 'b0b0', temporaryId: 'b1b1', rootDir: null }),
      });
    const script = (host: FaultyHost, how: string, before = 0): Promise<boolean> => {
      const path = join(host.root, 'var/lib/kubeletadm/revert');
      return existsSync(path) ? host.run(command, [path, how], { before }) : Promise.resolve(true);
    };
    const drop = (host: FaultyHost): void => rmSync(dirname(host.root), { recursive: true, force: true });

    /** systemd runs the boot unit, if it is complete, and then starts the kubelet. */
    const boot = async (host: FaultyHost, before = 0): Promise<boolean> => {
      host.powerOff();
      forgetBoot(host.root);
      const unit = join(host.root, 'etc/systemd/system/kubelet.service.wants/kubeletadm-revert-boot.service');
      if (existsSync(unit) && readFileSync(unit, 'utf8').includes('ExecStart=') && !(await script(host, 'boot', before))) return false;
      host.startKubelet();
      return true;
    };

    const stateOf = (host: FaultyHost): 'old' | 'new' | 'mixed' => {
      const now = everythingIn(host.root, (path) => OWN.test(path));
      if (same(now, old) && host.kubeletHas() === kubeletOld) return 'old';
      if (same(now, changed) && host.kubeletHas() === kubeletNew) return 'new';
      return 'mixed';
    };
    /** The state for assertion messages. */
    const reported = (host: FaultyHost, what: string): string =>
      `${what}: ${JSON.stringify(everythingIn(host.root, (path) => OWN.test(path)))}, kubelet ${host.kubeletHas() === kubeletOld ? 'old' : 'other'}`;
    const isArmed = ({ root }: FaultyHost): boolean =>
      ['commit', 'reverting', 'new'].some((name) => existsSync(join(root, 'var/lib/kubeletadm', name))) ||
      readdirSync(join(root, 'etc/systemd/system')).some((name) => name.startsWith('kubeletadm'));

    beforeAll(async () => {
      top = mkdtempSync(join(tmpdir(), 'commit-faults-'));
      const options = shell.options(top);
      command = options.shell;
      const host = newHost();
      old = everythingIn(host.root, (path) => OWN.test(path));
      kubeletOld = host.kubeletHas();
      expect(await program(host, CHANGE)).toBe(true);
      changed = everythingIn(host.root, (path) => OWN.test(path));
      kubeletNew = host.kubeletHas();
      expect(changed).not.toEqual(old);
      expect(kubeletNew).not.toBe(kubeletOld);
      expect(await program(host, CONFIRM)).toBe(true);
      expect(everythingIn(host.root)).toEqual({ run: '755 directory', 'run/kubeletadm.mutex': '600 ', ...changed });
    }, 120_000);
    afterAll(() => {
      rmSync(top, { recursive: true, force: true });
    });

    it('is reverted without a confirmation, by its timer or at boot, and leaves only the record of it', async () => {
      for (const end of ['timer', 'boot'] as const) {
        const host = newHost();
        await program(host, CHANGE);
        expect([stateOf(host), host.timerRuns(), isArmed(host)]).toEqual(['new', true, true]);
        if (end === 'boot') await boot(host);
        else await script(host, 'timer');
        expect(stateOf(host), reported(host, end)).toBe('old');
        expect([host.timerRuns(), isArmed(host)]).toEqual([false, false]);
        expect(readdirSync(join(host.root, 'var/lib/kubeletadm'))).toEqual(['reverted']);
        expect(readFileSync(join(host.root, 'var/lib/kubeletadm/reverted/record'), 'utf8')).toMatch(/^id 0123456789abcdef$[\s\S]*^why /m);
        await program(host, CONFIRM);
        expect(stateOf(host)).toBe('old');
        drop(host);
      }
    });

    it('a run that outlives the revert writes nothing more, and its earlier writes are reverted', async () => {
      for (const end of ['timer', 'boot'] as const) {
        const host = newHost();
        await program(host, CHANGE);
        await program(host, LATE);
        expect(readFileSync(join(host.root, 'var/lib/kubelet/kubeadm-node.yaml'), 'utf8')).toBe('the new settings\n');
        if (end === 'boot') await boot(host);
        else await script(host, 'timer');
        expect(stateOf(host), reported(host, end)).toBe('old');
        let answer = '';
        await program(host, LATE, { onStdout: (text) => (answer += text) });
        expect(stateOf(host), reported(host, `${end}, then a late write`)).toBe('old');
        expect(answer).toMatch(/^state reverted\nid 0123456789abcdef$/m);
        drop(host);
      }
    });

    it('is reverted only when a program that lost its connection has stopped writing', async () => {
      const complete = newHost();
      await program(complete, CHANGE);
      const calls = complete.calls();
      const armed = calls.findIndex((call) => call.startsWith('systemctl is-active --quiet kubeletadm-revert.timer'));
      const writes = calls.flatMap((call, i) => (i > armed && /^(mv|rm|mkdir|chmod|systemctl) /.test(call) ? [i + 1] : []));
      drop(complete);
      expect(writes.length).toBeGreaterThan(1);
      for (const at of writes.filter((_, i) => i % stride === 0)) {
        const host = newHost();
        const writing = program(host, CHANGE, { pauseBefore: at });
        await untilTrue(() => host.isPaused());
        const locks = host.lockAttempts();
        const reverting = script(host, 'timer');
        await Promise.race([reverting, untilTrue(() => host.lockAttempts() > locks)]);
        host.resume();
        await Promise.all([writing, reverting]);
        expect(stateOf(host), reported(host, `paused before ${calls[at - 1]}`)).toBe('old');
        drop(host);
      }
    });

    it('is reported as confirmed wherever the confirmation was cut off, also when an older change was reverted', async () => {
      const applied = newHost();
      await program(applied, CHANGE);
      await script(applied, 'timer');
      await program(applied, CHANGE);
      await killIn(
        async () => copyOf(applied),
        (host, options) => program(host, CONFIRM, options),
        async (killed, point) => {
          const host = killed.make();
          let answer = '';
          const retried = await program(host, CONFIRM, { onStdout: (text) => (answer += text) });
          expect([retried, stateOf(host)], point).toEqual([true, 'new']);
          expect(answer, point).not.toContain('state reverted');
          drop(host);
        },
      );
      drop(applied);
    });

    interface Fate {
      readonly state: 'old' | 'new' | 'mixed';
      /** The state for assertion messages. */
      readonly reported: string;
      /** Remaining parts of the revert; null: none. */
      readonly armed: { readonly units: string; readonly nextRun: readonly [string, boolean] } | null;
    }
    const fates = new Map<string, Fate>();

    /**
     * `time`: the timer expires, if it runs; `again`: systemd runs the timer's service once more; `boot`: the
     * host boots.
     */
    type Event = 'time' | 'again' | 'boot';

    /**
     * The final state of a host. Equal disk, timer and kubelet give the same result, so each combination is
     * tested once.
     */
    const fateOf = async ({ root, timer, kubelet, make }: Place, event: Event): Promise<Fate> => {
      const key = JSON.stringify([event, event === 'boot' ? null : [timer, kubelet], everythingIn(root)]);
      const known = fates.get(key);
      if (known !== undefined) return known;
      const host = make();
      const fate = await goOn(host, event);
      drop(host);
      fates.set(key, fate);
      return fate;
    };
    const goOn = async (host: FaultyHost, event: Event): Promise<Fate> => {
      if (event === 'boot') await boot(host);
      else if (event === 'again' || host.timerRuns()) await script(host, 'timer');
      const fate = { state: stateOf(host), reported: reported(host, event) };
      if (event !== 'boot' || !isArmed(host)) return { ...fate, armed: null };
      const units = readdirSync(join(host.root, 'etc/systemd/system')).join();
      await program(host, CHANGE);
      await program(host, CONFIRM);
      return { ...fate, armed: { units, nextRun: [stateOf(host), isArmed(host)] } };
    };

    /**
     * A host at one point: its disk, whether its timer runs, the configuration of its kubelet, and a function
     * that copies it.
     */
    interface Place {
      readonly root: string;
      readonly timer: boolean;
      readonly kubelet: string | null;
      readonly make: () => FaultyHost;
    }
    const placeOf = (host: FaultyHost): Place => ({
      root: host.root,
      timer: host.timerRuns(),
      kubelet: host.kubeletHas(),
      make: () => copyOf(host),
    });
    const snapshotAt = (snapshot: string): Place => {
      const kubelet = `${snapshot}.state/kubelet`;
      return {
        root: snapshot,
        timer: existsSync(`${snapshot}.state/timer`),
        kubelet: existsSync(kubelet) ? readFileSync(kubelet, 'utf8') : null,
        make: () => {
          const copy = newHost({ root: snapshot });
          copy.restore(snapshot);
          return copy;
        },
      };
    };

    /** Passes the host as left when its shell is killed before each call of a run. */
    const killIn = async (
      make: () => Promise<FaultyHost>,
      run: (host: FaultyHost, options: { before?: number; snapshots?: string }) => Promise<boolean>,
      validate: (killed: Place, what: string) => Promise<void>,
    ): Promise<void> => {
      const snapshots = join(top, `snapshots-${++count}`);
      mkdirSync(snapshots);
      const host = await make();
      expect(await run(host, { snapshots })).toBe(true);
      const calls = host.calls();
      drop(host);
      for (let n = 1; n <= calls.length; n += stride) {
        points++;
        const what = `killed before call ${n}, ${calls[n - 1]}`;
        await validate(snapshotAt(join(snapshots, String(n))), what);
        if ((n - 1) % killStride !== 0) continue;
        const killed = await make();
        expect(await run(killed, { before: n })).toBe(false);
        await validate(placeOf(killed), `${what}, indeed`);
        drop(killed);
      }
      rmSync(snapshots, { recursive: true });
    };
    const copyOf = (host: FaultyHost): FaultyHost => {
      const copy = newHost(host);
      for (const name of ['timer', 'kubelet']) {
        const from = join(dirname(host.root), 'state', name);
        if (existsSync(from)) cpSync(from, join(dirname(copy.root), 'state', name));
      }
      return copy;
    };

    it('is wholly old or wholly new wherever its shell is killed, and reverted automatically unless confirmed', {
      timeout: 900_000,
    }, async () => {
      const applied = newHost();
      await program(applied, CHANGE);
      for (const [what, operations, from] of [
        ['change', CHANGE, null],
        ['confirm', CONFIRM, applied],
      ] as const)
        await killIn(
          async () => (from === null ? newHost() : copyOf(from)),
          (host, options) => program(host, operations, options),
          async (killed, point) => {
            const call = `${what} ${point}`;
            const wasArmed = existsSync(join(killed.root, 'etc/systemd/system/kubelet.service.wants/kubeletadm-revert-boot.service'));
            const desired = what === 'confirm' && !existsSync(join(killed.root, 'var/lib/kubeletadm/commit')) ? 'new' : 'old';
            const later = await fateOf(killed, 'time');
            expect(later.state, `${call}: ${later.reported}`).toBe(desired);
            const booted = await fateOf(killed, 'boot');
            expect(booted.state, `${call}: ${booted.reported}`).toBe(desired);
            if (booted.armed !== null) {
              // Killed before the cleanup was armed: unused parts remain. The next run removes them.
              expect(wasArmed, `${call}, then a boot: ${booted.armed.units}`).toBe(false);
              expect(booted.armed.nextRun, call).toEqual(['new', false]);
            }
          },
        );
      drop(applied);
    });

    /** The final states of the host, one per model of its disk after a power cut. */
    const cutAt = async (disk: FlushedDisk, copy: string): Promise<readonly Fate[]> => {
      const found: Fate[] = [];
      for (const model of DISK_MODELS) {
        const root = join(top, `cut-${++count}`);
        disk.afterPowerCut(copy, model, root);
        found.push(await fateOf({ root, timer: false, kubelet: null, make: () => newHost({ root }) }, 'boot'));
        rmSync(root, { recursive: true });
      }
      return found;
    };

    /**
     * Cuts the power before each call of a run, with each model of the disk, boots, and passes the final
     * state.
     */
    const cutPowerIn = async (
      host: FaultyHost,
      run: (snapshots: string) => Promise<boolean>,
      validate: (cut: Fate, at: { readonly copy: string; readonly done: readonly string[]; readonly what: string }) => void,
    ): Promise<void> => {
      const snapshots = join(top, `snapshots-${++count}`);
      mkdirSync(snapshots);
      expect(await run(snapshots)).toBe(true);
      const disk = new FlushedDisk();
      disk.flushAll(join(snapshots, '1'));
      const calls = host.calls();
      let before: { readonly list: string; readonly fates: readonly Fate[] } | null = null;
      for (const [i, call] of calls.entries()) {
        const copy = join(snapshots, String(i + 1));
        const list = readFileSync(`${copy}.list`, 'utf8');
        // A call that only reads leaves the same disk as the call before.
        const cut: readonly Fate[] = i % stride !== 0 ? [] : before?.list === list ? before.fates : await cutAt(disk, copy);
        if (cut.length > 0) before = { list, fates: cut };
        for (const [m, fate] of cut.entries()) {
          points++;
          validate(fate, { copy, done: calls.slice(0, i), what: `before call ${i + 1}, ${call}, disk: ${DISK_MODELS[m]}` });
        }
        const [name, ...words] = call.split(' ');
        if (name !== 'sync') continue;
        disk.sync(copy, host.root, words);
        before = null;
      }
      rmSync(snapshots, { recursive: true });
    };

    it('is wholly old or wholly new after a power cut at any point, with any unflushed data lost', {
      timeout: 900_000,
    }, async () => {
      const host = newHost();
      const own = join(host.root, 'var/lib/kubeletadm');
      const seen = { kept: false };
      await cutPowerIn(
        host,
        (snapshots) => program(host, [...CHANGE, ...CONFIRM], { snapshots }),
        (cut, { copy, done, what }) => {
          const renamed = done.indexOf(`mv -- ${own}/commit ${own}/confirmed`);
          // Before the rename is flushed, either state is possible.
          const isSure = renamed >= 0 && done.indexOf(`sync -- ${own}`, renamed) > renamed;
          const expected = renamed < 0 ? ['old'] : isSure ? ['new'] : ['old', 'new'];
          seen.kept ||= isSure;
          expect(expected, `${what}, ${copy}: ${cut.reported}`).toContain(cut.state);
        },
      );
      expect(stateOf(host)).toBe('new');
      // Only a few points follow the confirmation: with long strides none of them may be tested.
      if (stride <= 3) expect(seen.kept).toBe(true);
      drop(host);
    });

    it('is wholly old after a power cut during its revert', { timeout: 900_000 }, async () => {
      const host = newHost();
      await program(host, CHANGE);
      const path = join(host.root, 'var/lib/kubeletadm/revert');
      await cutPowerIn(
        host,
        (snapshots) => host.run(command, [path, 'timer'], { snapshots }),
        (cut, { what }) => expect(cut.state, `${what}: ${cut.reported}`).toBe('old'),
      );
      drop(host);
    });

    it('continues its revert wherever that is killed or cut off', { timeout: 900_000 }, async () => {
      const applied = newHost();
      await program(applied, CHANGE);
      for (const how of ['timer', 'boot'] as const)
        await killIn(
          async () => {
            const host = copyOf(applied);
            if (how === 'boot') host.powerOff();
            if (how === 'boot') forgetBoot(host.root);
            return host;
          },
          (host, options) => host.run(command, [join(host.root, 'var/lib/kubeletadm/revert'), how], options),
          async (killed, point) => {
            for (const event of how === 'timer' ? (['again', 'boot'] as const) : (['boot'] as const)) {
              const fate = await fateOf(killed, event);
              expect(fate.state, `${how} ${point}: ${fate.reported}`).toBe('old');
            }
          },
        );
      drop(applied);
    });

    it.runIf(shell.name === 'dash')('is tested at a share of more than four hundred points', () => {
      expect(points * stride).toBeGreaterThanOrEqual(400);
    });
  });
});

function fill(root: string): void {
  const put = (path: string, content: string, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    chmodSync(join(root, path), mode);
  };
  put('/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', 'old drop-in\n');
  put('/var/lib/kubelet/config.yaml', 'maxPods: 1\n', 0o600);
  put('/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS=""\n');
  put('/var/lib/kubelet/cpu_manager_state', '{"policyName":"none"}', 0o600);
  put('/var/lib/kubelet/pki/old.pem', 'a certificate\n', 0o600);
  put('/srv/real.yaml', 'old behind a link\n');
  symlinkSync('/srv/real.yaml', join(root, 'var/lib/kubelet/linked.yaml'));
  put('/etc/kubernetes/bootstrap-kubelet.conf', 'a token\n', 0o600);
  put('/etc/kubernetes/kubelet.conf', 'not touched\n', 0o600);
  mkdirSync(join(root, 'run'));
}

/** After a reboot the host has another boot id. */
function forgetBoot(root: string): void {
  for (const name of ['new', 'commit', 'reverting']) {
    const record = join(root, 'var/lib/kubeletadm', name, 'record');
    if (existsSync(record)) writeFileSync(record, readFileSync(record, 'utf8').replace(/^boot .*$/m, 'boot the-one-before'));
  }
}

function same(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
