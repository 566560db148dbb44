import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { FileFact, HttpFact } from '../../../../src/host/facts/query.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import type { Change, PhasePlan } from '../../../../src/host/plan/change.ts';
import { isSamePlan } from '../../../../src/host/plan/same-plan.ts';
import { type KubeletStartInput, kubeletStart } from '../../../../src/kubeadm/phases/kubelet-start.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { configFieldChanges } from '../../../../src/kubelet/effective/field-changes.ts';
import { layerRunningConfig, type RunningConfigInput } from '../../../../src/kubelet/effective/running-config.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit, runs } from '../../../support/fake-units.ts';
import { kubeadmSetup } from '../../../support/kubelet-setups.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const URL = 'http://127.0.0.1:10248/healthz';
const CONFIG = '/var/lib/kubelet/config.yaml';
const FLAGS = '/var/lib/kubelet/kubeadm-flags.env';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const UNIT_FILE = '/etc/systemd/system/kubelet.service';
const BAD = 'E1120 13:20:06.468731   26671 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported"';

const file = (path: string, content: string | SensitiveText, mode = 0o644) => ({ path, content, mode, owner: 'root:root' });
const INPUT: KubeletStartInput = {
  directories: [{ path: '/etc/kubernetes/manifests', mode: 0o755 }],
  unitFiles: [file(DROP_IN, '[Service]\n')],
  files: [file(CONFIG, 'maxPods: 5\n'), file(FLAGS, 'KUBELET_KUBEADM_ARGS=""\n')],
  health: { url: URL, timeoutMs: 60_000 },
  mayChown: true,
};
/** The files of a host in the state of INPUT. */
const DONE: Readonly<Record<string, string | FileFact>> = {
  '/etc/kubernetes/manifests': { type: 'directory', mode: 0o755, owner: 'root:root' },
  [DROP_IN]: '[Service]\n',
  [CONFIG]: 'maxPods: 5\n',
  [FLAGS]: 'KUBELET_KUBEADM_ARGS=""\n',
};

