/** The lists to merge and their keys. By default objects are merged, lists are replaced. */
export interface PatchSchema {
  readonly fields: ReadonlyMap<string, PatchField>;
}

export interface PatchField {
  /** Schema of the object, or of the items of the list. */
  readonly schema: PatchSchema;
  readonly strategy?: 'merge';
  /** The member that identifies the items of a merged list. Lists of scalars have none: they are merged as sets. */
  readonly mergeKey?: string;
}

/** A type with default rules only, for unknown kinds and fields. */
export const OPEN_SCHEMA: PatchSchema = { fields: new Map() };

export const KUBELET_PATCH_SCHEMA: PatchSchema = OPEN_SCHEMA;

/**
 * The merge keys of a built-in API kind; for kinds not listed, only those of `metadata` (ConfigMap, Secret,
 * RBAC kinds, Lease, Event and CertificateSigningRequest have no others). `taints` of a Node and
 * `tolerations` of a Pod are replaced as a whole.
 * @see k8s.io/api (1.36): struct tags patchStrategy and patchMergeKey
 */
export function patchSchemaOf(kind: string): PatchSchema {
  return BY_KIND.get(kind) ?? ANY_OBJECT;
}

const set: PatchField = { schema: OPEN_SCHEMA, strategy: 'merge' };
const metadata = plain({ ownerReferences: keyed('uid'), finalizers: set });
const conditions = keyed('type');
const volumeMounts = keyed('mountPath');

const containers = keyed('name', {
  ports: keyed('containerPort'),
  env: keyed('name'),
  volumeMounts,
  volumeDevices: keyed('devicePath'),
});

const podSpec = plain({
  volumes: keyed('name', { ephemeral: plain({ volumeClaimTemplate: plain({ metadata }) }) }),
  initContainers: containers,
  containers,
  ephemeralContainers: containers,
  imagePullSecrets: keyed('name'),
  hostAliases: keyed('ip'),
  topologySpreadConstraints: keyed('topologyKey'),
  schedulingGates: keyed('name'),
  resourceClaims: keyed('name'),
});

const containerStatuses = plain({ volumeMounts, allocatedResourcesStatus: keyed('name') });
const podStatus = plain({
  conditions,
  hostIPs: keyed('ip'),
  podIPs: keyed('ip'),
  initContainerStatuses: containerStatuses,
  containerStatuses,
  ephemeralContainerStatuses: containerStatuses,
  resourceClaimStatuses: keyed('name'),
});

const workload = schema({ metadata, spec: plain({ template: plain({ metadata, spec: podSpec }) }), status: plain({ conditions }) });

const ANY_OBJECT = schema({ metadata });
const BY_KIND: ReadonlyMap<string, PatchSchema> = new Map([
  ['Pod', schema({ metadata, spec: podSpec, status: podStatus })],
  ['Node', schema({ metadata, spec: plain({ podCIDRs: set }), status: plain({ conditions, addresses: keyed('type') }) })],
  ['ServiceAccount', schema({ metadata, secrets: keyed('name') })],
  ['Service', schema({ metadata, spec: plain({ ports: keyed('port') }), status: plain({ conditions }) })],
  ['Namespace', schema({ metadata, status: plain({ conditions }) })],
  ['Deployment', workload],
  ['DaemonSet', workload],
]);

function schema(fields: Readonly<Record<string, PatchField>>): PatchSchema {
  return { fields: new Map(Object.entries(fields)) };
}

/** An object, or a replaced list, with rules for its fields. */
function plain(fields: Readonly<Record<string, PatchField>>): PatchField {
  return { schema: schema(fields) };
}

function keyed(mergeKey: string, fields: Readonly<Record<string, PatchField>> = {}): PatchField {
  return { schema: schema(fields), strategy: 'merge', mergeKey };
}
