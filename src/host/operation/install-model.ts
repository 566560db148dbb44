import * as z from 'zod';

const text = z.string();
const texts = z.array(text).readonly();

/** Source of a secret on the local host, read when a host is planned. */
export const secretSource = z.union([z.strictObject({ env: text }).readonly(), z.strictObject({ file: text }).readonly()]);
export type SecretSource = z.infer<typeof secretSource>;

const hostProxy = z
  .strictObject({
    /** URLs without credentials. */
    http: z.nullable(text),
    https: z.nullable(text),
    /** Addresses, subnets and domains without proxy, in addition to those of the cluster. */
    noProxy: texts,
    credentials: z.nullable(secretSource),
  })
  .readonly();
export type HostProxy = z.infer<typeof hostProxy>;

const packageRepository = z
  .strictObject({
    /** Name of its files on the host. */
    name: text,
    /** With a final slash. For the kubelet: the directory that contains `deb/` and `rpm/`. */
    url: text,
    /** For apt: `/` for a flat repository, otherwise a release. */
    suite: text,
    components: texts,
    /** URL or path of its public key; null: the default location in the repository. */
    key: z.nullable(text),
    /** 40 or 64 upper-case hexadecimal digits. Other keys are rejected. */
    keyFingerprints: texts,
  })
  .readonly();
export type PackageRepository = z.infer<typeof packageRepository>;

const packageInstall = z
  .strictObject({
    kind: z.literal('packages'),
    /** Version of the kubelet: `1.36` (newest patch release; any is accepted), `1.36.2`, or a complete package version. */
    version: text,
    /** Package of the container runtime; null: not installed by kubeletadm. */
    runtime: z.nullable(text),
    extra: texts,
    /** The first repository is the one of the kubelet. */
    repositories: z.array(packageRepository).readonly(),
  })
  .readonly();
export type PackageInstall = z.infer<typeof packageInstall>;

const installedFile = z
  .strictObject({
    name: text,
    /** URL, or path of a local file (relative to the fleet file). */
    source: text,
    /** 64 lower-case hexadecimal digits. */
    sha256: text,
    mode: z.number(),
    /** Target path; for an archive the target directory. */
    path: text,
    isArchive: z.boolean(),
  })
  .readonly();
export type InstalledFile = z.infer<typeof installedFile>;

const binaryInstall = z
  .strictObject({
    kind: z.literal('binaries'),
    files: z.array(installedFile).readonly(),
    /** Enabled and started after all files are installed. */
    units: texts,
  })
  .readonly();
export type BinaryInstall = z.infer<typeof binaryInstall>;

/** Preparation of a host. Null: not declared and not checked. The schema is part of saved plans. */
export const hostPreparation = z
  .strictObject({
    swap: z.nullable(z.literal('off')),
    /** `[]`: none; the file of an earlier declaration is removed. */
    kernelModules: z.nullable(texts),
    sysctls: z.nullable(z.record(text, text).readonly()),
    /** By absolute path. Absent: none declared. */
    files: z.exactOptional(z.record(text, z.strictObject({ content: text, mode: z.number() }).readonly()).readonly()),
    install: z.nullable(z.union([packageInstall, binaryInstall])),
    /** Absent: not declared. `none`: the files of an earlier declaration are removed. */
    proxy: z.exactOptional(z.union([z.literal('none'), hostProxy])),
  })
  .readonly();
export type HostPreparation = z.infer<typeof hostPreparation>;
export type ProxySetting = NonNullable<HostPreparation['proxy']>;

export const NO_PREPARATION: HostPreparation = { swap: null, kernelModules: null, sysctls: null, install: null };

export function isUrl(source: string): boolean {
  return /^https?:\/\//.test(source);
}

/**
 * The key that signs the packages of pkgs.k8s.io: "isv:kubernetes OBS Project".
 * @see https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/
 */
export const KUBERNETES_KEY_FINGERPRINT = 'DE15B14486CD377B9E876E1A234654DA9A296436';

export function kubernetesRepositoryUrl(minor: string): string {
  return `https://pkgs.k8s.io/core:/stable:/v${minor}/`;
}
