import type { SourceDocument } from '../../codec/source.ts';
import type { PlannedPatch } from '../../kubelet/layers/patch-files.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import type { ApiEndpoint, EnvVar, Timeouts } from '../config/model.ts';
import { CA_MOUNT_DIRS } from './paths.ts';

/**
 * One control plane node with all settings resolved: the input for its certificates, kubeconfigs and static
 * Pods, which are rendered by pure functions. `prepareControlPlane` of the workflows creates it from the
 * configuration and the facts of the host.
 */
export interface ControlPlaneNode {
  /**
   * Shared by all control planes. `kubernetesVersion` is a release (`v1.36.2`, or `ci/v1.36.2-10+abcdef`),
   * never a label.
   */
  readonly cluster: DefaultedCluster;
  /** `nodeRegistration.name`: name of the Node and the etcd member, also in the certificates. */
  readonly nodeName: string;
  /** Endpoint of this node's API server; `advertiseAddress` is an address of the host. */
  readonly localAPIEndpoint: Required<ApiEndpoint>;
  /** `controlPlaneComponentHealthCheck` is the limit of startup probes. */
  readonly timeouts: Required<Timeouts>;
  /** Patches for all targets, in the order of application; each file uses those of its target. */
  readonly patches: readonly PlannedPatch[];
  /** Those of `CA_MOUNT_DIRS` that exist on the host. */
  readonly caDirectories: readonly string[];
  /**
   * All members of the etcd cluster that this member joins, including itself; null: first member. Only with local etcd.
   */
  readonly etcdMembers: readonly EtcdMember[] | null;
  /** The cluster CA key is not on this host (external CA mode): kube-controller-manager signs no certificates. */
  readonly externalCA: boolean;
  /** Environment variables whose names end in `_proxy`, passed to the components and kube-proxy. */
  readonly proxyEnvironment: readonly EnvVar[];
  /** The user's KubeProxyConfiguration; null: kubeadm's defaults. */
  readonly kubeProxy: SourceDocument | null;
}

/** A member in `--initial-cluster`. */
export interface EtcdMember {
  readonly name: string;
  /** `https://ADDRESS:2380` */
  readonly peerURL: string;
}

export function hasLocalEtcd({ etcd }: DefaultedCluster): boolean {
  return etcd.external === undefined;
}

/** API server URL for all nodes: the endpoint of the cluster, otherwise the one of this node. `https://HOST:PORT`. */
export function controlPlaneServer({ cluster, localAPIEndpoint }: Pick<ControlPlaneNode, 'cluster' | 'localAPIEndpoint'>): string {
  return cluster.controlPlaneEndpoint === undefined ? localServer(localAPIEndpoint) : `https://${cluster.controlPlaneEndpoint}`;
}

/** URL of this node's own API server: `https://ADDRESS:PORT`. */
export function localServer({ advertiseAddress, bindPort }: Required<ApiEndpoint>): string {
  return `https://${advertiseAddress.includes(':') ? `[${advertiseAddress}]` : advertiseAddress}:${bindPort}`;
}

/** The existing CA directories that control plane Pods mount. */
export function caDirectoriesIn(exists: (path: string) => boolean): readonly string[] {
  return CA_MOUNT_DIRS.filter(exists);
}
