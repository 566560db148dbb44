import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { Clock } from '../../src/base/clock.ts';
import { AppError } from '../../src/base/errors.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { type RolloutWorld, rolloutWorld, type WorldController } from '../support/rollout-world.ts';
import { runCommand } from '../support/run-cli.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const NODES = ['n1', 'n2', 'n3', 'n4'];
const QUICK = ['--min-ready', '10s', '--progress-deadline', '60s'];

let directory: string;
let world: RolloutWorld;
let controller: WorldController;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'rollout-commands-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
  world = await rolloutWorld(NODES);
  controller = world.controller();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a command line. */
async function command(argv: readonly string[], clock?: Clock) {
  return runCommand(argv, {
    env: { HOME: directory, KUBECONFIG: join(directory, 'admin.conf') },
    services: () => ({
      ...(clock === undefined ? {} : { clock }),
      connectCluster: async () => ({ ...world.cluster, close: async () => {} }),
    }),
  });
}

/** Runs `rollout ...`; the controller works while the command waits. */
const rollout = (...argv: readonly string[]) => {
  const { clock } = world.fleet;
  const sleep = (ms: number) => controller.run(Math.max(1, Math.round(ms / 1000)));
  return command(['rollout', ...argv], { ...clock, now: () => clock.now(), sleep });
};

/** A Lease that its holder renews all the time. */
async function startLease(namespace = 'kubeletadm-system'): Promise<void> {
  const renewTime = world.fleet.clock.now().toISOString();
  const metadata = { name: 'kubeletadm-controller', namespace };
  const spec = { holderIdentity: 'controller-1', renewTime };
  await world.cluster.create({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
}

const create = (...argv: readonly string[]) => rollout('create', ...argv, ...QUICK);

/** Makes the running configuration of all nodes readable. */
async function withConfigz(config: Readonly<Record<string, number>>): Promise<void> {
  const kubeletconfig = { ...effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 }), ...config };
  for (const node of NODES) world.fleet.cluster.proxyNode(node, () => ({ status: 200, body: { kubeletconfig } }));
}

