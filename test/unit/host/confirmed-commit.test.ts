import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import type { Host } from '../../../src/host/access/host.ts';
import type { HttpFact } from '../../../src/host/facts/query.ts';
import type { Operation } from '../../../src/host/operation/operation.ts';
import type { PhaseContext } from '../../../src/host/phase.ts';
import type { WriterOptions } from '../../../src/host/run-host.ts';
import { planWorkflow, type Workflow } from '../../../src/host/run-workflow.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type KubeletStartInput, kubeletStart } from '../../../src/kubeadm/phases/kubelet-start.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { configFieldChanges, type KubeletReading } from '../../../src/kubelet/effective/field-changes.ts';
import { layerRunningConfig } from '../../../src/kubelet/effective/running-config.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit, runs } from '../../support/fake-units.ts';
import { kubeadmSetup } from '../../support/kubelet-setups.ts';
import { fakePod, podsIn, RUNNING, setPodStatus, startPods } from '../../support/pods-on-node.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { runWorkflow } from '../../support/run-workflow.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const RECORD = '/var/lib/kubeletadm/commit/record';
const REVERTED = '/var/lib/kubeletadm/reverted/record';
const TIMEOUT_MS = 300_000;
const OWNER = { id: 'aaaa', name: 'alice@laptop', processId: 7, machine: 'laptop/1' };
const OLD = yaml('maxPods: 110');
const NEW = yaml('maxPods: 50');
const BAD = 'E1120 13:20:06.468731   26671 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported"';
const catalogue = await loadCatalogue();
const READING: KubeletReading = {
  catalogue,
  minor: 36,
  rootDir: '/var/lib/kubelet',
  layersOf: (input) => layerRunningConfig(input).layered,
  changesOf: (before, after) => configFieldChanges(before, after, { catalogue, minor: 36 }),
};
const REJECTED = { phase: 'Failed', reason: 'OutOfpods', message: 'too many pods' };
const probeOf = (): JsonObject => REJECTED;

