import type { Json } from '../../base/json.ts';
import type { ObjectNode } from '../../codec/type-node.ts';
import type { Impact } from '../../host/plan/impact.ts';

/** A Kubernetes minor version by its number: 36 is 1.36. */
export type Minor = number;

/** The minors whose kubelets `init`, `join` and `apply` configure. */
export const OLDEST_MINOR: Minor = 20;
export const NEWEST_MINOR: Minor = 37;
/** Default Kubernetes minor of all commands: the newest that the program was tested with. */
export const DEFAULT_MINOR: Minor = 36;
/** The oldest minor with known fields, flags, gates and rules. */
export const OLDEST_KNOWN_MINOR: Minor = 11;

export type FieldType =
  | 'string'
  | 'enum'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'float'
  | 'duration'
  | 'durationOrNanoseconds'
  | 'quantity'
  | 'timestamp'
  | 'object'
  | 'array<string>'
  | 'array<enum>'
  | 'array<int32>'
  | 'array<object>'
  | 'map<string,string>'
  | 'map<string,bool>'
  | 'map<string,quantity>'
  | 'map<string,array<string>>';

/** Effect of a change of a field on a running node. */
export type LiveChange = Impact;

/**
 * What a field makes the kubelet do beyond the pods of the node. `deletes`: files · `executes`: programs or pods
 * from outside the API server · `listens`: serves data of the node · `connects`: sends data of the node ·
 * `authenticates`: decides which clients are accepted, or as what the kubelet is accepted · `logs-secrets`: writes Secrets to
 * the log · `isolates`: keeps pods from the node and from other pods.
 */
export const DANGERS = ['deletes', 'executes', 'listens', 'connects', 'authenticates', 'logs-secrets', 'isolates'] as const;
export type DangerKind = (typeof DANGERS)[number];

/** Why a ConfigMap may set a field only with the permission `unsafe`. */
export interface Danger {
  readonly kind: DangerKind;
  /** As a clause. */
  readonly reason: string;
  /** The values that are dangerous. Absent: all. */
  readonly when?: { readonly to: boolean } | { readonly atLeast: number } | { readonly raised: true } | { readonly isSet: true };
}

/** The usual values of a number, a duration or a quantity; others are permitted, but rarely intended. */
export interface Bounds {
  readonly min?: number | string;
  readonly max?: number | string;
  /** The effect of unusual values, as a clause. */
  readonly reason: string;
}

/** Values by the first minor that has them, ascending. */
export type Since<T> = readonly ({ readonly from: Minor } & T)[];

/** A field of KubeletConfiguration over all minors, as in data/fields.json. */
export interface FieldEntry {
  /** `a.b`, items of lists as `a[].b`. */
  readonly path: string;
  readonly type: FieldType;
  readonly typeByMinor?: Since<{ readonly type: FieldType }>;
  /** A Go pointer: an explicit zero differs from unset. */
  readonly pointer: boolean;
  readonly pointerByMinor?: Since<{ readonly pointer: boolean }>;
  /** The Go JSON tag has `omitempty`. */
  readonly omitempty: boolean;
  /**
   * Go prints the field even when it is unset: no `omitempty`, or a struct (also durations and quantities),
   * which `omitempty` never drops.
   */
  readonly printedWhenUnset: boolean;
  /**
   * First and last minor with the field; the first is at least 1.10, the last is the newest minor while the field exists.
   */
  readonly minors: readonly [Minor, Minor];
  /** Null: unset by defaulting. */
  readonly defaultByMinor: Since<{ readonly value: Json }>;
  readonly enumByMinor?: Since<{ readonly values: readonly string[] }>;
  readonly flag: string | null;
  readonly flagAliases?: readonly string[];
  readonly description: string;
  readonly liveChange: LiveChange;
  readonly liveChangeReason: string;
  readonly danger: Danger | null;
  readonly bounds?: Bounds;
  readonly note?: string;
}

/** A field in one minor. */
export interface Field extends Pick<FieldEntry, 'path' | 'type' | 'pointer' | 'omitempty' | 'printedWhenUnset'> {
  /** Null: unset by defaulting. */
  readonly default: Json;
  /** Permitted values; null if the field is not an enumeration. */
  readonly values: readonly string[] | null;
  readonly entry: FieldEntry;
}

export type FlagDeprecation = 'to-be-removed' | 'use-config-file' | 'use-other-flag' | 'leaked-cadvisor-flag';

