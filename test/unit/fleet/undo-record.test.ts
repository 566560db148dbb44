import { describe, expect, it } from 'vitest';
import { SensitiveText } from '../../../src/base/text/secret.ts';
import { parseUndoRecord, undoRecordOf, undoRecordPath } from '../../../src/fleet/history/undo-record.ts';
import type { Change } from '../../../src/host/plan/change.ts';

const recordOf = (...changes: readonly Change[]) => undoRecordOf({ phases: [{ phase: 'p', plan: { changes } }] });
const before = { content: 'a\n', mode: 0o644, owner: 'root:root' };
const write = (path: string, content: string | SensitiveText = 'b\n', old: typeof before | null = before): Change => ({
  kind: 'write-file',
  path,
  content,
  mode: 0o600,
  owner: 'root:root',
  action: old === null ? 'create' : 'update',
  before: old,
  reason: '',
});

describe('the record for undo', () => {
  it('has each file before its first and after its last change', () => {
    const record = recordOf(write('/x'), write('/x', 'c\n', { ...before, content: 'b\n' }), write('/new', 'n\n', null), {
      kind: 'remove-file',
      path: '/old',
      before,
      reason: '',
    });
    expect(record).toEqual({
      files: [
        { path: '/x', before, after: { content: 'c\n', mode: 0o600, owner: 'root:root' } },
        { path: '/new', before: null, after: { content: 'n\n', mode: 0o600, owner: 'root:root' } },
        { path: '/old', before, after: null },
      ],
      left: [],
    });
    expect(parseUndoRecord(`${JSON.stringify(record)}\n`)).toEqual(record);
    expect(undoRecordPath('a-1')).toBe('/var/log/kubeletadm/undo/a-1');
  });

  it.each<[string, Change, RegExp]>([
    ['joining', write('/etc/kubernetes/bootstrap-kubelet.conf', new SensitiveText(['t'])), /joined its cluster .* kubeletadm reset/],
    ['certificates', write('/etc/kubernetes/pki/ca.crt'), /certificates or credentials/],
    ['static Pods', write('/etc/kubernetes/manifests/etcd.yaml'), /control plane/],
    ['secrets', write('/etc/proxy.env', new SensitiveText(['p'])), /a secret to \/etc\/proxy.env/],
    [
      'a removed bootstrap kubeconfig',
      { kind: 'remove-file', path: '/etc/kubernetes/bootstrap-kubelet.conf', before, reason: '' },
      /joined/,
    ],
    ['packages', { kind: 'install-packages', manager: 'apt', packages: ['kubelet=1.36.*'], repositories: [], reason: '' }, /versions/],
    ['other units', { kind: 'restart-unit', unit: 'containerd', reason: '' }, /containerd/],
    ['a reset', { kind: 'empty-directory', path: '/var/lib/kubelet', reason: '' }, /reset the host/],
    [
      'other objects',
      { kind: 'delete-object', ref: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name: 'b' }, reason: '' },
      /in the cluster/,
    ],
  ])('keeps no file of a change of %s', (_, change, why) => {
    const record = recordOf(write('/x'), change);
    expect(record.files).toEqual([]);
    expect(record.obstacle).toMatch(why);
  });

  it('names what stays, and ignores backups and files of running programs', () => {
    const record = recordOf(
      write('/etc/kubernetes/tmp/kubeadm-kubelet-config-1/config.yaml'),
      { kind: 'remove-file', path: '/var/lib/kubelet/cpu_manager_state', before, volatile: true, reason: '' },
      { kind: 'restart-unit', unit: 'kubelet', reason: '' },
      { kind: 'daemon-reload', reason: '' },
      { kind: 'load-module', module: 'br_netfilter', reason: '' },
    );
    expect(record).toEqual({ files: [], left: ['the kernel module br_netfilter, until the next boot'] });
  });

  it('keeps no files that are too large', () => {
    expect(recordOf(write('/x', 'x'.repeat(300_000)))).toMatchObject({ files: [], obstacle: expect.stringContaining('too large') });
  });

  it.each([
    '/etc/kubernetes/manifests/etcd.yaml',
    '/etc/kubernetes/admin.conf',
    '/etc/../etc/kubernetes/pki/ca.key',
    '//etc/kubernetes/kubelet.conf',
    'etc/passwd',
  ])('restores nothing if the host has written %s into it', (path) => {
    const state = { content: '', mode: 0o644, owner: 'root:root' };
    const written = {
      files: [
        { path: '/x', before: state, after: null },
        { path, before: state, after: null },
      ],
      left: [],
    };
    expect(parseUndoRecord(JSON.stringify(written))).toEqual({
      files: [],
      obstacle: `its record on the host names ${path}, which undo does not restore`,
      left: [],
    });
  });

  it.each([-1, 1.5, 0o10000])('is none with the mode %s', (mode) => {
    const before = { content: '', mode, owner: 'root:root' };
    expect(parseUndoRecord(JSON.stringify({ files: [{ path: '/x', before, after: null }], left: [] }))).toBeNull();
  });
});
