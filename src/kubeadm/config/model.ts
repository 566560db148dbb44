import type { Arg } from '../../base/arg.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { Taint } from '../../kube/taint.ts';
import type { EncryptionAlgorithm } from '../../x509/certificate-issuer.ts';

/**
 * kubeadm's configuration documents in the shape of kubeadm.k8s.io/v1beta4, whichever version the file declared.
 * Defaults are not applied: an absent member was unset, null, or empty where Go cannot distinguish empty from unset.
 */

/** The kinds of kubeadm.k8s.io that are read into the model. */
export type ModelKind = 'InitConfiguration' | 'ClusterConfiguration' | 'JoinConfiguration' | 'ResetConfiguration' | 'UpgradeConfiguration';

/** All kinds that a configuration file may contain. */
export type ConfigKind = ModelKind | 'KubeletConfiguration' | 'KubeProxyConfiguration';

/** A duration as Go prints it, e.g. `4m0s`. */
export type DurationText = string;

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never';
export type HostPathType = 'DirectoryOrCreate' | 'Directory' | 'FileOrCreate' | 'File' | 'Socket' | 'CharDevice' | 'BlockDevice';
export type UnmountFlag = 'MNT_FORCE' | 'MNT_DETACH' | 'MNT_EXPIRE' | 'UMOUNT_NOFOLLOW';

export interface Patches {
  readonly directory?: string;
}

export interface Timeouts {
  readonly controlPlaneComponentHealthCheck?: DurationText;
  readonly kubeletHealthCheck?: DurationText;
  readonly kubernetesAPICall?: DurationText;
  readonly etcdAPICall?: DurationText;
  readonly tlsBootstrap?: DurationText;
  readonly discovery?: DurationText;
  readonly upgradeManifests?: DurationText;
}

export interface BootstrapToken {
  /** Absent: generated when the defaults are applied. */
  readonly token?: Secret;
  readonly description?: string;
  readonly ttl?: DurationText;
  /** RFC 3339. */
  readonly expires?: string;
  readonly usages?: readonly string[];
  readonly groups?: readonly string[];
}

export interface NodeRegistration {
  readonly name?: string;
  readonly criSocket?: string;
  /** Absent: the control plane taint on control planes. Empty: none. */
  readonly taints?: readonly Taint[];
  readonly kubeletExtraArgs?: readonly Arg[];
  /** Flags of the host's own unit that are not kept (`--kubelet-extra-args NAME-`). Not a field of kubeadm. */
  readonly droppedFlags?: readonly string[];
  readonly ignorePreflightErrors?: readonly string[];
  readonly imagePullPolicy?: PullPolicy;
  readonly imagePullSerial?: boolean;
}

export interface ApiEndpoint {
  readonly advertiseAddress?: string;
  readonly bindPort?: number;
}

export interface InitConfiguration {
  readonly bootstrapTokens?: readonly BootstrapToken[];
  readonly dryRun?: boolean;
  readonly nodeRegistration?: NodeRegistration;
  readonly localAPIEndpoint?: ApiEndpoint;
  readonly certificateKey?: Secret;
  readonly skipPhases?: readonly string[];
  readonly patches?: Patches;
  readonly timeouts?: Timeouts;
}

export interface Networking {
  /** One CIDR, or an IPv4 and an IPv6 CIDR, comma-separated. */
  readonly serviceSubnet?: string;
  readonly podSubnet?: string;
  readonly dnsDomain?: string;
}

export interface HostPathMount {
  readonly name: string;
  readonly hostPath: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly pathType?: HostPathType;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: EnvVarSource;
}

export interface EnvVarSource {
  readonly fieldRef?: { readonly apiVersion?: string; readonly fieldPath: string };
  readonly resourceFieldRef?: { readonly containerName?: string; readonly resource: string; readonly divisor?: string };
  readonly configMapKeyRef?: KeyRef;
  readonly secretKeyRef?: KeyRef;
  readonly fileKeyRef?: { readonly volumeName: string; readonly path: string; readonly key: string; readonly optional?: boolean };
}

interface KeyRef {
  readonly name?: string;
  readonly key: string;
  readonly optional?: boolean;
}

export interface ControlPlaneComponent {
  readonly extraArgs?: readonly Arg[];
  readonly extraVolumes?: readonly HostPathMount[];
  readonly extraEnvs?: readonly EnvVar[];
}

export interface ApiServer extends ControlPlaneComponent {
  readonly certSANs?: readonly string[];
}

export interface ImageMeta {
  readonly imageRepository?: string;
  readonly imageTag?: string;
}

export interface Dns extends ImageMeta {
  readonly disabled?: boolean;
}

export interface LocalEtcd extends ImageMeta {
  readonly dataDir?: string;
  readonly extraArgs?: readonly Arg[];
  readonly extraEnvs?: readonly EnvVar[];
  readonly serverCertSANs?: readonly string[];
  readonly peerCertSANs?: readonly string[];
}