/** A command-line flag of the kubelet over all minors, as in data/flags.json. */
export interface FlagEntry {
  /** Without dashes. */
  readonly flag: string;
  readonly shorthand?: string;
  /** pflag type name: `stringSlice`, `mapStringBool`, `duration` … */
  readonly type: string;
  readonly default: string;
  readonly defaultByMinor?: Since<{ readonly value: string }>;
  readonly since: Minor;
  /** The first minor without the flag; null while the flag exists. */
  readonly removedIn: Minor | null;
  /** Path of the configuration field with the same meaning. */
  readonly field: string | null;
  /** The first minor with this field, if later than the flag. */
  readonly fieldSince?: Minor;
  /** Deprecated in the newest minor. */
  readonly deprecated: boolean;
  readonly deprecatedSince: Minor | null;
  /** The last minor in which the flag is deprecated, if the deprecation was withdrawn. */
  readonly deprecatedUntil?: Minor;
  readonly deprecation?: FlagDeprecation;
  /** `config`: overrides a field of the file; `kubelet`: the kubelet's own; `global`: from a library. */
  readonly group: 'config' | 'kubelet' | 'global';
  readonly hidden?: boolean;
}

/** A flag in one minor. */
export interface Flag {
  readonly name: string;
  readonly type: string;
  readonly default: string;
  /** Null if this minor has no field for the flag. */
  readonly field: string | null;
  readonly deprecation: FlagDeprecation | null;
  readonly entry: FlagEntry;
}

export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

/** A feature gate over all minors, as in data/gates.json. */
export interface GateEntry {
  readonly name: string;
  readonly versions: Since<{ readonly stage: GateStage; readonly default: boolean; readonly lockToDefault: boolean }>;
  /** The first minor without the gate; null while the gate exists. */
  readonly removedIn: Minor | null;
  readonly dependencies?: Since<{ readonly gates: readonly string[] }>;
}

/** A gate in one minor. */
export interface Gate {
  readonly name: string;
  readonly stage: GateStage;
  readonly default: boolean;
  /** Locked to its default. */
  readonly locked: boolean;
  /** Gates that must be enabled as well. */
  readonly dependencies: readonly string[];
  readonly entry: GateEntry;
}

/** Knowledge about kubelets by minor: lookups return null if the minor does not have the name. */
export interface Catalogue {
  readonly fields: ReadonlyMap<string, FieldEntry>;
  readonly flags: ReadonlyMap<string, FlagEntry>;
  /** The flags by spelling, with `-` in place of `_`, and by shorthand. */
  readonly flagsBySpelling: ReadonlyMap<string, readonly FlagEntry[]>;
  readonly gates: ReadonlyMap<string, GateEntry>;
  /** The few gates that need other gates. */
  readonly dependentGates: readonly GateEntry[];
  /** @param path without indices: `reservedMemory[].limits` */
  field(path: string, minor: Minor): Field | null;
  /** @param name without dashes */
  flag(name: string, minor: Minor): Flag | null;
  gate(name: string, minor: Minor): Gate | null;
  /** The type of KubeletConfiguration (v1beta1) in a minor, including the header. */
  configurationType(minor: Minor): ObjectNode;
  /** The fields that have a default in a minor, including conditional ones, with the names of their path. */
  defaultedFields(minor: Minor): readonly { readonly path: readonly string[]; readonly field: Field }[];
}

/** The kubelet that reads a configuration: its minor, and what is known about kubelets. */
export interface KubeletReader {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
}

/**
 * Parses the minor of a Kubernetes version.
 * @param version `1.36`, `v1.36.2`, `v1.36.0-rc.1+build`; also `v1.28+`, as some API servers report
 * @returns 36 for 1.36; null for anything but a version 1.x
 */
export function parseMinor(version: string): Minor | null {
  const minor = /^v?1\.(0|[1-9][0-9]{0,2})(?:\.[0-9]+)?(?:[-+][0-9A-Za-z.+-]*)?$/.exec(version.trim())?.[1];
  return minor === undefined ? null : Number(minor);
}

/** `1.36` for 36. */
export function formatMinor(minor: Minor): string {
  return `1.${minor}`;
}

/** The minor of the catalogue nearest to a minor. */
export function nearestKnownMinor(minor: Minor): Minor {
  return Math.min(Math.max(minor, OLDEST_KNOWN_MINOR), NEWEST_MINOR);
}

/** Whether kubelets of this minor are supported. */
export function isSupportedMinor(minor: Minor): boolean {
  return minor >= OLDEST_MINOR && minor <= NEWEST_MINOR;
}