function yaml(line: string): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${line}\n`;
}

const workflow: Workflow<KubeletStartInput, KubeletStartInput> = {
  name: 'test',
  phases: [kubeletStart.select((input) => input)],
  prepare: async (_, input) => ({ input, warnings: [], refusals: [] }),
};

interface World {
  readonly host: FakeHost;
  readonly clock: FakeClock;
  readonly reporter: ReturnType<typeof recordingReporter>;
  readonly unit: FakeUnit;
  /** Errors for new connections, used in this order. */
  readonly reconnectErrors: AppError[];
  readonly reconnects: () => number;
  /** Sets the flags of the running kubelet; null: unreadable. */
  readonly commandLine: (flags: string | null) => void;
  readonly input: KubeletStartInput;
  readonly context: (more?: Partial<PhaseContext>, writing?: Partial<WriterOptions>) => PhaseContext;
}

function world(files: Readonly<Record<string, string>> = { [CONFIG]: OLD }, state = 'active'): World {
  const unit = fakeUnit({ activeState: state, unitFileState: 'enabled' });
  const http = (): HttpFact => (unit.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' });
  let flags: string | null = `--config=${CONFIG}`;
  const commandLine = (script: string) =>
    script.includes('/cmdline') && flags !== null ? { stdout: `7 1 2\n/usr/bin/kubelet\0${flags}\0` } : { exitCode: 1 };
  const commands = {
    sh: ([, , script = '']: readonly string[]) => (script.includes('command -v systemctl') ? { exitCode: 0 } : commandLine(script)),
  };
  const host = fakeHost({ files, units: { kubelet: unit }, http, commands });
  const [clock, reporter] = [fakeClock(), recordingReporter()];
  const reconnectErrors: AppError[] = [];
  let made = 0;
  const reconnect = async (): Promise<Host> => {
    made++;
    const error = reconnectErrors.shift();
    if (error !== undefined) throw error;
    return { ...host, query: host.query, perform: host.perform, close: async () => undefined };
  };
  return {
    host,
    clock,
    reporter,
    unit,
    reconnectErrors,
    reconnects: () => made,
    commandLine: (words) => {
      flags = words;
    },
    input: {
      directories: [],
      unitFiles: [],
      files: [{ path: CONFIG, content: NEW, mode: 0o644, owner: 'root:root' }],
      health: { url: 'http://127.0.0.1:10248/healthz', timeoutMs: 60_000 },
      mayChown: true,
      verification: { nodeName: 'node1', minor: 36, catalogue },
      reading: READING,
      setups: {
        before: files[CONFIG] === undefined ? null : kubeadmSetup({ configYaml: files[CONFIG] }),
        after: kubeadmSetup({ configYaml: NEW }),
      },
    },
    context: (more = {}, writing = {}) => ({
      host,
      cluster: null,
      clock,
      reporter,
      writing: { owner: OWNER, breakLock: false, isGone: () => false, confirm: { timeoutMs: TIMEOUT_MS, reconnect }, ...writing },
      ...more,
    }),
  };
}

const apply = ({ input }: World, context: PhaseContext) => runWorkflow(workflow, context, input, { dryRun: false, skipPhases: [] });
const kinds = ({ host }: World): readonly string[] =>
  host.performed.map((operation) => (operation.kind === 'run' ? operation.argv.slice(0, 2).join(' ') : operation.kind));
const unreachable = (): AppError => new AppError({ host: 'node1', code: 'HOST_UNREACHABLE', message: 'cannot reach node1' });

describe('a change that requires confirmation', () => {
  it('is armed together with the lock by the program that applies it, and confirmed over a new connection', async () => {
    const it = world();
    await apply(it, it.context());
    expect(kinds(it)).toEqual([
      'take-lock',
      'arm-revert',
      'write-file',
      'systemctl restart',
      'systemctl is-active',
      'confirm-commit',
      'release-lock',
    ]);
    const arm = it.host.performed[1] as Extract<Operation, { kind: 'arm-revert' }>;
    expect(arm.revert).toEqual({
      id: 'aaaa',
      owner: 'alice@laptop',
      timeoutSeconds: 300,
      paths: [CONFIG, '/var/lib/kubelet/kubeletadm-node.yaml'],
      units: ['kubelet'],
      reload: false,
    });
    expect(it.reconnects()).toBe(1);
    expect(it.host.commits.lock).toBeNull();
    expect([it.host.text(CONFIG), it.host.files.has(RECORD)]).toEqual([NEW, false]);
    expect(it.reporter.codes()).toContain('COMMIT_CONFIRMED');
  });

  it.each<[string, World, Partial<WriterOptions>]>([
    ['on a host whose kubelet was unhealthy: no valid state to return to', world({ [CONFIG]: OLD }, 'inactive'), {}],
    ['on a bare host', world({}, 'inactive'), {}],
    ['with --no-confirm', world(), { confirm: null }],
  ])('is not armed %s', async (_, it, writing) => {
    await apply(it, it.context({}, writing));
    expect(kinds(it)).toEqual(expect.arrayContaining(['take-lock', 'write-file', 'systemctl restart', 'release-lock']));
    expect(kinds(it)).not.toContain('arm-revert');
    expect([it.reconnects(), it.host.commits.lock]).toEqual([0, null]);
  });

  it('locks and arms nothing when nothing changes', async () => {
    const it = world({ [CONFIG]: NEW });
    await apply(it, it.context());
    expect([kinds(it), it.reconnects()]).toEqual([[], 0]);
  });

  it('is rolled back on the host when the kubelet crashes: exit code 5', async () => {
    const it = world();
    it.unit.onStart = (unit) => (it.host.text(CONFIG) === NEW ? crashes(unit, BAD) : runs(unit));
    await expect(apply(it, it.context())).rejects.toMatchObject({
      code: 'KUBELET_UNHEALTHY',
      exitCode: 5,
      message: expect.stringMatching(/the previous files were restored and the kubelet is healthy again \[ROLLED_BACK\]$/),
    });
    expect([it.host.text(CONFIG), it.host.files.has(RECORD), it.host.commits.lock]).toEqual([OLD, false, null]);
    expect(it.host.text(REVERTED)).toMatch(/^why .*not healthy/m);
  });

  it('is reverted as an ordinary failure when it was applied only in part: exit code 1', async () => {
    const it = world();
    it.host.failAt(3, new AppError({ host: 'node1', code: 'HOST_NO_SPACE', message: 'the disk is full' }));
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_NO_SPACE', exitCode: 1 });
    expect([it.host.text(CONFIG), it.host.files.has(RECORD), it.host.commits.lock]).toEqual([OLD, false, null]);
  });

  it('is not started when it cannot be armed', async () => {
    const it = world();
    it.host.failAt(1, new AppError({ host: 'node1', code: 'HOST_READ_ONLY', message: 'cannot arm' }));
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_READ_ONLY', exitCode: 1 });
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([OLD, null]);
    expect(kinds(it)).not.toContain('write-file');
  });

  it('is rolled back over a new connection when the connection breaks while it is applied', async () => {
    const it = world();
    it.host.loseConnectionAfter(2);
    it.reconnectErrors.push(unreachable(), unreachable());
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST', exitCode: 5 });
    expect([it.host.text(CONFIG), it.reconnects()]).toEqual([OLD, 3]);
  });

  it('reports no certain rollback when the connection breaks before it is armed', async () => {
    const it = world();
    it.host.loseConnectionAfter(0);
    await expect(apply(it, it.context())).rejects.toMatchObject({
      problems: [
        { code: 'HOST_CONNECTION_LOST' },
        { code: 'COMMIT_NOT_ARMED', message: expect.stringMatching(/nothing was changed on the host$/) },
      ],
      exitCode: 1,
    });
    expect(it.reporter.events).toContainEqual(
      expect.objectContaining({ code: 'ROLLBACK_STARTED', message: 'rolling back to the previous files, if the change has begun' }),
    );
  });

  it('fails when the host has already rolled back', async () => {
    const it = world();
    it.host.loseConnectionAfter(3);
    it.reconnectErrors.push(...Array.from({ length: 500 }, unreachable));
    it.clock.at(TIMEOUT_MS, () => {
      it.host.commits.fire('the change was not confirmed within 300 s');
      it.reconnectErrors.length = 0;
    });
    await expect(apply(it, it.context())).rejects.toMatchObject({
      exitCode: 5,
      message: expect.stringMatching(/the host rolled back automatically and the kubelet is healthy again \[ROLLED_BACK\]$/),
    });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });

  it('reports the rollback and its reason when the confirmation comes too late', async () => {
    const it = world();
    const context = it.context();
    const confirm = context.writing?.confirm;
    if (confirm === null || confirm === undefined) throw new Error('nothing to confirm');
    const reconnect = async (): Promise<Host> => {
      it.host.commits.fire('the host was restarted before the change was confirmed');
      return confirm.reconnect();
    };
    await expect(apply(it, it.context({}, { confirm: { ...confirm, reconnect } }))).rejects.toMatchObject({
      code: 'COMMIT_REVERTED',
      exitCode: 5,
      message: expect.stringContaining('the host was restarted before the change was confirmed'),
    });
    expect(it.reporter.codes()).not.toContain('COMMIT_CONFIRMED');
  });

  it('reports an unknown result when the host stays unreachable', async () => {
    const it = world();
    it.reconnectErrors.push(...Array.from({ length: 5_000 }, unreachable));
    it.host.loseConnectionAfter(3);
    await expect(apply(it, it.context())).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(
        /host unreachable: the host should already have rolled back automatically\. .*\[COMMIT_UNCONFIRMED\]$/,
      ),
    });
    expect(it.clock.elapsedMs).toBeLessThanOrEqual(TIMEOUT_MS + 62_000);
  });

  it('is confirmed when only the response to the confirmation was lost', async () => {
    const it = world();
    it.host.loseConnectionAfter(5);
    await apply(it, it.context());
    expect([it.reconnects(), it.host.text(CONFIG), it.host.files.has(RECORD)]).toEqual([2, NEW, false]);
  });

  it('is rolled back when the user interrupts the wait', async () => {
    const it = world();
    it.host.http = () => (it.host.files.has(RECORD) ? { error: 'connection refused' } : { status: 200, body: 'ok' });
    const controller = new AbortController();
    it.clock.at(100, () => controller.abort(new AppError({ code: 'INTERRUPTED', message: 'interrupted' }, { exitCode: 130 })));
    const context = it.context({ signal: controller.signal });
    await expect(apply(it, context)).rejects.toMatchObject({ code: 'INTERRUPTED', exitCode: 5 });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });
});

describe('verification of a change by the API server', () => {
  const node = (ready: boolean, lastHeartbeatTime: string | null): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node1' },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown', reason: 'NodeStatusUnknown', lastHeartbeatTime }] },
  });
  const BEFORE = '2030-01-01T00:00:00Z';
  const AFTER = '2030-01-01T00:00:20Z';
  const setReady = (cluster: FakeCluster, ready: boolean, heartbeat: string): Promise<unknown> =>
    cluster.patch(
      { apiVersion: 'v1', kind: 'Node', name: 'node1' },
      'merge',
      { status: node(ready, heartbeat).status as never },
      { subresource: 'status' },
    );
  const withNode = async (ready: boolean): Promise<FakeCluster> => {
    const cluster = fakeCluster({ objects: [node(ready, BEFORE)], dynamicKubeletConfig: true, gitVersion: 'v1.21.14' });
    await setReady(cluster, ready, BEFORE);
    return cluster;
  };

  it('waits until a newer heartbeat reports the Node Ready', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(20_000, () => void setReady(cluster, true, AFTER));
    await apply(it, it.context({ cluster }));
    expect(it.clock.elapsedMs).toBeGreaterThanOrEqual(20_000);
    expect(it.reporter.codes()).toContain('COMMIT_CONFIRMED');
    expect(it.reporter.messages('WAITING')[0]).toContain('has not reported Ready since its restart');
  });

  it('rolls back when the Node does not become Ready in time', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(100, () => void setReady(cluster, false, AFTER));
    await expect(apply(it, it.context({ cluster }))).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      exitCode: 5,
      message: expect.stringMatching(/could not be confirmed within 28\ds: the Node is not Ready: Ready is Unknown/),
    });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });

  it.each<[string, (pod: KubeObject) => JsonObject, RegExp]>([
    [
      'rejects a running pod',
      () => RUNNING,
      /the kubelet rejected 1 pod that ran before: default\/web \(OutOfpods: too many pods\).*\[PODS_LOST\]/,
    ],
    ['cannot start a new pod', probeOf, /cannot start new pods, because the probe pod .*: OutOfpods: too many pods.*\[PROBE_POD_FAILED\]/],
  ])('rolls back at once when the kubelet %s: exit code 5', async (_, statusOf, message) => {
    const it = world();
    const cluster = await withNode(true);
    const isNew = (): boolean => it.host.text(CONFIG) === NEW;
    await cluster.create(fakePod({ name: 'web', nodeName: 'node1' }));
    startPods(cluster, 'node1', (pod) => (isNew() ? statusOf(pod) : RUNNING));
    it.unit.onStart = (unit) => {
      runs(unit);
      if (!isNew()) return;
      if (statusOf !== probeOf) setPodStatus(cluster, 'web', REJECTED);
      void setReady(cluster, true, AFTER);
    };
    const verification = { nodeName: 'node1', minor: 36, catalogue, probeImage: 'registry.k8s.io/pause:3.10.2' };
    await expect(apply({ ...it, input: { ...it.input, verification } }, it.context({ cluster }))).rejects.toMatchObject({
      exitCode: 5,
      message: expect.stringMatching(message),
      problems: [{}, { code: 'ROLLED_BACK' }],
    });
    expect(it.host.text(CONFIG)).toBe(OLD);
    // With the ten seconds in which the previous kubelet must stay healthy.
    expect(it.clock.elapsedMs).toBeLessThan(20_000);
    expect(podsIn(cluster)).toHaveLength(1);
  });

  it('does not require a Node that was not Ready or registered before', async () => {
    for (const cluster of [await withNode(false), fakeCluster()]) {
      const it = world();
      await apply(it, it.context({ cluster }));
      expect([it.clock.elapsedMs < 12_000, it.host.text(CONFIG)]).toEqual([true, NEW]);
    }
  });

  it.each<[string, () => Promise<never>, string]>([
    ['shows other values', async () => ({ kubeletconfig: { maxPods: 77 } }) as never, 'the kubelet does not use the new value of maxPods'],
    [
      'cannot be read',
      async () => {
        throw new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'forbidden' });
      },
      'configz cannot be read, so it is unknown whether the kubelet uses the new value of maxPods',
    ],
  ])('does not confirm values that a ConfigMap overrides, when configz %s', async (_, getRaw, reported) => {
    const identity = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '7' };
    const native = { status: { config: { active: { configMap: identity } }, nodeInfo: { kubeletVersion: 'v1.21.14' } } };
    const text = JSON.stringify({ active: { configMap: identity } });
    const agent = { metadata: { annotations: { 'kubeletadm.dev/config-status': text } } };
    for (const by of [native, agent]) {
      const it = world();
      const cluster = await withNode(true);
      const ref = { apiVersion: 'v1', kind: 'Node', name: 'node1' };
      await cluster.patch(ref, 'merge', by, 'status' in by ? { subresource: 'status' } : {});
      it.clock.at(100, () => void setReady(cluster, true, AFTER));
      await apply(it, it.context({ cluster: { ...cluster, getRaw } }));
      expect(it.host.text(CONFIG)).toBe(NEW);
      expect(it.reporter.codes()).not.toContain('COMMIT_CONFIRMED');
      expect(it.reporter.messages('COMMIT_NOT_IN_FORCE')).toEqual([
        expect.stringMatching(/^the new files are kept, but ConfigMap kube-system\/a\/kubelet overrides config\.yaml on Node node1: /),
      ]);
      expect(it.reporter.messages('COMMIT_NOT_IN_FORCE')[0]).toContain(reported);
    }
  });

  it('rolls back when configz keeps showing the old values', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(100, () => void setReady(cluster, true, AFTER));
    const getRaw = async (): Promise<never> => ({ kubeletconfig: { maxPods: 110 } }) as never;
    await expect(apply(it, it.context({ cluster: { ...cluster, getRaw } }))).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      message: expect.stringContaining('the kubelet does not use the new value of maxPods'),
    });
    const good = world();
    good.clock.at(100, () => void setReady(cluster, true, '2030-01-01T00:01:00Z'));
    await apply(good, good.context({ cluster: { ...cluster, getRaw: async () => ({ kubeletconfig: { maxPods: 50 } }) as never } }));
    expect(good.host.text(CONFIG)).toBe(NEW);
  });
});

describe('verification of a change on the host', () => {
  it('rolls back when the restarted kubelet reads another file', async () => {
    const it = world();
    it.host.files.set('/etc/other.yaml', { type: 'file', mode: 0o644, owner: 'root:root', content: OLD });
    it.unit.onStart = (unit) => {
      it.commandLine(`--config=/etc/other.yaml`);
      runs(unit);
    };
    await expect(apply(it, it.context())).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      message: expect.stringContaining('does not use the new value of maxPods'),
    });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });

  it('reports that the new values are unknown when neither configz nor the process can be observed', async () => {
    const it = world();
    it.commandLine(null);
    await apply(it, it.context());
    expect(it.host.text(CONFIG)).toBe(NEW);
    expect(it.reporter.events.map(({ message }) => message).join('\n')).toContain(
      'it is unknown whether the kubelet uses the new values of maxPods: the command line of the kubelet cannot be read, and configz cannot be read',
    );
  });
});

describe('an unconfirmed change of an interrupted run', () => {
  /** A run that was killed after its change. */
  async function killed(): Promise<World> {
    const it = world();
    await apply(it, it.context({}, { confirm: null }));
    it.host.commits.execute({
      kind: 'arm-revert',
      revert: { id: 'dead', owner: 'bob@desk', timeoutSeconds: 300, paths: ['/etc/x'], units: [], reload: false },
    });
    return it;
  }

  it('is confirmed by the next run, and shown in its plan', async () => {
    const it = await killed();
    const { host } = await planWorkflow(workflow, it.context(), it.input, { dryRun: true, skipPhases: [] });
    expect(host.phases[0]?.plan.changes).toMatchObject([
      {
        kind: 'confirm-commit',
        id: 'dead',
        reason: expect.stringMatching(
          /^the change pending on the host was made by bob@desk at .*Z; without a confirmation, the host rolls back this change at .*Z$/,
        ),
      },
    ]);
    const from = it.host.performed.length;
    await apply(it, it.context());
    expect(kinds(it).slice(from)).toEqual(['take-lock', 'arm-revert', 'systemctl is-active', 'confirm-commit', 'release-lock']);
    expect(it.host.files.has(RECORD)).toBe(false);
  });

  it('is confirmed with --no-confirm too', async () => {
    const it = await killed();
    await apply(it, it.context({}, { confirm: null }));
    expect([it.host.files.has(RECORD), it.host.text(CONFIG)]).toEqual([false, NEW]);
  });

  it('is reported as a warning when the host rolled it back', async () => {
    const it = await killed();
    it.host.commits.fire('the change was not confirmed within 300 s');
    const { host } = await planWorkflow(workflow, it.context(), it.input, { dryRun: true, skipPhases: [] });
    expect(host.phases[0]?.plan.warnings).toMatchObject([
      { code: 'COMMIT_REVERTED', message: expect.stringMatching(/was rolled back at .*Z: the change was not confirmed within 300 s$/) },
    ]);
  });
});

describe('the lock of a host', () => {
  const holder = { id: 'bbbb', name: 'bob@desk', processId: 9, machine: 'desk/2', since: 1_893_456_000, secondsLeft: 200 };

  it('rejects a second run while another run holds it, and reports how long', async () => {
    const it = world();
    it.host.commits.lock = holder;
    await expect(apply(it, it.context())).rejects.toMatchObject({
      code: 'HOST_LOCKED',
      message:
        'node1: locked by another kubeletadm run (bob@desk, pid 9, since 2030-01-01T00:00:00Z). Wait until that run has finished. If its process no longer exists, add --break-lock, or wait at most 200 s until the lock expires. [HOST_LOCKED]',
    });
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([OLD, holder]);
  });

  it.each<[string, Partial<WriterOptions>]>([
    ['with --break-lock', { breakLock: true }],
    ['from a local run that has exited', { isGone: ({ processId }) => processId === 9 }],
  ])('is acquired %s', async (_, writing) => {
    const it = world();
    it.host.commits.lock = holder;
    await apply(it, it.context({}, writing));
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([NEW, null]);
  });
});
