import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/run.ts';
import type { FileFact } from '../../src/host/facts/query.ts';
import { createServices } from '../../src/wiring.ts';
import { type FakeHost, type FakeHostOptions, fakeHost } from '../support/fake-host.ts';
import { crashes, fakeUnit, runs } from '../support/fake-units.ts';
import { BAD, CRASHING, GOOD, INVALID, type NativeWorld, type NativeWorldOptions, nativeWorld, payload } from '../support/native-world.ts';
import { TextSink } from '../support/run-cli.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

let directory: string;
let world: NativeWorld;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dynamic-native-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
});
afterEach(() => {
  host = null;
  world.close();
  rmSync(directory, { recursive: true, force: true });
});

const begin = async (options: NativeWorldOptions = {}): Promise<void> => {
  world = await nativeWorld(options);
};

/** A node that ran `a` for a minute and was then assigned `b`, which crashes its kubelet. */
const beginWithGoodThenCrashing = async (): Promise<void> => {
  await begin();
  await world.put('a', { kubelet: GOOD });
  await world.assign('a');
  await world.pass(60);
  await world.put('b', { kubelet: CRASHING });
  await world.assign('b');
};

/** Writes a file and returns its path. */
function file(text: string, name = 'kubelet.yaml'): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

const STORE = '/var/lib/kubelet/dynamic';

/**
 * A host with the checkpoint store of the world's kubelet, and the properties of its unit as systemd would
 * print them.
 */
function hostOfKubelet(comesUp: (host: FakeHost) => void = () => {}): FakeHost {
  const files: Record<string, string | FileFact> = {
    '/lib/systemd/system/kubelet.service': `[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubelet.yaml --dynamic-config-dir=${STORE}\nRestart=always\n`,
  };
  for (const entry of readdirSync(world.directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile()) continue;
    const { mode, mtimeMs } = statSync(path);
    const fact = {
      type: 'file',
      mode: mode & 0o777,
      owner: 'root:root',
      content: readFileSync(path, 'utf8'),
      modifiedAt: mtimeMs / 1000,
    } as const;
    files[path.replace(world.directory, STORE)] = fact;
  }
  const unit = fakeUnit({ fragmentPath: '/lib/systemd/system/kubelet.service', activeState: 'active', subState: 'running' });
  for (const { why } of world.kubelet.exits.filter(({ code }) => code === 1))
    crashes(unit, `E1120 11:17:22.676496    1803 server.go:164] "Failed to listen and serve" err=${JSON.stringify(why)}`);
  unit.onStart = (one) => {
    runs(one);
    one.state = { ...one.state, restarts: 0 };
    // Earlier output must be older than the current request.
    one.journal = '';
    comesUp(made);
  };
  const commands: FakeHostOptions['commands'] = {
    sh: ([, , script = '']) => (script === 'command -v kubelet' ? { stdout: '/usr/bin/kubelet\n' } : { exitCode: 3 }),
    kubelet: { stdout: 'Kubernetes v1.21.0\n' },
    id: { stdout: '0\n' },
    uname: ([, what]) => ({ stdout: what === '-n' ? 'n1\n' : 'x86_64\n' }),
    date: { stdout: `${world.clock.now().getTime() / 1000}\n` },
  };
  const made = fakeHost({ name: 'n1', files, units: { kubelet: unit }, commands, http: () => ({ status: 200, body: 'ok' }) });
  return made;
}

let host: FakeHost | null = null;

/** Runs `dynamic ...` against the world, on its clock. */
const dynamic = (...argv: readonly string[]) => kubeletadm('dynamic', ...argv);

