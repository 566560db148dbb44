/** A kind as the API server serves it: the data for its paths. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Name in paths, e.g. `configmaps`. */
  readonly plural: string;
  readonly namespaced: boolean;
}

const inNamespace = (apiVersion: string, kind: string, plural: string): ResourceType => ({
  ...parseApiVersion(apiVersion),
  kind,
  plural,
  namespaced: true,
});
const clusterWide = (...names: Parameters<typeof inNamespace>): ResourceType => ({ ...inNamespace(...names), namespaced: false });

export const RESOURCES: readonly ResourceType[] = [
  inNamespace('v1', 'ConfigMap', 'configmaps'),
  inNamespace('v1', 'Endpoints', 'endpoints'),
  inNamespace('v1', 'Event', 'events'),
  clusterWide('v1', 'Namespace', 'namespaces'),
  clusterWide('v1', 'Node', 'nodes'),
  clusterWide('v1', 'PersistentVolume', 'persistentvolumes'),
  inNamespace('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  inNamespace('v1', 'Pod', 'pods'),
  inNamespace('v1', 'ReplicationController', 'replicationcontrollers'),
  inNamespace('v1', 'Secret', 'secrets'),
  inNamespace('v1', 'ServiceAccount', 'serviceaccounts'),
  inNamespace('v1', 'Service', 'services'),
  clusterWide('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions'),
  inNamespace('apps/v1', 'ControllerRevision', 'controllerrevisions'),
  inNamespace('apps/v1', 'DaemonSet', 'daemonsets'),
  inNamespace('apps/v1', 'Deployment', 'deployments'),
  inNamespace('apps/v1', 'ReplicaSet', 'replicasets'),
  inNamespace('apps/v1', 'StatefulSet', 'statefulsets'),
  inNamespace('batch/v1', 'Job', 'jobs'),
  clusterWide('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests'),
  inNamespace('coordination.k8s.io/v1', 'Lease', 'leases'),
  inNamespace('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  inNamespace('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  clusterWide('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'clusterrolebindings'),
  clusterWide('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles'),
  inNamespace('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'),
  inNamespace('rbac.authorization.k8s.io/v1', 'Role', 'roles'),
];

/** Kinds that are only created: the result is in the status, nothing is stored. */
export const REVIEWS: readonly ResourceType[] = [
  clusterWide('authentication.k8s.io/v1', 'SelfSubjectReview', 'selfsubjectreviews'),
  clusterWide('authentication.k8s.io/v1', 'TokenReview', 'tokenreviews'),
  clusterWide('authorization.k8s.io/v1', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews'),
  clusterWide('authorization.k8s.io/v1', 'SubjectAccessReview', 'subjectaccessreviews'),
];

export function isReview({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): boolean {
  return REVIEWS.some((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
}

const byKind: ReadonlyMap<string, ResourceType> = new Map(
  [...RESOURCES, ...REVIEWS].map((type) => [`${apiVersionOf(type)} ${type.kind}`, type]),
);

export function resourceOf(apiVersion: string, kind: string): ResourceType | undefined {
  return byKind.get(`${apiVersion} ${kind}`);
}

/** `v1`, `apps/v1`: as written in an object. */
export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** Without `name` the path of a collection, without `namespace` of all namespaces. */
export function resourcePath(
  type: ResourceType,
  at: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string | undefined } = {},
): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const namespace = type.namespaced && at.namespace !== undefined ? ['namespaces', at.namespace] : [];
  const object = at.name === undefined ? [] : [at.name, ...(at.subresource === undefined ? [] : [at.subresource])];
  return [root, ...[...namespace, type.plural, ...object].map(encodeURIComponent)].join('/');
}

/** Splits `apps/v1` into its group and version; the core group is empty. */
export function parseApiVersion(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? { group: '', version: apiVersion } : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}
