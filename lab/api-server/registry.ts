import { randomUUID } from 'node:crypto';
import { type Json, type JsonObject, jsonEqual } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import { KUBE_PUBLIC, KUBE_SYSTEM } from '../../src/kube/well-known.ts';
import type { UserInfo } from './authenticate.ts';
import { servedTypes } from './custom-resources.ts';
import { decodeObject, decodePatched } from './decode.ts';
import { rulesOf, selectableFields } from './kind-rules.ts';
import type { FeatureGates, WriteContext } from './kinds/kind.ts';
import { listOf, type PageQuery, pageOf } from './list-pages.ts';
import { memberOf, withMember, withMetadata } from './members.ts';
import { restrictNode } from './node-restriction.ts';
import {
  frozenMetadataCauses,
  hasFinalizers,
  keepSystemMetadata,
  metadataCauses,
  nameObject,
  refuseOtherNamespace,
} from './object-metadata.ts';
import { applyPatch, type PatchType } from './patch.ts';
import { parseFieldSelector, readLabelSelector, type Selector } from './selectors.ts';
import {
  alreadyExists,
  badRequest,
  type Cause,
  conflict,
  forbidden,
  invalid,
  invalidValue,
  notFound,
  StatusError,
  versionTooLarge,
} from './status.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamp.ts';

/** An object by namespace and name; `namespace` is empty for cluster-scoped kinds. */
export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

export interface WriteOptions {
  readonly user: UserInfo;
  /** The object is validated but not stored. */
  readonly dryRun?: boolean;
  /** Empty for the object itself. */
  readonly subresource?: string;
  /** Unknown members are rejected. */
  readonly strict?: boolean;
}

export interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/**
 * The rules of the API on top of a store: the view of a client that reads and writes objects. Every rejection
 * is a StatusError.
 */
export interface Registry {
  get(type: ResourceType, at: ObjectKey): KubeObject;
  /** A List object; without `namespace` of all namespaces. */
  list(type: ResourceType, namespace: string, query: PageQuery): JsonObject;
  /** The selector of a list or a watch. */
  selector(type: ResourceType, query: PageQuery): Selector;
  create(type: ResourceType, namespace: string, body: Json, options: WriteOptions): KubeObject;
  update(type: ResourceType, at: ObjectKey, body: Json, options: WriteOptions): { readonly object: KubeObject; readonly created: boolean };
  patch(type: ResourceType, at: ObjectKey, patchType: PatchType, patch: Json, options: WriteOptions): KubeObject;
  /** Returns the object if the kind does so or finalizers delay the deletion, else a Status. */
  delete(type: ResourceType, at: ObjectKey, deletion: DeleteOptions, options: WriteOptions): JsonObject;
  /** A List of the deleted objects. */
  deleteCollection(type: ResourceType, namespace: string, query: PageQuery, options: WriteOptions): JsonObject;
}

export interface RegistryOptions {
  readonly store: Store;
  readonly now: () => Date;
  readonly gates: FeatureGates;
}

const NAMESPACES = resourceOf('v1', 'Namespace') as ResourceType;
const PROTECTED_NAMESPACES = ['default', KUBE_SYSTEM, KUBE_PUBLIC];

/** @see k8s.io/apiserver pkg/registry/generic/registry/store.go, pkg/registry/rest (1.36) */
export function createRegistry(server: RegistryOptions): Registry {
  const { store } = server;
  return {
    get: (type, at) => find(store, type, at),
    selector: selectorOf,
    list: (type, namespace, query) => pageOf(type, matching(store, type, namespace, query), query, store),
    create: (...request) => create(server, ...request),
    update: (...request) => update(server, ...request),
    patch: (...request) => patch(server, ...request),
    delete: (...request) => remove(server, ...request),
    deleteCollection: (type, namespace, query, options) => {
      const doomed = matching(store, type, namespace, query);
      const resourceVersion = String(store.revision());
      for (const { metadata } of doomed) remove(server, type, { namespace: metadata.namespace ?? '', name: metadata.name }, {}, options);
      return listOf(type, doomed, { resourceVersion });
    },
  };
}

function find(store: Store, type: ResourceType, at: ObjectKey): KubeObject {
  const object = store.get(type, at.namespace, at.name);
  if (object === null) throw notFound(type, at.name);
  return object;
}

function matching(store: Store, type: ResourceType, namespace: string, query: PageQuery): readonly KubeObject[] {
  return store.list(type, namespace === '' ? undefined : namespace).filter(selectorOf(type, query));
}

function contextOf({ now, gates }: RegistryOptions, { user, subresource = '' }: WriteOptions): WriteContext {
  return { now: now(), user, gates, subresource };
}