async function kubeletadm(...argv: readonly string[]) {
  const [stdout, stderr] = [new TextSink(), new TextSink()];
  const services = createServices({
    env: { PATH: process.env.PATH ?? '', KUBECONFIG: join(directory, 'admin.conf') },
    stdin: Readable.from(['']),
    stdout,
    stderr,
    signal: new AbortController().signal,
  });
  const connected = { ...world.admin, close: async () => {} };
  const touching = { clock: world.clock, connectCluster: async () => connected, connectHost: async () => host ?? hostOfKubelet() };
  const code = await runCli(argv, { ...services, ...touching }, '0.0.0-test');
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** The output of `dynamic push` without the key. */
const push = async (text: string, ...more: readonly string[]): Promise<string> =>
  (await dynamic('push', file(text), ...more)).stdout.trim();

describe('dynamic push', () => {
  it('creates an immutable ConfigMap with the name suffix that kubectl computes, once', async () => {
    await begin();
    const text = payload('maxPods: 50');
    const first = await dynamic('push', file(text), '--name', 'my-node-config');
    expect(first).toMatchObject({ code: 0, stdout: 'kubeletadm-system/my-node-config-g2gfckm55t/kubelet\n' });
    expect(first.stderr).toContain('created ConfigMap kubeletadm-system/my-node-config-g2gfckm55t');
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name: 'my-node-config-g2gfckm55t' };
    const made = await world.admin.get(ref);
    expect(made).toMatchObject({ data: { kubelet: text }, immutable: true });
    const second = await dynamic('push', file(text), '--name', 'my-node-config', '-o', 'json');
    expect(JSON.parse(second.stdout)).toMatchObject({ kind: 'PushedConfig', result: 'unchanged' });
    expect(await world.admin.get(ref)).toEqual(made);
  });

  it('--dry-run prints a plan and changes nothing', async () => {
    await begin();
    const { stdout, code } = await dynamic('push', file(GOOD), '--dry-run', '-o', 'json', '--exit-code');
    expect(code).toBe(6);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'Plan',
      cluster: {
        changes: [
          { phase: 'dynamic-push', action: 'create', object: { kind: 'Namespace', metadata: { name: 'kubeletadm-system' } } },
          { phase: 'dynamic-push', action: 'create', object: { kind: 'ConfigMap', immutable: true } },
        ],
      },
    });
    expect(await world.admin.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kubeletadm-system' })).toBeNull();
    expect((await world.admin.list({ apiVersion: 'v1', kind: 'ConfigMap' })).items).toEqual([]);
  });

  it('creates only the namespace of node configurations: another may be a typo', async () => {
    await begin();
    expect((await dynamic('push', file(GOOD), '-n', 'kubeletadm-sytem')).stderr).toContain('namespaces "kubeletadm-sytem" not found');
    expect(await world.admin.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kubeletadm-sytem' })).toBeNull();
  });

  it.each([
    ['unreadable', BAD, 'CONFIG_'],
    ['invalid', payload('imageGCHighThresholdPercent: 50', 'imageGCLowThresholdPercent: 90'), 'KUBELET_IMAGE_GC_ORDER'],
    ['misspelt', payload('maxPod: 7'), 'Did you mean maxPods?'],
    ['one that turns itself off', payload('featureGates: {DynamicKubeletConfig: false}'), 'DYNAMIC_TURNS_ITSELF_OFF'],
    ['empty', '', 'CONFIG_NO_DOCUMENT'],
  ])('rejects a configuration that is %s, checked against the kubelets of the cluster', async (_, text, reported) => {
    await begin();
    const { code, stderr } = await dynamic('push', file(text));
    expect([code, stderr]).toEqual([2, expect.stringContaining(reported)]);
  });

  it('accepts a configuration that the kubelet rejects only with --force', async () => {
    await begin();
    expect((await dynamic('push', file(INVALID), '--skip-validation')).code).toBe(0);
  });

  it('lists the kubelets that restart before it changes a ConfigMap in place', async () => {
    await begin();
    await push(GOOD, '--no-append-hash', '--name', 'shared', '-n', 'kube-system');
    await world.assign('shared');
    const refused = await dynamic('push', file(payload('maxPods: 78')), '--no-append-hash', '--name', 'shared', '-n', 'kube-system');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('Replacing the content would restart the kubelet of n1 within seconds');
    const done = await dynamic(
      'push',
      file(payload('maxPods: 78')),
      '--no-append-hash',
      '--name',
      'shared',
      '-n',
      'kube-system',
      '--in-place',
    );
    expect(done).toMatchObject({ code: 0, stdout: 'kube-system/shared/kubelet\n' });
    await world.pass(30);
    expect(world.kubelet.configz?.maxPods).toBe(78);
  });
});

