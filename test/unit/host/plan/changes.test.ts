import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import type { LargeFile } from '../../../../src/host/operation/large-file.ts';
import { type HostChange, isClusterChange } from '../../../../src/host/plan/change.ts';
import { type DesiredFile, diffDirectory, diffFile, formatMode } from '../../../../src/host/plan/diff-file.ts';
import { revertChanges } from '../../../../src/host/plan/revert.ts';
import { textFile } from '../../../support/answers.ts';

const CONFIG: DesiredFile = { path: '/var/lib/kubelet/config.yaml', content: 'maxPods: 5\n', mode: 0o644, owner: 'root:root' };
const reason = 'a test';

describe('diffFile', () => {
  it.each<[string, FileFact | null, Partial<HostChange> | null]>([
    ['exists', textFile('maxPods: 5\n'), null],
    [
      'does not exist',
      null,
      { action: 'create', before: null, mode: 0o644, owner: 'root:root', reason: 'does not exist' } as Partial<HostChange>,
    ],
    [
      'has other content',
      textFile('maxPods: 4\n'),
      {
        action: 'update',
        reason: 'its content differs',
        before: { content: 'maxPods: 4\n', mode: 0o644, owner: 'root:root' },
      } as Partial<HostChange>,
    ],
    ['has too open a mode', textFile('maxPods: 5\n', { mode: 0o666 }), { mode: 0o644, reason: 'mode 0666 → 0644' } as Partial<HostChange>],
    ['has a stricter mode than desired', textFile('maxPods: 5\n', { mode: 0o600 }), null],
    [
      'has a stricter mode and differs: the mode stays strict',
      textFile('x', { mode: 0o400 }),
      { mode: 0o400, reason: 'its content differs' } as Partial<HostChange>,
    ],
    ['is executable', textFile('maxPods: 5\n', { mode: 0o755 }), { mode: 0o644 } as Partial<HostChange>],
    [
      'has a mode that is neither stricter nor more open',
      textFile('maxPods: 5\n', { mode: 0o610 }),
      { mode: 0o644, reason: 'mode 0610 → 0644' } as Partial<HostChange>,
    ],
    [
      'has another owner',
      textFile('maxPods: 5\n', { owner: 'kube:kube' }),
      { owner: 'root:root', reason: 'owner kube:kube → root:root' } as Partial<HostChange>,
    ],
    [
      'differs in every respect',
      textFile('', { mode: 0o777, owner: '0:12' }),
      { reason: 'its content differs, mode 0777 → 0644, owner 0:12 → root:root' } as Partial<HostChange>,
    ],
    ['is empty', textFile(''), { action: 'update', before: { content: '', mode: 0o644, owner: 'root:root' } } as Partial<HostChange>],
  ])('a file that %s', (_, found, expected) => {
    const change = diffFile(found, CONFIG);
    if (expected === null) expect(change).toBeNull();
    else expect(change).toMatchObject({ kind: 'write-file', path: CONFIG.path, content: CONFIG.content, ...expected });
  });

  it.each(['directory', 'socket'] as const)('rejects a %s', (type) => {
    for (const onlyIfAbsent of [true, false]) {
      expect(() => diffFile({ type, mode: 0o755, owner: 'root:root' }, { ...CONFIG, onlyIfAbsent })).toThrow(
        `${CONFIG.path} is a ${type}, but must be a file`,
      );
    }
  });

  it('keeps the owner when the user may not change it', () => {
    expect(diffFile(textFile('maxPods: 5\n', { owner: 'me:me' }), CONFIG, { mayChown: false })).toBeNull();
    expect(diffFile(textFile('x', { owner: 'me:me' }), CONFIG, { mayChown: false })).toMatchObject({ owner: 'me:me' });
  });

  it('compares the value of a secret without showing it', () => {
    const desired = { ...CONFIG, content: new SensitiveText(['token: ', new Secret('hush'), '\n']) };
    expect(diffFile(textFile('token: hush\n'), desired)).toBeNull();
    expect(JSON.stringify(diffFile(null, desired))).not.toContain('hush');
  });
});

describe('diffDirectory', () => {
  it('creates a missing directory and keeps an existing one', () => {
    expect(diffDirectory(null, '/d', 0o700)).toEqual({
      kind: 'make-directory',
      path: '/d',
      mode: 0o700,
      owner: 'root:root',
      reason: 'does not exist',
    });
    expect(diffDirectory({ type: 'directory', mode: 0o777, owner: 'a:b' }, '/d', 0o700)).toBeNull();
  });
});

describe('formatMode', () => {
  it.each([
    [0, '0000'],
    [0o600, '0600'],
    [0o4755, '4755'],
  ])('%i', (mode, text) => {
    expect(formatMode(mode)).toBe(text);
  });
});

const LARGE: LargeFile = { sha256: '0'.repeat(64), size: 3, head: 'abc', pieces: () => ['YWJj'] };

describe('revertChanges', () => {
  const before = { content: 'old', mode: 0o600, owner: 'kube:kube' };
  const update: HostChange = {
    kind: 'write-file',
    path: '/a',
    mode: 0o644,
    owner: 'root:root',
    action: 'update',
    content: 'new',
    before,
    reason,
  };
  const create: HostChange = { ...update, path: '/b', action: 'create', before: null };

  it('undoes the last change first', () => {
    expect(revertChanges([update, create])).toMatchObject([
      { kind: 'remove-file', path: '/b' },
      { kind: 'write-file', path: '/a', ...before, action: 'update' },
    ]);
  });

  it.each<[HostChange, readonly Partial<HostChange>[]]>([
    [
      { kind: 'remove-file', path: '/c', before, reason },
      [{ kind: 'write-file', path: '/c', ...before, action: 'create' } as Partial<HostChange>],
    ],
    [{ kind: 'remove-file', path: '/c', before: null, reason }, []],
    [{ kind: 'move-file', path: '/c', to: '/d/c', reason }, [{ kind: 'move-file', path: '/d/c', to: '/c' } as Partial<HostChange>]],
    [{ kind: 'make-directory', path: '/d', mode: 0o755, owner: 'root:root', reason }, []],
    [{ kind: 'restart-unit', unit: 'kubelet', reason }, []],
    [{ kind: 'daemon-reload', reason }, []],
    [{ kind: 'empty-directory', path: '/e', reason }, []],
    [{ kind: 'put-file', path: '/f', mode: 0o755, owner: 'root:root', content: LARGE, reason }, [{ kind: 'remove-file', path: '/f' }]],
    [{ kind: 'put-file', path: '/f', mode: 0o755, owner: 'root:root', content: LARGE, keep: true, reason }, []],
  ])('undoes %j', (change, expected) => {
    expect(revertChanges([change])).toMatchObject(expected);
    expect(revertChanges([change])).toHaveLength(expected.length);
  });
});

describe('isClusterChange', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } };

  it.each([
    [{ kind: 'create-object', object, reason } as const, true],
    [{ kind: 'update-object', object, before: object, reason } as const, true],
    [{ kind: 'patch-object', ref: { apiVersion: 'v1', kind: 'Node', name: 'n' }, patch: {}, reason } as const, true],
    [{ kind: 'delete-object', ref: { apiVersion: 'v1', kind: 'Node', name: 'n' }, reason } as const, true],
    [{ kind: 'daemon-reload', reason } as const, false],
  ])('%j', (change, expected) => {
    expect(isClusterChange(change)).toBe(expected);
  });
});