function create(server: RegistryOptions, ...[type, namespace, body, options]: Parameters<Registry['create']>): KubeObject {
  const { store } = server;
  const decoded = decodeStrictly(type, body, options);
  const named = nameObject(type, namespace, decoded);
  requireNamespace(store, type, namespace);
  // kubeadm sends "0", which means unset.
  if (Number(named.metadata.resourceVersion ?? 0) !== 0)
    throw new StatusError(500, 'resourceVersion should not be set on objects to be created');
  const subresource = options.subresource ?? '';
  restrictNode(store, options.user, { type, name: named.metadata.name, object: named, old: null, subresource });
  const context = contextOf(server, options);
  const { prepareCreate, validate, generation } = rulesOf(type);
  const fresh = withMetadata(named, {
    uid: randomUUID(),
    creationTimestamp: timestamp(context.now),
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    ...(generation ? { generation: 1 } : {}),
  });
  const object = prepareCreate?.(fresh, context) ?? fresh;
  refuseInvalid(type, object, [...metadataCauses(type, object), ...(validate?.(object, null, context) ?? [])]);
  if (store.get(type, namespace, object.metadata.name)) throw alreadyExists(type, object.metadata.name);
  return options.dryRun ? object : store.put(type, object);
}

function requireNamespace(store: Store, type: ResourceType, name: string): void {
  if (type.namespaced && store.get(NAMESPACES, '', name) === null) throw notFound(NAMESPACES, name);
}

function update(server: RegistryOptions, ...[type, at, body, options]: Parameters<Registry['update']>): ReturnType<Registry['update']> {
  const { store } = server;
  const desired = decodeStrictly(type, body, options);
  const { name } = desired.metadata;
  if (name === '') throw badRequest(`the name of the object (${at.name} based on URL) was undeterminable: name must be provided`);
  if (name !== at.name) throw badRequest(`the name of the object (${name}) does not match the name on the URL (${at.name})`);
  refuseOtherNamespace(type, at.namespace, desired);
  const rules = rulesOf(type);
  const old = store.get(type, at.namespace, at.name);
  if (old === null) {
    if (!rules.createOnUpdate || options.subresource) throw notFound(type, at.name);
    return { object: create(server, type, at.namespace, withMetadata(desired, { resourceVersion: undefined }), options), created: true };
  }
  if (desired.metadata.uid && desired.metadata.uid !== old.metadata.uid) throw conflict(type, at.name, uidMismatch(type, at, desired, old));
  const version = desired.metadata.resourceVersion;
  if (version === undefined && rules.needsVersion) throw versionMissing(type, at.name);
  refuseStale(type, at.name, version, old);
  return { object: replace(server, type, { old, desired, options }), created: false };
}

function patch(server: RegistryOptions, ...[type, at, patchType, body, options]: Parameters<Registry['patch']>): KubeObject {
  const old = find(server.store, type, at);
  const patched = applyPatch(type, old, patchType, body);
  const desired = decodePatched(type, patched);
  if ('why' in desired) {
    const why = invalidValue('patch', JSON.stringify(patched), String(desired.why));
    throw invalid({ group: '', kind: '' }, '', [why]);
  }
  const { name, resourceVersion } = desired.metadata;
  if (name !== at.name) throw badRequest(`the name of the object (${name}) does not match the name on the URL (${at.name})`);
  refuseOtherNamespace(type, at.namespace, desired);
  refuseStale(type, at.name, resourceVersion, old);
  return replace(server, type, { old, desired, options });
}

/** Validates and stores the result of an update or patch of `old`. */
function replace(
  server: RegistryOptions,
  type: ResourceType,
  { old, desired, options }: { readonly old: KubeObject; readonly desired: KubeObject; readonly options: WriteOptions },
): KubeObject {
  const { store } = server;
  const context = contextOf(server, options);
  const { prepareUpdate, validate, generation } = rulesOf(type);
  const kept = keepSystemMetadata(desired, old);
  restrictNode(store, options.user, { type, name: old.metadata.name, object: kept, old, subresource: context.subresource });
  const prepared = prepareUpdate?.(kept, old, context) ?? keepUnwrittenParts(kept, old, context.subresource);
  const object =
    generation && specChanged(prepared, old) ? withMetadata(prepared, { generation: Number(old.metadata.generation ?? 0) + 1 }) : prepared;
  refuseInvalid(type, object, [
    ...frozenMetadataCauses(desired, old),
    ...metadataCauses(type, object),
    ...(validate?.(object, old, context) ?? []),
  ]);
  if (options.dryRun) return object;
  if (object.metadata.deletionTimestamp && !hasFinalizers(object)) {
    store.remove(type, object.metadata.namespace ?? '', object.metadata.name);
    return object;
  }
  return store.put(type, object);
}