describe('dynamic assign', () => {
  it('puts a node on trial, and the second run changes nothing', async () => {
    await begin();
    const source = await push(GOOD);
    const { code, stdout } = await dynamic('assign', 'n1', '--configmap', source, '-o', 'json');
    expect(code).toBe(0);
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.map(({ code: what, host: node, message }) => [what, node ?? '', message])).toEqual([
      ['CLUSTER', '', expect.stringMatching(/^cluster: context "c", https:\/\/cluster\.test:6443 /)],
      ['DYNAMIC_IMPACT', '', 'impact unknown for n1, because the running configuration cannot be read'],
      ['DYNAMIC_ASSIGNED', 'n1', `assigned ${source}`],
      ['DYNAMIC_STATE', 'n1', 'waiting'],
      ['DYNAMIC_STATE', 'n1', 'trial'],
      ['ROLLOUT_ENDED', '', '1 node: 1 changed.'],
    ]);
    expect(events.at(-1)).toMatchObject({ data: { items: [{ node: 'n1', backend: 'native', state: 'trial', stage: 'changed' }] } });
    expect(world.kubelet.configz?.maxPods).toBe(77);
    const { restarts } = world.kubelet;
    const again = await dynamic('assign', 'n1', '--configmap', source);
    expect(again.stderr).toContain('unchanged: already assigned');
    expect(again.code).toBe(0);
    await world.pass(30);
    expect(world.kubelet.restarts).toBe(restarts);
  });

  it('pushes a file, and waits until the configuration is good', async () => {
    await begin();
    const { code, stderr } = await dynamic('assign', 'n1', '--file', file(GOOD), '--wait', 'good');
    expect([code, stderr]).toEqual([0, expect.stringMatching(/n1 waiting\nn1 trial\nn1 good\n/)]);
    expect(world.meta('lastKnownGood')).toContain('node-config-');
  });

  it('plans without any change', async () => {
    await begin();
    const { code, stdout } = await dynamic('assign', 'n1', '--file', file(GOOD), '--dry-run', '-o', 'json');
    expect(code).toBe(0);
    const { changes } = JSON.parse(stdout).cluster;
    expect(changes).toMatchObject([
      { phase: 'dynamic-assign', action: 'create', object: { kind: 'Namespace' } },
      { phase: 'dynamic-assign', action: 'create', object: { kind: 'ConfigMap' } },
      { action: 'patch', object: { kind: 'Node', spec: { configSource: { configMap: { kubeletConfigKey: 'kubelet' } } } } },
    ]);
    expect(await world.spec()).not.toHaveProperty('configSource');
  });

  it('reports why a node rolled back', async () => {
    await begin();
    const b = await world.put('b', { kubelet: INVALID });
    const { code, stderr } = await dynamic('assign', 'n1', '--configmap', 'kube-system/b', '--skip-validation');
    expect(code).toBe(5);
    expect(stderr).toContain('Any write to it, even of a label, restarts the kubelets of all nodes with this ConfigMap');
    expect(stderr).toContain('n1: rejected: the kubelet refuses the configuration');
    expect(stderr).toMatch(/^n1 has rejected the configuration$/m);
    expect(stderr).toContain('[DYNAMIC_FELL_BACK]');
    expect(await world.status()).toMatchObject({ assigned: world.at(b) });
  });

  it('rejects a configuration that the kubelet could not recover from, before the assignment', async () => {
    await begin();
    await world.put('b', { kubelet: BAD });
    expect((await dynamic('assign', 'n1', '--configmap', 'kube-system/b')).code).toBe(2);
    const noKey = await dynamic('assign', 'n1', '--configmap', 'kube-system/b/other');
    expect([noKey.code, noKey.stderr]).toEqual([2, expect.stringContaining('the ConfigMap has no key other; its keys are kubelet')]);
    const nothing = await dynamic('assign', 'n1', '--configmap', 'kube-system/c');
    expect([nothing.code, nothing.stderr]).toEqual([
      2,
      expect.stringContaining('ConfigMap kube-system/c/kubelet cannot be assigned: the ConfigMap does not exist'),
    ]);
    expect((await dynamic('assign', 'n1', 'n7', '--configmap', 'kube-system/b')).stderr).toContain(
      'n7: the API server https://cluster.test:6443 has no Node of this name',
    );
    expect(await world.spec()).not.toHaveProperty('configSource');
  });

  it('detects a crash loop, and a kubelet that no longer reads its assignment', async () => {
    await begin();
    await world.put('c', { kubelet: CRASHING });
    const ready = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
    await world.admin.patch(
      { apiVersion: 'v1', kind: 'Node', name: 'n1' },
      'strategic',
      { status: { conditions: [ready] } },
      { subresource: 'status' },
    );
    const { code, stderr } = await dynamic('assign', 'n1', '--configmap', 'kube-system/c', '--skip-validation');
    expect(code).toBe(1);
    expect(stderr).toContain('NotReady before the assignment');
    expect(stderr).toMatch(/n1: looping: the kubelet started with kube-system\/c\/kubelet@\d+ at \S+ and has not reported since/);
    expect(stderr).toContain('dynamic inspect --repair HOST');
    const reset = await dynamic('reset', 'n1');
    expect([reset.code, reset.stderr]).toEqual([1, expect.stringContaining('a crashing kubelet never reads it')]);
    expect((await dynamic('status', 'n1')).stdout).toMatch(/n1 +native +looping/);
  });

  it('ignores a status older than the last restart of the kubelet', async () => {
    await beginWithGoodThenCrashing();
    // The kubelet accepted the assignment and reported that; its status still shows the previous
    // configuration.
    await world.pass(15);
    expect(await world.status()).toMatchObject({ active: { configMap: { name: 'a' } } });
    const shown = await dynamic('status', 'n1');
    expect(shown.stdout).toMatch(/^n1 +native +waiting /m);
    expect(shown.stdout).toMatch(/n1: the kubelet restarted at \S+ to use kube-system\/b\/kubelet@\d+ and has not reported since/);
    const { code, stdout, stderr } = await dynamic('assign', 'n1', '--configmap', 'kube-system/a');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).not.toContain('n1 trial');
    expect(stderr).toMatch(/n1: looping: the kubelet started with kube-system\/b\/kubelet@\d+ at \S+ and has not reported since/);
  });

  it.each([
    ['the assignment', false],
    ['an assignment that another run has just made', true],
  ])('ignores a status older than %s while the kubelet may still apply the previous configuration', async (_, isMade) => {
    await beginWithGoodThenCrashing();
    if (isMade) await dynamic('assign', 'n1', '--configmap', 'kube-system/a', '--wait', 'none');
    // The watch event of the next assignment is delayed: the kubelet still processes the previous one.
    const { kubelet } = world;
    const { runUntil } = kubelet;
    let seconds = 0;
    kubelet.runUntil = async (ms) => {
      if (++seconds === 5) {
        await world.assign('b');
        await runUntil.call(kubelet, ms + 12_000);
        await world.assign('a');
      }
      return runUntil.call(kubelet, ms);
    };
    const { code, stderr } = await dynamic('assign', 'n1', '--configmap', 'kube-system/a');
    expect([code, stderr]).toEqual([1, expect.stringContaining('n1: looping')]);
    expect(stderr).toContain('n1 waiting: the kubelet has not reported since this assignment');
    expect(stderr).not.toContain('n1 trial');
  });

  it('trusts an unchanged status once the kubelet had the time to apply the previous assignment', async () => {
    await begin();
    await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(60);
    const { restarts } = world.kubelet;
    await world.put('b', { kubelet: GOOD });
    await world.assign('b');
    const { code, stderr } = await dynamic('assign', 'n1', '--configmap', 'kube-system/a');
    expect([code, stderr]).toEqual([0, expect.stringContaining('n1 trial')]);
    await world.pass(30);
    expect(world.kubelet.restarts).toBe(restarts);
  });

  it('reads back the object that the API server stored', async () => {
    await begin({ keepsSource: false });
    await push(GOOD);
    const { code, stderr } = await dynamic('assign', 'n1', '--file', file(GOOD));
    expect([code, stderr]).toEqual([3, expect.stringContaining('has never reported a configuration')]);
    const forced = await dynamic('assign', 'n1', '--file', file(GOOD), '--force');
    expect([forced.code, forced.stderr]).toEqual([
      1,
      expect.stringContaining('accepted the assignment, but dropped the field spec.configSource of the Node'),
    ]);
  });

  it('leaves newer kubelets to the agent', async () => {
    await begin({ kubeletVersion: 'v1.36.2' });
    const { code, stderr } = await dynamic('assign', 'n1', '--file', file(GOOD));
    expect([code, stderr]).toEqual([3, expect.stringContaining('no agent has reported for this node')]);
  });
});

