import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION, type ConfigSource, describeSource } from '../layers/config-source.ts';

/**
 * Annotation of a Node with the author and the time of its assignment, as JSON. Informational only: the node
 * itself can write it.
 */
export const ASSIGNED_BY_ANNOTATION = 'kubeletadm.dev/assigned-by';

/** The node can write any text. */
const MAX_REASON = 500;

export interface Assigner {
  readonly by: string;
  readonly at: Date | null;
  /** `--reason` of the assignment; null: none. */
  readonly reason: string | null;
}

/** The author of an assignment that is being made. */
export interface NewAssigner {
  readonly by: string;
  readonly at: Date;
  readonly reason?: string | undefined;
}

/** Returns the text of the annotation. @param source null: the local configuration */
export function formatAssignedBy(source: ConfigSource | null, { by, at, reason }: NewAssigner): string {
  const why = reason === undefined ? {} : { reason };
  return JSON.stringify({ source: source === null ? 'local' : describeSource(source), by, at: at.toISOString(), ...why });
}

/**
 * Returns the author of a Node's current assignment: from the annotation if it describes this source,
 * otherwise from managedFields (`manager kubectl-patch`).
 * @returns null when neither names one
 */
export function readAssigner({ metadata }: KubeObject, source: ConfigSource | null): Assigner | null {
  const { managedFields } = metadata as unknown as { readonly managedFields?: Json };
  return fromAnnotation(metadata.annotations?.[ASSIGNED_BY_ANNOTATION], source) ?? fromManagedFields(managedFields);
}

function fromAnnotation(text: string | undefined, source: ConfigSource | null): Assigner | null {
  try {
    const value = JSON.parse(text ?? 'null') as Json;
    if (!isJsonObject(value) || typeof value.by !== 'string') return null;
    if (value.source !== (source === null ? 'local' : describeSource(source))) return null;
    return { by: value.by, at: dateOf(value.at), reason: typeof value.reason === 'string' ? value.reason.slice(0, MAX_REASON) : null };
  } catch {
    return null;
  }
}

function fromManagedFields(entries: Json | undefined): Assigner | null {
  const owners = (Array.isArray(entries) ? entries : []).flatMap((entry: Json) =>
    isJsonObject(entry) && typeof entry.manager === 'string' && ownsSource(entry.fieldsV1)
      ? [{ by: `manager ${entry.manager}`, at: dateOf(entry.time), reason: null }]
      : [],
  );
  return owners.toSorted((a, b) => (b.at?.getTime() ?? 0) - (a.at?.getTime() ?? 0))[0] ?? null;
}

function ownsSource(fields: Json | undefined): boolean {
  const annotations = member(member(fields, 'f:metadata'), 'f:annotations');
  return member(fields, 'f:spec')?.['f:configSource'] !== undefined || annotations?.[`f:${CONFIG_SOURCE_ANNOTATION}`] !== undefined;
}

function member(value: Json | undefined, name: string): JsonObject | undefined {
  const found = isJsonObject(value) ? value[name] : undefined;
  return isJsonObject(found) ? found : undefined;
}

function dateOf(value: Json | undefined): Date | null {
  const at = new Date(typeof value === 'string' ? value : Number.NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}
