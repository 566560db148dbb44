import { isAppError } from '../../base/errors.ts';
import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import type { Change } from '../../host/plan/change.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import { decodeNodeSettings, NODE_SETTINGS_PATH, type NodeSettings } from '../../kubeadm/node-settings/node-settings.ts';
import { masked } from '../../kubelet/effective/field-changes.ts';
import { leafPath, leavesOf } from '../../kubelet/layers/layers.ts';
import type { HistoryEntry } from '../history/host-history.ts';

/** A field whose value on the host is not the value that apply would write. Null: unset. */
export interface FieldDrift {
  readonly field: string;
  readonly wanted: Json;
  readonly onDisk: Json;
  /** In the running kubelet; absent: not read. */
  readonly running?: Json | undefined;
  /** What changed since the last apply; null: unknown, because that value is not recorded. */
  readonly changed: 'fleet file' | 'host' | 'fleet file and host' | 'cluster' | null;
}

/** History and running fields of a host. */
export interface DriftEvidence {
  /** The recorded changes, the oldest first. */
  readonly history?: readonly HistoryEntry[] | undefined;
  /** Decodes the declared fields for the kubelet of the host, as they are written. Absent: compared as declared. */
  readonly decode?: ((declared: JsonObject) => JsonObject) | undefined;
  /** The fields of the running kubelet. */
  readonly running?: ReadonlyMap<string, Json> | undefined;
}

/**
 * Compares the fields that a plan changes with those of the last apply: the settings saved on the host contain the
 * declared values, the history of the host the changed ones.
 * @param changes all changes of the plan
 */
export function fieldDrift(fields: readonly FieldChange[], changes: readonly Change[], evidence: DriftEvidence): readonly FieldDrift[] {
  const saved = savedSettings(changes);
  return fields.map(({ field, before, after }) => {
    const running = evidence.running?.get(leafPath(field));
    const applied = evidence.history?.findLast((entry) => entry.result === 'changed' && entry.fields.some((one) => one.field === field));
    const recorded = applied?.fields.findLast((one) => one.field === field)?.after;
    return {
      field,
      wanted: after,
      onDisk: before,
      ...(running === undefined ? {} : { running: masked(field, running) }),
      changed: changedSide({
        before,
        after,
        recorded,
        declared: saved === 'unchanged' ? saved : declaredIn(saved, field, evidence.decode),
      }),
    };
  });
}

function changedSide({
  before,
  after,
  declared,
  recorded,
}: Pick<FieldChange, 'before' | 'after'> & {
  readonly declared: Json | undefined;
  readonly recorded: Json | undefined;
}): FieldDrift['changed'] {
  const last = declared === 'unchanged' || declared === undefined ? recorded : declared;
  if (last === undefined) return null;
  // With the same file and the same value as after the last apply, only the configuration of the cluster can differ.
  if (declared === 'unchanged') return jsonEqual(last, before) ? 'cluster' : 'host';
  if (jsonEqual(last, before)) return 'fleet file';
  return jsonEqual(last, after) ? 'host' : 'fleet file and host';
}

/** The settings before the plan; null: none, or unreadable. */
function savedSettings(changes: readonly Change[]): NodeSettings | 'unchanged' | null {
  const change = changes.find((one) => 'path' in one && one.path === NODE_SETTINGS_PATH);
  if (change === undefined) return 'unchanged';
  if (change.kind !== 'write-file' || change.before === null) return null;
  try {
    return decodeNodeSettings(change.before.content, NODE_SETTINGS_PATH);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function declaredIn(
  settings: NodeSettings | null,
  field: string,
  decode: DriftEvidence['decode'] = (declared) => declared,
): Json | undefined {
  const value = settings?.overlays.flatMap(({ content }) => leavesOf(decode(content)).get(leafPath(field)) ?? []).at(-1);
  // The compared values of the plan contain no credentials either.
  return value === undefined ? value : masked(field, value);
}

/** `maxPods: wanted 70, on disk 61, running 60; the host was changed`. */
export function describeFieldDrift({ field, wanted, onDisk, running, changed }: FieldDrift): string {
  const value = (json: Json): string => (json === null ? 'unset' : inlineValue(json));
  const values = [`wanted ${value(wanted)}`, `on disk ${value(onDisk)}`, ...(running === undefined ? [] : [`running ${value(running)}`])];
  return `${field}: ${values.join(', ')}; ${changed === null ? 'the last applied value is unknown' : `the ${changed} changed`}`;
}