describe('rollout create', () => {
  it('knows the controller also for a ConfigMap of another namespace', async () => {
    await startLease();
    const payload = { configMapRef: { namespace: 'team-a', name: 'pods' } };
    await world.create('edge', { nodeSelector: {}, payload });
    await controller.run(1);
    expect((await world.status('edge')).updateConfigMap).toMatchObject({ namespace: 'team-a' });
    await world.cluster.patch(rolloutRef('edge'), 'merge', { status: { phase: 'Progressing' } }, { subresource: 'status' });
    expect((await rollout('status', 'edge')).stderr).toBe('');
  });

  it('succeeds without the right to read the Lease of the controller', async () => {
    const { get } = world.cluster;
    const forbidden = new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'leases is forbidden' });
    vi.spyOn(world.cluster, 'get').mockImplementation((ref) => (ref.kind === 'Lease' ? Promise.reject(forbidden) : get(ref)));
    const { code, stdout, stderr } = await create('edge', '--all', '--set', 'maxPods=50');
    expect([code, stdout]).toEqual([0, 'kubeletconfigrollout.kubeletadm.dev/edge created\n']);
    expect(stderr).not.toContain('Lease');
    expect((await rollout('status', 'edge')).code).toBe(0);
  });

  it('creates the object from its options', async () => {
    await withConfigz({ maxPods: 110 });
    const { code, stdout, stderr } = await create(
      ...['edge', '--selector', 'pool in (even,odd),!gpu', '--set', 'maxPods=50', '--canary', 'pool=even', '--max-unavailable', '25%'],
      ...['--max-fail', '2', '--order', 'zone', '--until', 'good', '--on-failure', 'revert', '--allow', 'drain', '--force-drain'],
      ...['--deletion-policy', 'reset', '--paused'],
    );
    expect([code, stdout]).toEqual([0, 'kubeletconfigrollout.kubeletadm.dev/edge created\n']);
    expect(stderr).toContain('maxPods: 110 → 50 (new-pods-only) on 4 nodes');
    expect(stderr).toContain('no controller has renewed its Lease kubeletadm-system/kubeletadm-controller');
    expect((await world.cluster.get(rolloutRef('edge')))?.spec).toMatchObject({
      nodeSelector: {
        matchExpressions: [
          { key: 'pool', operator: 'In', values: ['even', 'odd'] },
          { key: 'gpu', operator: 'DoesNotExist' },
        ],
      },
      payload: { overlay: { maxPods: 50 } },
      strategy: {
        canary: { count: 2, nodeSelector: { matchLabels: { pool: 'even' } } },
        topologyKey: 'topology.kubernetes.io/zone',
        maxUnavailable: '25%',
        maxFailures: 2,
        minReadySeconds: 10,
        until: 'Good',
        allow: 'drain',
        drain: { force: true, timeoutSeconds: 600 },
      },
      paused: true,
      progressDeadlineSeconds: 60,
      onFailure: 'Revert',
      deletionPolicy: 'Reset',
    });
  });

  it('prints the object in a dry run, with the fields of a file and of --set, and creates nothing', async () => {
    const file = join(directory, 'fields.yaml');
    writeFileSync(file, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 40\nlogging:\n  verbosity: 2\n');
    await startLease();
    const { code, stdout, stderr } = await rollout(
      ...['create', 'edge', '--all', '--overlay', file, '--set', 'maxPods=50', '--dry-run', '-o', 'yaml'],
    );
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('Lease')]);
    expect(parse(stdout)).toEqual({
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'KubeletConfigRollout',
      metadata: { name: 'edge' },
      spec: { nodeSelector: {}, payload: { overlay: { maxPods: 50, logging: { verbosity: 2 } } } },
    });
    expect(await world.cluster.get(rolloutRef('edge'))).toBeNull();
  });

  it.each([
    ['an unknown field', ['--all', '--overlay', 'FILE'], 2, /maxPodz: unknown field/],
    ['a value of another type', ['--all', '--set', 'maxPods=many'], 2, /--set maxPods=many: maxPods: /],
    ['a ConfigMap that does not exist', ['--all', '--configmap', 'kubeletadm-system/none'], 3, /kubeletadm-system\/none.*ROLLOUT_REFUSED/],
    ['a canary that is not selected', ['--selector', 'pool=odd', '--set', 'maxPods=50', '--canary', 'pool=even'], 2, /no selected node/],
    ['a canary by name', ['--all', '--set', 'maxPods=50', '--canary', 'n1'], 2, /kubernetes\.io\/hostname=n1/],
    ['no selector', ['--set', 'maxPods=50'], 2, /one of --selector and --all is required/],
    ['a comparison of numbers', ['--selector', 'cores>4', '--set', 'maxPods=50'], 2, /cannot compare numbers/],
    ['no payload', ['--all'], 2, /nothing to roll out/],
    ['two payloads', ['--all', '--set', 'maxPods=50', '--configmap', 'a/b'], 2, /cannot be combined/],
    ['a percentage of failures', ['--all', '--set', 'maxPods=50', '--max-fail', '10%'], 2, /a number from 0 to 100/],
  ])('refuses %s, and creates nothing', async (_, argv, code, message) => {
    writeFileSync(join(directory, 'fields.yaml'), 'maxPodz: 40\n');
    const result = await create('edge', ...argv.map((word) => (word === 'FILE' ? join(directory, 'fields.yaml') : word)));
    expect([result.code, result.stderr]).toEqual([code, expect.stringMatching(message)]);
    expect(await world.cluster.get(rolloutRef('edge'))).toBeNull();
  });

  it('has the gates and windows of a file for --gates', async () => {
    const file = join(directory, 'gates.yaml');
    const header = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Rollout\n';
    const job = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'e2e', labels: { team: 'a' } },
      spec: { backoffLimit: 2, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'e2e', image: 'example.com/e2e' }] } } },
    };
    writeFileSync(join(directory, 'job.yaml'), JSON.stringify(job));
    const windows = `windows: [{days: [Fri], startTime: "22:00", duration: 7h, timeZone: Etc/UTC}, {startTime: "01:00", endTime: "02:30", timeZone: Etc/UTC}]`;
    const gates = `gates:
- {name: errors, timeout: 10m, retries: 20, interval: 30s, prometheus: {address: "http://prometheus:9090", query: errors, thresholdRange: {max: 0.5}}}
- {name: e2e, after: end, job: {manifest: job.yaml, namespace: e2e}}
`;
    writeFileSync(file, `${header}batchDuration: 20m\n${windows}\n${gates}`);
    const { code, stdout, stderr } = await rollout(
      ...[
        'create',
        'edge',
        '--all',
        '--set',
        'maxPods=50',
        '--canary',
        '2',
        '--order',
        'spread',
        '--gates',
        file,
        '--dry-run',
        '-o',
        'yaml',
      ],
    );
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    expect(parse(stdout).spec.strategy).toEqual({
      canary: { count: 2 },
      topologyKey: 'topology.kubernetes.io/zone',
      topologyOrder: 'Spread',
      gates: [
        {
          name: 'errors',
          timeoutSeconds: 600,
          prometheus: {
            address: 'http://prometheus:9090',
            query: 'errors',
            thresholdRange: { max: 0.5 },
            retries: 20,
            intervalSeconds: 30,
          },
        },
        { name: 'e2e', after: 'End', job: { namespace: 'e2e', template: { metadata: { labels: { team: 'a' } }, spec: job.spec } } },
      ],
      windows: [
        { days: ['Fri'], startTime: '22:00', endTime: '05:00', timeZone: 'Etc/UTC' },
        { startTime: '01:00', endTime: '02:30', timeZone: 'Etc/UTC' },
      ],
      batchDurationSeconds: 1200,
    });
    writeFileSync(
      file,
      `${header}gates:\n- {name: smoke, command: ./smoke.sh, onFailure: revert}\n- {name: e2e, retries: 2, job: {manifest: job.yaml}}\n`,
    );
    const refused = await create('edge', '--all', '--set', 'maxPods=50', '--gates', file);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      `gate smoke: a controller runs no commands; use a Job or a query of Prometheus [USAGE]
gate smoke: a rollout has one onFailure for nodes and gates; use --on-failure [USAGE]
gate e2e: a controller creates a Job once; set backoffLimit in its manifest instead of retries and interval [USAGE]
`,
    ]);
  });

  it('refuses the name of an existing rollout, and prints its replacement', async () => {
    await create('edge', '--all', '--set', 'maxPods=50');
    const { code, stdout, stderr } = await create('edge', '--all', '--set', 'maxPods=60');
    const problem =
      'KubeletConfigRollout edge exists already. Change fields: kubectl edit kcr edge. To replace all fields, add --dry-run -o yaml, and pipe the object to kubectl replace -f -. Otherwise choose another name. [ROLLOUT_EXISTS]\n';
    expect([code, stdout, stderr.slice(-problem.length)]).toEqual([3, '', problem]);
    expect((await world.cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 50 } } });
    const dry = await create('edge', '--all', '--set', 'maxPods=60', '--dry-run', '-o', 'yaml');
    expect([dry.code, parse(dry.stdout)]).toMatchObject([0, { spec: { payload: { overlay: { maxPods: 60 } } } }]);
  });

  it('refuses nodes of another rollout, and an impact above --allow', async () => {
    await create('older', '--selector', 'pool=even', '--set', 'maxPods=50');
    const second = await create('younger', '--all', '--set', 'maxPods=60');
    expect([second.code, second.stderr]).toEqual([3, expect.stringMatching(/selected by an older KubeletConfigRollout: older/)]);
    await withConfigz({ maxPods: 110 });
    const third = await create('odd', '--selector', 'pool=odd', '--set', 'topologyManagerScope=pod');
    expect([third.code, third.stderr]).toEqual([3, expect.stringMatching(/impact is drain, above strategy\.allow new-pods-only/)]);
  });

  it('advises to install the CustomResourceDefinition', async () => {
    await world.cluster.delete({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      name: 'kubeletconfigrollouts.kubeletadm.dev',
    });
    const { code, stderr } = await rollout('list');
    expect([code, stderr]).toEqual([2, expect.stringContaining('kubeletadm controller install')]);
  });
});

