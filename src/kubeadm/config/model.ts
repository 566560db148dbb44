import type * as z from 'zod';
import type { Arg } from '../../base/arg.ts';
import type { Decoded } from './schema-parts.ts';
import type { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';

/**
 * kubeadm's configuration documents in the shape of kubeadm.k8s.io/v1beta4, whichever version the file declared.
 * Defaults are not applied: an absent member was unset, null, or empty where Go cannot distinguish empty from unset.
 */

/** The kinds of kubeadm.k8s.io that are read into the model. */
export type ModelKind = keyof typeof V1BETA4_SCHEMAS;

/** All kinds that a configuration file may contain. */
export type ConfigKind = ModelKind | 'KubeletConfiguration' | 'KubeProxyConfiguration';

/** A duration as Go prints it, e.g. `4m0s`. */
export type DurationText = string;

type Written<K extends ModelKind> = Decoded<z.output<(typeof V1BETA4_SCHEMAS)[K]>>;
/** A document whose registration of the node has `NodeRegistration['droppedFlags']`. */
type WithNode<T> = Omit<T, 'nodeRegistration'> & { readonly nodeRegistration?: NodeRegistration };

export type InitConfiguration = WithNode<Written<'InitConfiguration'>>;
export type BootstrapToken = NonNullable<InitConfiguration['bootstrapTokens']>[number];
export type ApiEndpoint = NonNullable<InitConfiguration['localAPIEndpoint']>;
export type Timeouts = NonNullable<InitConfiguration['timeouts']>;
/** `taints` are absent: the control plane taint on control planes; empty: none. */
export type NodeRegistration = NonNullable<Written<'InitConfiguration'>['nodeRegistration']> & {
  /** Flags of the host's own unit that are not kept (`--kubelet-extra-args NAME-`). Not a field of kubeadm. */
  readonly droppedFlags?: readonly string[];
};
export type PullPolicy = NonNullable<NodeRegistration['imagePullPolicy']>;

export type ClusterConfiguration = Written<'ClusterConfiguration'>;
export type ControlPlaneComponent = NonNullable<ClusterConfiguration['scheduler']>;
export type HostPathMount = NonNullable<ControlPlaneComponent['extraVolumes']>[number];
export type EnvVar = NonNullable<ControlPlaneComponent['extraEnvs']>[number];
export type Etcd = NonNullable<ClusterConfiguration['etcd']>;
export type LocalEtcd = NonNullable<Etcd['local']>;
export type ExternalEtcd = NonNullable<Etcd['external']>;

export type JoinConfiguration = WithNode<Written<'JoinConfiguration'>>;
export type Discovery = NonNullable<JoinConfiguration['discovery']>;
export type BootstrapTokenDiscovery = NonNullable<Discovery['bootstrapToken']>;

export type ResetConfiguration = Written<'ResetConfiguration'>;

export type UpgradeConfiguration = Written<'UpgradeConfiguration'>;
export type UpgradeApply = NonNullable<UpgradeConfiguration['apply']>;
export type UpgradeNode = NonNullable<UpgradeConfiguration['node']>;
export type UpgradePlan = NonNullable<UpgradeConfiguration['plan']>;

export interface ModelSet {
  readonly init?: InitConfiguration;
  readonly cluster?: ClusterConfiguration;
  readonly join?: JoinConfiguration;
  readonly reset?: ResetConfiguration;
  readonly upgrade?: UpgradeConfiguration;
}

/** The member of `ModelSet` of each kind. */
export const MODEL_MEMBERS = {
  InitConfiguration: 'init',
  ClusterConfiguration: 'cluster',
  JoinConfiguration: 'join',
  ResetConfiguration: 'reset',
  UpgradeConfiguration: 'upgrade',
} as const satisfies { readonly [K in ModelKind]: keyof ModelSet };

/** The value of an argument: the last one wins. Undefined when it is not set. */
export function argValue(args: readonly Arg[] | undefined, name: string): string | undefined {
  return args?.findLast((arg) => arg.name === name)?.value;
}