/** A kubelet that answers healthz while its unit runs. */
function kubeletOn(unit: FakeUnit): (url: string) => HttpFact {
  return () => (unit.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' });
}

function world(
  files: Readonly<Record<string, string | FileFact>>,
  unit: FakeUnit | null = fakeUnit({ activeState: 'active', unitFileState: 'enabled' }),
) {
  const host = fakeHost({ files, units: unit === null ? {} : { kubelet: unit }, ...(unit === null ? {} : { http: kubeletOn(unit) }) });
  const reporter = recordingReporter();
  const clock = fakeClock();
  const context: PhaseContext = { host, cluster: null, clock, reporter };
  return { host, reporter, clock, context };
}

async function plan(host: FakeHost, input: KubeletStartInput = INPUT) {
  const context: PhaseContext = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const [only] = await planPhases([kubeletStart], context, input);
  if (only === undefined) throw new Error('no plan');
  return only.plan;
}

async function run(context: PhaseContext, input: KubeletStartInput = INPUT): Promise<void> {
  await applyPhases([kubeletStart], context, input, await planPhases([kubeletStart], context, input));
}

/** A change as one line: operation, object and reason. */
function line(change: Change): string {
  const object = 'path' in change ? change.path : 'unit' in change ? change.unit : '';
  return `${change.kind} ${object}: ${change.reason}`.replace(' :', ':');
}

describe('kubelet-start plans', () => {
  it('no changes on a healthy host', async () => {
    const { host } = world(DONE);
    expect(await plan(host)).toEqual({ changes: [], noop: 'the files are unchanged and the kubelet is healthy' });
    expect(host.roundTrips).toBe(1);
  });

  it('everything on a bare host: directories, unit files, files, then systemd', async () => {
    const { host } = world({}, null);
    expect((await plan(host, { ...INPUT, unitFiles: [file(UNIT_FILE, '[Unit]\n'), ...INPUT.unitFiles] })).changes.map(line)).toEqual([
      'make-directory /etc/kubernetes/manifests: does not exist',
      `write-file ${UNIT_FILE}: does not exist`,
      `write-file ${DROP_IN}: does not exist`,
      `write-file ${CONFIG}: does not exist`,
      `write-file ${FLAGS}: does not exist`,
      'daemon-reload: the unit files of the kubelet change',
      'enable-unit kubelet: the unit is not enabled at boot',
      `restart-unit kubelet: ${UNIT_FILE}, ${DROP_IN}, ${CONFIG}, ${FLAGS} change`,
    ]);
  });

  it.each<[string, Readonly<Record<string, string | FileFact>>, FakeUnit, readonly string[]]>([
    [
      'a restart when the configuration differs',
      { ...DONE, [CONFIG]: 'maxPods: 4\n' },
      fakeUnit({ activeState: 'active', unitFileState: 'enabled' }),
      [`write-file ${CONFIG}: its content differs`, `restart-unit kubelet: ${CONFIG} changes`],
    ],
    [
      'a reload when the drop-in differs',
      { ...DONE, [DROP_IN]: '[Service]\nRestart=no\n' },
      fakeUnit({ activeState: 'active', unitFileState: 'enabled' }),
      [
        `write-file ${DROP_IN}: its content differs`,
        'daemon-reload: the unit files of the kubelet change',
        `restart-unit kubelet: ${DROP_IN} changes`,
      ],
    ],
    [
      'a reload and a restart when the unit files changed earlier',
      DONE,
      fakeUnit({ activeState: 'active', unitFileState: 'enabled', needsReload: true }),
      [
        'daemon-reload: the unit files of the kubelet changed since systemd read them',
        'restart-unit kubelet: its unit files changed since it started',
      ],
    ],
    ['a start when it is stopped', DONE, fakeUnit({ unitFileState: 'enabled' }), ['restart-unit kubelet: the kubelet is inactive']],
    [
      'a start when it is in a crash loop',
      DONE,
      fakeUnit({ unitFileState: 'enabled', activeState: 'activating', subState: 'auto-restart' }),
      ['restart-unit kubelet: the kubelet is activating'],
    ],
    [
      'enabling it when it is disabled',
      DONE,
      fakeUnit({ activeState: 'active' }),
      ['enable-unit kubelet: the unit is not enabled at boot'],
    ],
    [
      'only the missing directory',
      Object.fromEntries(Object.entries(DONE).slice(1)),
      fakeUnit({ activeState: 'active', unitFileState: 'enabled' }),
      ['make-directory /etc/kubernetes/manifests: does not exist'],
    ],
  ])('%s', async (_, files, unit, expected) => {
    const { host } = world(files, unit);
    expect((await plan(host)).changes.map(line)).toEqual(expected);
  });

  it.each([
    ['its configuration', CONFIG, true],
    ['its drop-in, even if systemd has read it', DROP_IN, true],
    ['the file with flags of the user', '/etc/default/kubelet', true],
    ['a file that the kubelet does not read', '/etc/hostname', false],
  ])('a restart when the kubelet started before a change of %s: %s', async (_, path, restarts) => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled', startedAt: 1_000 });
    for (const [modifiedAt, expected] of [
      [1_001, restarts],
      [1_000, false],
      [999, false],
    ] as const) {
      const { host } = world(DONE, unit);
      host.files.set(path, { type: 'file', mode: 0o644, owner: 'root:root', content: host.texts()[path] ?? '', modifiedAt });
      expect((await plan(host)).changes.map(line)).toEqual(
        expected ? [`restart-unit kubelet: ${path} changed since the kubelet started`] : [],
      );
    }
  });

  it('a restart when the next start has other flags, without a newer file that is known', async () => {
    const setup = (...flags: readonly string[]) => ({
      words: [],
      flags: flags.map((value) => ({ name: 'max-pods', value, source: 'KUBELET_EXTRA_ARGS in 20-local.conf' })),
      configFile: { path: CONFIG, text: '' },
      dynamicConfig: null,
      dropIns: [],
      files: [],
      missing: [],
    });
    for (const [before, after, expected] of [
      [setup(), setup(), []],
      [
        setup(),
        setup('50'),
        [
          'restart-unit kubelet: the command line of the kubelet changed since it started: --max-pods=50 (KUBELET_EXTRA_ARGS in 20-local.conf)',
        ],
      ],
      [setup('50'), setup(), ['restart-unit kubelet: the command line of the kubelet changed since it started']],
    ] as const) {
      const { host } = world(DONE);
      expect((await plan(host, { ...INPUT, setups: { before, after } })).changes.map(line)).toEqual(expected);
    }
  });

  it('a restart when the kubelet runs and healthz fails', async () => {
    const { host } = world(DONE);
    host.http = () => ({ status: 500, body: '' });
    expect((await plan(host)).changes.map(line)).toEqual(['restart-unit kubelet: healthz is not ok']);
  });

  it('no changes when the kubelet runs and healthz is disabled', async () => {
    const off = { ...INPUT, files: [file(CONFIG, 'healthzPort: 0\n')], health: { url: null, timeoutMs: 1 } };
    const { host } = world({ ...DONE, [CONFIG]: 'healthzPort: 0\n' });
    host.http = () => expect.unreachable();
    expect((await plan(host, off)).noop).toBeDefined();
  });

  it('to keep a stricter mode, and an owner that may not be changed', async () => {
    const { host } = world({ ...DONE, [CONFIG]: { type: 'file', mode: 0o600, owner: 'me:me', content: 'maxPods: 5\n' } });
    expect((await plan(host)).changes.map(line)).toEqual([
      `write-file ${CONFIG}: owner me:me → root:root`,
      `restart-unit kubelet: ${CONFIG} changes`,
    ]);
    expect((await plan(host, { ...INPUT, mayChown: false })).changes).toEqual([]);
  });

  it('only files when systemd does not run', async () => {
    const host = fakeHost({ units: null });
    const staged = await plan(host);
    expect(staged.changes.map(({ kind }) => kind)).toEqual(['make-directory', 'write-file', 'write-file', 'write-file']);
    expect(staged.deferred).toBe('systemd does not run on the host: the kubelet starts when the host boots with these files');
  });

  it('no changes when systemd does not run and the files are unchanged', async () => {
    const staged = await plan(fakeHost({ units: null, files: DONE }));
    expect(staged).toMatchObject({
      changes: [],
      noop: 'the files are unchanged',
      deferred: expect.stringContaining('systemd does not run'),
    });
  });

  it('to leave the restart to the operator on OpenRC', async () => {
    const commands = { 'sh -c command -v rc-service && command -v rc-update': { stdout: '/sbin/rc-service\n' } };
    expect((await plan(fakeHost({ units: null, commands }))).deferred).toBe(
      'the host uses OpenRC: restart the kubelet manually (rc-service kubelet restart)',
    );
  });

  it('no visible secrets', async () => {
    const { host } = world(DONE);
    const kubeconfig = file('/etc/kubernetes/bootstrap-kubelet.conf', new SensitiveText(['token: ', new Secret('hush')]), 0o600);
    const { changes } = await plan(host, { ...INPUT, files: [kubeconfig, ...INPUT.files] });
    expect(JSON.stringify(changes)).not.toContain('hush');
  });
});