it('rollout create warns of a value that the local configuration may permit, without the line of a file', async () => {
  const { code, stderr } = await create('edge', '--all', '--set', 'maxPods=-1');
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^warning: maxPods: must be 0 or more/m)]);
  await withConfigz({ maxPods: 110 });
  const known = await create('edge', '--all', '--set', 'maxPods=-1', '--dry-run');
  expect([known.code, known.stderr]).toEqual([3, expect.stringMatching(/n\[1:4\].*maxPods.*ROLLOUT_REFUSED/)]);
});

describe('rollout status', () => {
  it('waits until the rollout is complete', async () => {
    await create('edge', '--all', '--set', 'maxPods=50');
    const before = await rollout('status', 'edge');
    expect([before.code, before.stdout]).toEqual([0, 'edge: not processed yet by a controller\n']);
    const { code, stdout, stderr } = await rollout('status', 'kcr/edge', '--wait');
    expect([code, stdout]).toEqual([0, 'edge: Complete: 4 of 4 nodes updated\n']);
    expect(stderr).toMatch(/rollout edge: Progressing: 1 of 4 nodes updated/);
    expect((await rollout('list')).stdout).toMatch(/^NAME .*AGE\nedge +Complete +4 +4 +0 +0 +/);
    expect((await rollout('status', 'edge', '-o', 'jsonpath={.status.phase}')).stdout).toBe('Complete');
  });

  it.each([
    ['some nodes failed', ['--all'], 4, /is Failed.*ROLLOUT_FAILED/],
    ['the only node failed', ['--selector', 'kubernetes.io/hostname=n1'], 1, /is Failed.*ROLLOUT_FAILED/],
    ['all nodes have their previous configuration', ['--all', '--on-failure', 'revert'], 5, /is Reverted/],
  ])('ends with an exit code: %s', async (_, argv, code, message) => {
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'merge', {
      metadata: { labels: { 'kubernetes.io/hostname': 'n1' } },
    });
    world.fleet.behaviours.set('"maxPods": 66', (seconds) => (seconds < 3 ? {} : { healthz: { ok: false, why: 'connection refused' } }));
    expect((await create('edge', '--set', 'maxPods=66', ...argv)).code).toBe(0);
    const result = await rollout('status', 'edge', '--wait');
    expect([result.code, result.stderr]).toEqual([code, expect.stringMatching(message)]);
    expect(result.stdout).toMatch(/^edge: /);
  });

  it('ends with an exit code: refused, and after the time limit', async () => {
    await world.create('edge', { nodeSelector: {}, payload: { overlay: { maxPodz: 1 } } });
    const result = await rollout('status', 'edge', '--wait');
    expect([result.code, result.stderr]).toEqual([3, expect.stringMatching(/is Refused: n1: .*maxPodz.*ROLLOUT_REFUSED/s)]);
    await world.patch('edge', { payload: { overlay: { maxPodz: null, maxPods: 50 } }, paused: true });
    const paused = await rollout('status', 'edge', '--wait', '--timeout', '30s');
    expect([paused.code, paused.stderr]).toEqual([1, expect.stringMatching(/not complete after 3\ds: Paused: .*ROLLOUT_NOT_COMPLETE/)]);
  });

  it('shows a node in progress; an unknown name is an error', async () => {
    await create('edge', '--all', '--set', 'maxPods=50');
    await controller.run(5);
    expect((await rollout('status', 'edge')).stdout).toMatch(
      /^edge: Progressing: 0 of 4 nodes updated, 1 in progress\nNODE +STATE +SINCE +MESSAGE\nn\d +InProgress +\ds\nn\d +Pending +-\n/,
    );
    const unknown = await rollout('status', 'none');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringMatching(/no KubeletConfigRollout none exists.*ROLLOUT_NOT_FOUND/)]);
  });
});

