import type { NameRule } from '../../../src/kube/name-rules.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import type { UserInfo } from '../authenticate.ts';
import type { Cause } from '../status.ts';

/** Behaviour that differs between Kubernetes versions. */
export interface FeatureGates {
  /**
   * Keeps `spec.configSource` and `status.config` of Nodes, as API servers below 1.22 do by default. Default
   * false: they are dropped.
   */
  readonly dynamicKubeletConfig: boolean;
}

/** The context of a write. */
export interface WriteContext {
  readonly now: Date;
  readonly user: UserInfo;
  readonly gates: FeatureGates;
  /** Empty for the object itself. */
  readonly subresource: string;
}

/** The behaviour of a kind beyond storage. All fields are optional. */
export interface KindRules {
  /** Default: a DNS subdomain. */
  readonly name?: NameRule;
  /**
   * Members of this kind in addition to apiVersion, kind and metadata; others are dropped. Default: spec and
   * status.
   */
  readonly members?: readonly string[];
  /** Fields for field selectors in addition to `metadata.name` and `metadata.namespace`. */
  readonly fields?: (object: KubeObject) => Readonly<Record<string, string>>;
  /** An update must contain the resourceVersion that it replaces. */
  readonly needsVersion?: boolean;
  /** PUT of an absent object creates it. */
  readonly createOnUpdate?: boolean;
  /** DELETE returns the object instead of a Status. */
  readonly returnsDeleted?: boolean;
  /** `metadata.generation` counts changes of the spec. */
  readonly generation?: boolean;
  /** Members that map strings to strings. */
  readonly stringMaps?: readonly string[];
  /** Members that map strings to base64. */
  readonly bytesMaps?: readonly string[];
  readonly prepareCreate?: (object: KubeObject, context: WriteContext) => KubeObject;
  /** Default: `/status` changes only the status, and the main resource all other members. */
  readonly prepareUpdate?: (object: KubeObject, old: KubeObject, context: WriteContext) => KubeObject;
  /** `old` is null on creation. */
  readonly validate?: (object: KubeObject, old: KubeObject | null, context: WriteContext) => readonly Cause[];
}
