import type { ImportedHost } from '../../file/entries.ts';

/** A field that an inventory declares, and the variable that declares it. */
export interface DeclaredField {
  /** A field of KubeletConfiguration; two names for an entry of an object: `['kubeReserved', 'cpu']`. */
  readonly path: readonly [field: string, key?: string];
  /** A template if the value differs between hosts. */
  readonly value: string | number | boolean;
  readonly isTemplate: boolean;
  readonly variable: string;
}

/** The settings that an inventory of kubespray declares for the kubelets of its nodes. */
export interface DeclaredSettings {
  /** The minor version, e.g. `1.30`; null: not declared. */
  readonly kubernetesVersion: string | null;
  readonly fields: readonly DeclaredField[];
  /** Kubernetes variables that are not imported, each with the reason if one is known. */
  readonly notTaken: readonly { readonly variable: string; readonly reason: string | null }[];
}

type FieldType = 'integer' | 'boolean' | 'text';

/**
 * Variables that kubespray writes unchanged into a field. Excluded are those whose kubespray default depends
 * on other variables (`kubelet_bind_address`, `kube_resolv_conf`), and `kube_reserved`, `system_reserved`,
 * which name cgroups.
 * @see kubespray roles/kubernetes/node/templates/kubelet-config.v1beta1.yaml.j2 and defaults/main.yml
 * (46dbdd3, August 2026)
 */
const FIELDS: Readonly<Record<string, readonly [field: string, type: FieldType, key?: string]>> = {
  kubelet_max_pods: ['maxPods', 'integer'],
  kubelet_pod_pids_limit: ['podPidsLimit', 'integer'],
  kubelet_status_update_frequency: ['nodeStatusUpdateFrequency', 'text'],
  kubelet_fail_swap_on: ['failSwapOn', 'boolean'],
  kubelet_event_record_qps: ['eventRecordQPS', 'integer'],
  kubelet_rotate_certificates: ['rotateCertificates', 'boolean'],
  kubelet_rotate_server_certificates: ['serverTLSBootstrap', 'boolean'],
  kubelet_image_gc_high_threshold: ['imageGCHighThresholdPercent', 'integer'],
  kubelet_image_gc_low_threshold: ['imageGCLowThresholdPercent', 'integer'],
  kubelet_logfiles_max_nr: ['containerLogMaxFiles', 'integer'],
  kubelet_logfiles_max_size: ['containerLogMaxSize', 'text'],
  kubelet_streaming_connection_idle_timeout: ['streamingConnectionIdleTimeout', 'text'],
  kubelet_protect_kernel_defaults: ['protectKernelDefaults', 'boolean'],
  kubelet_make_iptables_util_chains: ['makeIPTablesUtilChains', 'boolean'],
  kubelet_seccomp_default: ['seccompDefault', 'boolean'],
  kubelet_cgroup_driver: ['cgroupDriver', 'text'],
  kube_cpu_reserved: ['kubeReserved', 'text', 'cpu'],
  kube_memory_reserved: ['kubeReserved', 'text', 'memory'],
  kube_ephemeral_storage_reserved: ['kubeReserved', 'text', 'ephemeral-storage'],
  kube_pid_reserved: ['kubeReserved', 'text', 'pid'],
  system_cpu_reserved: ['systemReserved', 'text', 'cpu'],
  system_memory_reserved: ['systemReserved', 'text', 'memory'],
  system_ephemeral_storage_reserved: ['systemReserved', 'text', 'ephemeral-storage'],
  system_pid_reserved: ['systemReserved', 'text', 'pid'],
};

/** Variables of kubespray that configure kubelets and the cluster. */
const ABOUT_KUBERNETES =
  /^(?:kube_|kubelet_|kubeadm_|system_|eviction_|node_labels$|node_taints$|cluster_name$|dns_domain$|container_manager$)/;
/** Excluded: these variables name hosts, and hosts are imported from the groups. */
const NO_SETTING = /^kube_(?:control_plane|node|master)s?$/;

/**
 * The settings that the variables of an inventory declare for its nodes. Only values that apply to all nodes
 * are imported; a field whose values differ becomes a template if every node declares the field.
 * @param nodes the hosts of the inventory that are nodes
 * @param allowsTemplates whether differing values can be imported as templates
 */
