import type { Problem } from '../../base/errors.ts';
import { sameSource } from '../../kubelet/layers/config-source.ts';
import { type AssignmentRecord, describeAssignment, describeRecord, type RecordedAssignment, shortRunId } from './assignment-history.ts';
import { assignedText } from './dynamic-problems.ts';
import type { NodeConfig } from './node-config.ts';

/** The assignment that a node returns to. */
export interface NodeUndo {
  readonly node: NodeConfig;
  readonly target: RecordedAssignment;
  /** The changes that are undone, the newest first; empty: the node is in this state already. */
  readonly undone: readonly AssignmentRecord[];
}

/** `--to`: before the oldest recorded change. */
export const OLDEST = 'oldest';

/**
 * Decides from the recorded assignments which one each node returns to. Without `to`, a node whose last change is the
 * undo of the last change of another selected node is done: an interrupted undo is resumed.
 * @param to the beginning of the id of the run after which the nodes had the assignment, or `oldest`; undefined: before
 *   the last change
 * @returns a problem for each node without an assignment to return to, and for each whose assignment was changed since
 */
export function decideNodeUndos(nodes: readonly NodeConfig[], to: string | undefined) {
  const last = new Set(nodes.map(({ history }) => history.at(-1)?.id));
  const undos: NodeUndo[] = [];
  const problems: Problem[] = [];
  for (const node of nodes) {
    const found = decide(node, to, last);
    if ('code' in found) problems.push({ ...found, host: node.name });
    else undos.push({ node, ...found });
  }
  return { undos, problems };
}

function decide(node: NodeConfig, to: string | undefined, lastOfNodes: ReadonlySet<string | undefined>): Omit<NodeUndo, 'node'> | Problem {
  const { name, history, source } = node;
  const newestFirst = history.toReversed();
  const [last] = newestFirst;
  if (last === undefined) {
    const message = 'the Node has no record of an earlier assignment by kubeletadm';
    const hint = `Assign a ConfigMap with kubeletadm dynamic assign ${name}, or return to the local configuration with kubeletadm dynamic reset ${name}`;
    return { code: 'UNDO_NOTHING', message, hint };
  }
  if (source.issue !== null || !sameSource(source.source, last.to.source)) {
    const message = `${assignedText(node)}, after the last recorded change: ${describeRecord(last)}`;
    const hint = `To replace this assignment nevertheless, assign the earlier one: kubeletadm dynamic assign ${name}. kubeletadm dynamic history ${name} lists the changes`;
    return { code: 'UNDO_MOVED', message, hint };
  }
  if (to === OLDEST) return { target: (history[0] ?? last).from, undone: newestFirst };
  if (to !== undefined) return decideTo(history, to);
  if (last.undoes !== undefined && lastOfNodes.has(last.undoes)) return { target: last.to, undone: [] };
  return { target: last.from, undone: [last] };
}

function decideTo(history: readonly AssignmentRecord[], to: string): Omit<NodeUndo, 'node'> | Problem {
  const found = history.filter(({ id }) => id.startsWith(to));
  const at = found.at(-1);
  if (at !== undefined && new Set(found.map(({ id }) => id)).size === 1)
    return { target: at.to, undone: history.slice(history.lastIndexOf(at) + 1).toReversed() };
  const message =
    found.length > 1 ? `--to ${to} is the beginning of several ids` : `the history of the Node has no change with the id ${to}`;
  const known = history.map((record) => shortRunId(record));
  return { code: 'UNDO_UNKNOWN_ID', message, hint: `The newest ids are ${known.slice(-5).toReversed().join(', ')}` };
}

/** `undoes assign of alice@laptop at 2026-03-01T12:00:00Z (0a1b2c3d), reason "OPS-1": back to the local configuration`. */
export function describeUndo({ undone, target }: Pick<NodeUndo, 'undone' | 'target'>): string {
  const changes = undone.map((record) => {
    const reason = record.reason === undefined ? '' : `, reason ${JSON.stringify(record.reason)}`;
    return describeRecord(record) + reason;
  });
  return `undoes ${changes.join('; ')}: back to ${describeAssignment(target.source)}`;
}
