import { dirname, join } from 'node:path';
import * as z from 'zod';
import { SensitiveText } from '../../base/text/secret.ts';
import { HISTORY_PATH } from '../../host/commit/revert-script.ts';
import { type Change, changedRef, type HostChange, isClusterChange } from '../../host/plan/change.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { describeRef } from '../../kube/object.ts';
import { BOOTSTRAP_CONF, KUBEADM_TMP_DIR, KUBELET_CONF, KUBERNETES_DIR, MANIFESTS_DIR } from '../../kube/well-known.ts';
import { readJsonLines } from './json-lines.ts';

/** The records of a host, one file for each of its newest changes, named by the id of the change. Readable by root only. */
const UNDO_DIRECTORY = `${dirname(HISTORY_PATH)}/undo`;

/** Number of changes that can be undone. */
export const MAX_UNDO_RECORDS = 50;

const MAX_BYTES = 256 * 1024;

const STATE = z.object({ content: z.string(), mode: z.int().min(0).max(0o7777), owner: z.string() }).nullable();

const RECORD = z.object({
  files: z.array(z.object({ path: z.string(), before: STATE, after: STATE })),
  /** Why the change cannot be undone, as a clause. */
  obstacle: z.string().optional(),
  /** What stays when the files are restored, as noun phrases. */
  left: z.array(z.string()),
});

/** A file; null: it does not exist. */
export type FileState = Readonly<z.infer<typeof STATE>>;

/** The files of a host before and after a change. Without credentials: a change of credentials cannot be undone. */
export type UndoRecord = z.infer<typeof RECORD>;

export function undoRecordPath(id: string): string {
  return `${UNDO_DIRECTORY}/${id}`;
}

/**
 * Reads a record. The host controls the text: one that names a file that undo does not restore is an obstacle.
 * @returns null: the text is no record
 */
export function parseUndoRecord(text: string): UndoRecord | null {
  const [record = null] = readJsonLines(text, RECORD);
  const refused = record?.files.find(({ path }) => !path.startsWith('/') || pathObstacle(join(path)) !== null);
  if (refused === undefined) return record;
  return { files: [], obstacle: `its record on the host names ${refused.path}, which undo does not restore`, left: [] };
}

/** The record of a planned or applied change. */
export function undoRecordOf({ phases }: Pick<HostPlan, 'phases'>): UndoRecord {
  const files = new Map<string, UndoRecord['files'][number]>();
  const obstacles = new Set<string>();
  const left = new Set<string>();
  const replace = (path: string, before: FileState, after: FileState): void => {
    files.set(path, { path, before: files.has(path) ? (files.get(path)?.before ?? null) : before, after });
  };
  for (const change of phases.flatMap(({ plan: { changes } }) => changes as readonly Change[])) {
    const obstacle = obstacleOf(change);
    if (obstacle !== null) obstacles.add(obstacle);
    else if (change.kind === 'write-file') {
      if (change.path.startsWith(`${KUBEADM_TMP_DIR}/`)) continue;
      replace(change.path, change.before, { content: change.content.toString(), mode: change.mode, owner: change.owner });
    } else if (change.kind === 'remove-file') {
      if (change.volatile !== true) replace(change.path, change.before, null);
    } else {
      const kept = keptOf(change);
      if (kept !== null) left.add(kept);
    }
  }
  const obstacle = [JOINED, RESET, ...obstacles].find((one) => obstacles.has(one));
  const record: UndoRecord = { files: [...files.values()], ...(obstacle === undefined ? {} : { obstacle }), left: [...left] };
  if (obstacle !== undefined) return { ...record, files: [] };
  if (Buffer.byteLength(JSON.stringify(record)) <= MAX_BYTES) return record;
  return { files: [], obstacle: 'its files are too large to be kept in the history', left: [] };
}

/** They explain a change better than its other obstacles. */
const JOINED = 'the host joined its cluster with it. To remove the host from the cluster, run kubeletadm reset';
const RESET = 'it reset the host. Join the host again, with kubeletadm join or apply';

/** Why a change cannot be undone, as a clause; null: it can, or it needs not be. */
function obstacleOf(change: Change): string | null {
  if (isClusterChange(change)) {
    if (change.kind === 'mark-node' || (change.kind === 'patch-object' && change.ref.kind === 'Node')) return null;
    return `it changed ${describeRef(changedRef(change))} in the cluster`;
  }
  switch (change.kind) {
    case 'write-file':
    case 'remove-file':
      return fileObstacle(change);
    case 'restart-unit':
    case 'start-unit':
    case 'stop-unit':
    case 'enable-unit':
      return change.unit === 'kubelet' ? null : `it restarted or enabled ${change.unit}`;
    case 'install-packages':
    case 'hold-packages':
    case 'put-file':
    case 'upload-file':
    case 'download-file':
    case 'extract-archive':
      return 'it installed programs, and undo does not restore their versions. Install the previous version, for example with the fleet file';
    case 'empty-directory':
    case 'remove-directory':
    case 'unmount-below':
    case 'remove-pods':
      return RESET;
    case 'copy-directory':
    case 'move-file':
      return `it changed ${change.path}, of which the history has no copy`;
    default:
      return null;
  }
}

function fileObstacle(change: Extract<HostChange, { kind: 'write-file' | 'remove-file' }>): string | null {
  const { path } = change;
  const obstacle = pathObstacle(path);
  if (obstacle !== null) return obstacle;
  if (change.before === null && UNIT_FILE_PATHS.includes(path)) return `it created ${path}, with which systemd starts the kubelet`;
  const isSecret = change.kind === 'write-file' && (change.content instanceof SensitiveText || change.summary !== undefined);
  return isSecret ? `it wrote a secret to ${path}, which the history does not keep` : null;
}

/** Why a file at a path is never restored, as a clause; null: it is. */
function pathObstacle(path: string): string | null {
  const isOf = (directory: string): boolean => path.startsWith(`${directory}/`);
  if (path === BOOTSTRAP_CONF || path === KUBELET_CONF) return JOINED;
  if (isOf(MANIFESTS_DIR)) return 'it changed the control plane of the host, whose version undo does not restore';
  if (isOf(KUBERNETES_DIR) && !isOf(KUBEADM_TMP_DIR))
    return `it wrote certificates or credentials (${path}), which the history does not keep`;
  return null;
}

/** What stays of an operation when the files are restored; null: nothing. */
function keptOf(change: Change): string | null {
  switch (change.kind) {
    case 'mark-node':
      return `the labels and taints of Node ${change.ref.name}`;
    case 'pull-image':
      return `the image ${change.image}`;
    case 'import-images':
      return 'the imported images';
    case 'run-hook':
      return `the effects of the hook ${change.hook}`;
    case 'load-module':
      return `the kernel module ${change.module}, until the next boot`;
    case 'set-sysctl':
      return `the value of ${change.name}, until the next boot`;
    case 'turn-off-swap':
      return 'swap, which is off until the next boot';
    default:
      return null;
  }
}
