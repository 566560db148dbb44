import { AppError, isAppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { readNodeConfig } from '../../dynamic/status/node-config.ts';
import type { CheckedRisks } from '../../dynamic/use-cases/check-pod-risks.ts';
import { findPayload } from '../../dynamic/workflows/assign-config.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { withoutHeader } from '../../kubelet/documents/decode.ts';
import { numberAt, objectAt } from '../../kubelet/documents/values.ts';
import { configFieldChanges } from '../../kubelet/effective/field-changes.ts';
import { type Rollout, rolloutRef } from '../api/rollout.ts';
import { type RolloutSpec, rolloutSchema } from '../api/schema.ts';
import { checkPayload } from '../controller/check-nodes.ts';
import { payloadContent, REVISION_LABEL, revisionName, revisionOf } from '../controller/revision.ts';
import { selectNodes } from '../controller/select.ts';
import { type FoundRollout, findRollout, listRollouts } from './find-rollouts.ts';
import { rolloutPhase } from './wait-for-rollout.ts';

/** A payload that a rollout had. */
export interface RolloutRevision {
  /** The newest one has the greatest number. */
  readonly number: number;
  readonly name: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly payload: RolloutSpec['payload'];
}

/** The revisions that the controller has recorded, oldest first. */
export async function readRevisions(cluster: Cluster, rollout: Rollout): Promise<readonly RolloutRevision[]> {
  return revisionsIn(await listRevisions(cluster, rollout.name), rollout);
}

/** In the namespace of their controller; also those of an earlier rollout of the same name. */
export async function listRevisions(cluster: Cluster, name: string): Promise<readonly KubeObject[]> {
  return (await cluster.list(REVISION_KIND, { labelSelector: `${REVISION_LABEL}=${name}` })).items;
}

export const REVISION_KIND = { apiVersion: 'apps/v1', kind: 'ControllerRevision' } as const;

/** The revisions of a rollout among ControllerRevisions, oldest first. */
export function revisionsIn(objects: readonly KubeObject[], { name, uid }: Rollout): readonly RolloutRevision[] {
  const revisions = objects.flatMap((object): readonly RolloutRevision[] => {
    const { metadata } = object;
    if (metadata.labels?.[REVISION_LABEL] !== name) return [];
    const owners = Array.isArray(metadata.ownerReferences) ? metadata.ownerReferences.filter(isJsonObject) : [];
    const payload = rolloutSchema.spec.shape.payload.safeParse(objectAt(object, 'data.spec').payload);
    // Another object had the same name before.
    if (payload.data === undefined || !owners.some((owner) => owner.uid === uid)) return [];
    const number = numberAt(object, 'revision') ?? 0;
    return [{ number, name: metadata.name, createdAt: metadata.creationTimestamp ?? '', payload: payload.data }];
  });
  return revisions.toSorted((a, b) => a.number - b.number);
}

export function revisionState(rollout: Rollout, { name }: RolloutRevision): 'failed' | 'current' | 'rolling out' | null {
  const { failedRevision, currentRevision } = rollout.status;
  if (name === failedRevision) return 'failed';
  if (name === currentRevision) return 'current';
  if (name !== revisionName(rollout)) return null;
  return rolloutPhase(rollout).phase === 'Failed' ? 'failed' : 'rolling out';
}

/**
 * The fields that differ between two payloads, with their impact. The local configuration of the nodes is not part of the comparison.
 * Unset fields have their defaults.
 * @param before null: no field is set
 * @returns null: the ConfigMap of a payload no longer exists
 */
export async function payloadChanges(
  cluster: Cluster,
  before: RolloutSpec['payload'] | null,
  after: RolloutSpec['payload'],
): Promise<readonly FieldChange[] | null> {
  const [old, now] = await Promise.all([before === null ? {} : fieldsOf(cluster, before), fieldsOf(cluster, after)]);
  if (old === null || now === null) return null;
  return configFieldChanges(old, now, { catalogue: await loadCatalogue(), minor: NEWEST_MINOR });
}

/** Without apiVersion and kind. Null: the ConfigMap does not exist. */
async function fieldsOf(cluster: Cluster, { overlay, configMapRef }: RolloutSpec['payload']): Promise<JsonObject | null> {
  if (configMapRef === undefined) return (overlay ?? {}) as JsonObject;
  try {
    const { text } = await findPayload(cluster, configMapRef);
    const root = parseSource(text, configMapRef.name).documents[0]?.root ?? null;
    const content = root === null ? {} : sourceToJson(root);
    return isJsonObject(content) ? withoutHeader(content) : {};
  } catch (error) {
    if (!isAppError(error, 'DYNAMIC_NO_PAYLOAD')) throw error;
    return null;
  }
}

/**
 * The revision with a number; without one, the newest revision that is not that of `spec.payload`.
 * @throws AppError ROLLOUT_NO_REVISION (exit code 2)
 */
function chosenRevision(rollout: Rollout, revisions: readonly RolloutRevision[], number: number | undefined): RolloutRevision {
  const present = revisionName(rollout);
  const found = number === undefined ? revisions.findLast(({ name }) => name !== present) : revisions.find((one) => one.number === number);
  if (found !== undefined) return found;
  const message = number === undefined ? 'no earlier revision exists' : `revision ${number} does not exist`;
  const hint = `List the revisions: kubeletadm rollout history ${rollout.name}`;
  throw new AppError({ code: 'ROLLOUT_NO_REVISION', message: `rollout ${rollout.name}: ${message}`, hint }, { exitCode: 2 });
}

/**
 * The fields that differ between a revision and another one, as of `payloadChanges`.
 * @param options.toRevision undefined: `spec.payload`
 * @throws AppError ROLLOUT_NO_REVISION (exit code 2)
 */
export async function revisionChanges(
  cluster: Cluster,
  name: string,
  { revision, toRevision }: { readonly revision: number | undefined; readonly toRevision: number | undefined },
) {
  const { rollout } = await findRollout(cluster, name);
  const revisions = await readRevisions(cluster, rollout);
  const from = chosenRevision(rollout, revisions, revision);
  const to = toRevision === undefined ? rollout.spec : chosenRevision(rollout, revisions, toRevision);
  return { from, fields: await payloadChanges(cluster, from.payload, to.payload) };
}

/**
 * Sets the payload of a rollout to that of an earlier revision. The write requires the version of the object that was read.
 * @param options.toRevision undefined: the revision before the present one
 * @returns the revision, and the changed fields; `isPresent`: the rollout had this payload already
 * @throws AppError ROLLOUT_NO_REVISION (exit code 2), CLUSTER_CONFLICT if another client changed the object meanwhile
 */
export async function undoRollout(cluster: Cluster, name: string, { toRevision }: { readonly toRevision: number | undefined }) {
  const { object, rollout } = await findRollout(cluster, name);
  const revision = chosenRevision(rollout, await readRevisions(cluster, rollout), toRevision);
  const isPresent = revision.name === revisionName(rollout);
  const fields = isPresent ? [] : await payloadChanges(cluster, rollout.spec.payload, revision.payload);
  if (!isPresent) {
    const spec = { ...(object.spec as JsonObject), payload: revision.payload as JsonObject };
    await cluster.update({ ...object, spec });
  }
  return { revision, isPresent, fields };
}

/**
 * The fields by which the running configuration of each node differs from `spec.payload`, as of `checkPodRisks`.
 * @returns by node, without the nodes that run it; `selected`: the number of nodes of the rollout
 * @throws AppError ROLLOUT_REFUSED (exit code 3) if the ConfigMap of the payload cannot be rolled out
 */
export async function runningChanges(
  cluster: Cluster,
  name: string,
): Promise<{ readonly selected: number; readonly fields: CheckedRisks['fields'] }> {
  const [found, { items }] = await Promise.all([listRollouts(cluster), cluster.list({ apiVersion: 'v1', kind: 'Node' })]);
  const { rollout } = found.find((one) => one.rollout.name === name) ?? (await findRollout(cluster, name));
  const rollouts = found.map((one: FoundRollout) => one.rollout);
  const selection = selectNodes(rollouts, items).find((one) => one.rollout.name === name);
  const names = selection?.refusal === null ? selection.names : [];
  const nodes = items.filter(({ metadata }) => names.includes(metadata.name)).map((node) => readNodeConfig(node));
  const { updateRevision, updateConfigMap } = rollout.status;
  // A node cannot run an overlay that the controller, whose namespace is not known here, has not processed yet.
  const source =
    updateRevision === revisionName(rollout) && updateConfigMap ? updateConfigMap : revisionOf(rollout, AGENT_NAMESPACE).source;
  const content = await payloadContent(cluster, rollout.spec, source);
  if ('refusal' in content) throw new AppError({ code: 'ROLLOUT_REFUSED', message: content.refusal.message }, { exitCode: 3 });
  const { fields } = await checkPayload(cluster, rollout.spec, { source, ...content }, nodes);
  return { selected: nodes.length, fields };
}

/** Sets or removes `spec.paused`. @returns whether it was changed */
export async function setPaused(cluster: Cluster, name: string, paused: boolean): Promise<boolean> {
  const { rollout } = await findRollout(cluster, name);
  if (rollout.spec.paused === paused) return false;
  await cluster.patch(rolloutRef(name), 'merge', { spec: { paused } });
  return true;
}
