import type { Json } from '../../base/json.ts';
import type { Catalogue, FlagDeprecation, GateStage, LiveChange, Minor } from '../../kubelet/catalogue.ts';

/** Something that held from one minor to another, both `1.X`; `to` is null while it holds. */
export interface Period<T> {
  readonly from: string;
  readonly to: string | null;
  readonly value: T;
}

/** All that is known of a field, seen from one minor. */
export interface FieldExplanation {
  readonly kind: 'Field';
  readonly path: string;
  /** `1.36`: the kubelet it is explained for. */
  readonly kubernetesVersion: string;
  /** False: that kubelet does not have it. Type and values are then those of the nearest minor that has. */
  readonly known: boolean;
  readonly type: string;
  readonly description: string;
  readonly since: string;
  /** The last minor that has it; null while it exists. */
  readonly until: string | null;
  /** null: stays unset. */
  readonly default: Json;
  readonly defaults: readonly Period<Json>[];
  /** The words it takes; null where it is no enumeration. */
  readonly values: readonly string[] | null;
  readonly valuesByVersion: readonly Period<readonly string[]>[];
  readonly kubeadm: KubeadmValue | null;
  readonly flag: FlagCounterpart | null;
  /** Gates it needs, or that decide whether it has an effect. */
  readonly featureGates: readonly FieldGate[];
  /** What the kubelet refuses, in words. */
  readonly rules: readonly string[];
  readonly liveChange: { readonly class: LiveChange; readonly reason: string };
  readonly note: string | null;
  readonly members: readonly Member[];
}

/** What kubeadm writes where the user left a field out. */
export interface KubeadmValue {
  readonly value: Json;
  /** What decides it: `networking.dnsDomain`, `kubeadm 1.36`. */
  readonly source: string;
}

/** The command-line flag that means the same as a field, and wins over it. */
export interface FlagCounterpart {
  readonly name: string;
  readonly aliases: readonly string[];
  /** False: the kubelet it is explained for does not have it. */
  readonly known: boolean;
  readonly deprecation: FlagDeprecation | null;
  readonly removedIn: string | null;
}

/** A gate that belongs to a field; stage and default are null where that kubelet does not have it. */
export interface FieldGate {
  readonly name: string;
  readonly stage: GateStage | null;
  readonly default: boolean | null;
  readonly locked: boolean;
}

/** A line of a list of fields. */
export interface Member {
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly default: Json;
  /** Only when asked for all levels. */
  readonly members?: readonly Member[];
}

/** Several fields that begin alike, or all at the top. */
export interface FieldList {
  readonly kind: 'FieldList';
  readonly prefix: string;
  readonly kubernetesVersion: string;
  readonly members: readonly Member[];
}

export interface FlagExplanation {
  readonly kind: 'Flag';
  readonly name: string;
  readonly kubernetesVersion: string;
  readonly known: boolean;
  readonly type: string;
  readonly since: string;
  readonly removedIn: string | null;
  /** As the flag prints it; with flags alone some defaults are others than with a configuration file. */
  readonly default: string;
  readonly defaults: readonly Period<string>[];
  /** The field with the same meaning; null when there is none. */
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
  /** Fields that need it, or have no effect without it. */
  readonly fields: readonly string[];
}

export type Explanation = FieldExplanation | FieldList | FlagExplanation | GateExplanation;

/** What is explained, and how much of it. */
export interface ExplainOptions {
  readonly catalogue: Catalogue;
  /** The kubelet it is explained for. */
  readonly minor: Minor;
  /** Members of members too. */
  readonly recursive?: boolean;
}
