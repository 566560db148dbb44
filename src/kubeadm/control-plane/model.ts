import type { SourceDocument } from '../../codec/source.ts';
import type { Taint } from '../../kube/taint.ts';
import type { PlannedPatch } from '../../kubelet/patch-files.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import type { ApiEndpoint, EnvVar, PullPolicy, Timeouts } from '../config/model.ts';
import { CA_MOUNT_DIRS, type HostCaDirectory } from './paths.ts';

/**
 * One control-plane node, with everything decided: what its certificates, kubeconfigs and static pods are made of. All of it is data; what is made of it is
 * pure. `settleControlPlane` of workflows makes it from the configuration and the facts of the host.
 */
export interface ControlPlaneNode {
  /** For all control planes alike. `kubernetesVersion` is a release (`v1.36.2`, or `ci/v1.36.2-10+abcdef`), never a label. */
  readonly cluster: DefaultedCluster;
  /** `nodeRegistration.name`: of the Node, of the etcd member, in the certificates. */
  readonly nodeName: string;
  /** Where this node's API server listens; `advertiseAddress` is an address of the host. */
  readonly localAPIEndpoint: Required<ApiEndpoint>;
  /** `[]`: none. */
  readonly taints: readonly Taint[];
  /** Of the pull before anything is started; static pods have their own. */
  readonly imagePullPolicy: PullPolicy;
  /** `controlPlaneComponentHealthCheck` is how long startup probes go on. */
  readonly timeouts: Required<Timeouts>;
  /** Of all targets, in the order in which they are applied; each file takes those that are for it. */
  readonly patches: readonly PlannedPatch[];
  /** Those of `CA_MOUNT_DIRS` that are on the host. */
  readonly caDirectories: readonly HostCaDirectory[];
  /** All members of the etcd cluster this node's member joins, itself among them; null: it is the first. Only with local etcd. */
  readonly etcdMembers: readonly EtcdMember[] | null;
  /** The key of the cluster's CA is not on this host (external CA mode): the controller manager signs nothing. */
  readonly externalCA: boolean;
  /** Variables of the environment whose names end in `_proxy`: the components and kube-proxy get them. */
  readonly proxyEnvironment: readonly EnvVar[];
  /** The KubeProxyConfiguration the user wrote; null: kubeadm's defaults. */
  readonly kubeProxy: SourceDocument | null;
}

/** A member as `--initial-cluster` has it. */
export interface EtcdMember {
  readonly name: string;
  /** `https://ADDRESS:2380` */
  readonly peerURL: string;
}

/** Whether etcd runs on the control planes. */
export function hasLocalEtcd({ etcd }: DefaultedCluster): boolean {
  return etcd.external === undefined;
}

/** Where all nodes reach the API server: the endpoint of the cluster, else the one of this node. `https://HOST:PORT`. */
export function controlPlaneServer({ cluster, localAPIEndpoint }: Pick<ControlPlaneNode, 'cluster' | 'localAPIEndpoint'>): string {
  return cluster.controlPlaneEndpoint === undefined ? localServer(localAPIEndpoint) : `https://${cluster.controlPlaneEndpoint}`;
}

/** Where this node's own API server is reached. `https://ADDRESS:PORT`. */
export function localServer({ advertiseAddress, bindPort }: Required<ApiEndpoint>): string {
  return `https://${advertiseAddress.includes(':') ? `[${advertiseAddress}]` : advertiseAddress}:${bindPort}`;
}

/** Which directories with authorities the pods of a host need, of those that are there. */
export function caDirectoriesIn(exists: (path: string) => boolean): readonly HostCaDirectory[] {
  return CA_MOUNT_DIRS.filter(exists);
}
