import { isJsonObject, type JsonObject } from '../base/json.ts';

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

/** `data` of a ConfigMap; empty for another object or none. */
export function configMapData(object: KubeObject | null): Readonly<Record<string, string>> {
  const entries = isJsonObject(object?.data) ? Object.entries(object.data) : [];
  return Object.fromEntries(entries.flatMap(([key, text]) => (typeof text === 'string' ? [[key, text]] : [])));
}

export function refOf({ apiVersion, kind, metadata }: KubeObject): ObjectRef {
  return { apiVersion, kind, name: metadata.name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) };
}

/** `ConfigMap kube-system/kubelet-config`, `Node worker-1`: for messages. */
export function describeRef({ kind, namespace, name }: Pick<ObjectRef, 'kind' | 'namespace' | 'name'>): string {
  // A review has no name.
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name ?? ''}`.trimEnd();
}

/** `ConfigMaps in namespace "kube-system"`, `Nodes`: a collection in messages. */
export function describeCollection({ kind, namespace }: { readonly kind: string; readonly namespace?: string | undefined }): string {
  return `${kind}s${namespace === undefined ? '' : ` in namespace "${namespace}"`}`;
}

/** The known part of an object whose removal the server confirmed without returning it. */
export function removedObject({ apiVersion, kind, name, namespace }: ObjectRef, uid: string | undefined): KubeObject {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), ...(uid === undefined ? {} : { uid }) };
  return { apiVersion, kind, metadata };
}

/** An owner reference: the garbage collector deletes the object with its owner. */
export function ownerReference({ apiVersion, kind, name }: ObjectRef, uid: string): JsonObject {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
