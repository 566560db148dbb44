/** A kind as the API server serves it: the data for its paths and for discovery. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Name in paths, e.g. `configmaps`. */
  readonly plural: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly subresources: readonly string[];
}

type Extras = Partial<Pick<ResourceType, 'shortNames' | 'subresources'>>;

const inNamespace = (apiVersion: string, kind: string, plural: string, extras: Extras = {}) =>
  resourceType(apiVersion, kind, plural, true, extras);
const clusterWide = (apiVersion: string, kind: string, plural: string, extras: Extras = {}) =>
  resourceType(apiVersion, kind, plural, false, extras);

/** The kinds that the program uses. */
export const RESOURCES: readonly ResourceType[] = [
  inNamespace('v1', 'ConfigMap', 'configmaps', { shortNames: ['cm'] }),
  inNamespace('v1', 'Endpoints', 'endpoints', { shortNames: ['ep'] }),
  inNamespace('v1', 'Event', 'events', { shortNames: ['ev'] }),
  clusterWide('v1', 'Namespace', 'namespaces', { shortNames: ['ns'], subresources: ['finalize', 'status'] }),
  clusterWide('v1', 'Node', 'nodes', { shortNames: ['no'], subresources: ['status'] }),
  inNamespace('v1', 'Pod', 'pods', { shortNames: ['po'], subresources: ['status'] }),
  inNamespace('v1', 'Secret', 'secrets'),
  inNamespace('v1', 'ServiceAccount', 'serviceaccounts', { shortNames: ['sa'], subresources: ['token'] }),
  inNamespace('v1', 'Service', 'services', { shortNames: ['svc'], subresources: ['status'] }),
  inNamespace('apps/v1', 'DaemonSet', 'daemonsets', { shortNames: ['ds'], subresources: ['status'] }),
  inNamespace('apps/v1', 'Deployment', 'deployments', { shortNames: ['deploy'], subresources: ['status'] }),
  inNamespace('batch/v1', 'Job', 'jobs', { subresources: ['status'] }),
  clusterWide('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests', {
    shortNames: ['csr'],
    subresources: ['approval', 'status'],
  }),
  inNamespace('coordination.k8s.io/v1', 'Lease', 'leases'),
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

const byKind: ReadonlyMap<string, ResourceType> = new Map(
  [...RESOURCES, ...REVIEWS].map((type) => [`${apiVersionOf(type)} ${type.kind}`, type]),
);

/** The type of a kind, or undefined when it is not built in. */
export function resourceOf(apiVersion: string, kind: string): ResourceType | undefined {
  return byKind.get(`${apiVersion} ${kind}`);
}

/** `v1`, `apps/v1`: as written in an object. */
export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** `configmaps`, `leases.coordination.k8s.io`: the API server's name of a resource in messages. */
export function qualifiedResource(type: Pick<ResourceType, 'group' | 'plural'>): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`;
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

function resourceType(apiVersion: string, kind: string, plural: string, namespaced: boolean, extras: Extras): ResourceType {
  return {
    ...parseApiVersion(apiVersion),
    kind,
    plural,
    namespaced,
    shortNames: extras.shortNames ?? [],
    subresources: extras.subresources ?? [],
  };
}
