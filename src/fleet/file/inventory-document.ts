import type { Json, JsonObject } from '../../base/json.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import { printable } from '../../base/text/printable.ts';
import { sourceToExactJson } from '../../codec/source.ts';
import { formatTaint } from '../../kube/taint.ts';
import { argValue } from '../../kubeadm/config/model.ts';
import { mergeConfig } from '../../kubelet/layers/layers.ts';
import { hostKeyFingerprint } from '../../ssh/known-hosts.ts';
import { isSecretName } from './inline-secrets.ts';
import { type FleetOrigin, plannedSettingsOf, type ResolvedBastion, type ResolvedFleet, type ResolvedHost } from './model.ts';
import { labelsOfHost } from './select.ts';

/**
 * The resolved inventory of a fleet file as a document: a stable interface (`kubeletadm.dev/v1alpha1`, kind
 * `Inventory`).
 */
export function inventoryDocument(fleet: ResolvedFleet, hosts: readonly ResolvedHost[], withOrigins: boolean): JsonObject {
  const { kubeconfigSource: _, ...cluster } = fleet.cluster;
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'Inventory',
    ...(fleet.name === null ? {} : { name: fleet.name }),
    ...(fleet.kubernetesVersion === null ? {} : { kubernetesVersion: fleet.kubernetesVersion }),
    cluster: withoutEmpty(cluster),
    groups: fleet.groups,
    hosts: hosts.map((host) => hostDocument(host, withOrigins)),
    bastions: fleet.bastions.map(bastionDocument),
  };
}

/**
 * One host with all resolved settings; its KubeletConfiguration contains only fields declared in the file.
 */
function hostDocument(host: ResolvedHost, withOrigins: boolean): JsonObject {
  const { name, role, groups, ssh, nodeRegistration, declared, preparation, hooks, ...others } = plannedSettingsOf(host);
  const { jumps, direct, hostKeys, identityFiles, ...connection } = ssh;
  const { droppedFlags: droppedKubeletArgs, ...registration } = nodeRegistration;
  const variables = [...host.variables()].map(([name, value]): [string, Json] => [name, isSecretName(name) ? '[secret]' : shown(value)]);
  return {
    name,
    role,
    groups,
    declaredAt: place(host),
    ssh: withoutEmpty({
      ...connection,
      identityFiles,
      jumps: jumps.map(bastionDocument),
      direct,
      hostKeys: hostKeys.map(hostKeyFingerprint),
    }),
    nodeRegistration: withoutNull({ ...registration, taints: registration.taints?.map(formatTaint), droppedKubeletArgs }),
    ...Object.fromEntries(declared.map(({ path, value }) => [path.join('.'), value])),
    ...withoutNull(preparation),
    ...(hooks === undefined ? {} : { hooks: withoutNull(hooks) }),
    ...withoutNull(others),
    kubeletConfiguration: declaredConfiguration(host),
    variables: Object.fromEntries(variables),
    ...(withOrigins ? { origins: originsDocument(host) } : {}),
  };
}

function withoutNull(record: object = {}): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined)) as JsonObject;
}

/** The same without `false` and empty lists. */
function withoutEmpty(record: object): JsonObject {
  return Object.fromEntries(
    Object.entries(withoutNull(record)).filter(([, value]) => value !== false && !(Array.isArray(value) && value.length === 0)),
  );
}

function shown(value: string | number | boolean): Json {
  return typeof value === 'string' ? maskSecrets(value) : value;
}

function place({ position: { file, line, column } }: Pick<FleetOrigin, 'position'>): string {
  return `${file}:${line}:${column}`;
}

function bastionDocument({ name, address, user, port, identityFiles, hostKeys }: ResolvedBastion): JsonObject {
  return withoutEmpty({ name, address, user, port, identityFiles, hostKeys: hostKeys.map(hostKeyFingerprint) });
}

/** The merged layers of a host, as written. */
export function declaredConfiguration({ overlays }: ResolvedHost): JsonObject {
  const merged = overlays.reduce<JsonObject>((config, { document }) => {
    const { apiVersion: _, kind: __, ...own } = (document.root === null ? {} : sourceToExactJson(document.root)) as JsonObject;
    return mergeConfig(config, own);
  }, {});
  return merged;
}

function originsDocument(host: ResolvedHost): JsonObject {
  return Object.fromEntries([...host.origins()].map(([path, origin]) => [path, `${place(origin)} (${origin.layer})`]));
}

