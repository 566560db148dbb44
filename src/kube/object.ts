import type { JsonObject } from '../base/json.ts';

/** Identifies an API object. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

/** Any API object, as JSON. */
export interface KubeObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & JsonObject;
}
