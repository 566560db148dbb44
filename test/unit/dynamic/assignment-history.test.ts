import { describe, expect, it } from 'vitest';
import {
  CONFIG_HISTORY_ANNOTATION,
  formatAssignmentHistory,
  parseAssignmentHistory,
} from '../../../src/dynamic/status/assignment-history.ts';
import { decideNodeUndos } from '../../../src/dynamic/status/decide-undo.ts';
import { readNodeConfig } from '../../../src/dynamic/status/node-config.ts';
import { planAssignment } from '../../../src/dynamic/workflows/assign-config.ts';

const A = { namespace: 'kubeletadm-system', name: 'a', kubeletConfigKey: 'kubelet' };
const B = { ...A, name: 'b' };
const AT = new Date('2030-01-01T00:00:00Z');
type Source = typeof A | null;

/** A Node after these assignments, each with the id of its run. */
function nodeAfter(changes: readonly (readonly [id: string, to: Source, command?: 'assign' | 'reset' | 'undo'])[], name = 'n1') {
  let annotations: Record<string, string> = { 'kubeletadm.dev/config-status': '{}' };
  const read = () => readNodeConfig({ apiVersion: 'v1', kind: 'Node', metadata: { name, annotations } });
  for (const [id, to, command = 'assign'] of changes) {
    const recorded = { id, command, sha256Of: ({ name: of }: { readonly name: string }) => of.repeat(64) };
    const change = planAssignment(read(), to, { by: 'alice', at: AT, allowPodLoss: false, recorded });
    const { metadata } = (change?.patch ?? {}) as { metadata: { annotations: Record<string, string | null> } };
    annotations = Object.fromEntries(
      Object.entries({ ...annotations, ...metadata.annotations }).flatMap(([key, text]) => (text === null ? [] : [[key, text]])),
    );
  }
  return read();
}

describe('the recorded assignments of a Node', () => {
  it('are written in the patch of the assignment, with the hashes of both ConfigMaps', () => {
    const { history } = nodeAfter([
      ['00000001', A],
      ['00000002', B],
    ]);
    expect(history.map(({ id, from, to }) => [id, from, to])).toEqual([
      ['00000001', { source: null, sha256: null }, { source: A, sha256: 'a'.repeat(64) }],
      ['00000002', { source: A, sha256: 'a'.repeat(64) }, { source: B, sha256: 'b'.repeat(64) }],
    ]);
    expect(parseAssignmentHistory(formatAssignmentHistory(history))).toEqual(history);
  });

  it('are limited in number and size', () => {
    const long = { ...nodeAfter([['00000001', A]]).history[0], by: 'x'.repeat(5000), reason: 'y'.repeat(5000) } as never;
    const text = formatAssignmentHistory(Array.from({ length: 50 }, () => long));
    expect([text.length < 16_384, parseAssignmentHistory(text).length]).toEqual([true, 10]);
  });

  it.each(['', '{}', '[1,{"id":"x"}]', `[${' '.repeat(70_000)}]`, '[{"id":"00000001","to":{"source":"a"}}]'])(
    'are ignored if kubeletadm has not written them: %.40s',
    (text) => expect(parseAssignmentHistory(text)).toEqual([]),
  );

  it('begin again after an assignment that cannot be read', () => {
    const annotations = { 'kubeletadm.dev/config-source': '{"configMap":7}', [CONFIG_HISTORY_ANNOTATION]: '[]' };
    const node = readNodeConfig({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', annotations } });
    const recorded = { id: '00000001', command: 'assign', sha256Of: () => null } as const;
    const change = planAssignment(node, A, { by: 'alice', at: AT, allowPodLoss: false, recorded });
    expect(change?.patch).toMatchObject({ metadata: { annotations: { [CONFIG_HISTORY_ANNOTATION]: null } } });
  });
});

describe('decideNodeUndos', () => {
  const decided = (nodes: readonly ReturnType<typeof nodeAfter>[], to?: string) => {
    const { undos, problems } = decideNodeUndos(nodes, to);
    return [
      ...undos.map(({ target, undone }) => [target.source?.name ?? null, undone.map(({ id }) => id)]),
      ...problems.map(({ code }) => code),
    ];
  };

  it('returns to the assignment before the last change, after a run, or before the oldest record', () => {
    const node = nodeAfter([
      ['00000001', A],
      ['00000002', B],
      ['00010003', null, 'reset'],
    ]);
    expect(decided([node])).toEqual([['b', ['00010003']]]);
    expect(decided([node], '00000001')).toEqual([['a', ['00010003', '00000002']]]);
    expect(decided([node], '0001')).toEqual([[null, []]]);
    expect(decided([node], 'oldest')).toEqual([[null, ['00010003', '00000002', '00000001']]]);
    expect(decided([node], '0000')).toEqual(['UNDO_UNKNOWN_ID']);
  });

  it('resumes an interrupted undo, but undoes a completed one', () => {
    const assigned = nodeAfter([['00000001', A]], 'n2');
    const undone = nodeAfter([
      ['00000001', A],
      ['00000002', null, 'undo'],
    ]);
    expect(decided([undone, assigned])).toEqual([
      [null, []],
      [null, ['00000001']],
    ]);
    expect(decided([undone])).toEqual([['a', ['00000002']]]);
  });

  it('refuses a Node whose assignment is not that of its last record', () => {
    const { history } = nodeAfter([['00000001', A]]);
    expect(decided([{ ...nodeAfter([['00000002', B]]), history }, nodeAfter([])])).toEqual(['UNDO_MOVED', 'UNDO_NOTHING']);
  });
});