describe('a controller in another namespace', () => {
  beforeEach(async () => {
    const metadata = { name: 'pods', namespace: 'kubeletadm-system' };
    const data = { kubelet: 'kind: KubeletConfigurationOverlay\napiVersion: kubeletadm.dev/v1alpha1\nmaxPods: 50\n' };
    await world.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true, data });
    await world.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-x' } });
    controller = world.controller({ namespace: 'team-x' });
  });

  it('is found by the revisions that it records', async () => {
    await world.create('edge', { nodeSelector: {}, payload: { configMapRef: { namespace: 'kubeletadm-system', name: 'pods' } } });
    await controller.run(1);
    const { stdout, stderr } = await rollout('status', 'edge');
    expect([stdout, stderr]).toEqual([
      expect.stringContaining('edge: Progressing'),
      expect.stringContaining('has renewed its Lease team-x/kubeletadm-controller within the last minute'),
    ]);
    await startLease('team-x');
    expect((await rollout('status', 'edge')).stderr).toBe('');
    const { list } = world.cluster;
    const forbidden = new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'controllerrevisions is forbidden' });
    vi.spyOn(world.cluster, 'list').mockImplementation((kind, options) =>
      kind.kind === 'ControllerRevision' ? Promise.reject(forbidden) : list(kind, options),
    );
    expect((await rollout('status', 'edge')).stderr).toBe('');
  });

  it('stays that of an overlay that it has not processed yet', async () => {
    await world.create('edge', { nodeSelector: {}, payload: { configMapRef: { namespace: 'kubeletadm-system', name: 'pods' } } });
    await controller.run(1);
    await world.patch('edge', { payload: { configMapRef: null, overlay: { maxPods: 60 } } });
    await startLease('team-x');
    expect((await rollout('status', 'edge')).stderr).toBe('');
  });
});

