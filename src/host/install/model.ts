/**
 * The declared preparation of a host: kernel, swap, container runtime and kubelet. Null: not declared and not
 * checked.
 */
export interface HostPreparation {
  readonly swap: 'off' | null;
  /** `[]`: none; the file of an earlier declaration is removed. */
  readonly kernelModules: readonly string[] | null;
  readonly sysctls: Readonly<Record<string, string>> | null;
  readonly install: HostInstall | null;
  /** Absent: not declared. */
  readonly proxy?: ProxySetting | undefined;
}

/** The proxy of the container runtime and the kubelet. `none`: the files of an earlier declaration are removed. */
export type ProxySetting = HostProxy | 'none';

export interface HostProxy {
  /** URLs without credentials. */
  readonly http: string | null;
  readonly https: string | null;
  /** Addresses, subnets and domains without proxy, in addition to those of the cluster. */
  readonly noProxy: readonly string[];
  readonly credentials: SecretSource | null;
}

/** Source of a secret on the local host, read when a host is planned. */
export type SecretSource = { readonly env: string } | { readonly file: string };

export type HostInstall = PackageInstall | BinaryInstall;

/** Packages of the host's distribution and of the given repositories. */
export interface PackageInstall {
  readonly kind: 'packages';
  /**
   * Version of the kubelet: `1.36` (newest patch release; any is accepted), `1.36.2`, or a complete package
   * version.
   */
  readonly version: string;
  /** Package of the container runtime; null: not installed by kubeletadm. */
  readonly runtime: string | null;
  readonly extra: readonly string[];
  /** The first repository is the one of the kubelet. */
  readonly repositories: readonly PackageRepository[];
}

export interface PackageRepository {
  /** Name of its files on the host. */
  readonly name: string;
  /** With a final slash. For the kubelet: the directory that contains `deb/` and `rpm/`. */
  readonly url: string;
  /** For apt: `/` for a flat repository, otherwise a release. */
  readonly suite: string;
  readonly components: readonly string[];
  /** URL or path of its public key; null: the default location in the repository. */
  readonly key: string | null;
  /** 40 or 64 upper-case hexadecimal digits. Other keys are rejected. */
  readonly keyFingerprints: readonly string[];
}

/** Binaries from a local directory or from URLs. */
export interface BinaryInstall {
  readonly kind: 'binaries';
  readonly files: readonly InstalledFile[];
  /** Enabled and started after all files are installed. */
  readonly units: readonly string[];
}

export interface InstalledFile {
  readonly name: string;
  /** URL, or path of a local file (relative to the fleet file). */
  readonly source: string;
  /** 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly mode: number;
  /** Target path; for an archive the target directory. */
  readonly path: string;
  readonly isArchive: boolean;
}

export function isUndeclared({ swap, kernelModules, sysctls, install, proxy }: HostPreparation): boolean {
  return swap === null && kernelModules === null && sysctls === null && install === null && proxy === undefined;
}

export const NO_PREPARATION: HostPreparation = { swap: null, kernelModules: null, sysctls: null, install: null };

/** Whether a source is a URL. */
export function isUrl(source: string): boolean {
  return /^https?:\/\//.test(source);
}

/**
 * The key that signs the packages of pkgs.k8s.io: "isv:kubernetes OBS Project".
 * @see https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/
 */
export const KUBERNETES_KEY_FINGERPRINT = 'DE15B14486CD377B9E876E1A234654DA9A296436';

/** URL of the package repository of a minor version. */
export function kubernetesRepositoryUrl(minor: string): string {
  return `https://pkgs.k8s.io/core:/stable:/v${minor}/`;
}
