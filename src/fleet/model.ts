import type { Position, Problem } from '../base/errors.ts';
import type { SourceDocument } from '../codec/source.ts';
import type { HostPreparation } from '../host/install/model.ts';
import type { NodeRegistration } from '../kubeadm/config/model.ts';
import type { FieldSetting } from '../kubelet/setting.ts';
import type { KnownHostsEntry } from '../ssh/known-hosts.ts';

/**
 * What a fleet file says once ranges, imports, groups and templates are worked out: one entry a host, nothing left to look up. Only what was
 * declared is in it; what is absent is for the host to say (`observeNode`) or for ssh_config.
 */

/** `control-plane` hosts run an API server of their own; `bastion` hosts are only gone through and are in `bastions`, not in `hosts`. */
export type HostRole = 'worker' | 'control-plane';

export interface ResolvedFleet {
  /** Path of the fleet file as the user gave it. */
  readonly file: string;
  /** Of the fleet, for people; null when the file gives none. */
  readonly name: string | null;
  readonly cluster: FleetCluster;
  /** Of the kubelets, to judge configurations by before a host is asked; null when the file does not say. */
  readonly kubernetesVersion: string | null;
  /** In the order of the file, imports last. Names are unique, and so are ways to get there. */
  readonly hosts: readonly ResolvedHost[];
  readonly bastions: readonly ResolvedBastion[];
  /** All groups, those of the file first, then those only imports have. */
  readonly groups: readonly string[];
  /** Nothing that keeps the fleet from being worked on. */
  readonly warnings: readonly Problem[];
}

/** How the cluster is reached. Paths are as written; relative ones count from the directory of the fleet file. Never a secret. */
export interface FleetCluster {
  /** An administrator's credentials; null: as for `init` (KUBECONFIG and so on). */
  readonly kubeconfig: string | null;
  readonly context: string | null;
  /** kubeadm documents for the first control plane, where apply brings up the cluster. */
  readonly configuration: string | null;
  /** `host:port` of the API server, for hosts that join by token. */
  readonly endpoint: string | null;
  /** File with the CA certificate of the cluster. */
  readonly caFile: string | null;
  readonly caCertHashes: readonly string[];
  /** Where the bootstrap token is. Null: one is made or found with the kubeconfig. */
  readonly token: SecretReference | null;
}

/** Where a secret is found when it is needed. */
export type SecretReference = { readonly env: string } | { readonly file: string };

export interface ResolvedHost {
  /** Inventory name: first word of every message about this host, unique. */
  readonly name: string;
  /** Where it was declared: a line of the fleet file or of what it imports. */
  readonly position: Position;
  readonly role: HostRole;
  /** Lowest layer first. */
  readonly groups: readonly string[];
  readonly ssh: ResolvedSsh;
  /** What comes before it can be a node. */
  readonly preparation: HostPreparation;
  /** Name, CRI socket, taints, flags (`node-ip` and `node-labels` among them), checks to ignore: what JoinConfiguration and InitConfiguration take. */
  readonly nodeRegistration: NodeRegistration;
  /** `resolvConf` and `cgroupDriver`, with the place in the fleet file as their source. */
  readonly declared: readonly FieldSetting[];
  /**
   * KubeletConfigurations for this node, the later ones win: baseline, groups, host. Each position in them is one of the fleet file. Hosts that
   * share a layer share the object, so that it can be decoded once.
   */
  readonly overlays: readonly FleetOverlay[];
  /** Variables as templates see them; worked out when asked for. */
  variables(): ReadonlyMap<string, VariableValue>;
  /** Where each setting of this host was written, by its path as a host writes it (`ssh.user`, `labels[pool]`); worked out when asked for. */
  origins(): ReadonlyMap<string, FleetOrigin>;
}

export type VariableValue = string | number | boolean;

export interface FleetOverlay {
  /** `baseline`, `group edge`, `host edge-001`. */
  readonly layer: string;
  readonly document: SourceDocument;
}

export interface FleetOrigin {
  /** `baseline`, `group edge`, `host edge-001`. */
  readonly layer: string;
  readonly position: Position;
}

/** How a host is reached. What is absent is for ssh_config to say. */
export interface ResolvedSsh {
  /** Name or address to connect to, or a Host of ssh_config. */
  readonly address: string;
  readonly user?: string;
  readonly port?: number;
  /** As written, `~` and relative paths not yet resolved. */
  readonly identityFiles: readonly string[];
  /** Hosts to go through, the nearest to us first. Empty: as ssh_config says; `direct` tells it not to be asked. */
  readonly jumps: readonly ResolvedBastion[];
  readonly direct: boolean;
  readonly become: 'auto' | 'sudo' | 'none';
  /** Which program speaks SSH: the built-in client, or the system's `ssh`. */
  readonly transport: 'builtin' | 'openssh';
  /** Keys the fleet file gives for the host. When there are any, no other key is accepted. */
  readonly hostKeys: readonly KnownHostsEntry[];
  readonly connectTimeoutMs?: number;
  readonly commandTimeoutMs?: number;
}

/** A host to go through. */
export interface ResolvedBastion extends Pick<ResolvedSsh, 'address' | 'user' | 'port' | 'identityFiles' | 'hostKeys'> {
  readonly name: string;
}
