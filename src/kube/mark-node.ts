import { AppError, isAppError } from '../base/errors.ts';
import type { Cluster } from './cluster.ts';
import { type AppliedMarks, coversMarks, describeDiff, diffNodeMarks, type MarkNode, marksList, unionOfMarks } from './node-marks.ts';
import {
  isRecorded,
  MARKS_NAMESPACE,
  type MarksRecord,
  marksRecordObject,
  marksRecordRef,
  nodeMarksIncomplete,
  readMarksRecord,
} from './node-marks-record.ts';
import type { KubeObject } from './object.ts';

/** Kubelet heartbeats and controllers also write to a Node and may cause single conflicts. */
const MAX_ATTEMPTS = 5;

/**
 * Applies labels and taints to a Node. Taints are one list in the API, so the patch contains the
 * resourceVersion at which the list was read; after a conflict the Node is read again.
 *
 * With `isRecorded` the record is written twice: before the patch with the previous and the new marks, and
 * after it with the declared marks. A run killed in between therefore neither loses a recorded mark nor
 * records a mark that it did not apply.
 * @throws AppError CLUSTER_CONFLICT after five attempts, and other errors of `Cluster`, with the remaining
 *   marks (`nodeMarksIncomplete`)
 */
export async function applyNodeMarks(cluster: Cluster, change: MarkNode): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryMarks(cluster, change);
    } catch (error) {
      const isConflict = isAppError(error, 'CLUSTER_CONFLICT') || isAppError(error, 'CLUSTER_ALREADY_EXISTS');
      if (!isConflict || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function tryMarks(cluster: Cluster, { ref, marks, patch, ...change }: MarkNode): Promise<void> {
  const about = { nodeName: ref.name, left: describeDiff(diffNodeMarks(null, marks)) };
  const found = await orIncomplete(about, async () => {
    const node = await cluster.get(ref);
    return { node, record: change.isRecorded && node !== null ? await findMarksRecord(cluster, node) : null };
  });
  const { node } = found;
  if (node === null) {
    // The API server reports the missing Node.
    await orIncomplete(about, () => cluster.patch(ref, 'strategic', patch));
    return;
  }
  let { record } = found;
  const diff = diffNodeMarks(node, marks, record?.applied ?? null);
  if (diff !== null)
    await orIncomplete({ ...about, left: describeDiff(diff) }, async () => {
      const declared = marksList(marks);
      const before = record?.applied ?? NO_MARKS;
      if (record !== null && !coversMarks(before, declared))
        record = await writeRecord(cluster, node, record, unionOfMarks(before, declared));
      const { resourceVersion } = node.metadata;
      const metadata = { ...(diff.patch.metadata as object | undefined), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
      await cluster.patch(ref, 'strategic', { ...diff.patch, metadata });
    });
  const last = record;
  if (last !== null && !isRecorded(last, marks))
    await orIncomplete({ ...about, left: null }, () => writeRecord(cluster, node, last, marksList(marks)));
}

async function orIncomplete<T>(about: Parameters<typeof nodeMarksIncomplete>[1], requests: () => Promise<T>): Promise<T> {
  try {
    return await requests();
  } catch (error) {
    throw error instanceof AppError ? nodeMarksIncomplete(error, about) : error;
  }
}

const NO_MARKS: AppliedMarks = { labels: [], taints: [] };

export async function findMarksRecord(cluster: Cluster, node: KubeObject): Promise<MarksRecord> {
  return readMarksRecord(await cluster.get(marksRecordRef(node.metadata.name)), node);
}

/** @throws AppError CLUSTER_CONFLICT or CLUSTER_ALREADY_EXISTS when another run wrote it at the same time */
async function writeRecord(cluster: Cluster, node: KubeObject, { object }: MarksRecord, applied: AppliedMarks): Promise<MarksRecord> {
  const desired = marksRecordObject(node, applied);
  if (object === null) {
    await requireNamespace(cluster);
    return readMarksRecord(await cluster.create(desired), node);
  }
  const { resourceVersion } = object.metadata;
  const metadata = { ...desired.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
  return readMarksRecord(await cluster.update({ ...desired, metadata }), node);
}

async function requireNamespace(cluster: Cluster): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: MARKS_NAMESPACE } };
  if ((await cluster.get({ apiVersion: 'v1', kind: 'Namespace', name: MARKS_NAMESPACE })) !== null) return;
  try {
    await cluster.create(object);
  } catch (error) {
    // Another host's change may create it concurrently.
    if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) throw error;
  }
}