describe('rollout pause, resume, undo', () => {
  it('pauses and resumes', async () => {
    await create('edge', '--all', '--set', 'maxPods=50');
    expect((await rollout('pause', 'edge')).stdout).toBe('kubeletconfigrollout.kubeletadm.dev/edge paused\n');
    expect((await rollout('pause', 'edge')).stdout).toContain('unchanged: already paused');
    await controller.run(30);
    expect(await world.assigned()).toEqual([]);
    expect((await rollout('resume', 'edge')).stdout).toBe('kubeletconfigrollout.kubeletadm.dev/edge resumed\n');
    expect((await rollout('status', 'edge', '--wait')).code).toBe(0);
  });

  it('returns to earlier revisions, and replaces the whole payload', async () => {
    const only = (maxPods: number): Readonly<Record<string, number>> => Object.fromEntries(NODES.map((name) => [name, maxPods]));
    await create('edge', '--all', '--set', 'maxPods=40', '--set', 'logging.verbosity=3');
    expect((await rollout('undo', 'edge')).code).toBe(2);
    await rollout('status', 'edge', '--wait');
    const alone = await rollout('undo', 'edge');
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringMatching(/no earlier revision exists.*ROLLOUT_NO_REVISION/)]);
    await world.patch('edge', { payload: { overlay: { maxPods: 50, logging: null } } });
    await rollout('status', 'edge', '--wait');
    const history = await rollout('history', 'edge');
    expect(history.stdout).toMatch(
      /^REVISION .*\n1 +edge-\w+ +\w+ +- +logging\.verbosity: unset → 3, maxPods: 110 → 40\n2 +edge-\w+ +\w+ +current +logging\.verbosity: 3 → unset, maxPods: 40 → 50\n$/,
    );
    const dry = await rollout('undo', 'edge', '--dry-run');
    expect(dry.stdout).toContain('maxPods: 50 → 40 (new-pods-only)\n');
    expect(dry.stdout).toContain('edge rolled back to revision 1 (dry run)\n');
    expect((await world.cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 50 } } });
    expect((await rollout('undo', 'edge')).stdout).toContain('rolled back to revision 1\n');
    expect((await world.cluster.get(rolloutRef('edge')))?.spec).toMatchObject({
      payload: { overlay: { maxPods: 40, logging: { verbosity: 3 } } },
    });
    expect((await rollout('undo', 'edge', '--to-revision', '1')).stdout).toContain('unchanged: the payload is that of revision 1');
    await rollout('status', 'edge', '--wait');
    expect(await world.maxPods()).toEqual(only(40));
    // The revision that was returned to is the newest.
    expect((await rollout('undo', 'edge', '--to-revision', '2')).stdout).toContain('rolled back to revision 2');
    expect((await world.cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 50 } } });
    expect((await rollout('undo', 'edge', '--to-revision', '9')).stderr).toContain('revision 9 does not exist');
  });

  it('refuses to undo an object that another client changes at the same time', async () => {
    await create('edge', '--all', '--set', 'maxPods=40');
    await rollout('status', 'edge', '--wait');
    await world.patch('edge', { payload: { overlay: { maxPods: 50 } } });
    await rollout('status', 'edge', '--wait');
    const { cluster } = world;
    const racing = {
      ...cluster,
      update: async (object: Parameters<typeof cluster.update>[0]) => {
        await cluster.patch(rolloutRef('edge'), 'merge', { spec: { payload: { overlay: { maxPods: 70 } } } });
        return cluster.update(object);
      },
    };
    world = { ...world, cluster: racing };
    const { code, stderr } = await rollout('undo', 'edge');
    expect([code, stderr]).toEqual([1, expect.stringContaining('CLUSTER_CONFLICT')]);
    expect((await cluster.get(rolloutRef('edge')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 70 } } });
  });
});