describe('dynamic reset, status, history, gc', () => {
  it('report each step', async () => {
    await begin();
    expect((await dynamic('status')).stdout).toMatch(/n1 +native +local +- +- +- +local +local\n/);
    const source = await push(GOOD);
    await dynamic('assign', 'n1', '--configmap', source);
    const other = await push(payload('maxPods: 78'));
    expect((await dynamic('status')).stdout).toMatch(new RegExp(`n1 +native +trial +\\S+ +- +${source} +${source}@\\d+ +local\n`));
    const { stdout: status } = await dynamic('status', 'n1', '-o', 'json');
    expect(JSON.parse(status).items[0]).toMatchObject({
      state: 'trial',
      status: { active: { configMap: { namespace: 'kubeletadm-system' } } },
    });
    await dynamic('assign', 'n1', '--configmap', other);
    expect((await dynamic('reset', 'n1')).code).toBe(0);
    expect(await world.status()).toEqual({});
    const { stdout: history } = await dynamic('history', 'n1');
    expect(
      history
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/^\S+ +\S+ +/, '').replace(/@\d+$/, '')),
    ).toEqual([
      'CHANGE',
      expect.stringMatching(`^\\S+@\\S+ assigned ${source}$`),
      `changed to ${source}`,
      expect.stringMatching(`^\\S+@\\S+ assigned ${other}$`),
      `changed to ${other}`,
      expect.stringMatching(/^\S+@\S+ removed the assignment$/),
      'changed to the local configuration',
    ]);
  });

  it('undo returns to the previous ConfigMap, then to the local configuration, unless kubectl has assigned another one', async () => {
    await begin();
    const [first, second] = [await push(GOOD), await push(payload('maxPods: 78'))];
    for (const source of [first, second]) await dynamic('assign', 'n1', '--configmap', source);
    expect((await dynamic('undo', 'n1', '--yes')).code).toBe(0);
    expect(world.kubelet.configz?.maxPods).toBe(77);
    expect((await dynamic('undo', 'n1', '--yes', '--to', 'oldest')).code).toBe(0);
    expect(await world.status()).toEqual({});
    await world.assign('other');
    const { code, stderr } = await dynamic('undo', 'n1', '--yes');
    expect([code, stderr]).toEqual([3, expect.stringMatching(/n1: \S+\/other\/\S+ was assigned by .*\[UNDO_MOVED\]/)]);
  });

  it('report that a leftover status message has no meaning', async () => {
    await begin();
    await world.assign('missing');
    await world.pass(60);
    expect((await dynamic('status')).stdout).toMatch(/not-synced[\s\S]*n1: the ConfigMap does not exist/);
    expect((await dynamic('reset', 'n1')).code).toBe(0);
    expect((await dynamic('status')).stdout).toContain('the kubelet clears the error at its next restart');
  });

  it('gc deletes only ConfigMaps that no node uses', async () => {
    await begin();
    const [used, unused] = [await push(GOOD), await push(payload('maxPods: 78'))];
    const foreign = { name: 'foreign', namespace: 'kubeletadm-system' };
    await world.admin.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: foreign, data: { kubelet: GOOD } });
    await dynamic('assign', 'n1', '--configmap', used);
    expect((await dynamic('gc')).stdout).toBe('Nothing to delete: every ConfigMap is in use or newer than --older-than.\n');
    expect((await dynamic('gc', '--older-than', '0s', '--dry-run')).stdout).toContain(
      `- ConfigMap ${unused.split('/').slice(0, 2).join('/')}: not assigned, active, last known good or previous on any node`,
    );
    expect((await dynamic('gc', '--older-than', '0s')).stdout).toBe(`configmap/${unused.split('/')[1]} deleted\n`);
    const { items } = await world.admin.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['foreign', used.split('/')[1]].sort());
  });
});

