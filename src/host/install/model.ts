/**
 * What is declared for a host before it can be a node: kernel, swap, container runtime and kubelet. Null: nothing is declared, and it is not looked at.
 */
export interface HostPreparation {
  readonly swap: 'off' | null;
  /** `[]`: none, and the file of an earlier declaration goes. */
  readonly kernelModules: readonly string[] | null;
  readonly sysctls: Readonly<Record<string, string>> | null;
  readonly install: HostInstall | null;
}

export type HostInstall = PackageInstall | BinaryInstall;

/** Packages of the host's distribution and of the repositories given. */
export interface PackageInstall {
  readonly kind: 'packages';
  /** Of the kubelet: `1.36` (the newest of that minor, any is fine), `1.36.2`, or a whole package version. */
  readonly version: string;
  /** Package of the container runtime; null: it is not installed here. */
  readonly runtime: string | null;
  /** Other packages. */
  readonly extra: readonly string[];
  /** The first is that of the kubelet. */
  readonly repositories: readonly PackageRepository[];
}

export interface PackageRepository {
  /** Of its files on the host. */
  readonly name: string;
  /** Ends in a slash. Of the kubelet's: the directory that has `deb/` and `rpm/`. */
  readonly url: string;
  /** For apt: `/` for a flat repository, else a release. */
  readonly suite: string;
  readonly components: readonly string[];
  /** URL or path of its public key; null: where the repository has it. */
  readonly key: string | null;
  /** 40 or 64 upper-case hexadecimal digits. No other key is taken. */
  readonly keyFingerprints: readonly string[];
}

/** Programs as they are, from a directory of this machine or from the web. */
export interface BinaryInstall {
  readonly kind: 'binaries';
  readonly files: readonly InstalledFile[];
  /** Enabled and started when all files are there. */
  readonly units: readonly string[];
}

export interface InstalledFile {
  readonly name: string;
  /** URL, or path of a file of this machine (relative ones count from the fleet file). */
  readonly source: string;
  /** 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly mode: number;
  /** Where it goes; of an archive the directory it is unpacked in. */
  readonly path: string;
  readonly isArchive: boolean;
}

/** True when nothing at all is declared. */
export function isUndeclared({ swap, kernelModules, sysctls, install }: HostPreparation): boolean {
  return swap === null && kernelModules === null && sysctls === null && install === null;
}

export const NO_PREPARATION: HostPreparation = { swap: null, kernelModules: null, sysctls: null, install: null };

/** Whether something is read over the network. */
export function isUrl(source: string): boolean {
  return /^https?:\/\//.test(source);
}

/**
 * The key that signs the packages of pkgs.k8s.io: "isv:kubernetes OBS Project".
 * @see https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/
 */
export const KUBERNETES_KEY_FINGERPRINT = 'DE15B14486CD377B9E876E1A234654DA9A296436';

/** Where the packages of a minor version are. */
export function kubernetesRepositoryUrl(minor: string): string {
  return `https://pkgs.k8s.io/core:/stable:/v${minor}/`;
}
