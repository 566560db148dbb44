import { AppError, isAppError } from '../base/errors.ts';
import type { Cluster } from './cluster.ts';
import { type AppliedMarks, coversMarks, describeDiff, diffNodeMarks, type MarkNode, marksList, unionOfMarks } from './node-marks.ts';
import { type MarksLeft, nodeMarksIncomplete } from './node-marks-problems.ts';
import { isRecorded, MARKS_NAMESPACE, type MarksRecord, marksRecordObject, marksRecordRef, readMarksRecord } from './node-marks-record.ts';
import type { KubeObject } from './object.ts';

/** Heartbeats of the kubelet and controllers write to a Node too: more conflicts in a row are no coincidence. */
const MAX_ATTEMPTS = 5;

/**
 * Gives a Node its marks. Taints are one list in the API, so the patch names the resourceVersion that the list was read from; after a
 * conflict the Node is read again.
 *
 * With `isRecorded` the record is written twice: before the patch with the marks of the past and those to come, and after it with those
 * that are declared. A run that is killed in between neither forgets a mark nor claims one that it does not know.
 * @throws AppError CLUSTER_CONFLICT after five attempts, and what else `Cluster` throws, with what is left (`nodeMarksIncomplete`)
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
    // The server reports that the Node does not exist.
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

async function orIncomplete<T>(about: MarksLeft, requests: () => Promise<T>): Promise<T> {
  try {
    return await requests();
  } catch (error) {
    throw error instanceof AppError ? nodeMarksIncomplete(error, about) : error;
  }
}

const NO_MARKS: AppliedMarks = { labels: [], taints: [] };

/** Reads the record of a Node's marks. @throws what `Cluster` throws */
export async function findMarksRecord(cluster: Cluster, node: KubeObject): Promise<MarksRecord> {
  return readMarksRecord(await cluster.get(marksRecordRef(node.metadata.name)), node);
}

/** Writes a record over the one that was read. @throws AppError CLUSTER_CONFLICT or CLUSTER_ALREADY_EXISTS: another run wrote it meanwhile */
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
    // Hosts are changed concurrently.
    if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) throw error;
  }
}