export interface ExternalEtcd {
  readonly endpoints?: readonly string[];
  readonly httpEndpoints?: readonly string[];
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

export interface Etcd {
  readonly local?: LocalEtcd;
  readonly external?: ExternalEtcd;
}

export interface ClusterConfiguration {
  readonly etcd?: Etcd;
  readonly networking?: Networking;
  /** A version (`v1.36.2`) or a label (`stable-1`). */
  readonly kubernetesVersion?: string;
  readonly controlPlaneEndpoint?: string;
  readonly apiServer?: ApiServer;
  readonly controllerManager?: ControlPlaneComponent;
  readonly scheduler?: ControlPlaneComponent;
  readonly dns?: Dns;
  readonly proxy?: { readonly disabled?: boolean };
  readonly certificatesDir?: string;
  readonly imageRepository?: string;
  readonly featureGates?: Readonly<Record<string, boolean>>;
  readonly clusterName?: string;
  readonly encryptionAlgorithm?: EncryptionAlgorithm;
  readonly certificateValidityPeriod?: DurationText;
  readonly caCertificateValidityPeriod?: DurationText;
}

export interface BootstrapTokenDiscovery {
  readonly token?: Secret;
  /** `host:port` */
  readonly apiServerEndpoint?: string;
  readonly caCertHashes?: readonly string[];
  readonly unsafeSkipCAVerification?: boolean;
}

export interface Discovery {
  readonly bootstrapToken?: BootstrapTokenDiscovery;
  /** A path, or an https URL. */
  readonly file?: { readonly kubeConfigPath?: string };
  readonly tlsBootstrapToken?: Secret;
}

export interface JoinControlPlane {
  readonly localAPIEndpoint?: ApiEndpoint;
  readonly certificateKey?: Secret;
}

export interface JoinConfiguration {
  readonly dryRun?: boolean;
  readonly nodeRegistration?: NodeRegistration;
  readonly caCertPath?: string;
  readonly discovery?: Discovery;
  /** Present: the node becomes a control plane. */
  readonly controlPlane?: JoinControlPlane;
  readonly skipPhases?: readonly string[];
  readonly patches?: Patches;
  readonly timeouts?: Timeouts;
}

export interface ResetConfiguration {
  readonly cleanupTmpDir?: boolean;
  readonly certificatesDir?: string;
  readonly criSocket?: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly ignorePreflightErrors?: readonly string[];
  readonly skipPhases?: readonly string[];
  readonly unmountFlags?: readonly UnmountFlag[];
  readonly timeouts?: Timeouts;
}

export interface UpgradeApply {
  readonly kubernetesVersion?: string;
  readonly allowExperimentalUpgrades?: boolean;
  readonly allowRCUpgrades?: boolean;
  readonly certificateRenewal?: boolean;
  readonly dryRun?: boolean;
  readonly etcdUpgrade?: boolean;
  readonly forceUpgrade?: boolean;
  readonly ignorePreflightErrors?: readonly string[];
  readonly patches?: Patches;
  readonly printConfig?: boolean;
  readonly skipPhases?: readonly string[];
  readonly imagePullPolicy?: PullPolicy;
  readonly imagePullSerial?: boolean;
}

export interface UpgradeDiff {
  readonly kubernetesVersion?: string;
  readonly contextLines?: number;
}

export interface UpgradeNode {
  readonly certificateRenewal?: boolean;
  readonly dryRun?: boolean;
  readonly etcdUpgrade?: boolean;
  readonly ignorePreflightErrors?: readonly string[];
  readonly skipPhases?: readonly string[];
  readonly patches?: Patches;
  readonly imagePullPolicy?: PullPolicy;
  readonly imagePullSerial?: boolean;
}

export interface UpgradePlan {
  readonly kubernetesVersion?: string;
  readonly allowExperimentalUpgrades?: boolean;
  readonly allowRCUpgrades?: boolean;
  readonly dryRun?: boolean;
  readonly etcdUpgrade?: boolean;
  readonly ignorePreflightErrors?: readonly string[];
  readonly printConfig?: boolean;
}

export interface UpgradeConfiguration {
  readonly apply?: UpgradeApply;
  readonly diff?: UpgradeDiff;
  readonly node?: UpgradeNode;
  readonly plan?: UpgradePlan;
  readonly timeouts?: Timeouts;
}

export interface Models {
  readonly InitConfiguration: InitConfiguration;
  readonly ClusterConfiguration: ClusterConfiguration;
  readonly JoinConfiguration: JoinConfiguration;
  readonly ResetConfiguration: ResetConfiguration;
  readonly UpgradeConfiguration: UpgradeConfiguration;
}

export interface ModelSet {
  readonly init?: InitConfiguration;
  readonly cluster?: ClusterConfiguration;
  readonly join?: JoinConfiguration;
  readonly reset?: ResetConfiguration;
  readonly upgrade?: UpgradeConfiguration;
}

/** The value of an argument: the last one wins. Undefined when it is not set. */
export function argValue(args: readonly Arg[] | undefined, name: string): string | undefined {
  return args?.findLast((arg) => arg.name === name)?.value;
}
