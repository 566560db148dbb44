/** A change of a kubelet's configuration that would end pods, or keep new pods from starting. Found before the change. */
export interface PodRisk {
  /** Path of the field in KubeletConfiguration, for example `maxPods`. */
  readonly path: string;
  /** Why, as a clause, for example `maxPods 1 is less than the 3 pods of the node`. */
  readonly why: string;
  /** `NAMESPACE/NAME` of the running pods that would end, sorted; empty: new pods are affected, not running ones. */
  readonly pods: readonly string[];
  /** `loss`: refused without `--allow-pod-loss`. `warning`: reported. */
  readonly severity: 'loss' | 'warning';
  /** The kubelet would exit: moving or losing pods does not help. */
  readonly stopsKubelet?: boolean;
  /** What makes the value possible, as the beginning of a hint, for example `create the file on the host`. */
  readonly fix?: string;
}
