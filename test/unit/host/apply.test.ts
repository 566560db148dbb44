import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { applyClusterChange, applyHostChanges, performChanges } from '../../../src/host/apply.ts';
import type { FileFact } from '../../../src/host/facts/query.ts';
import type { CommandOperation } from '../../../src/host/operation/operation.ts';
import { commandOf, describeDone, describeFailed, describePending } from '../../../src/host/operation-kinds.ts';
import type { ClusterChange, HostChange } from '../../../src/host/plan/change.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { fakeUnit } from '../../support/fake-units.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

type WriteFile = Extract<HostChange, { kind: 'write-file' }>;
const reason = 'a test';
const OLD = { content: 'old\n', mode: 0o600, owner: 'kube:kube' };
const CONFIG: WriteFile = {
  kind: 'write-file',
  path: '/var/lib/kubelet/config.yaml',
  mode: 0o644,
  owner: 'root:root',
  action: 'update',
  content: 'new\n',
  before: OLD,
  reason,
};
const FLAGS: WriteFile = { ...CONFIG, path: '/var/lib/kubelet/kubeadm-flags.env', action: 'create', before: null };
const RELOAD: HostChange = { kind: 'daemon-reload', reason };
const RESTART: HostChange = { kind: 'restart-unit', unit: 'kubelet', reason };

function setUp(files: Record<string, string> = { [CONFIG.path]: 'old\n' }) {
  const host = fakeHost({ files, units: { kubelet: fakeUnit({ activeState: 'active' }) } });
  for (const path of Object.keys(files)) host.files.set(path, { type: 'file', ...OLD, content: files[path] as string });
  const reporter = recordingReporter();
  return { host, reporter, context: { reporter, phase: 'p' } };
}

/** All files of a host without their modification times. */
function withoutTimes(host: FakeHost): Readonly<Record<string, FileFact>> {
  return Object.fromEntries([...host.files].map(([path, { modifiedAt: _, ...file }]) => [path, file]));
}

describe('operations', () => {
  it.each<[HostChange, string, string, string]>([
    [CONFIG, `updated ${CONFIG.path}`, `cannot write ${CONFIG.path}`, `write-file ${CONFIG.path}`],
    [FLAGS, `created ${FLAGS.path}`, `cannot write ${FLAGS.path}`, `write-file ${FLAGS.path}`],
    [
      { kind: 'make-directory', path: '/d', mode: 0o700, owner: 'root:root', reason },
      'created directory /d',
      'cannot create directory /d',
      'make-directory /d',
    ],
    [{ kind: 'remove-file', path: '/f', before: OLD, reason }, 'removed /f', 'cannot remove /f', 'remove-file /f'],
    [{ kind: 'move-file', path: '/f', to: '/g', reason }, 'moved /f to /g', 'cannot move /f to /g', 'move-file /f'],
    [{ kind: 'confirm-commit', id: 'x', reason }, 'confirmed the change of an earlier run', 'cannot confirm the change', 'confirm-commit'],
    [RELOAD, 'ran systemctl daemon-reload', 'systemctl daemon-reload failed', 'runs systemctl daemon-reload'],
    [RESTART, 'restarted kubelet', 'systemctl restart kubelet failed', 'runs systemctl restart kubelet'],
  ])('are described: %j', (change, done, failed, pending) => {
    expect([describeDone(change), describeFailed(change), describePending(change)]).toEqual([done, failed, pending]);
  });

  it.each<[CommandOperation, readonly string[]]>([
    [{ kind: 'daemon-reload' }, ['systemctl', 'daemon-reload']],
    [{ kind: 'enable-unit', unit: 'kubelet' }, ['systemctl', 'enable', '--quiet', 'kubelet']],
    [{ kind: 'restart-unit', unit: 'kubelet' }, ['systemctl', 'restart', 'kubelet']],
    [{ kind: 'stop-unit', unit: 'kubelet' }, ['systemctl', 'stop', 'kubelet']],
    [{ kind: 'run', argv: ['true'] }, ['true']],
  ])('run commands: %j', (operation, argv) => {
    expect(commandOf(operation)).toEqual({ kind: 'run', argv });
  });

  it('pass the socket to the shell as an argument, and name it in messages', () => {
    const operation = { kind: 'remove-pods', criSocket: 'unix:///x; reboot' } as const;
    expect(commandOf(operation)).toMatchObject({
      kind: 'run',
      argv: ['sh', '-c', expect.not.stringContaining('reboot'), 'sh', 'unix:///x; reboot', '0'],
      what: 'removing the Pods of unix:///x; reboot',
    });
    expect(describeFailed(operation)).toBe('removing the Pods of unix:///x; reboot failed');
  });
});

