import type { JsonObject } from '../../src/base/json.ts';
import { resourceOf } from '../../src/kube/resources.ts';
import { NODE_USER_PREFIX, NODES_GROUP_NAME } from '../../src/kube/well-known.ts';
import type { UserInfo } from './authenticate.ts';
import { memberOf, textOf } from './members.ts';
import { ruleAllows, type Verdict } from './rbac.ts';
import type { RequestInfo, ResourceRequest } from './request-info.ts';
import type { Store } from './store.ts';

const READ = ['get', 'list', 'watch'];
const NODE_RULES: readonly JsonObject[] = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews', 'localsubjectaccessreviews'], verbs: ['create'] },
  { apiGroups: [''], resources: ['services'], verbs: READ },
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'update', 'patch'] },
  { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', ...READ] },
  { apiGroups: ['storage.k8s.io'], resources: ['csidrivers'], verbs: READ },
  { apiGroups: ['storage.k8s.io'], resources: ['csinodes'], verbs: ['get', 'create', 'update', 'patch', 'delete'] },
  { apiGroups: ['node.k8s.io'], resources: ['runtimeclasses'], verbs: READ },
];

/** The node name of a user: null for other users, empty for a node user without a name. */
export function nodeNameOf(user: UserInfo): string | null {
  return user.name.startsWith(NODE_USER_PREFIX) && user.groups.includes(NODES_GROUP_NAME) ? user.name.slice(NODE_USER_PREFIX.length) : null;
}

/**
 * The permissions of a kubelet as a node, in addition to RBAC. Access to a ConfigMap depends only on the
 * Node's dynamic configuration, not on pods. Pods are selected as with the feature AuthorizeNodeWithSelectors.
 * @returns null when the user is not a node
 * @see kubernetes/kubernetes plugin/pkg/auth/authorizer/node (1.36)
 */
export function nodeAllows(store: Store, user: UserInfo, request: RequestInfo): Verdict | null {
  const node = nodeNameOf(user);
  if (node === null) return null;
  if (node === '') return refuse(`unknown node for user ${JSON.stringify(user.name)}`);
  if (request.kind === 'path') return refuse('');
  switch (request.group === '' ? request.resource : `${request.resource}.${request.group}`) {
    case 'nodes':
      return onNodes(node, request);
    case 'pods':
      return onPods(store, node, request);
    case 'leases.coordination.k8s.io':
      return onLeases(node, request);
    case 'configmaps':
      return onConfigMaps(store, node, request);
    case 'secrets':
    case 'serviceaccounts':
      return refuse(`no relationship found between node '${node}' and this object`);
    default:
      return NODE_RULES.some((rule) => ruleAllows(rule, request)) ? { allowed: true } : refuse('');
  }
}

function onNodes(node: string, { verb, name, subresource }: ResourceRequest): Verdict {
  const writes = subresource === 'status' ? ['update', 'patch'] : subresource === '' ? ['create', 'update', 'patch'] : [];
  if (writes.includes(verb)) return { allowed: true };
  if (subresource !== '' || !READ.includes(verb)) return refuse('');
  if (name === node) return { allowed: true };
  return refuse(
    name === ''
      ? `node '${node}' cannot read all nodes, only its own Node object`
      : `node '${node}' cannot read '${name}', only its own Node object`,
  );
}

function onPods(store: Store, node: string, { verb, name, namespace, subresource, query }: ResourceRequest): Verdict {
  // NodeRestriction limits these writes to pods of the node.
  const writes = subresource === 'status' ? ['update', 'patch'] : subresource === '' ? ['create', 'delete'] : [];
  if (writes.includes(verb)) return { allowed: true };
  if (subresource !== '' || !READ.includes(verb)) return refuse('');
  if (verb !== 'get' && selectsNode(query.get('fieldSelector') ?? '', node)) return { allowed: true };
  if (name === '') {
    return refuse(verb === 'get' ? 'No Object name found' : 'can only list/watch pods with spec.nodeName field selector');
  }
  const pods = resourceOf('v1', 'Pod');
  const pod = pods && store.get(pods, namespace, name);
  const isBound = textOf(memberOf(pod ?? undefined, 'spec'), 'nodeName') === node;
  return isBound ? { allowed: true } : refuse(`no relationship found between node '${node}' and this object`);
}

function selectsNode(fieldSelector: string, node: string): boolean {
  return /(?:^|,)spec\.nodeName==?([^,=\\]+)(?:,|$)/.exec(fieldSelector)?.[1] === node;
}

function onLeases(node: string, { verb, name, namespace }: ResourceRequest): Verdict {
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb)) {
    return refuse('can only get, create, update, patch, or delete a node lease');
  }
  if (namespace !== 'kube-node-lease') return refuse('can only access leases in the "kube-node-lease" system namespace');
  if (verb !== 'create' && name !== node) return refuse('can only access node lease with the same name as the requesting node');
  return { allowed: true };
}

function onConfigMaps(store: Store, node: string, { verb, name, namespace, subresource }: ResourceRequest): Verdict {
  if (!READ.includes(verb)) return refuse('can only read resources of this type');
  if (subresource !== '') return refuse('cannot read subresource');
  if (namespace === '') return refuse('can only read namespaced object of this type');
  if (name === '') return refuse('No Object name found');
  const nodes = resourceOf('v1', 'Node');
  const spec = memberOf((nodes && store.get(nodes, '', node)) ?? undefined, 'spec');
  const source = memberOf(memberOf(spec, 'configSource'), 'configMap');
  const referred = textOf(source, 'namespace') === namespace && textOf(source, 'name') === name;
  return referred ? { allowed: true } : refuse(`no relationship found between node '${node}' and this object`);
}

function refuse(reason: string): Verdict {
  return { allowed: false, reason };
}