const catalogue = await loadCatalogue();
const changesOf = (before: JsonObject, after: JsonObject) => configFieldChanges(before, after, { catalogue, minor: 36 });
const layersOf = (input: RunningConfigInput) => layerRunningConfig(input).layered;
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** The input with what the kubelet reads before and after the change. */
function withSetups(input: KubeletStartInput, found: Readonly<Record<string, string | FileFact>>, unitArgs: readonly string[] = []) {
  const present = (path: string): string | undefined => (typeof found[path] === 'string' ? found[path] : undefined);
  const written = (path: string): string | undefined => input.files.find((one) => one.path === path)?.content.toString() ?? present(path);
  const setup = (textOf: typeof present) => kubeadmSetup({ configYaml: textOf(CONFIG) ?? '', flagsEnv: textOf(FLAGS) ?? '' }, unitArgs);
  return { ...input, setups: { before: present(CONFIG) === undefined ? null : setup(present), after: setup(written) } };
}

describe('the impact of a kubelet-start plan', async () => {
  const reading = {
    catalogue,
    minor: 36,
    rootDir: '/var/lib/kubelet',
    layersOf,
    changesOf,
  };
  const files = [file(CONFIG, `${HEADER}maxPods: 5\n`), file(FLAGS, 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n')];
  const desired: KubeletStartInput = { ...INPUT, files, reading };
  const impacts = ({ changes }: PhasePlan) =>
    changes.map((change) => [change.kind, 'path' in change ? change.path : '', 'impact' in change ? change.impact : null]);

  it('is that of the fields that change for a running kubelet, and that of a restart for others', async () => {
    const before = { ...DONE, [CONFIG]: `${HEADER}maxPods: 4\ncpuManagerPolicy: static\n`, [DROP_IN]: '[Service]\nRestart=no\n' };
    const { host } = world(before);
    const found = await plan(host, withSetups(desired, before));
    expect(impacts(found)).toEqual([
      ['write-file', DROP_IN, 'safe'],
      ['write-file', CONFIG, 'drain'],
      ['write-file', FLAGS, 'drain'],
      ['daemon-reload', '', null],
      ['restart-unit', '', 'safe'],
    ]);
    expect(found.changes.flatMap((change) => ('fields' in change ? (change.fields ?? []) : []))).toEqual([
      { field: 'cpuManagerPolicy', before: 'static', after: 'none', impact: 'drain' },
      { field: 'maxPods', before: 4, after: 5, impact: 'safe' },
      { field: '--node-ip', before: null, after: '10.0.0.1', impact: 'drain' },
    ]);
  });

  it('is unsafe if the present configuration cannot be read', async () => {
    const before = { ...DONE, [CONFIG]: 'maxPods: [\n' };
    const { host } = world(before);
    expect(impacts(await plan(host, withSetups(desired, before)))).toContainEqual(['write-file', CONFIG, 'unsafe']);
  });

  it.each<[string, Readonly<Record<string, string | FileFact>>, FakeUnit | null]>([
    ['a new node', {}, null],
    ['a new node with an idle kubelet', {}, fakeUnit({ activeState: 'active' })],
    ['a kubelet that does not run', { ...DONE, [CONFIG]: `${HEADER}cgroupDriver: cgroupfs\n` }, fakeUnit({ activeState: 'failed' })],
  ])('is absent for %s', async (_, found, unit) => {
    const { host } = world(found, unit);
    expect(impacts(await plan(host, withSetups(desired, found))).filter(([, , impact]) => impact !== null)).toEqual([]);
  });
});

describe('the state files of managers in a kubelet-start plan', async () => {
  const STATE = '/data/kubelet/cpu_manager_state';
  const NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1}';
  const reading = {
    catalogue,
    minor: 36,
    rootDir: '/data/kubelet',
    layersOf,
    changesOf,
  };
  const STATIC = `${HEADER}maxPods: 5\ncpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n`;
  const before = { ...DONE, [CONFIG]: `${HEADER}maxPods: 5\n`, [STATE]: NONE };
  const input: KubeletStartInput = { ...INPUT, files: [file(CONFIG, STATIC), ...INPUT.files.slice(1)], reading };
  const desired = withSetups(input, before, ['--root-dir=/data/kubelet']);
  const running = () => fakeUnit({ activeState: 'active', unitFileState: 'enabled' });

  it('stops the kubelet, and removes a file of another policy before the new files are written', async () => {
    const { host } = world(before, running());
    expect((await plan(host, desired)).changes.map(line)).toEqual([
      'stop-unit kubelet: a running kubelet writes the state files',
      `remove-file ${STATE}: written with cpuManagerPolicy none, not static`,
      `write-file ${CONFIG}: its content differs`,
      `restart-unit kubelet: ${CONFIG} changes`,
    ]);
  });

  it('keeps a file of the same policy', async () => {
    const found = { ...before, [CONFIG]: STATIC.replace('maxPods: 5', 'maxPods: 4'), [STATE]: NONE.replace('none', 'static') };
    const { host } = world(found, running());
    expect((await plan(host, withSetups(input, found, ['--root-dir=/data/kubelet']))).changes.map(({ kind }) => kind)).toEqual([
      'write-file',
      'restart-unit',
    ]);
  });

  it('plans the same although the kubelet writes the file meanwhile', async () => {
    const { host } = world(before, running());
    const shown = await plan(host, desired);
    host.files.set(STATE, { type: 'file', mode: 0o600, owner: 'root:root', content: NONE.replace('1}', '2}') });
    expect(isSamePlan(shown, await plan(host, desired), [])).toBe(true);
  });

  it('restores the file before the previous kubelet starts again', async () => {
    const unit = running();
    const { host, context, clock } = world(before, unit);
    const seen: (string | undefined)[] = [];
    unit.onStart = (started) => {
      seen.push(host.files.get(STATE)?.content);
      if (!host.text(CONFIG).includes('static')) return runs(started);
      host.files.set(STATE, { type: 'file', mode: 0o600, owner: 'root:root', content: NONE.replace('none', 'static') });
      crashes(started, BAD);
      for (const atMs of [2_000, 4_000])
        clock.at(clock.elapsedMs + atMs, () => started.state.activeState === 'active' || crashes(started, BAD));
    };
    await expect(run(context, desired)).rejects.toMatchObject({ exitCode: 5 });
    expect(seen).toEqual([undefined, NONE]);
    expect(host.text(STATE)).toBe(NONE);
    expect(unit.state.activeState).toBe('active');
  });

  it('reaches the same state after an interruption of any change and a rerun', async () => {
    const reference = world(before, running());
    await run(reference.context, desired);
    const count = reference.host.performed.length;
    expect(count).toBe(4);
    for (let n = 0; n < count; n++) {
      const { host, context } = world(before, running());
      host.loseConnectionAfter(n);
      await expect(run(context, desired)).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
      await run(context, desired);
      expect([n, host.texts()]).toEqual([n, reference.host.texts()]);
      expect(host.units.get('kubelet')).toMatchObject({ state: { activeState: 'active' } });
    }
  });
});

describe('kubelet-start', () => {
  it('starts the kubelet on a bare host, and plans nothing the second time', async () => {
    const { host, context, reporter } = world({}, null);
    host.http = () => (host.units.get('kubelet')?.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'refused' });
    const input = { ...INPUT, unitFiles: [file(UNIT_FILE, '[Unit]\n'), ...INPUT.unitFiles] };
    await run(context, input);
    expect(host.text(CONFIG)).toBe('maxPods: 5\n');
    expect(host.units.get('kubelet')).toMatchObject({ starts: 1, state: { activeState: 'active', unitFileState: 'enabled' } });
    const done = host.performed.length;
    await run(context, input);
    expect(host.performed).toHaveLength(done);
    expect(reporter.messages('PHASE_NOOP')).toHaveLength(1);
  });

  it('reaches the same state after an interruption of any change and a rerun', async () => {
    const old = { ...DONE, [CONFIG]: 'maxPods: 4\n', [FLAGS]: 'KUBELET_KUBEADM_ARGS="--v=1"\n', [DROP_IN]: '[Service]\nRestart=no\n' };
    const reference = world(old, fakeUnit({ activeState: 'active' }));
    await run(reference.context);
    const count = reference.host.performed.length;
    expect(count).toBe(6);
    for (let n = 0; n < count; n++) {
      const { host, context } = world(old, fakeUnit({ activeState: 'active' }));
      host.loseConnectionAfter(n);
      await expect(run(context)).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
      await run(context);
      expect([n, host.texts()]).toEqual([n, reference.host.texts()]);
      expect(host.units.get('kubelet')).toMatchObject({ state: { activeState: 'active', unitFileState: 'enabled', needsReload: false } });
      expect(host.units.get('kubelet')?.starts).toBeGreaterThan(0);
      expect((await plan(host)).noop).toBeDefined();
    }
  });

  it('rolls a healthy kubelet back to its previous files when the new files do not work', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const { host, context, clock, reporter } = world({ ...DONE, [CONFIG]: 'maxPods: 4\n', [DROP_IN]: '[Service]\nRestart=always\n' }, unit);
    unit.onStart = (started) => {
      if (host.text(CONFIG) === 'maxPods: 4\n') return runs(started);
      crashes(started, BAD);
      for (const atMs of [2_000, 4_000])
        clock.at(clock.elapsedMs + atMs, () => started.state.activeState === 'active' || crashes(started, BAD));
    };
    await expect(run(context)).rejects.toMatchObject({
      exitCode: 5,
      problems: [{ code: 'KUBELET_UNHEALTHY', message: expect.stringContaining('swap is on') }, { code: 'ROLLED_BACK' }],
    });
    expect(host.texts()).toEqual({ [CONFIG]: 'maxPods: 4\n', [FLAGS]: DONE[FLAGS], [DROP_IN]: '[Service]\nRestart=always\n' });
    expect(unit).toMatchObject({ starts: 2, state: { activeState: 'active', needsReload: false } });
    expect(reporter.messages('CHANGE_DONE').slice(-4)).toEqual([
      `updated ${CONFIG}`,
      `updated ${DROP_IN}`,
      'ran systemctl daemon-reload',
      'restarted kubelet',
    ]);
  });

  it('checks the health of the previous kubelet at its current endpoint, even if the new configuration moves it', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const before = { ...DONE, [CONFIG]: `${HEADER}healthzPort: 10249\n` };
    const { host, context, clock } = world(before, unit);
    host.http = (url) => {
      const answers = unit.state.activeState === 'active' && url === 'http://127.0.0.1:10249/healthz';
      return answers ? { status: 200, body: 'ok' } : { error: 'connection refused' };
    };
    unit.onStart = (started) => {
      if (host.text(CONFIG) === before[CONFIG]) return runs(started);
      crashes(started, BAD);
      for (const atMs of [2_000, 4_000])
        clock.at(clock.elapsedMs + atMs, () => started.state.activeState === 'active' || crashes(started, BAD));
    };
    const reading = { catalogue, minor: 36, rootDir: '/var/lib/kubelet', layersOf, changesOf };
    const input = withSetups({ ...INPUT, files: [file(CONFIG, `${HEADER}maxPods: 5\n`)], reading }, before);
    await expect(run(context, input)).rejects.toMatchObject({
      exitCode: 5,
      problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLED_BACK' }],
    });
    expect(host.text(CONFIG)).toBe(before[CONFIG]);
  });

  it('keeps copies of replaced files in a configured directory, and plans nothing the second time', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const { host, context } = world({ ...DONE, [CONFIG]: 'maxPods: 4\n' }, unit);
    const input = { ...INPUT, backupDir: '/etc/kubernetes/tmp/kubeadm-kubelet-config-2026-01-02-03-04-05' };
    await run(context, input);
    expect(host.files.get(input.backupDir)).toMatchObject({ type: 'directory', mode: 0o700 });
    expect(host.files.get(`${input.backupDir}/config.yaml`)).toMatchObject({ content: 'maxPods: 4\n', mode: 0o600 });
    expect((await plan(host, input)).changes).toEqual([]);
  });

  it('keeps a copy of an unchanged config.yaml in an upgrade of the control plane, without a restart', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const { host, context } = world(DONE, unit);
    const input = { ...INPUT, backupDir: '/etc/kubernetes/tmp/kubeadm-kubelet-config-2026-01-02-03-04-05', copiesConfig: true };
    await run(context, input);
    expect(host.files.get(`${input.backupDir}/config.yaml`)).toMatchObject({ content: host.text(CONFIG), mode: 0o600 });
    expect(JSON.stringify(host.performed)).not.toContain('restart-unit');
    expect((await plan(host, { ...input, copiesConfig: false })).changes).toEqual([]);
  });

  it('reports a failed rollback when the previous files do not work any more', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const { context } = world({ ...DONE, [CONFIG]: 'maxPods: 4\n' }, unit);
    unit.onStart = (started) => {
      started.state = { ...started.state, activeState: 'failed', subState: 'failed' };
      started.journal = `${BAD}\n`;
    };
    await expect(run(context)).rejects.toMatchObject({
      exitCode: 1,
      problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLBACK_FAILED' }],
    });
  });

  it('does not roll back when no kubelet was healthy before', async () => {
    const unit = fakeUnit({ unitFileState: 'enabled' });
    const { host, context } = world({ ...DONE, [CONFIG]: 'maxPods: 4\n' }, unit);
    unit.onStart = (started) => {
      started.state = { ...started.state, activeState: 'failed', subState: 'failed' };
      started.journal = `${BAD}\n`;
    };
    await expect(run(context)).rejects.toMatchObject({ code: 'KUBELET_UNHEALTHY', exitCode: 1 });
    expect(host.text(CONFIG)).toBe('maxPods: 5\n');
  });

  it('restores the files when the restart by systemd fails', async () => {
    const unit = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
    const { host, context } = world({ ...DONE, [CONFIG]: 'maxPods: 4\n' }, unit);
    host.failAt(1, new AppError({ host: 'node1', code: 'HOST_OPERATION_FAILED', message: 'systemctl restart kubelet failed' }));
    await expect(run(context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.text(CONFIG)).toBe('maxPods: 4\n');
    expect(unit.starts).toBe(1);
  });

  it('stages files without waiting when systemd does not run', async () => {
    const host = fakeHost({ units: null });
    const clock = fakeClock();
    await run({ host, cluster: null, clock, reporter: recordingReporter() });
    expect(Object.keys(host.texts()).sort()).toEqual([DROP_IN, CONFIG, FLAGS].sort());
    expect(clock.elapsedMs).toBe(0);
  });
});
