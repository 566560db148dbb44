import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { HttpFact } from '../../../src/host/facts/query.ts';
import type { Host } from '../../../src/host/host.ts';
import type { WriterOptions } from '../../../src/host/locked-host.ts';
import type { PhaseContext } from '../../../src/host/phase.ts';
import type { Operation } from '../../../src/host/plan/operation.ts';
import { planWorkflow, runWorkflow, type Workflow } from '../../../src/host/run-workflow.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type KubeletStartInput, kubeletStart } from '../../../src/kubeadm/phases/kubelet-start.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit, runs } from '../../support/fake-units.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const RECORD = '/var/lib/kubeletadm/commit/record';
const REVERTED = '/var/lib/kubeletadm/reverted/record';
const TIMEOUT_MS = 300_000;
const OWNER = { id: 'aaaa', name: 'alice@laptop', processId: 7, machine: 'laptop/1' };
const OLD = yaml('maxPods: 110');
const NEW = yaml('maxPods: 50');
const BAD = 'E1120 13:20:06.468731   26671 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported"';
const catalogue = await loadCatalogue();

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
  /** Errors that connections made anew meet, first come first met. */
  readonly reconnectErrors: AppError[];
  readonly reconnects: () => number;
  readonly input: KubeletStartInput;
  readonly context: (more?: Partial<PhaseContext>, writing?: Partial<WriterOptions>) => PhaseContext;
}

function world(files: Readonly<Record<string, string>> = { [CONFIG]: OLD }, state = 'active'): World {
  const unit = fakeUnit({ activeState: state, unitFileState: 'enabled' });
  const http = (): HttpFact => (unit.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' });
  const host = fakeHost({ files, units: { kubelet: unit }, http });
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
    input: {
      directories: [],
      unitFiles: [],
      files: [{ path: CONFIG, content: NEW, mode: 0o644, owner: 'root:root' }],
      health: { url: 'http://127.0.0.1:10248/healthz', timeoutMs: 60_000 },
      mayChown: true,
      proof: { nodeName: 'node1', minor: 36, catalogue, flags: [] },
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

describe('a change that has to be confirmed', () => {
  it('is armed with the lock in the program that makes it, and confirmed over a new connection', async () => {
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
    ['on a host whose kubelet was not healthy: there is nothing good to go back to', world({ [CONFIG]: OLD }, 'inactive'), {}],
    ['on a bare host', world({}, 'inactive'), {}],
    ['with --no-confirm', world(), { confirm: null }],
  ])('is none %s', async (_, it, writing) => {
    await apply(it, it.context({}, writing));
    expect(kinds(it)).toEqual(expect.arrayContaining(['take-lock', 'write-file', 'systemctl restart', 'release-lock']));
    expect(kinds(it)).not.toContain('arm-revert');
    expect([it.reconnects(), it.host.commits.lock]).toEqual([0, null]);
  });

  it('locks and arms nothing where nothing is to be done', async () => {
    const it = world({ [CONFIG]: NEW });
    await apply(it, it.context());
    expect([kinds(it), it.reconnects()]).toEqual([[], 0]);
  });

  it('goes back on the host when the kubelet dies of it: exit code 5', async () => {
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

  it('is an ordinary failure, put back, where it could not be made whole: exit code 1', async () => {
    const it = world();
    it.host.failAt(3, new AppError({ host: 'node1', code: 'HOST_NO_SPACE', message: 'the disk is full' }));
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_NO_SPACE', exitCode: 1 });
    expect([it.host.text(CONFIG), it.host.files.has(RECORD), it.host.commits.lock]).toEqual([OLD, false, null]);
  });

  it('is not begun where it cannot be armed', async () => {
    const it = world();
    it.host.failAt(1, new AppError({ host: 'node1', code: 'HOST_READ_ONLY', message: 'cannot arm' }));
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_READ_ONLY', exitCode: 1 });
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([OLD, null]);
    expect(kinds(it)).not.toContain('write-file');
  });

  it('goes back when the connection breaks while it is made, over another', async () => {
    const it = world();
    it.host.loseConnectionAfter(2);
    it.reconnectErrors.push(unreachable(), unreachable());
    await expect(apply(it, it.context())).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST', exitCode: 5 });
    expect([it.host.text(CONFIG), it.reconnects()]).toEqual([OLD, 3]);
  });

  it('is no success when the host took it back meanwhile', async () => {
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

  it('says that it was taken back, and why, when it comes to confirm it', async () => {
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

  it('says that it does not know when the host is not heard of again', async () => {
    const it = world();
    it.reconnectErrors.push(...Array.from({ length: 5_000 }, unreachable));
    it.host.loseConnectionAfter(3);
    await expect(apply(it, it.context())).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/host unreachable: the host rolls back automatically by now\. .*\[COMMIT_UNCONFIRMED\]$/),
    });
    expect(it.clock.elapsedMs).toBeLessThanOrEqual(TIMEOUT_MS + 62_000);
  });

  it('is confirmed when only the answer to the confirmation was lost', async () => {
    const it = world();
    it.host.loseConnectionAfter(5);
    await apply(it, it.context());
    expect([it.reconnects(), it.host.text(CONFIG), it.host.files.has(RECORD)]).toEqual([2, NEW, false]);
  });

  it('goes back when the user interrupts the wait', async () => {
    const it = world();
    it.host.http = () => (it.host.files.has(RECORD) ? { error: 'connection refused' } : { status: 200, body: 'ok' });
    const controller = new AbortController();
    it.clock.at(100, () => controller.abort(new AppError({ code: 'INTERRUPTED', message: 'interrupted' }, { exitCode: 130 })));
    const context = it.context({ signal: controller.signal });
    await expect(apply(it, context)).rejects.toMatchObject({ code: 'INTERRUPTED', exitCode: 5 });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });
});

describe('a change is proven by the API server', () => {
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

  it('waits until the Node is Ready again by a newer word of the kubelet', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(20_000, () => void setReady(cluster, true, AFTER));
    await apply(it, it.context({ cluster }));
    expect(it.clock.elapsedMs).toBeGreaterThanOrEqual(20_000);
    expect(it.reporter.codes()).toContain('COMMIT_CONFIRMED');
    expect(it.reporter.messages('WAITING')[0]).toContain('has not reported Ready since its restart');
  });

  it('goes back when the Node does not get Ready in time', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(100, () => void setReady(cluster, false, AFTER));
    await expect(apply(it, it.context({ cluster }))).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      exitCode: 5,
      message: expect.stringMatching(/not confirmed after 28\ds: Node node1: Ready is Unknown/),
    });
    expect(it.host.text(CONFIG)).toBe(OLD);
  });

  it('does not ask for what was not there before', async () => {
    for (const cluster of [await withNode(false), fakeCluster()]) {
      const it = world();
      await apply(it, it.context({ cluster }));
      expect([it.clock.elapsedMs < 2_000, it.host.text(CONFIG)]).toEqual([true, NEW]);
    }
  });

  it.each<[string, () => Promise<never>, string]>([
    ['shows other values', async () => ({ kubeletconfig: { maxPods: 77 } }) as never, 'the kubelet does not run with the new maxPods'],
    [
      'cannot be read',
      async () => {
        throw new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'forbidden' });
      },
      'configz cannot be read, and whether the kubelet runs with the new maxPods was not observed',
    ],
  ])('confirms no value that a ConfigMap overrides, where configz %s', async (_, getRaw, reported) => {
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
        expect.stringMatching(
          /^the files are kept, but not in force: ConfigMap kube-system\/a\/kubelet overrides config\.yaml on Node node1: /,
        ),
      ]);
      expect(it.reporter.messages('COMMIT_NOT_IN_FORCE')[0]).toContain(reported);
    }
  });

  it('goes back when configz goes on showing the old values', async () => {
    const it = world();
    const cluster = await withNode(true);
    it.clock.at(100, () => void setReady(cluster, true, AFTER));
    const getRaw = async (): Promise<never> => ({ kubeletconfig: { maxPods: 110 } }) as never;
    await expect(apply(it, it.context({ cluster: { ...cluster, getRaw } }))).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      message: expect.stringContaining('the kubelet does not run with the new maxPods'),
    });
    const good = world();
    good.clock.at(100, () => void setReady(cluster, true, '2030-01-01T00:01:00Z'));
    await apply(good, good.context({ cluster: { ...cluster, getRaw: async () => ({ kubeletconfig: { maxPods: 50 } }) as never } }));
    expect(good.host.text(CONFIG)).toBe(NEW);
  });
});

