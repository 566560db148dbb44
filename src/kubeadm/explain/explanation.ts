import type { Json } from '../../base/json.ts';
import {
  type Bounds,
  type Catalogue,
  type Danger,
  type FieldType,
  type FlagDeprecation,
  formatMinor,
  type GateStage,
  type LiveChange,
  type Minor,
  NEWEST_MINOR,
} from '../../kubelet/catalogue/catalogue.ts';

/** A value that was valid from one minor version to another, both `1.X`; `to` is null while it is still valid. */
export interface Period<T> {
  readonly from: string;
  readonly to: string | null;
  readonly value: T;
}

/** All information about a field for one minor version. */
export interface FieldExplanation {
  readonly kind: 'Field';
  readonly path: string;
  /** `1.36`: the explained kubelet version. */
  readonly kubernetesVersion: string;
  /**
   * False: this kubelet version does not have the field. Type and values are then those of the nearest
   * version that has it.
   */
  readonly known: boolean;
  readonly type: string;
  readonly description: string;
  readonly since: string;
  /** The last minor version that has the field; null while it exists. */
  readonly until: string | null;
  /** null: stays unset. */
  readonly default: Json;
  readonly defaults: readonly Period<Json>[];
  /** The allowed values; null if the field is not an enumeration. */
  readonly values: readonly string[] | null;
  readonly valuesByVersion: readonly Period<readonly string[]>[];
  readonly kubeadm: KubeadmValue | null;
  readonly flag: FlagCounterpart | null;
  /** Gates that the field needs, or that determine whether it has an effect. */
  readonly featureGates: readonly FieldGate[];
  /** Validation rules of the kubelet, in words. */
  readonly rules: readonly string[];
  readonly liveChange: { readonly class: LiveChange; readonly reason: string };
  /** What the kubelet does by the field, beyond the pods of the node. */
  readonly danger: Danger | null;
  /** The usual values; others have the class `unsafe`. */
  readonly bounds: Bounds | null;
  readonly note: string | null;
  readonly members: readonly Member[];
}

/** The value that kubeadm writes for an unset field. */
export interface KubeadmValue {
  readonly value: Json;
  /** Source of the value: `networking.dnsDomain`, `kubeadm 1.36`. */
  readonly source: string;
}

/** The command-line flag with the same meaning as a field, which overrides the field. */
export interface FlagCounterpart {
  readonly name: string;
  readonly aliases: readonly string[];
  /** False: the explained kubelet version does not have the flag. */
  readonly known: boolean;
  readonly deprecation: FlagDeprecation | null;
  readonly removedIn: string | null;
}

/** A gate of a field; stage and default are null if the kubelet version does not have the gate. */
export interface FieldGate {
  readonly name: string;
  readonly stage: GateStage | null;
  readonly default: boolean | null;
  readonly locked: boolean;
}

/** An entry of a list of fields. */
export interface Member {
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly default: Json;
  /** Only when all levels were requested. */
  readonly members?: readonly Member[];
}

/** All top-level fields. */
export interface FieldList {
  readonly kind: 'FieldList';
  readonly kubernetesVersion: string;
  readonly members: readonly Member[];
}

/** Names that contain a text. */
export interface Matches {
  readonly kind: 'Matches';
  readonly text: string;
  readonly kubernetesVersion: string;
  readonly fields: readonly Member[];
  readonly flags: readonly {
    readonly name: string;
    /** The field with the same meaning; null when no such field exists. */
    readonly field: string | null;
  }[];
  readonly featureGates: readonly { readonly name: string; readonly stage: GateStage | null }[];
}

export interface FlagExplanation {
  readonly kind: 'Flag';
  readonly name: string;
  readonly kubernetesVersion: string;
  readonly known: boolean;
  readonly type: string;
  readonly since: string;
  readonly removedIn: string | null;
  /** As printed by the flag; without a configuration file some defaults differ. */
  readonly default: string;
  readonly defaults: readonly Period<string>[];
  /** The field with the same meaning; null when no such field exists. */
  readonly field: { readonly path: string; readonly since: string; readonly known: boolean } | null;
  readonly deprecated: { readonly since: string | null; readonly how: FlagDeprecation | null } | null;
  readonly origin: 'config' | 'kubelet' | 'global';
}

export interface GateExplanation {
  readonly kind: 'FeatureGate';
  readonly name: string;
  readonly kubernetesVersion: string;
  readonly known: boolean;
  readonly stage: GateStage | null;
  readonly default: boolean | null;
  readonly locked: boolean | null;
  readonly dependencies: readonly string[];
  readonly versions: readonly Period<{ readonly stage: GateStage; readonly default: boolean; readonly lockToDefault: boolean }>[];
  readonly removedIn: string | null;
  /** Fields that need the gate, or have no effect without it. */
  readonly fields: readonly string[];
}

export type Explanation = FieldExplanation | FieldList | Matches | FlagExplanation | GateExplanation;

export interface ExplainOptions {
  readonly catalogue: Catalogue;
  /** The explained kubelet version. */
  readonly minor: Minor;
  /** Include nested members. */
  readonly recursive?: boolean;
}

const TYPE_TEXTS: { readonly [T in FieldType]: string } = {
  string: 'string',
  enum: 'string',
  bool: 'boolean',
  int32: 'int32',
  int64: 'int64',
  uint32: 'uint32',
  float: 'number',
  duration: 'duration',
  durationOrNanoseconds: 'duration or nanoseconds',
  quantity: 'quantity',
  timestamp: 'time',
  object: 'Object',
  'array<string>': '[]string',
  'array<enum>': '[]string',
  'array<int32>': '[]int32',
  'array<object>': '[]Object',
  'map<string,string>': 'map[string]string',
  'map<string,bool>': 'map[string]boolean',
  'map<string,quantity>': 'map[string]quantity',
  'map<string,array<string>>': 'map[string][]string',
};

/** A type as printed by kubectl explain. */
export function typeText(type: FieldType): string {
  return TYPE_TEXTS[type];
}

/**
 * Turns `from` entries into periods, each of which ends before the next one begins.
 * @param last the last minor version that has the item
 */
export function periods<E extends { readonly from: Minor }, T>(
  list: readonly E[],
  last: Minor,
  pick: (entry: E) => T,
): readonly Period<T>[] {
  return list.map((entry, index) => {
    const next = list[index + 1];
    const to = next === undefined ? (last >= NEWEST_MINOR ? null : last) : next.from - 1;
    return { from: formatMinor(entry.from), to: to === null ? null : formatMinor(to), value: pick(entry) };
  });
}
