import type { JsonObject } from '../../base/json.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import { describeRef, type KubeObject } from '../../kube/object.ts';
import { type Change, changedRef, isClusterChange, type PhasePlan } from './change.ts';
import type { HostChanges } from './fold.ts';
import { type FieldChange, formatValue } from './impact.ts';
import { unifiedDiff } from './text-diff.ts';

/**
 * Whether a phase plans the same as before. Texts, directories (with nothing that could be lost), changes
 * of subjects that earlier phases of this run changed (`made`) and objects created meanwhile are ignored.
 */
export function isSamePlan(planned: PhasePlan, now: PhasePlan, made: readonly Change[]): boolean {
  const shown = (plan: PhasePlan): string => JSON.stringify(comparableChanges(plan, made).map(bare));
  return shown(withoutCreated(planned, now)) === shown(now);
}

/**
 * The planned changes without the objects to create of which the present plan has no change: they exist by now as they
 * were planned, for example because another host of the run created a shared Namespace.
 */
export function withoutCreated(planned: PhasePlan, now: PhasePlan): PhasePlan {
  const changed = new Set(now.changes.flatMap(changeSubjects));
  const changes = planned.changes.filter((change) => change.kind !== 'create-object' || changed.has(describeRef(changedRef(change))));
  return { ...planned, changes };
}

export function comparableChanges({ changes }: PhasePlan, made: readonly Change[]): readonly Change[] {
  const ours = new Set(made.flatMap(changeSubjects));
  return changes.filter((change) => change.kind !== 'make-directory' && !changeSubjects(change).every((thing) => ours.has(thing)));
}

function changeSubjects(change: Change): readonly string[] {
  if (isClusterChange(change)) return [describeRef(changedRef(change))];
  if (change.kind === 'move-file') return [change.path, change.to];
  if ('path' in change) return [change.path];
  if ('unit' in change) return [`unit ${change.unit}`];
  return [JSON.stringify(bare(change))];
}

/** A change without its texts: the reason, the impact, which follows from the state of the kubelet, and volatile content. */
export function withoutTexts(change: Change) {
  const {
    reason: _,
    impact: _impact,
    fields: _fields,
    ...rest
  }: Change & { readonly impact?: unknown; readonly fields?: unknown } = change;
  return 'volatile' in rest ? { ...rest, before: null } : rest;
}

/** The change without its texts and without fields that the API server and controllers update constantly. */
function bare(planned: Change): unknown {
  const change = withoutTexts(planned);
  if (change.kind !== 'update-object') return change;
  return { ...change, object: declared(change.object), before: declared(change.before) };
}

function declared({ status: _, metadata, ...object }: KubeObject): unknown {
  const { resourceVersion: _version, generation: _generation, managedFields: _fields, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** The difference of two plans; both members are empty if the plans are equal. */
export interface PlanDifference {
  /** Fields of a running kubelet, with the planned and the present change: `maxPods 110→80 planned, now 81→80`. */
  readonly fields: readonly string[];
  /** A unified diff of all other changes, without a final newline; secrets are masked as in plans. */
  readonly diff: string;
}

export function planDifference(planned: HostChanges, now: HostChanges): PlanDifference {
  const fields: string[] = [];
  const compared = new Set<JsonObject>();
  for (const subject of new Set([...planned.changes, ...now.changes].map(subjectOf))) {
    const [old = {}, present = {}] = [planned, now].map(({ changes }) => changes.find((change) => subjectOf(change) === subject));
    const differing = differingFields(old, present);
    if (differing.length > 0) compared.add(old).add(present);
    fields.push(...differing);
  }
  const rest = (all: HostChanges): string => planText({ ...all, changes: all.changes.filter((change) => !compared.has(change)) });
  return { fields, diff: unifiedDiff(rest(planned), rest(now), { before: 'planned', after: 'now' }).trimEnd() };
}

function subjectOf({ kind, phase, path }: JsonObject): string {
  return [kind, phase, path].join(' ');
}

function differingFields(planned: JsonObject, now: JsonObject): readonly string[] {
  const [before, after] = [fieldsOf(planned), fieldsOf(now)];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((field) => {
    const [old, present] = [before.get(field), after.get(field)];
    if (old === present) return [];
    return [`${field} ${old === undefined ? 'not planned' : `${old} planned`}, now ${present ?? 'unchanged'}`];
  });
}

/** The changes of fields, `110→80`, by field. */
function fieldsOf({ fields }: JsonObject): ReadonlyMap<string, string> {
  const all = (Array.isArray(fields) ? fields : []) as unknown as readonly FieldChange[];
  return new Map(all.map(({ field, before, after }) => [field, `${formatValue(before)}→${formatValue(after)}`]));
}

function planText({ changes, deferred }: HostChanges): string {
  return [...changes, ...deferred].map((change) => encodeYaml([withoutShownContent(change)] as unknown as YamlValue)).join('');
}

/** Omitted: the diff of a file already shows its content. */
function withoutShownContent({ content, origin: _, diff, ...change }: JsonObject): JsonObject {
  return diff === undefined ? { ...change, ...(content === undefined ? {} : { content }) } : { ...change, diff };
}
