import { isAppError } from '../../base/errors.ts';
import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { present } from '../../base/present.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { type Change, changedRef, isClusterChange } from '../../host/plan/change.ts';
import { CONTENT_DIFFERS } from '../../host/plan/diff-file.ts';
import { type HostPlan, hasChangesOrDeferred } from '../../host/plan/document.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import { BOOTSTRAP_CONF, KUBELET_CONF, KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import { decodeNodeSettings, NODE_SETTINGS_PATH, type NodeSettings } from '../../kubeadm/node-settings/node-settings.ts';
import { CONFIG_OVERRIDDEN } from '../../kubeadm/workflows/node/check-config-source.ts';
import { masked } from '../../kubelet/effective/field-changes.ts';
import { leafPath, leavesOf } from '../../kubelet/layers/layers.ts';
import { describeAuthor } from '../history/decide-undo.ts';
import type { HistoryEntry } from '../history/host-history.ts';
import { shownChanges } from '../plan/operations.ts';
import type { HostOutcome } from '../run/fleet.ts';

/** Credentials of a new node: a joining one, or the first control plane. */
const NEW_NODE_FILES: readonly string[] = [BOOTSTRAP_CONF, KUBELET_CONF];

/** A difference between a host and the fleet file or the cluster. */
export interface Drift {
  readonly what: string;
  readonly why: string;
  /** Of a field of the kubelet's configuration. */
  readonly field?: FieldDrift;
}

/**
 * Whether a host has drifted, or runs a ConfigMap that overrides a field of the fleet file. A host that preflight
 * rejects is included, because its actual state was read.
 */
export function hasDrift({ plan }: HostOutcome): boolean {
  return plan !== null && (hasChangesOrDeferred(plan.host) || overridesIn(plan).length > 0);
}

export function overridesOf({ plan }: HostOutcome): readonly Drift[] {
  return plan === null ? [] : overridesIn(plan);
}

function overridesIn({ warnings }: NonNullable<HostOutcome['plan']>): readonly Drift[] {
  return warnings.flatMap(({ code, field, message }) =>
    code === CONFIG_OVERRIDDEN ? [{ what: field ?? KUBELET_CONFIG_FILE, why: message }] : [],
  );
}

/**
 * The differences between a host and the fleet file or the cluster; empty when the actual state was not read.
 * @param options.evidence the recorded and running values of its fields
 * @param options.verbosity 1 or more includes the program's internal files. Default: 0
 * @param options.kubelet what its running kubelet has not read. Default: nothing
 */
export function driftOf(
  { plan }: HostOutcome,
  {
    verbosity = 0,
    kubelet,
    evidence = {},
  }: { readonly verbosity?: number; readonly kubelet?: PendingChanges | undefined; readonly evidence?: DriftEvidence | undefined } = {},
): readonly Drift[] {
  const phases = plan?.host.phases ?? [];
  if (isNew(phases)) return [{ what: 'host', why: 'the host has not joined the cluster' }];
  const all = phases.flatMap(({ plan: { changes } }): readonly (Change & { readonly path?: string })[] => changes);
  const changes = shownChanges(all, verbosity);
  const { pending, failures } = pendingOf({ plan }, kubelet ?? { pending: [], failures: [] });
  // A reload or restart that only follows from a listed change is no drift of its own.
  const causes = changes.filter((change) => isClusterChange(change) || (change.kind !== 'restart-unit' && change.kind !== 'daemon-reload'));
  const changesFiles = causes.some(({ kind }) => kind === 'write-file' || kind === 'remove-file');
  const changed = (changesFiles || pending.length > 0 ? causes : changes).flatMap((change): Drift | readonly Drift[] => {
    const { reason } = change;
    if (change.kind === 'write-file' && change.fields !== undefined && change.fields.length > 0)
      return [
        ...fieldDrift(change.fields, all, evidence).map((field) => ({ what: change.path, why: describeFieldDrift(field), field })),
        // Its mode or owner.
        ...(reason === CONTENT_DIFFERS ? [] : [{ what: change.path, why: reason }]),
      ];
    if (isClusterChange(change)) {
      const { kind, name } = changedRef(change);
      return { what: `${kind} ${name}`, why: reason };
    }
    if (change.kind === 'daemon-reload') return { what: 'unit kubelet', why: reason };
    if (change.kind === 'confirm-commit') return { what: 'unconfirmed change', why: reason };
    if (change.kind === 'restart-unit') return { what: `unit ${change.unit}`, why: `must be restarted: ${reason}` };
    return { what: 'path' in change ? change.path : 'unit' in change ? `unit ${change.unit}` : change.kind, why: reason };
  });
  return plan === null ? changed : [...changed, ...overridesIn(plan), ...pending, ...failures];
}

/** Changes that a running kubelet has not read, and reasons for which its next start would fail; none for a host that has not joined. */
export function pendingOf({ plan }: Pick<HostOutcome, 'plan'>, kubelet: PendingChanges): PendingChanges {
  return plan === null || isNew(plan.host.phases) ? { pending: [], failures: [] } : kubelet;
}

export interface PendingChanges {
  readonly pending: readonly Drift[];
  readonly failures: readonly Drift[];
}

/** The phase waits for the join, or the plan writes the credentials with which a new node joins. */
function isNew(phases: HostPlan['phases']): boolean {
  return phases.some(
    ({ phase, plan }) =>
      phase === 'join' ||
      plan.changes.some((change) => change.kind === 'write-file' && NEW_NODE_FILES.includes(change.path) && change.before === null),
  );
}

