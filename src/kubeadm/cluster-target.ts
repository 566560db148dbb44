import type { Host } from '../host/host.ts';
import type { HostKubeconfig } from '../kube/host-kubeconfig.ts';
import type { OperatorKubeconfig } from '../kube/operator-kubeconfig.ts';
import type { EtcdCredentials } from './control-plane/etcd-credentials.ts';

/** An API server and the credentials for it. A kubeconfig of a host is accepted only as `rebuildHostKubeconfig` makes it. */
export type ClusterTarget = OperatorClusterTarget | HostClusterTarget;

/** With the operator's own kubeconfig. */
export interface OperatorClusterTarget {
  readonly kubeconfig: OperatorKubeconfig;
  readonly context?: string;
  /** Its connections are opened from this host, where they are not opened from here. */
  readonly from?: Host;
}

/** With the credentials of a host. */
export interface HostClusterTarget {
  readonly kubeconfig: HostKubeconfig;
  /** In place of the address in the kubeconfig. */
  readonly server?: string;
  /** Its connections are opened from this host, where they are not opened from here. */
  readonly from?: Host;
}

export interface EtcdTarget extends EtcdCredentials {
  /** `https://ADDRESS:2379` of members. */
  readonly endpoints: readonly string[];
  /** Its connections are opened from this host, where they are not opened from here. */
  readonly from: Host;
}
