import type { JsonObject } from '../../base/json.ts';
import type { ListeningPorts } from '../../host/facts/listening-ports.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { LogindFacts } from '../../host/systemd/logind.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import type { CgroupDriver } from '../facts/cgroup-driver.ts';
import type { Amounts, NodePod, PodFeatureGate } from './pod.ts';

/** A pod with the values that the kubelet's admission of pods reads. */
export interface RiskPod extends NodePod {
  /** `spec.priority`; undefined: 0. */
  readonly priority?: number | undefined;
  /** Names of the sysctls that the pod sets. */
  readonly sysctls?: readonly string[] | undefined;
  /** Images of its containers, with the pull policy. */
  readonly images?: readonly { readonly image: string; readonly pullPolicy: string }[];
  /** CPUs of the containers that request an integer of them, of Guaranteed pods without resources of their own; undefined: others. */
  readonly exclusiveCpus?: readonly number[] | undefined;
  /** Gates of the features that the pod needs from its kubelet. */
  readonly features?: readonly PodFeatureGate[] | undefined;
}

/** What a Node offers, as its status shows it. */
export interface NodeOffer {
  readonly capacity: Amounts;
  readonly allocatable: Amounts;
  /** `status.allocatable.pods`; null: not reported. */
  readonly pods: number | null;
  /** `status.declaredFeatures`, since Kubernetes 1.35; undefined: none. */
  readonly declaredFeatures?: readonly string[] | undefined;
  /** A handler of `status.runtimeHandlers` supports user namespaces; undefined: not reported. */
  readonly hasUserNamespaces?: boolean | undefined;
}

/** Space and inodes of a file system. */
export interface FileSystemSpace {
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly freeInodes: number;
  readonly inodes: number;
}

/** Cgroups of a host, by their path below /sys/fs/cgroup. */
export interface CgroupFacts {
  readonly version: 1 | 2;
  /** The driver of the container runtime, which wins over the configured one; null: unknown. */
  readonly driver: CgroupDriver | null;
  /**
   * The controllers that the kubelet needs and the cgroup has; null: it does not exist. With cgroup v1: the hierarchies
   * in which it exists. The entry `/` has those of the host.
   */
  readonly controllers: Readonly<Record<string, readonly string[] | null>>;
}

/** Facts about a host that a configuration depends on. Null, or absent in a record: unknown. */
export interface HostRiskFacts {
  /** Files that a configuration names, by path; a null entry: the path does not exist. */
  readonly files: Readonly<Record<string, Pick<FileFact, 'type'> | null>>;
  /** Static pods by the path of their directory or file; a null entry: the path does not exist. */
  readonly manifests: Readonly<Record<string, readonly { readonly namespace: string; readonly name: string }[] | null>>;
  readonly memory: { readonly capacityBytes: number; readonly availableBytes: number } | null;
  /** The file system of the kubelet's root directory. */
  readonly nodeFs: FileSystemSpace | null;
  /** The file system of the images. */
  readonly imageFs: FileSystemSpace | null;
  readonly pids: { readonly max: number; readonly running: number } | null;
  /** In the kernel's notation, for example `0-3`. */
  readonly onlineCpus: string | null;
  /** Tasks (processes and threads) in the cgroup of each pod, by the uid of the pod. */
  readonly podTasks: Readonly<Record<string, number>> | null;
  /** Memory that the pods of the host use and that the kernel cannot reclaim as file cache, in bytes. */
  readonly podsMemoryBytes: number | null;
  /** Listening TCP ports. */
  readonly ports: ListeningPorts | null;
  /** IP addresses of the host. */
  readonly addresses: readonly string[] | null;
  readonly usesSwap: boolean | null;
  readonly cgroupVersion: 1 | 2 | null;
  /** The cgroups that the configuration names. */
  readonly cgroups: CgroupFacts | null;
  /** How the CPUs of the host are divided. */
  readonly cpuTopology: { readonly cpusPerCore: number; readonly numaNodes: number } | null;
  /** CPUs that no container has exclusively, in the state of a static CPU manager. */
  readonly sharedCpus: number | null;
  /** The most files that the kernel lets a process open. */
  readonly maxOpenFiles: number | null;
  /** The policy that a manager of the kubelet stored in its state file, by field; absent: no such file, or unknown. */
  readonly managerPolicies: Readonly<Record<string, string>>;
  /** Names (without tag) of the images that the kubelet has records of pulling; null: unknown. */
  readonly pulledImages?: readonly string[] | null;
  /** Values of kernel settings, by name (`vm.overcommit_memory`). */
  readonly sysctls: Readonly<Record<string, string>>;
  readonly logind: LogindFacts | null;
}

/** A change of a kubelet's configuration. */
export interface RiskChange {
  /** The effective configuration of the running kubelet, with defaults; null: unknown. */
  readonly before: JsonObject | null;
  /** The effective configuration after the change, with defaults and absolute paths. */
  readonly after: JsonObject;
}

/** A change, and the node that it is meant for. */
export interface RiskInput extends RiskChange, KubeletReader {
  readonly nodeName: string;
  /** Null: unknown. */
  readonly pods: readonly RiskPod[] | null;
  /** Null: unknown. */
  readonly node: NodeOffer | null;
  /** Null: unknown. */
  readonly host: HostRiskFacts | null;
  /** Addresses of the cluster's Services with port 53; null: unknown. */
  readonly dnsServices: readonly string[] | null;
}
