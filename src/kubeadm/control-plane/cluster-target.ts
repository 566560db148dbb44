import type { Host } from '../../host/access/host.ts';
import type { HostKubeconfig } from '../../kube/host-kubeconfig.ts';
import type { KubeconfigRoot } from '../../kube/kubeconfig.ts';
import type { OperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { EtcdCredentials } from './etcd-credentials.ts';

/** An API server and its credentials. A host's kubeconfig must have passed `rebuildHostKubeconfig`, and references no file. */
export type ClusterTarget =
  | OperatorClusterTarget
  | (Pick<OperatorClusterTarget, 'root' | 'from'> & {
      readonly kubeconfig: HostKubeconfig;
      /** Replaces the server address of the kubeconfig. */
      readonly server?: string | undefined;
    });

/** Uses the operator's own kubeconfig. */
export interface OperatorClusterTarget {
  readonly kubeconfig: OperatorKubeconfig;
  /** The root directory of the paths in the kubeconfig; credential plugins are refused then. Absent: that of the local host. */
  readonly root?: KubeconfigRoot;
  readonly context?: string | undefined;
  /** Host that opens the connections; absent: the local host. */
  readonly from?: Host | undefined;
}

export interface EtcdTarget extends EtcdCredentials {
  /** `https://ADDRESS:2379` of the members. */
  readonly endpoints: readonly string[];
  /** How long a change of the members is repeated: `timeouts.etcdAPICall`; default: two minutes. */
  readonly changeTimeoutMs?: number | undefined;
  /** Host that opens the connections; absent: the local host. */
  readonly from: Host;
}
