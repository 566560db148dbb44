import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseSource } from '../../codec/source.ts';
import type { Catalogue, KubeletReader, LiveChange, Minor } from '../catalogue/catalogue.ts';
import { defaultKubeletConfiguration, effectiveConfiguration } from '../defaults/effective-configuration.ts';
import { decodeKubeletConfiguration } from '../documents/decode.ts';
import { dottedPath, leavesOf } from '../layers/layers.ts';
import { classifyChanges, worstLiveChange } from '../validate/classify-changes.ts';
import { isNodeSpecific } from './clean-configz.ts';

/** One side of a comparison. */
export interface ConfigSide {
  /** Name given by the user. */
  readonly name: string;
  /** Minor of the reading kubelet, for the defaults. */
  readonly minor: Minor;
  /** Result of `decodeKubeletConfiguration`. */
  readonly config: JsonObject;
}

/** An effective value; `undefined` is unset. */
export interface SideValue {
  readonly value: Json | undefined;
  /** The value is the default of that kubelet. */
  readonly isDefault: boolean;
}

export interface FieldDifference {
  readonly path: string;
  readonly before: SideValue;
  readonly after: SideValue;
  /** Impact of the change on a running node. */
  readonly class: LiveChange;
  readonly reason: string;
  /** Host-specific: differences between nodes are expected. */
  readonly nodeSpecific: boolean;
}

export interface ConfigDiff {
  readonly differences: readonly FieldDifference[];
  readonly worst: LiveChange | null;
}

/**
 * Compares two effective configurations: with the defaults of each side's kubelet, and durations and
 * quantities by value. A field of the newer kubelet alone is compared with its default.
 */
export function diffConfigs(a: ConfigSide, b: ConfigSide, catalogue: Catalogue): ConfigDiff {
  const minor = Math.max(a.minor, b.minor);
  const [before, after] = [a, b].map((side) => effectiveConfiguration(side.config, { minor: side.minor, catalogue })) as [
    JsonObject,
    JsonObject,
  ];
  const [defaultsBefore, defaultsAfter] = [defaultLeaves(a.minor, catalogue), defaultLeaves(b.minor, catalogue)];
  const differences = classifyChanges(before, after, { minor, catalogue })
    .map(
      (change): FieldDifference => ({
        path: change.path,
        before:
          gateValue(change.path, change.before, a.minor, catalogue) ??
          sideValue(change.before, defaultsBefore.get(dottedPath(change.path))),
        after:
          gateValue(change.path, change.after, b.minor, catalogue) ?? sideValue(change.after, defaultsAfter.get(dottedPath(change.path))),
        class: change.class,
        reason: change.reason,
        nodeSpecific: isNodeSpecific(change.path),
      }),
    )
    .filter((difference) => !difference.path.startsWith(GATES) || difference.before.value !== difference.after.value);
  return { differences, worst: worstLiveChange(differences) };
}

const GATES = 'featureGates[';

/** An unset gate has its default; null for an unknown gate of that minor. */
function gateValue(path: string, value: Json | undefined, minor: Minor, catalogue: Catalogue): SideValue | null {
  const gate = path.startsWith(GATES) ? catalogue.gate(path.slice(GATES.length, -1), minor) : null;
  return gate === null ? null : { value: value ?? gate.default, isDefault: (value ?? gate.default) === gate.default };
}

function sideValue(value: Json | undefined, usual: Json | undefined): SideValue {
  return { value, isDefault: value !== undefined && jsonEqual(value, usual) };
}

function defaultLeaves(minor: Minor, catalogue: Catalogue): ReadonlyMap<string, Json> {
  const defaults = effectiveConfiguration(defaultKubeletConfiguration(minor, catalogue), { minor, catalogue });
  return new Map([...leavesOf(defaults)].map(([path, value]) => [dottedPath(path), value]));
}

/**
 * The fields that a kubelet must show after a change: those whose effective value changes. configz masks the headers of static
 * pods.
 * @param before effective configuration as text; null: no previous one
 * @param after the same after the change
 */
export function fieldsToShow(before: string | null, after: string, context: KubeletReader): readonly string[] {
  const [old, desired] = [read(before ?? '', context), read(after, context)];
  if (old === null || desired === null) return [];
  return differingFields(old, desired, context).filter((path) => !path.startsWith('staticPodURLHeader'));
}

/**
 * The fields that differ between a kubelet's configz and its configuration file.
 * @param configz result of `readConfigz`
 */
export function fieldsNotInForce(configz: JsonObject, file: string, fields: readonly string[], context: KubeletReader): readonly string[] {
  const desired = read(file, context);
  if (desired === null) return [];
  const differing = new Set(differingFields(configz, desired, context));
  return fields.filter((field) => differing.has(field));
}

function differingFields(a: JsonObject, b: JsonObject, { minor, catalogue }: KubeletReader): readonly string[] {
  return diffConfigs({ name: '', minor, config: a }, { name: '', minor, config: b }, catalogue).differences.map(({ path }) => path);
}

/** The configuration as that kubelet reads it; null: unreadable. */
function read(text: string, context: KubeletReader): JsonObject | null {
  const { documents, problems } = parseSource(text, 'config.yaml');
  const document = documents[0];
  if (problems.length > 0 || document === undefined || document.root === null) return null;
  const { value, problems: more } = decodeKubeletConfiguration(document, { ...context, lenient: true });
  return more.some(({ severity }) => severity !== 'warning') ? null : value;
}
