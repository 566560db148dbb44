import { isJsonObject, type JsonObject, jsonEqual } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import type { UserInfo } from './authenticate.ts';
import { itemsOf, memberOf, textOf } from './members.ts';
import { nodeNameOf } from './node-authorizer.ts';
import { forbidden, goQuote, notFound } from './status.ts';
import type { Store } from './store.ts';

/** Labels of the kubernetes.io namespaces that a kubelet may set on its own Node. */
const KUBELET_LABELS = [
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
];
const KUBELET_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/** A write as admission receives it; `object` is null on delete, `old` on create. */
export interface Write {
  readonly type: ResourceType;
  readonly name: string;
  readonly object: KubeObject | null;
  readonly old: KubeObject | null;
  /** Empty for the object itself. */
  readonly subresource: string;
}

/**
 * Admission plugin NodeRestriction: a node may change only its own Node and Lease, but no fields that affect
 * pod scheduling. It may create mirror pods, delete pods and report their status, only for pods bound to itself.
 * @throws StatusError 403; 404 if the Node of a new mirror pod does not exist
 * @see kubernetes/kubernetes plugin/pkg/admission/noderestriction (1.36)
 */
export function restrictNode(store: Store, user: UserInfo, write: Write): void {
  const node = nodeNameOf(user);
  if (node === null) return;
  const why = PROBLEMS[write.type.plural]?.(node, write, store) ?? null;
  if (why !== null) throw forbidden(write.type, write.name, why);
}

const PROBLEMS: Readonly<Record<string, (node: string, write: Write, store: Store) => string | null>> = {
  leases: leaseProblem,
  nodes: nodeProblem,
  pods: podProblem,
};

function podProblem(node: string, { object, old, subresource }: Write, store: Store): string | null {
  const subject = `node ${goQuote(node)}`;
  const isOwn = (pod: KubeObject): boolean => textOf(memberOf(pod, 'spec'), 'nodeName') === node;
  if (old === null) return object === null ? null : mirrorPodProblem(node, object, store);
  if (object === null) return isOwn(old) ? null : `${subject} can only delete pods with spec.nodeName set to itself`;
  if (subresource !== 'status') return `unexpected operation "UPDATE", ${subject} can only create and delete mirror pods`;
  if (!isOwn(old)) return `${subject} can only update pod status for pods with spec.nodeName set to itself`;
  return jsonEqual(object.metadata.labels ?? {}, old.metadata.labels ?? {}) ? null : `${subject} cannot update labels through pod status`;
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const NODES = resourceOf('v1', 'Node') as ResourceType;

function mirrorPodProblem(node: string, pod: KubeObject, store: Store): string | null {
  const subject = `node ${goQuote(node)}`;
  const spec = memberOf(pod, 'spec');
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] === undefined)
    return `pod does not have ${goQuote(MIRROR_ANNOTATION)} annotation, ${subject} can only create mirror pods`;
  if (textOf(spec, 'nodeName') !== node) return `${subject} can only create pods with spec.nodeName set to itself`;
  const [owner, ...more] = itemsOf(pod.metadata, 'ownerReferences');
  if (more.length > 0) return `${subject} can only create pods with a single owner reference set to itself`;
  if (owner?.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== node)
    return `${subject} can only create pods with an owner reference set to itself`;
  if (owner.controller !== true) return `${subject} can only create pods with a controller owner reference set to itself`;
  if (owner.blockOwnerDeletion === true) return `${subject} must not set blockOwnerDeletion on an owner reference`;
  const found = store.get(NODES, '', node);
  if (found === null) throw notFound(NODES, node);
  const uid = found.metadata.uid ?? '';
  if (owner.uid !== uid) return `node ${node} UID mismatch: expected ${textOf(owner, 'uid')} got ${uid}`;
  const referenced = REFERENCES.find(([, isIn]) => isIn(spec));
  return referenced === undefined ? null : `${subject} can not create pods that reference ${referenced[0]}`;
}

/** Objects that a mirror pod may not use: its node would get access to them. */
const REFERENCES: readonly (readonly [string, (spec: JsonObject) => boolean])[] = [
  ['a service account', (spec) => textOf(spec, 'serviceAccountName') !== ''],
  ['secrets', (spec) => itemsOf(spec, 'imagePullSecrets').length > 0 || usesMember(spec, ['secret', 'secretRef', 'secretKeyRef'])],
  ['configmaps', (spec) => usesMember(spec, ['configMap', 'configMapRef', 'configMapKeyRef'])],
  ['clustertrustbundles', (spec) => usesMember(spec, ['clusterTrustBundle'])],
  ['persistentvolumeclaims', (spec) => usesMember(spec, ['persistentVolumeClaim'])],
];

function usesMember(spec: JsonObject, names: readonly string[]): boolean {
  const isIn = (value: unknown): boolean =>
    Array.isArray(value)
      ? value.some(isIn)
      : isJsonObject(value) &&
        Object.entries(value).some(([name, member]) => (names.includes(name) && isJsonObject(member)) || isIn(member));
  return ['volumes', 'containers', 'initContainers', 'ephemeralContainers'].some((name) => isIn(spec[name]));
}

function leaseProblem(node: string, { name, object, old }: Write): string | null {
  const namespace = (object ?? old)?.metadata.namespace;
  if (namespace !== 'kube-node-lease') return 'can only access leases in the "kube-node-lease" system namespace';
  return name === node ? null : 'can only access node lease with the same name as the requesting node';
}

function nodeProblem(node: string, { name, object, old }: Write): string | null {
  const subject = `node ${goQuote(node)}`;
  if (name !== node) return `${subject} is not allowed to modify node ${goQuote(name)}`;
  if (object === null) return null;
  const labels = forbiddenLabels(object, old);
  const source = memberOf(object, 'spec').configSource;
  if (old === null) {
    if (source !== undefined) return `${subject} is not allowed to create pods with a non-nil configSource`;
    return labels.length === 0 ? null : `${subject} is not allowed to set the following labels: ${labels.join(', ')}`;
  }
  if (source !== undefined && !jsonEqual(source, memberOf(old, 'spec').configSource)) {
    return `${subject} is not allowed to update configSource to a new non-nil configSource`;
  }
  if (!jsonEqual(memberOf(object, 'spec').taints ?? [], memberOf(old, 'spec').taints ?? [])) {
    return `${subject} is not allowed to modify taints`;
  }
  if (!jsonEqual(object.metadata.ownerReferences ?? [], old.metadata.ownerReferences ?? [])) {
    return `${subject} is not allowed to modify ownerReferences`;
  }
  return labels.length === 0 ? null : `is not allowed to modify labels: ${labels.join(', ')}`;
}

function forbiddenLabels(object: KubeObject, old: KubeObject | null): readonly string[] {
  const [now, before] = [object.metadata.labels ?? {}, old?.metadata.labels ?? {}];
  const changed = [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((key) => now[key] !== before[key]);
  return changed.filter(isForbiddenLabel).sort();
}

function isForbiddenLabel(key: string): boolean {
  const namespace = key.includes('/') ? (key.split('/')[0] ?? '') : '';
  const within = (domain: string) => namespace === domain || namespace.endsWith(`.${domain}`);
  if (within('node-restriction.kubernetes.io')) return true;
  return (within('kubernetes.io') || within('k8s.io')) && !KUBELET_LABELS.includes(key) && !KUBELET_NAMESPACES.some(within);
}