/** The columns of the table of hosts before and after the column NODE, and those of the wide table. */
export const INVENTORY_COLUMNS = {
  columns: ['NAME', 'ADDRESS', 'BASTION', 'ROLE', 'GROUPS'],
  wide: ['NODE-IP', 'LABELS', 'TAINTS'],
} as const;

/** The rows of the table: hosts, then bastions. */
export function inventoryRows(
  fleet: ResolvedFleet,
  hosts: readonly ResolvedHost[],
): readonly { readonly name: string; readonly host: string; readonly cells: readonly string[]; readonly wide: readonly string[] }[] {
  const cell = (text: string): string => printable(text, 300) || '-';
  const rows = hosts.map((host) => {
    const { name, ssh, role, groups, nodeRegistration: node } = host;
    const bastion = ssh.direct ? 'none' : ssh.jumps.map((jump) => jump.name).join(',');
    const labels = Object.entries(labelsOfHost(host)).map(([key, value]) => `${key}=${value}`);
    return {
      name: `host/${name}`,
      host: name,
      cells: [name, destination(ssh), bastion, role, groups.join(',')].map(cell),
      wide: [argValue(node.kubeletExtraArgs, 'node-ip') ?? '', labels.join(','), (node.taints ?? []).map(formatTaint).join(',')].map(cell),
    };
  });
  const bastions = fleet.bastions.map((bastion) => ({
    name: `host/${bastion.name}`,
    host: bastion.name,
    cells: [bastion.name, destination(bastion), '-', 'bastion', '-'].map(cell),
    wide: ['-', '-', '-'],
  }));
  return [...rows, ...bastions];
}

function destination({ user, address, port }: { readonly user?: string; readonly address: string; readonly port?: number }): string {
  const host = port === undefined ? address : address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
  return user === undefined ? host : `${user}@${host}`;
}

/** The settings of one host: name, value, and position with layer. */
export function hostTable(host: ResolvedHost): readonly (readonly string[])[] {
  const { origins: _, name, declaredAt, variables, kubeletConfiguration, ssh, nodeRegistration, ...rest } = hostDocument(host, false);
  const origins = host.origins();
  const rows = [
    ['name', String(name), String(declaredAt)],
    ...Object.entries(rest).map(([member, value]) => [member, value as Json] as const),
    ...Object.entries(ssh as JsonObject).map(([member, value]) => [MEMBER_PATHS[member] ?? `ssh.${member}`, value] as const),
    ...Object.entries(nodeRegistration as JsonObject).map(([member, value]) => [member === 'name' ? 'nodeName' : member, value] as const),
    ...leaves(kubeletConfiguration as JsonObject, 'kubeletConfiguration'),
    ...Object.entries(variables as JsonObject).map(([member, value]) => [`variables[${member}]`, value] as const),
  ].map(([path = '', value, from]) => [
    String(path),
    typeof value === 'string' ? value : JSON.stringify(value),
    from ?? originText(origins.get(String(path)), String(path), origins),
  ]);
  return rows.map((row) => row.map((cell) => printable(cell as string, 300)));
}

/** Settings whose path in the document differs from that in the fleet file. */
const MEMBER_PATHS: Readonly<Record<string, string>> = {
  address: 'address',
  configFile: 'sshConfig',
  jumps: 'ssh.bastion',
  direct: 'ssh.bastion',
};

function originText(origin: FleetOrigin | undefined, path: string, origins: ReadonlyMap<string, FleetOrigin>): string {
  if (origin !== undefined) return `${place(origin)} (${origin.layer})`;
  // Flags, and settings merged by key, are built from several members.
  const isPart = (key: string): boolean =>
    path === 'kubeletExtraArgs' ? key === 'nodeIP' || key.startsWith('labels[') : key.startsWith(`${path}.`) || key.startsWith(`${path}[`);
  const parts = [...origins].filter(([key]) => isPart(key));
  return [...new Set(parts.map(([, each]) => `${place(each)} (${each.layer})`))].join(', ') || '-';
}

function leaves(object: JsonObject, prefix: string): readonly (readonly [string, Json])[] {
  return Object.entries(object).flatMap(([key, value]): readonly (readonly [string, Json])[] => {
    const path = /^[A-Za-z_][\w-]*$/.test(key) ? `${prefix}.${key}` : `${prefix}[${key}]`;
    const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    return isMapping ? leaves(value as JsonObject, path) : [[path, value]];
  });
}
