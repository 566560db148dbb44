import { jsonEqual } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { ResourceType } from '../../kube/resources.ts';
import type { UserInfo } from './authenticate.ts';
import { memberOf } from './members.ts';
import { nodeNameOf } from './node-authorizer.ts';
import { forbidden, goQuote } from './status.ts';

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
}

/**
 * Admission plugin NodeRestriction: a node may change only its own Node and Lease, but no fields that affect
 * pod scheduling.
 * @throws StatusError 403
 * @see kubernetes/kubernetes plugin/pkg/admission/noderestriction (1.36)
 */
export function restrictNode(user: UserInfo, write: Write): void {
  const node = nodeNameOf(user);
  if (node === null) return;
  const why = write.type.plural === 'nodes' ? nodeProblem(node, write) : write.type.plural === 'leases' ? leaseProblem(node, write) : null;
  if (why !== null) throw forbidden(write.type, write.name, why);
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