describe('dynamic inspect', () => {
  it('shows the assigned and the used configuration of a kubelet', async () => {
    await begin();
    const source = await push(GOOD);
    await dynamic('assign', 'n1', '--configmap', source, '--wait', 'good');
    await dynamic('assign', 'n1', '--file', file(payload('maxPods: 78')));
    const { code, stdout } = await dynamic('inspect', 'n1');
    expect(stdout.split('\n').map((line) => line.replace(/ +/g, ' '))).toEqual([
      'n1: kubelet v1.21.0, store /var/lib/kubelet/dynamic/store',
      'unit: active (running), 0 restarts, Restart=always',
      expect.stringMatching(/^assigned: kubeletadm-system\/node-config-\w+\/kubelet@\d+, written \d+s ago$/),
      expect.stringContaining(`last known good: ${source}@`),
      'starts with: assigned',
      'CHECKPOINT VERSION KEYS USED AS',
      expect.stringMatching(/ kubelet (assigned|last known good)$/),
      expect.stringMatching(/ kubelet (assigned|last known good)$/),
      '',
    ]);
    expect(code).toBe(0);
    const repair = await dynamic('inspect', 'n1', '--repair');
    expect([repair.code, repair.stdout]).toEqual([0, 'Nothing to do.\n']);
    await dynamic('assign', 'n1', '--configmap', source, '--reason', 'OPS-7');
    const admin = ['--kubeconfig', join(directory, 'admin.conf')];
    const known = (await dynamic('inspect', 'n1', ...admin)).stdout;
    expect(known).toMatch(/^assigned: .*\nassigned by: \S+@\S+, at \d{4}-\d\d-\d\dT[\d:]+Z: OPS-7\n/m);
    expect(JSON.parse((await dynamic('inspect', 'n1', ...admin, '-o', 'json')).stdout)).toMatchObject({ assignedBy: { reason: 'OPS-7' } });
  });

  it('repairs a kubelet in a crash loop', async () => {
    await begin();
    const good = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(12 * 60);
    await world.put('c', { kubelet: CRASHING });
    await world.assign('c');
    await world.pass(75);
    const { code, stdout } = await dynamic('inspect', 'n1', '-o', 'json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'NativeConfigStore',
      crashLoop: true,
      startsWith: 'assigned',
      findings: [
        { code: 'DYNAMIC_CRASH_LOOP', message: expect.stringContaining('/nonexistent/tls.crt') },
        { code: 'DYNAMIC_LOOP_PROMOTED', severity: 'warning' },
      ],
    });
    // The commands wait: after ten minutes of simulated time, a start would make the configuration the last known good one.
    world.kubelet.stop();
    const refused = await dynamic('inspect', 'n1', '--repair', '--kubeconfig', join(directory, 'admin.conf'));
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('Node n1 is still assigned kube-system/c/kubelet@')]);
    const taken = `${STORE}/store/meta/assigned`;
    const crashing = hostOfKubelet().text(taken);
    host = hostOfKubelet(
      (one) => void one.perform([{ kind: 'write-file', path: taken, mode: 0o600, owner: 'root:root', content: crashing }]),
    );
    const tooEarly = await dynamic('inspect', 'n1', '--repair');
    expect([tooEarly.code, tooEarly.stderr]).toEqual([
      1,
      expect.stringMatching(/n1: .*the kubelet started, but uses kube-system\/c\/kubelet@\d+ again/),
    ]);
    host = null;
    await dynamic('reset', 'n1', '--wait', 'none');
    const plan = await dynamic('inspect', 'n1', '--repair', '--dry-run', '--exit-code');
    expect([plan.code, plan.stdout]).toEqual([6, expect.stringMatching(/stop kubelet[\s\S]*assigned[\s\S]*restart kubelet/)]);
    host = hostOfKubelet();
    const done = await dynamic('inspect', 'n1', '--repair', '--kubeconfig', join(directory, 'admin.conf'));
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('the kubelet is healthy again')]);
    expect(done.stderr).not.toContain('PLAN_CHANGED');
    // The kubelet starts with the repaired files.
    writeFileSync(join(world.directory, 'store/meta/assigned'), host.text(`${STORE}/store/meta/assigned`));
    world.kubelet.start();
    await world.pass(8);
    expect(await world.status()).toMatchObject({ assigned: world.at(good), active: world.at(good) });
    await world.pass(30);
    expect(await world.status()).toEqual({});
  });

  it('names a checkpoint file that differs from its ConfigMap, and makes the kubelet download it again', async () => {
    await begin();
    const a = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(60);
    world.kubelet.stop();
    const checkpoint = `store/checkpoints/${a.metadata.uid}/${a.metadata.resourceVersion}`;
    writeFileSync(join(world.directory, checkpoint, 'kubelet'), GOOD.slice(0, 20));
    world.kubelet.start();
    await world.pass(30);
    expect(await world.status()).toMatchObject({ error: expect.stringContaining('failed to load config') });
    const admin = join(directory, 'admin.conf');
    const alone = await dynamic('inspect', 'n1');
    expect([alone.code, alone.stdout]).toEqual([1, expect.stringContaining('not compared with its ConfigMap: no kubeconfig was given')]);
    const { code, stdout } = await dynamic('inspect', 'n1', '--kubeconfig', admin);
    expect(code).toBe(1);
    expect(stdout).toContain(`${STORE}/${checkpoint}/kubelet has 20 bytes, but key kubelet of ConfigMap kube-system/a has ${GOOD.length}`);
    expect(stdout).toContain('[DYNAMIC_CHECKPOINT_TORN]');
    expect(stdout).not.toMatch(/assign another/i);
    // The ConfigMap itself may cause the failure: it is not changed without a comparison.
    host = hostOfKubelet();
    const blind = await dynamic('inspect', 'n1', '--repair');
    expect([blind.code, blind.stderr + blind.stdout]).toEqual([0, expect.stringContaining('not repaired: ')]);
    const plan = await dynamic('inspect', 'n1', '--repair', '--kubeconfig', admin, '--dry-run');
    expect(plan.stdout).toMatch(new RegExp(`stop kubelet[\\s\\S]*remove directory \\S+${checkpoint}[\\s\\S]*restart kubelet`));
    const done = await dynamic('inspect', 'n1', '--repair', '--kubeconfig', admin);
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('the kubelet is healthy again')]);
    expect(host.text(`${STORE}/store/meta/assigned`)).toBe('');
    // The simulated kubelet handles the repaired store like a real one.
    world.kubelet.stop();
    rmSync(join(world.directory, checkpoint), { recursive: true });
    writeFileSync(join(world.directory, 'store/meta/assigned'), '');
    world.kubelet.start();
    await world.pass(40);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
  });

  it('repairs a kubelet whose meta file is corrupt', async () => {
    await begin();
    world.kubelet.stop();
    writeFileSync(join(world.directory, 'store/meta/assigned'), 'garbage: [');
    world.kubelet.start();
    await world.pass(20);
    host = hostOfKubelet();
    const { code, stdout } = await dynamic('inspect', 'n1');
    expect([code, stdout]).toEqual([1, expect.stringMatching(/starts with: nothing[\s\S]*\[DYNAMIC_META_CORRUPT\]/)]);
    expect((await dynamic('inspect', 'n1', '--repair')).code).toBe(0);
    expect(host.text(`${STORE}/store/meta/assigned`)).toBe('');
  });
});