describe('what an interrupted run left', () => {
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

  it('is planned to be confirmed, and joined by the run that does it', async () => {
    const it = await killed();
    const { host } = await planWorkflow(workflow, it.context(), it.input, { dryRun: true, skipPhases: [] });
    expect(host.phases[0]?.plan.changes).toMatchObject([
      {
        kind: 'confirm-commit',
        id: 'dead',
        reason: expect.stringMatching(/^the change of bob@desk of .*Z is not confirmed: the host rolls back at .*Z$/),
      },
    ]);
    const from = it.host.performed.length;
    await apply(it, it.context());
    expect(kinds(it).slice(from)).toEqual(['take-lock', 'arm-revert', 'systemctl is-active', 'confirm-commit', 'release-lock']);
    expect(it.host.files.has(RECORD)).toBe(false);
  });

  it('is confirmed as it is with --no-confirm', async () => {
    const it = await killed();
    await apply(it, it.context({}, { confirm: null }));
    expect([it.host.files.has(RECORD), it.host.text(CONFIG)]).toEqual([false, NEW]);
  });

  it('is told when the host took it back', async () => {
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

  it('keeps out who comes while another run works there, and says how long', async () => {
    const it = world();
    it.host.commits.lock = holder;
    await expect(apply(it, it.context())).rejects.toMatchObject({
      code: 'HOST_LOCKED',
      message:
        'node1: locked by another kubeletadm run (bob@desk, pid 9, since 2030-01-01T00:00:00Z). Wait for it (the lock expires in at most 200 s) or, if that process is gone, use --break-lock. [HOST_LOCKED]',
    });
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([OLD, holder]);
  });

  it.each<[string, Partial<WriterOptions>]>([
    ['with --break-lock', { breakLock: true }],
    ['from a run of this machine that has ended', { isGone: ({ processId }) => processId === 9 }],
  ])('is taken %s', async (_, writing) => {
    const it = world();
    it.host.commits.lock = holder;
    await apply(it, it.context({}, writing));
    expect([it.host.text(CONFIG), it.host.commits.lock]).toEqual([NEW, null]);
  });
});