function remove(server: RegistryOptions, ...[type, at, { preconditions }, options]: Parameters<Registry['delete']>): JsonObject {
  const { store, now } = server;
  const old = find(store, type, at);
  requireUnchanged(type, old, preconditions);
  restrictNode(store, options.user, { type, name: at.name, object: null, old, subresource: '' });
  if (type === NAMESPACES) return removeNamespace(server, old, options);
  if (hasFinalizers(old)) {
    const waiting = withMetadata(old, {
      deletionTimestamp: old.metadata.deletionTimestamp ?? timestamp(now()),
      deletionGracePeriodSeconds: 0,
    });
    return options.dryRun ? waiting : store.put(type, waiting);
  }
  const removed = options.dryRun ? old : (store.remove(type, at.namespace, at.name) ?? old);
  return rulesOf(type).returnsDeleted ? removed : deletedStatus(type, removed);
}

/** The preconditions of a deletion. */
function requireUnchanged(type: ResourceType, old: KubeObject, preconditions: DeleteOptions['preconditions']): void {
  const kind = type.group === '' ? type.kind : `${type.kind}.${type.group}`;
  const { uid, resourceVersion } = old.metadata;
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    const why = `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`;
    throw conflict(type, old.metadata.name, why, kind);
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    const why = `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`;
    throw conflict(type, old.metadata.name, why, kind);
  }
}

/** The double has no namespace controller, so the objects of the namespace are deleted at once. */
function removeNamespace({ store, now }: RegistryOptions, namespace: KubeObject, options: WriteOptions): JsonObject {
  const { name } = namespace.metadata;
  if (PROTECTED_NAMESPACES.includes(name)) throw forbidden(NAMESPACES, name, 'this namespace may not be deleted');
  const terminating: KubeObject = {
    ...withMetadata(namespace, { deletionTimestamp: timestamp(now()) }),
    status: { ...memberOf(namespace, 'status'), phase: 'Terminating' },
  };
  if (options.dryRun) return terminating;
  const answer = store.put(NAMESPACES, terminating);
  for (const type of servedTypes(store).filter((each) => each.namespaced)) {
    for (const object of store.list(type, name)) store.remove(type, name, object.metadata.name);
  }
  store.remove(NAMESPACES, '', name);
  return answer;
}

function selectorOf(type: ResourceType, { fieldSelector = '', labelSelector = '' }: PageQuery): Selector {
  const byLabel = labelSelector === '' ? null : readLabelSelector(labelSelector);
  const byField = fieldSelector === '' ? null : parseFieldSelector(fieldSelector, selectableFields(type));
  return (object) => (byLabel?.(object) ?? true) && (byField?.(object) ?? true);
}

function decodeStrictly(type: ResourceType, body: Json, { strict }: WriteOptions): KubeObject {
  const { object, unknown } = decodeObject(type, body);
  if (!strict || unknown.length === 0) return object;
  const reported = unknown.map((path) => `unknown field "${path}"`).join(', ');
  throw badRequest(`${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${reported}`);
}

function refuseStale(type: ResourceType, name: string, version: string | undefined, old: KubeObject): void {
  if (version === undefined || version === old.metadata.resourceVersion) return;
  if (!/^\d+$/.test(version)) throw new StatusError(500, `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`);
  throw conflict(type, name, 'the object has been modified; please apply your changes to the latest version and try again');
}

/** For kinds whose updates must contain a resourceVersion. */
function versionMissing(type: ResourceType, name: string): StatusError {
  const cause = invalidValue('metadata.resourceVersion', 0, 'must be specified for an update');
  return invalid({ group: type.group, kind: type.plural }, name, [cause]);
}

function uidMismatch(type: ResourceType, at: ObjectKey, desired: KubeObject, old: KubeObject): string {
  const key = ['/registry', type.plural, ...(at.namespace === '' ? [] : [at.namespace]), at.name].join('/');
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${desired.metadata.uid}, UID in object meta: ${old.metadata.uid}`;
}

function refuseInvalid(type: ResourceType, object: KubeObject, causes: readonly Cause[]): void {
  if (causes.length > 0) throw invalid(type, object.metadata.name, causes);
}

/** `/status` changes only the status, the main resource all other members. */
function keepUnwrittenParts(desired: KubeObject, old: KubeObject, subresource: string): KubeObject {
  if (subresource === 'status') return withMember({ ...old, metadata: desired.metadata }, 'status', desired.status);
  return withMember(desired, 'status', old.status);
}

function specChanged(object: KubeObject, old: KubeObject): boolean {
  return !jsonEqual(object.spec, old.spec) || object.metadata.deletionTimestamp !== old.metadata.deletionTimestamp;
}

function deletedStatus(type: ResourceType, { metadata }: KubeObject): JsonObject {
  const details = {
    name: metadata.name,
    ...(type.group === '' ? {} : { group: type.group }),
    kind: type.plural,
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}

/**
 * Rejects a read at a resourceVersion that the store has not seen yet.
 * @throws StatusError 504, or 400 for an invalid number
 */
export function requireKnownResourceVersion(store: Store, asked: string | null): void {
  if (asked === null || asked === '') return;
  if (!/^\d+$/.test(asked)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(asked)}: invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(asked)}: ${why}`);
  }
  if (Number(asked) > store.revision()) throw versionTooLarge(asked, store.revision());
}