describe('applyHostChanges', () => {
  it('applies all changes in one round trip and reports each of them', async () => {
    const { host, reporter, context } = setUp();
    await applyHostChanges(host, [CONFIG, FLAGS, RELOAD, RESTART], context);
    expect(host.roundTrips).toBe(1);
    expect(host.text(CONFIG.path)).toBe('new\n');
    expect(reporter.messages('CHANGE_DONE')).toEqual([
      `updated ${CONFIG.path}`,
      `created ${FLAGS.path}`,
      'ran systemctl daemon-reload',
      'restarted kubelet',
    ]);
    expect(reporter.events.every(({ host: name, phase }) => name === 'node1' && phase === 'p')).toBe(true);
  });

  it('allows longer timeouts for a restart and for the removal of Pods', async () => {
    const { host, context } = setUp();
    const times: (number | undefined)[] = [];
    const perform: typeof host.perform = async (_, options) => void times.push(options?.timeoutMs);
    const pods: HostChange = { kind: 'remove-pods', criSocket: 'unix:///x', reason };
    for (const changes of [[CONFIG], [CONFIG, RESTART], [pods]]) await applyHostChanges({ ...host, perform }, changes, context);
    expect(times).toEqual([120_000, 300_000, 1_320_000]);
  });

  it('names the programs that a failed change keeps', async () => {
    const { host, reporter, context } = setUp();
    const sha256 = createHash('sha256').update('abc').digest('hex');
    const content = { sha256, size: 3, head: 'abc', pieces: () => [gzipSync('abc').toString('base64')] };
    const program: HostChange = {
      kind: 'put-file',
      path: '/usr/bin/kubelet',
      mode: 0o755,
      owner: 'root:root',
      content,
      keep: true,
      reason,
    };
    host.failAt(2);
    await expect(applyHostChanges(host, [CONFIG, program, RESTART], context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.text('/usr/bin/kubelet')).toBe('abc');
    expect(reporter.messages('CHANGES_REVERTED')).toEqual([
      'the files that had been changed were restored to their previous content, except /usr/bin/kubelet',
    ]);
  });

  it.each([0, 1, 2])('restores the files when operation %i fails', async (n) => {
    const { host, reporter, context } = setUp();
    const before = withoutTimes(host);
    host.failAt(n);
    await expect(applyHostChanges(host, [CONFIG, FLAGS, RESTART], context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(withoutTimes(host)).toEqual(before);
    expect(reporter.codes().includes('CHANGES_REVERTED')).toBe(n > 0);
    expect(host.units.get('kubelet')?.starts).toBe(n === 2 ? 1 : 0);
  });

  it('does not restart a unit whose files were all new', async () => {
    const { host, context } = setUp();
    host.failAt(1);
    await expect(applyHostChanges(host, [FLAGS, RESTART], context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.files.has(FLAGS.path)).toBe(false);
    expect(host.units.get('kubelet')?.starts).toBe(0);
  });

  it('restarts a running unit with the previous files when the restart with the new files fails', async () => {
    const { host, context } = setUp();
    host.failAt(2);
    await expect(applyHostChanges(host, [CONFIG, RELOAD, RESTART], context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.text(CONFIG.path)).toBe('old\n');
    expect(host.performed.slice(-2)).toEqual(
      ['daemon-reload', 'restart kubelet'].map((words) => ({ kind: 'run', argv: ['systemctl', ...words.split(' ')] })),
    );
    expect(host.units.get('kubelet')?.starts).toBe(1);
  });

  it('reverts nothing when the connection is lost, because the progress is unknown', async () => {
    const { host, reporter, context } = setUp();
    host.loseConnectionAfter(0);
    await expect(applyHostChanges(host, [CONFIG, FLAGS], context)).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
    expect(host.text(CONFIG.path)).toBe('new\n');
    expect(host.performed).toHaveLength(1);
    expect(reporter.codes()).toEqual([]);
  });

  it('reports both errors when the rollback fails too', async () => {
    const { host, context } = setUp();
    host.failAt(1, new AppError({ host: 'node1', code: 'HOST_NO_SPACE', message: 'cannot write: the disk is full' }));
    host.failAt(2);
    const failure = applyHostChanges(host, [CONFIG, FLAGS], context);
    await expect(failure).rejects.toMatchObject({ problems: [{ code: 'HOST_NO_SPACE' }, { code: 'HOST_REVERT_FAILED', host: 'node1' }] });
  });

  it('restores nothing after an error that is not caused by the host', async () => {
    const { host, context } = setUp();
    host.failAt(1, new Error('a bug') as AppError);
    await expect(applyHostChanges(host, [CONFIG, FLAGS], context)).rejects.toThrow('a bug');
    expect(host.text(CONFIG.path)).toBe('new\n');
  });

  it('changes nothing when it is aborted before the start', async () => {
    const { host, context } = setUp();
    await expect(applyHostChanges(host, [CONFIG], { ...context, signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop');
    expect(host.performed).toEqual([]);
  });
});

describe('performChanges', () => {
  it('does not undo its own changes when it fails: restored files stay restored', async () => {
    const { host, context } = setUp({ [CONFIG.path]: 'new\n', [FLAGS.path]: 'new\n' });
    host.failAt(1);
    const restored: readonly HostChange[] = [
      { ...CONFIG, ...OLD, before: null },
      { kind: 'remove-file', path: FLAGS.path, before: null, reason },
    ];
    await expect(performChanges(host, restored, context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.text(CONFIG.path)).toBe('old\n');
    expect(host.text(FLAGS.path)).toBe('new\n');
  });
});

describe('applyClusterChange', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'kube-system' }, data: { a: '1' } };
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'x' };

  it('creates, updates and patches', async () => {
    const cluster = fakeCluster();
    await applyClusterChange(cluster, { kind: 'create-object', object, reason });
    const before = await cluster.get(ref);
    if (before === null) expect.unreachable();
    await applyClusterChange(cluster, { kind: 'update-object', object: { ...before, data: { a: '2' } }, before, reason });
    await applyClusterChange(cluster, { kind: 'patch-object', ref, patch: { data: { b: '3' } }, reason });
    expect(await cluster.get(ref)).toMatchObject({ data: { a: '2', b: '3' } });
  });

  it.each([
    ['other content', { data: { a: '2' } }],
    ['no content', { data: undefined }],
    ['a deletion in progress', { metadata: { ...object.metadata, finalizers: ['test/x'] } }],
  ])('refuses to overwrite an object that was created in the meantime with %s', async (what, other) => {
    const cluster = fakeCluster();
    await cluster.create({ ...object, ...other } as KubeObject);
    if (what === 'a deletion in progress') await cluster.delete(ref);
    await expect(applyClusterChange(cluster, { kind: 'create-object', object, reason })).rejects.toMatchObject({
      code: 'CLUSTER_ALREADY_EXISTS',
    });
  });

  it.each([object, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'x' } }])(
    'accepts an equal $kind that was created in the meantime',
    async (created) => {
      const cluster = fakeCluster();
      const change = { kind: 'create-object', object: created, reason } as const;
      expect([await applyClusterChange(cluster, change), await applyClusterChange(cluster, change)]).toEqual([true, false]);
    },
  );

  it('refuses to overwrite an object that changed since it was read', async () => {
    const cluster = fakeCluster({ objects: [object] });
    const before = await cluster.get(ref);
    if (before === null) expect.unreachable();
    await cluster.patch(ref, 'merge', { data: { concurrent: 'x' } });
    const change: ClusterChange = { kind: 'update-object', object: { ...object, data: { a: '2' } }, before, reason };
    await expect(applyClusterChange(cluster, change)).rejects.toMatchObject({ code: 'CLUSTER_CONFLICT' });
    expect(await cluster.get(ref)).toMatchObject({ data: { a: '1', concurrent: 'x' } });
  });
});