describe('docs/dynamic-native.md', () => {
  it('contains commands that work as described, in their order', async () => {
    await begin();
    world.admin.proxyNode('n1', (path) =>
      path === '/configz' && world.kubelet.configz !== null ? { status: 200, body: { kubeletconfig: world.kubelet.configz } } : 'down',
    );
    const page = readFileSync(new URL('../../docs/dynamic-native.md', import.meta.url), 'utf8');
    const lines = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.trimEnd().split('\n'));
    const kubelet = join(directory, 'kubelet.yaml');
    let pushed = '';
    const states: unknown[] = [];
    for (const line of lines) {
      const edit = /^sed -i 's\/(.*)\/(.*)\/' kubelet\.yaml$/.exec(line);
      if (edit !== null) {
        const before = readFileSync(kubelet, 'utf8');
        const after = before.replace(new RegExp(edit[1] ?? '', 'm'), edit[2] ?? '');
        expect(after).not.toBe(before);
        writeFileSync(kubelet, after);
        continue;
      }
      const [words = '', into] = line.replace('$PUSHED', pushed).replace('kubelet.yaml', kubelet).split(' > ');
      const argv = words.split(' ').slice(1);
      const { code, stdout, stderr } = await kubeletadm(...argv);
      expect(code, `${line}\n${stderr}`).toBe(0);
      if (into !== undefined) writeFileSync(kubelet, stdout);
      if (argv[1] === 'push') pushed = stdout.trim();
      states.push([argv[1], world.kubelet.configz?.eventRecordQPS]);
    }
    expect(states).toEqual([
      ['from-node', 5],
      ['push', 5],
      ['assign', 0],
      ['status', 0],
      ['assign', 0],
      ['assign', 7],
      ['history', 7],
      ['reset', 5],
      ['gc', 5],
    ]);
  });
});
