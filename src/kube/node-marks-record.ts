import { createHash } from 'node:crypto';
import * as z from 'zod';
import { AppError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { AGENT_NAMESPACE } from './agent-namespace.ts';
import { type AppliedMarks, coversMarks, marksList, type NodeMarks } from './node-marks.ts';
import type { KubeObject, ObjectRef } from './object.ts';

/** Kubelets have no permission to write ConfigMaps, so a node cannot change the records below. */
export const MARKS_NAMESPACE = AGENT_NAMESPACE;

const KEY = 'marks.json';
const MAX_NAME = 253;

/** The record of the labels and taints that fleet runs applied to a Node. */
export interface MarksRecord {
  readonly object: KubeObject | null;
  readonly applied: AppliedMarks | null;
}

/** Name of the ConfigMap that records the marks of a Node. An overlong name is replaced by its digest. */
export function marksRecordRef(nodeName: string): ObjectRef {
  const name = `node-marks-${nodeName}`;
  const digest = (): string => createHash('sha256').update(nodeName).digest('hex').slice(0, 32);
  const short = name.length <= MAX_NAME ? name : `node-marks-${digest()}`;
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace: MARKS_NAMESPACE, name: short };
}

const RECORD = z.object({
  labels: z.array(z.object({ key: z.string(), value: z.string() })),
  taints: z.array(
    z.object({ key: z.string(), value: z.string().optional(), effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']) }),
  ),
});

/**
 * No marks if the record belongs to an earlier Node of the same name, or has another format. `object`: its
 * ConfigMap.
 */
export function readMarksRecord(object: KubeObject | null, node: KubeObject): MarksRecord {
  const { uid } = node.metadata;
  const owners = z.array(z.object({ kind: z.string(), uid: z.string() })).safeParse(object?.metadata.ownerReferences);
  const isOwn = owners.success && owners.data.some((owner) => owner.kind === 'Node' && owner.uid === uid);
  const read = isOwn ? RECORD.safeParse(parseJson(String((object?.data as Record<string, unknown> | undefined)?.[KEY]))) : null;
  if (read?.success !== true) return { object, applied: null };
  const { labels, taints } = read.data;
  return {
    object,
    applied: {
      labels: labels.map(({ key, value }) => [key, value] as const),
      taints: taints.map(({ key, value, effect }) => ({ key, effect, ...(value === undefined ? {} : { value }) })),
    },
  };
}

/** The Node owns the ConfigMap: the garbage collector deletes both together. */
export function marksRecordObject(node: KubeObject, applied: AppliedMarks): KubeObject {
  const { namespace, name } = marksRecordRef(node.metadata.name);
  const owner = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name, uid: node.metadata.uid ?? '' };
  const record = {
    labels: applied.labels.map(([key, value]) => ({ key, value })).toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    taints: applied.taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect })),
  };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: namespace as string, ownerReferences: [owner] },
    data: { [KEY]: `${JSON.stringify(record)}\n` },
  };
}

/** Whether a record contains exactly the declared marks. Without declared marks no record is needed. */
export function isRecorded({ applied }: MarksRecord, marks: NodeMarks): boolean {
  const declared = marksList(marks);
  const recorded = applied ?? { labels: [], taints: [] };
  return coversMarks(recorded, declared) && coversMarks(declared, recorded);
}

/**
 * A run that changed a host could not finish the labels and taints of its Node, or their record. The code and
 * the cause of the error are kept; for CLUSTER_FORBIDDEN the hint names the required permissions.
 * @param about.left labels and taints to be added or removed, as text; null: only their record is outdated
 */
export function nodeMarksIncomplete(
  error: AppError,
  { nodeName, left }: { readonly nodeName: string; readonly left: string | null },
): AppError {
  const done =
    left === null
      ? `Node ${nodeName} has the declared labels and taints, but their record in namespace ${MARKS_NAMESPACE} is not up to date`
      : `Node ${nodeName} does not have the declared labels and taints yet (remaining: ${left})`;
  const problems = error.problems.map((problem) => {
    const hint = problem.code === 'CLUSTER_FORBIDDEN' ? RIGHTS : (problem.hint ?? `Fix the cause, then ${RERUN}`);
    return { ...problem, message: `${done}: ${problem.message}. The changes of earlier phases are kept`, hint };
  });
  return new AppError(problems, { exitCode: error.exitCode, cause: error, detail: error.detail });
}

const RERUN = 'rerun the same command: it applies only the remaining changes';
const RIGHTS = `Use credentials with these permissions: get and patch Nodes; get, create and update ConfigMaps in namespace ${MARKS_NAMESPACE}; get and create this Namespace. Then ${RERUN}`;