/** A field whose value on the host is not the value that apply would write. Null: unset. */
interface FieldDrift {
  readonly field: string;
  readonly wanted: Json;
  readonly onDisk: Json;
  /** In the running kubelet; absent: not read. */
  readonly running?: Json | undefined;
  /** What changed since the last apply; null: unknown, because that value is not recorded. */
  readonly changed: 'fleet file' | 'host' | 'fleet file and host' | 'cluster' | 'undone' | null;
  /** The undo that reverted the wanted value; absent: none did. */
  readonly undo?: Pick<HistoryEntry, 'operator' | 'time' | 'run' | 'id'> | undefined;
}

export interface DriftEvidence {
  readonly history?: readonly HistoryEntry[] | undefined;
  /** Decodes the declared fields for the kubelet of the host, as they are written. Absent: compared as declared. */
  readonly decode?: ((declared: JsonObject) => JsonObject) | undefined;
  readonly declared?: JsonObject | undefined;
  readonly running?: ReadonlyMap<string, Json> | undefined;
}

/**
 * Compares the fields that a plan changes with those of the last apply: the settings saved on the host contain the
 * declared values, the history of the host the changed ones. Without a record of a field, an unchanged fleet file tells
 * the value that the last apply wrote.
 * @param changes all changes of the plan
 */
export function fieldDrift(fields: readonly FieldChange[], changes: readonly Change[], evidence: DriftEvidence): readonly FieldDrift[] {
  const saved = savedSettings(changes);
  const isSameFile = saved === 'unchanged';
  const contents = isSameFile ? [evidence.declared ?? {}] : (saved?.overlays.map(({ content }) => content) ?? []);
  return fields.map(({ field, before, after }) => {
    const running = evidence.running?.get(leafPath(field));
    const recorded = changesOfField(evidence.history ?? [], field).at(-1)?.after;
    const declared = declaredIn(contents, field, evidence.decode);
    const drift = { field, wanted: after, onDisk: before, ...(running === undefined ? {} : { running: masked(field, running) }) };
    const undo = undoOf({ before, after }, field, evidence.history ?? []);
    if (undo !== null) return { ...drift, changed: 'undone', undo };
    return {
      ...drift,
      changed: isSameFile ? changedSince({ before, after }, recorded, declared) : changedSide({ before, after }, declared ?? recorded),
    };
  });
}

type Values = Pick<FieldChange, 'before' | 'after'>;

/** The successful changes of a field with the value that each set, the oldest first. */
function changesOfField(history: readonly HistoryEntry[], field: string) {
  return history.flatMap((entry) => {
    const after = entry.result === 'changed' ? entry.fields.findLast((one) => one.field === field)?.after : undefined;
    return after === undefined ? [] : [{ entry, after }];
  });
}

/** The undo that set the value on disk, if the last other change of the field had set the wanted value; null: none. */
function undoOf({ before, after }: Values, field: string, history: readonly HistoryEntry[]): FieldDrift['undo'] | null {
  const changes = changesOfField(history, field);
  const last = changes.at(-1);
  const applied = changes.findLast(({ entry }) => entry.command !== 'undo');
  const isUndone = last?.entry.command === 'undo' && jsonEqual(last.after, before) && jsonEqual(applied?.after, after);
  if (!isUndone) return null;
  const { operator, time, run, id } = last.entry;
  return { operator, time, ...present({ run, id }) };
}

/** With the same file and the same value as after the last apply, only the configuration of the cluster can differ. */
function changedSince({ before, after }: Values, recorded: Json | undefined, declared: Json | undefined): FieldDrift['changed'] {
  if (recorded !== undefined) return jsonEqual(recorded, before) ? 'cluster' : 'host';
  // The last apply wrote the value that the file declares.
  return declared !== undefined && jsonEqual(declared, after) ? 'host' : null;
}

/** @param last the value that the last apply wrote; undefined: unknown */
function changedSide({ before, after }: Values, last: Json | undefined): FieldDrift['changed'] {
  if (last === undefined) return null;
  if (jsonEqual(last, before)) return 'fleet file';
  return jsonEqual(last, after) ? 'host' : 'fleet file and host';
}

/** The settings before the plan; null: none, or unreadable. */
function savedSettings(changes: readonly Change[]): NodeSettings | 'unchanged' | null {
  const change = changes.find((one) => 'path' in one && one.path === NODE_SETTINGS_PATH);
  if (change === undefined) return 'unchanged';
  if (change.kind !== 'write-file' || change.before === null) return null;
  try {
    return decodeNodeSettings(change.before.content);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function declaredIn(
  contents: readonly JsonObject[],
  field: string,
  decode: DriftEvidence['decode'] = (declared) => declared,
): Json | undefined {
  const value = contents.map((content) => leavesOf(decode(content)).get(leafPath(field))).findLast((one) => one !== undefined);
  // The compared values of the plan contain no credentials either.
  return value === undefined ? value : masked(field, value);
}

/** `maxPods: wanted 70, on disk 61, running 60; the host changed`. */
function describeFieldDrift({ field, wanted, onDisk, running, changed, undo }: FieldDrift): string {
  const value = (json: Json): string => (json === null ? 'unset' : inlineValue(json));
  const values = [`wanted ${value(wanted)}`, `on disk ${value(onDisk)}`, ...(running === undefined ? [] : [`running ${value(running)}`])];
  const shown = `${field}: ${values.join(', ')}`;
  if (undo !== undefined) return `${shown}; undone by ${describeAuthor(undo)}: change the fleet file, or the next apply sets it again`;
  return `${shown}; ${changed === null ? 'the last applied value is unknown' : `the ${changed} changed`}`;
}