describe('rollout diff', () => {
  it('compares the payload with the running configuration, and revisions', async () => {
    await create('edge', '--all', '--set', 'maxPods=40');
    await rollout('status', 'edge', '--wait');
    expect((await rollout('diff', 'edge', '--exit-code')).stdout).toBe('No field differs: 4 of 4 nodes run the payload.\n');
    await withConfigz({ maxPods: 40 });
    await world.patch('edge', { payload: { overlay: { maxPods: 50 } }, paused: true });
    const running = await rollout('diff', 'edge', '--exit-code');
    expect([running.code, running.stdout]).toEqual([6, 'maxPods: 40 → 50 (safe) on 4 nodes\nhighest impact: safe\n']);
    await controller.run(5);
    const document = JSON.parse((await rollout('diff', 'edge', '--revision', '2', '--to-revision', '1', '-o', 'json')).stdout);
    expect(document).toMatchObject({
      kind: 'RolloutDiff',
      revision: 2,
      toRevision: 1,
      fields: [{ field: 'maxPods', before: 50, after: 40 }],
    });
    expect((await rollout('diff', 'edge', '--revision', '1')).stdout).toBe('maxPods: 40 → 50 (safe)\n');
  });
});

describe('status', () => {
  it('shows the rollout of each Node, and rollouts that are not complete', async () => {
    expect((await command(['status'])).stdout).not.toContain('ROLLOUT');
    await create('even', '--selector', 'pool=even', '--set', 'maxPods=50');
    await controller.run(5);
    const { code, stdout } = await command(['status']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NODE NAME .* CHANGE +ROLLOUT$/m);
    expect(stdout).toMatch(/^n1 .* even$/m);
    expect(stdout).toMatch(/^n2 .* -$/m);
    expect(stdout).toMatch(/^rollout even: Progressing: 0 of 2 nodes updated, 1 in progress$/m);
    await rollout('status', 'even', '--wait');
    expect((await command(['status'])).stdout).not.toContain('rollout even:');
    const document = JSON.parse((await command(['status', 'n1', '-o', 'json'])).stdout);
    expect(document).toMatchObject({ kind: 'Status', items: [{ node: 'n1', rollout: 'even' }], rollouts: [] });
  });

  it('shows no rollouts without their definition', async () => {
    await world.cluster.delete({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      name: 'kubeletconfigrollouts.kubeletadm.dev',
    });
    expect(await command(['status'])).toMatchObject({ code: 0, stdout: expect.not.stringContaining('ROLLOUT') });
  });
});

