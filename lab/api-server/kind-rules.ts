import { jsonEqual } from '../../src/base/json.ts';
import { label, type NameRule, subdomain } from '../../src/kube/name-rules.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { customRules } from './custom-resources.ts';
import { isCustomType } from './custom-type.ts';
import { certificateSigningRequests } from './kinds/certificate-signing-request.ts';
import { configMaps } from './kinds/config-map.ts';
import { events } from './kinds/event.ts';
import type { KindRules } from './kinds/kind.ts';
import { nodes } from './kinds/node.ts';
import { clusterRoleBindings, roleBindings, roles } from './kinds/rbac.ts';
import { secrets } from './kinds/secret.ts';
import { memberOf, textOf, withMetadata } from './members.ts';
import { qualifiedResource } from './served-kinds.ts';
import { type Cause, invalidValue } from './status.ts';

/** Every Namespace has its own name as a label. */
const namespaces: KindRules = {
  name: label,
  returnsDeleted: true,
  fields: (namespace) => ({ 'status.phase': textOf(memberOf(namespace, 'status'), 'phase') }),
  prepareCreate: (namespace) => ({
    ...withMetadata(namespace, { labels: { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name } }),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
};

/** The server accepts the names of each definition at once. */
function established(definition: KubeObject): KubeObject {
  const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True' }));
  return { ...definition, status: { conditions } };
}

function unchangedData(revision: KubeObject, old: KubeObject | null): readonly Cause[] {
  return old === null || jsonEqual(revision.data, old.data) ? [] : [invalidValue('data', '', 'field is immutable')];
}

const RULES: Readonly<Record<string, KindRules>> = {
  configmaps: configMaps,
  endpoints: { members: ['subsets'], createOnUpdate: true },
  events,
  namespaces,
  nodes,
  pods: {
    returnsDeleted: true,
    fields: (pod) => ({
      'spec.nodeName': textOf(memberOf(pod, 'spec'), 'nodeName'),
      'status.phase': textOf(memberOf(pod, 'status'), 'phase'),
    }),
  },
  replicationcontrollers: { generation: true },
  secrets,
  serviceaccounts: { returnsDeleted: true, members: ['automountServiceAccountToken', 'imagePullSecrets', 'secrets'] },
  services: { returnsDeleted: true, createOnUpdate: true },
  'controllerrevisions.apps': { members: ['data', 'revision'], validate: unchangedData },
  'customresourcedefinitions.apiextensions.k8s.io': { generation: true, prepareCreate: established },
  'daemonsets.apps': { generation: true },
  'deployments.apps': { generation: true },
  'poddisruptionbudgets.policy': { generation: true },
  'replicasets.apps': { generation: true },
  'statefulsets.apps': { generation: true },
  'certificatesigningrequests.certificates.k8s.io': certificateSigningRequests,
  'leases.coordination.k8s.io': { needsVersion: true, createOnUpdate: true },
  'clusterrolebindings.rbac.authorization.k8s.io': clusterRoleBindings,
  'clusterroles.rbac.authorization.k8s.io': roles,
  'rolebindings.rbac.authorization.k8s.io': roleBindings,
  'roles.rbac.authorization.k8s.io': roles,
};

/** The rules of a kind. @see the strategies in kubernetes/kubernetes pkg/registry (1.36) */
export function rulesOf(type: ResourceType): KindRules & { readonly name: NameRule; readonly members: readonly string[] } {
  const own = isCustomType(type) ? customRules(type) : RULES[qualifiedResource(type)];
  return { name: subdomain, members: ['spec', 'status'], ...own };
}

/** The fields of this kind that a field selector may use. */
export function selectableFields(type: ResourceType): (object: KubeObject) => Readonly<Record<string, string>> {
  const more = rulesOf(type).fields ?? (() => ({}));
  return (object) => ({
    'metadata.name': object.metadata.name,
    ...(type.namespaced ? { 'metadata.namespace': object.metadata.namespace ?? '' } : {}),
    ...more(object),
  });
}