export function declaredSettings(
  nodes: readonly ImportedHost[],
  { allowsTemplates }: { readonly allowsTemplates: boolean },
): DeclaredSettings {
  const taken = new Set<string>();
  const reasons = new Map<string, string>();
  const fields = Object.entries(FIELDS).flatMap(([variable, [field, type, key]]): readonly DeclaredField[] => {
    const found = fieldOf(nodes, variable, { type, allowsTemplates });
    if (found === null) return [];
    if ('reason' in found) {
      reasons.set(variable, found.reason);
      return [];
    }
    taken.add(variable);
    return [{ path: key === undefined ? [field] : [field, key], variable, ...found }];
  });
  const domain = clusterDomainOf(nodes);
  if (domain !== null) {
    fields.push({ path: ['clusterDomain'], value: domain.value, isTemplate: false, variable: domain.variable });
    for (const variable of ['dns_domain', 'cluster_name']) taken.add(variable);
  }
  const version = /^v?([0-9]+\.[0-9]+)(?:\.|$)/.exec(String(sharedValue(nodes, 'kube_version') ?? ''))?.[1] ?? null;
  if (version !== null) taken.add('kube_version');
  const names = new Set(nodes.flatMap(({ written, unread = [] }) => [...Object.keys(written.variables ?? {}), ...unread]));
  const notTaken = [...names]
    .filter((name) => ABOUT_KUBERNETES.test(name) && !NO_SETTING.test(name) && !taken.has(name))
    .toSorted()
    .map((variable) => ({ variable, reason: reasons.get(variable) ?? null }));
  return { kubernetesVersion: version, fields, notTaken };
}

type Value = string | number | boolean | undefined;

function valuesOf(nodes: readonly ImportedHost[], variable: string): readonly Value[] {
  return nodes.map(({ written }) => written.variables?.[variable]);
}

/** Undefined: no node declares the variable; null: the values differ between nodes. */
function sharedValue(nodes: readonly ImportedHost[], variable: string): Value | null {
  const values = new Set(valuesOf(nodes, variable));
  const [first] = values;
  return values.size > 1 ? null : first;
}

function fieldOf(
  nodes: readonly ImportedHost[],
  variable: string,
  { type, allowsTemplates }: { readonly type: FieldType; readonly allowsTemplates: boolean },
): Pick<DeclaredField, 'value' | 'isTemplate'> | { readonly reason: string } | null {
  const values = valuesOf(nodes, variable);
  const declared = values.filter((value) => value !== undefined);
  const [first] = declared;
  if (first === undefined) return null;
  if (declared.length < nodes.length) return { reason: `declared for ${declared.length} of ${nodes.length} nodes` };
  const read = values.map((value) => readValue(value, type));
  if (read.includes(null)) return { reason: `not a plain ${type === 'text' ? 'string' : type}` };
  if (new Set(read).size === 1) return { value: read[0] as string | number | boolean, isTemplate: false };
  if (!allowsTemplates) return { reason: 'differs between nodes' };
  // A template keeps the type in the inventory.
  return read.every((value, i) => value === values[i])
    ? { value: `{{ ${variable} }}`, isTemplate: true }
    : { reason: 'differs between nodes, in part as a string' };
}

function readValue(value: Value, type: FieldType): string | number | boolean | null {
  const text = String(value).trim();
  if (type === 'integer') return /^-?[0-9]{1,9}$/.test(text) ? Number(text) : null;
  if (type === 'boolean') return /^(?:true|yes|on)$/i.test(text) ? true : /^(?:false|no|off)$/i.test(text) ? false : null;
  return text === '' || text.includes('{{') || text.includes('{%') ? null : text;
}

/** kubespray's `dns_domain` is `{{ cluster_name }}` unless declared. */
function clusterDomainOf(nodes: readonly ImportedHost[]): { readonly value: string; readonly variable: string } | null {
  const domain = sharedValue(nodes, 'dns_domain');
  if (domain === null) return null;
  const isDefault = domain === undefined || /^\{\{ *cluster_name *\}\}$/.test(String(domain));
  const variable = isDefault ? 'cluster_name' : 'dns_domain';
  const value = readValue(sharedValue(nodes, variable) ?? '', 'text');
  return typeof value === 'string' ? { value, variable } : null;
}
