import type { Position, Problem } from '../base/errors.ts';
import type { HostHooks } from '../host/hooks.ts';
import type { HostPreparation } from '../host/install/model.ts';
import type { NodeRegistration } from '../kubeadm/config/model.ts';
import type { NodeOverlay } from '../kubeadm/render/config-drop-ins.ts';
import type { FieldSetting } from '../kubelet/setting.ts';
import type { KnownHostsEntry } from '../ssh/known-hosts.ts';

/**
 * The resolved inventory of a fleet file: ranges, imports, groups and templates are expanded, with one entry
 * per host. Only declared settings are included; others are detected on the host (`observeNode`) or read from
 * ssh_config.
 */

/**
 * `control-plane` hosts run an API server; `bastion` hosts are used only as SSH jump hosts and are in
 * `bastions`, not in `hosts`.
 */
export type HostRole = 'worker' | 'control-plane';

export interface ResolvedFleet {
  /** Path of the fleet file as given by the user. */
  readonly file: string;
  /** Display name of the fleet; null if not set. */
  readonly name: string | null;
  readonly cluster: FleetCluster;
  /** Version of the kubelets, for validation before hosts are contacted; null if not set. */
  readonly kubernetesVersion: string | null;
  /** In file order, imports last. Names are unique, and so are addresses with their routes. */
  readonly hosts: readonly ResolvedHost[];
  readonly bastions: readonly ResolvedBastion[];
  /** All groups, those of the file first, then imported ones. */
  readonly groups: readonly string[];
  /** Problems that do not prevent a run. */
  readonly warnings: readonly Problem[];
}

/**
 * Access to the cluster. Paths are as written; relative ones are resolved against the directory of the fleet
 * file. Contains no secrets.
 */
export interface FleetCluster {
  /** Administrator kubeconfig; null: the defaults of `init` (KUBECONFIG and so on). */
  readonly kubeconfig: string | null;
  readonly context: string | null;
  /** kubeadm documents for the first control plane, if apply creates the cluster. */
  readonly configuration: string | null;
  /** `host:port` of the API server, for hosts that join with a token. */
  readonly endpoint: string | null;
  /** File with the CA certificate of the cluster. */
  readonly caFile: string | null;
  readonly caCertHashes: readonly string[];
  /**
   * Source of the bootstrap token. Null: an existing usable token, otherwise a new one, with the kubeconfig.
   */
  readonly token: SecretReference | null;
}

/** Place from which a secret is read when needed. */
export type SecretReference = { readonly env: string } | { readonly file: string };

export interface ResolvedHost {
  /** Unique inventory name, the prefix of every message about this host. */
  readonly name: string;
  /** Position of its declaration in the fleet file or the import. */
  readonly position: Position;
  readonly role: HostRole;
  /** In layer order, lowest first. */
  readonly groups: readonly string[];
  readonly ssh: ResolvedSsh;
  /** Preparation of the host before it becomes a node. */
  readonly preparation: HostPreparation;
  /** Commands before and after the changes of the host. */
  readonly hooks: HostHooks;
  /**
   * Name, CRI socket, taints, flags (including `node-ip` and `node-labels`), ignored checks: input of
   * JoinConfiguration and InitConfiguration.
   */
  readonly nodeRegistration: NodeRegistration;
  /** `resolvConf` and `cgroupDriver`, with their position in the fleet file as source. */
  readonly declared: readonly FieldSetting[];
  /**
   * KubeletConfigurations of this node; later ones win: baseline, groups, host. Positions refer to the fleet
   * file. Hosts with a shared layer share the object, so that it is decoded once.
   */
  readonly overlays: readonly FleetOverlay[];
  /** The layers are drop-in files of `--config-dir`. Absent or false: they are merged into config.yaml. */
  readonly kubeletConfigDir?: boolean | undefined;
  /** Variables for templates, computed on demand. */
  variables(): ReadonlyMap<string, VariableValue>;
  /**
   * Position of each setting of this host, by its path in a host entry (`ssh.user`, `labels[pool]`); computed
   * on demand.
   */
  origins(): ReadonlyMap<string, FleetOrigin>;
}

export type VariableValue = string | number | boolean;

export interface FleetOverlay {
  /** `baseline`, `group edge`, `host edge-001`. */
  readonly layer: string;
  readonly document: NodeOverlay;
}

export interface FleetOrigin {
  /** `baseline`, `group edge`, `host edge-001`. */
  readonly layer: string;
  readonly position: Position;
}

/** SSH settings of a host. ssh_config provides missing members. */
export interface ResolvedSsh {
  /** Name or address, or a Host alias of ssh_config. */
  readonly address: string;
  readonly user?: string;
  readonly port?: number;
  /** As written, with unresolved `~` and relative paths. */
  readonly identityFiles: readonly string[];
  /** Bastions, the nearest to the local host first. Empty: those of ssh_config, unless `direct` is set. */
  readonly jumps: readonly ResolvedBastion[];
  readonly direct: boolean;
  readonly become: 'auto' | 'sudo' | 'none';
  /** ssh_config of the fleet file, as written; absent: that of the user. */
  readonly configFile?: string;
  /** SSH client: the built-in one, or the system's `ssh`. */
  readonly transport: 'builtin' | 'openssh';
  /** Host keys from the fleet file. If any is set, no other key is accepted. */
  readonly hostKeys: readonly KnownHostsEntry[];
  readonly connectTimeoutMs?: number;
  readonly commandTimeoutMs?: number;
}

/** An SSH jump host. */
export interface ResolvedBastion extends Pick<ResolvedSsh, 'address' | 'user' | 'port' | 'identityFiles' | 'hostKeys'> {
  readonly name: string;
}