describe('dynamic assign --rollout', () => {
  const assign = (...argv: readonly string[]) => {
    const { clock } = world.fleet;
    const sleep = (ms: number) => controller.run(Math.max(1, Math.round(ms / 1000)));
    const file = join(directory, 'kubelet.yaml');
    writeFileSync(file, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 50\n');
    const words = ['dynamic', 'assign', '--file', file, '--rollout', 'edge', ...argv];
    return command(words, { ...clock, now: () => clock.now(), sleep });
  };

  it('creates the object with the options of the command, and waits for its end', async () => {
    await startLease();
    const { code, stdout, stderr } = await assign('--selector', 'pool=even', '--canary', '2', '--on-failure', 'revert', '--settle', '5m');
    expect([code, stdout]).toEqual([0, 'edge: Complete: 2 of 2 nodes updated\n']);
    expect(stderr).toContain('created KubeletConfigRollout edge; interrupting this command does not stop the rollout');
    const spec = (await world.cluster.get(rolloutRef('edge')))?.spec;
    expect(spec).toMatchObject({
      nodeSelector: { matchLabels: { pool: 'even' } },
      payload: { configMapRef: { namespace: 'kubeletadm-system', kubeletConfigKey: 'kubelet' } },
      strategy: { canary: { count: 2 }, maxUnavailable: '10%', allow: 'unsafe', until: 'Trial', drain: { settleSeconds: 300 } },
      progressDeadlineSeconds: 180,
      onFailure: 'Revert',
    });
    expect(await world.assigned()).toEqual(['n1', 'n3']);
  });

  it('ends with the exit code of the rollout', async () => {
    await startLease();
    world.fleet.behaviours.set('maxPods: 50', (seconds) => (seconds < 3 ? {} : { healthz: { ok: false, why: 'connection refused' } }));
    const { code, stderr } = await assign('--selector', 'pool=even');
    expect([code, stderr]).toEqual([4, expect.stringContaining('ROLLOUT_FAILED')]);
  });

  it('creates nothing in a dry run, and nothing that no controller acts on', async () => {
    const alone = await assign('--selector', 'pool=even');
    expect([alone.code, alone.stderr]).toEqual([3, expect.stringContaining('CONTROLLER_NOT_RUNNING')]);
    const maps = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' };
    expect((await world.cluster.list(maps)).items).toEqual([]);
    await startLease();
    const dry = await assign('--selector', 'pool=even', '--dry-run');
    expect([dry.code, dry.stdout]).toEqual([0, 'kubeletconfigrollout.kubeletadm.dev/edge created (dry run)\n']);
    expect(await world.cluster.get(rolloutRef('edge'))).toBeNull();
    const started = await assign('--selector', 'pool=even', '--wait', 'none');
    expect([started.code, started.stdout]).toEqual([0, 'kubeletconfigrollout.kubeletadm.dev/edge created\n']);
  });

  it.each([
    ['node names', ['n1'], /--rollout requires --selector/],
    ['hosts of a fleet file', ['--selector', 'pool=even', '--group', 'edge'], /selected in more than one way/],
    ['an option that a rollout does not have', ['--selector', 'pool=even', '--allow-pod-loss'], /--allow-pod-loss cannot be combined with/],
    ['a configuration that the kubelet rejects', ['--selector', 'pool=even', '--skip-validation'], /--skip-validation cannot be combined/],
    ['the exit code of a dry run', ['--selector', 'pool=even', '--dry-run', '--exit-code'], /--exit-code cannot be combined/],
    ['a run outside of the windows', ['--selector', 'pool=even', '--ignore-window'], /--ignore-window cannot be combined/],
  ])('refuses %s', async (_, argv, message) => {
    const { code, stderr } = await assign(...argv);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});

it('dynamic assign warns of nodes that belong to a rollout', async () => {
  await create('even', '--selector', 'pool=even', '--set', 'maxPods=50');
  const file = join(directory, 'kubelet.yaml');
  writeFileSync(file, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 60\n');
  const { code, stderr } = await command(['dynamic', 'assign', 'n1', 'n2', 'n3', '--file', file, '--dry-run']);
  expect([code, stderr]).toEqual([0, expect.stringMatching(/n1 and 1 more belong to the rollout even, .*\[NODE_IN_ROLLOUT\]/)]);
});
