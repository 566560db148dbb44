import * as z from 'zod';
import type { Position, Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { hostHooks } from '../../host/hooks.ts';
import { hostPreparation, secretSource } from '../../host/operation/install-model.ts';
import { taint } from '../../kubeadm/config/schema-parts.ts';
import type { NodeOverlay } from '../../kubeadm/render/config-drop-ins.ts';
import type { NodeOptions } from '../../kubeadm/workflows/node/node-options.ts';
import type { PreparedRollout } from '../../maintenance/gates/rollout-settings.ts';

/**
 * The resolved inventory of a fleet file: ranges, imports, groups and templates are expanded, with one entry
 * per host. Only declared settings are included; others are detected on the host (`observeNode`) or read from
 * ssh_config.
 *
 * The schemas are also those of saved plans: a change of a member changes the format of a plan, and a new member must
 * be optional.
 */

const optional = z.exactOptional;
export const text = z.string();
export const texts = z.array(text).readonly();
export const json = z.custom<Json>((value) => value !== undefined);
export const jsonObject = z.custom<JsonObject>(isJsonObject, 'expected an object');

const destination = {
  /** Name or address, or a Host alias of ssh_config. */
  address: text,
  user: optional(text),
  port: optional(z.number()),
  /** As written, with unresolved `~` and relative paths. */
  identityFiles: texts,
  /** Host keys from the fleet file, with their positions. If any is set, no other key is accepted. */
  hostKeys: z
    .array(z.strictObject({ type: text, blob: text, file: text, line: z.number(), marker: z.literal('none'), hosts: text }).readonly())
    .readonly(),
};

const bastion = z.strictObject({ name: text, ...destination }).readonly();

/** SSH settings of a host. ssh_config provides missing members. */
const ssh = z
  .strictObject({
    ...destination,
    /** Bastions, the nearest to the local host first. Empty: those of ssh_config, unless `direct` is set. */
    jumps: z.array(bastion).readonly(),
    direct: z.boolean(),
    become: z.enum(['auto', 'sudo', 'none']),
    /** SSH client: the built-in one, or the system's `ssh`. */
    transport: z.enum(['builtin', 'openssh']),
    connectTimeoutMs: optional(z.number()),
    commandTimeoutMs: optional(z.number()),
    /** ssh_config of the fleet file, as written; absent: that of the user. */
    configFile: optional(text),
  })
  .readonly();

const nodeRegistration = z
  .strictObject({
    name: optional(text),
    criSocket: optional(text),
    taints: optional(z.array(taint).readonly()),
    /** Including `node-ip` and `node-labels`. */
    kubeletExtraArgs: optional(z.array(z.strictObject({ name: text, value: text }).readonly()).readonly()),
    droppedFlags: optional(texts),
    ignorePreflightErrors: optional(texts),
  })
  .readonly();

/** The settings of a host that its plan depends on: the table from which hosts, saved plans and inventories derive. */
export const plannedSettings = {
  /** Unique inventory name, the prefix of every message about this host. */
  name: text,
  /** `control-plane` hosts run an API server. Bastions are in `bastions`, not in `hosts`. */
  role: z.enum(['worker', 'control-plane']),
  /** In layer order, lowest first. */
  groups: texts,
  ssh,
  nodeRegistration,
  /** `resolvConf` and `cgroupDriver`, with their position in the fleet file as source. */
  declared: z.array(z.strictObject({ path: texts, value: json, source: text }).readonly()).readonly(),
  /** The layers are drop-in files of `--config-dir`. Absent: they are merged into config.yaml. */
  kubeletConfigDir: optional(z.literal(true)),
  preparation: optional(hostPreparation),
  hooks: optional(hostHooks),
};

/**
 * Access to the cluster. Paths are as written; relative ones are resolved against the directory of the fleet
 * file. Contains no secrets.
 */
export const fleetCluster = z
  .strictObject({
    /** Administrator kubeconfig; null: the defaults of `init` (KUBECONFIG and so on). */
    kubeconfig: z.nullable(text),
    context: z.nullable(text),
    /** kubeadm documents for the first control plane, if apply creates the cluster. */
    configuration: z.nullable(text),
    /** `host:port` of the API server, for hosts that join with a token. */
    endpoint: z.nullable(text),
    caFile: z.nullable(text),
    caCertHashes: texts,
    /** Source of the bootstrap token. Null: an existing usable token, otherwise a new one, with the kubeconfig. */
    token: z.nullable(secretSource),
  })
  .readonly();

/** `kubeconfigSource`: position of `kubeconfig` in the fleet file; a saved plan has none. */
export type FleetCluster = z.infer<typeof fleetCluster> & { readonly kubeconfigSource?: string };
export type ResolvedBastion = z.infer<typeof bastion>;
/** `importedFrom`: ssh_config from which the host was imported; a saved plan has none. */
export type ResolvedSsh = z.infer<typeof ssh> & { readonly importedFrom?: string };

/** The settings of a host in a saved plan, which therefore needs no fleet file. */
export type PlannedSettings = Readonly<z.infer<z.ZodObject<typeof plannedSettings>>>;
export type HostRole = PlannedSettings['role'];

export interface PlannedHost extends PlannedSettings {
  /** KubeletConfigurations of this node; later ones win: baseline, groups, host. */
  readonly overlays: readonly { readonly document: NodeOverlay }[];
}

export function isControlPlane({ role }: Pick<PlannedHost, 'role'>): boolean {
  return role === 'control-plane';
}

/** The settings of a host that the workflows of its node take. */
export function nodeOptionsOf({
  nodeRegistration,
  declared,
  overlays,
  kubeletConfigDir,
}: PlannedHost): Pick<NodeOptions, 'nodeRegistration' | 'declared' | 'overlays' | 'configDir'> {
  return { nodeRegistration, declared, overlays: overlays.map(({ document }) => document), configDir: kubeletConfigDir === true };
}

const settingsSchema = z.object(plannedSettings);

/** The settings of a host without its other members. A value that does not match the table is an error of the program. */
export function plannedSettingsOf(host: PlannedSettings): PlannedSettings {
  const { importedFrom: _, ...ssh }: ResolvedSsh = host.ssh;
  return settingsSchema.parse({ ...host, ssh });
}

export interface ResolvedFleet {
  /** Path of the fleet file as given by the user. */
  readonly file: string;
  readonly name: string | null;
  readonly cluster: FleetCluster;
  /** Version of the kubelets, for validation before hosts are contacted; null if not set. */
  readonly kubernetesVersion: string | null;
  readonly hosts: readonly ResolvedHost[];
  readonly bastions: readonly ResolvedBastion[];
  /** All groups, those of the file first, then imported ones. */
  readonly groups: readonly string[];
  /** Gates and windows, with the content of their files; null: none. */
  readonly rollout: PreparedRollout | null;
  /** Problems that do not prevent a run. */
  readonly warnings: readonly Problem[];
}

export interface ResolvedHost extends PlannedHost {
  /** Position of its declaration in the fleet file or the import. */
  readonly position: Position;
  /** Positions refer to the fleet file. Hosts with a shared layer share the object, so that it is decoded once. */
  readonly overlays: readonly FleetOverlay[];
  /** Variables for templates, computed on demand. */
  variables(): ReadonlyMap<string, string | number | boolean>;
  /**
   * Position of each setting of this host, by its path in a host entry (`ssh.user`, `labels[pool]`); computed
   * on demand.
   */
  origins(): ReadonlyMap<string, FleetOrigin>;
}

export interface FleetOverlay {
  /** `baseline`, `group edge`, `host edge-001`. */
  readonly layer: string;
  readonly document: NodeOverlay;
}

export interface FleetOrigin {
  readonly layer: string;
  readonly position: Position;
}
