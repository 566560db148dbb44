import { AppError } from '../../base/errors.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import type { BundleContents } from '../../host/bundle/ports.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { unitState } from '../../host/facts/unit.ts';
import {
  type ModuleFacts,
  moduleFacts,
  planModules,
  planSwapOff,
  planSysctls,
  type SwapFacts,
  type SysctlFacts,
  swapFacts,
  sysctlFacts,
} from '../../host/install/kernel.ts';
import { type BinaryFacts, binaryFacts, filesToInstall, planBinaries } from '../../host/install/plan-binaries.ts';
import {
  declaredPackages,
  missingPackages,
  type ObservedPackages,
  planPackages,
  runtimeUnit,
  validateInstalled,
  validateKeyFile,
} from '../../host/install/plan-packages.ts';
import { repositoryKeyUrl, repositoryPaths, repositoryUrl } from '../../host/install/repository-files.ts';
import {
  type BinaryInstall,
  type HostPreparation,
  isUrl,
  type PackageInstall,
  type PackageRepository,
} from '../../host/operation/install-model.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';
import { type PackageFacts, packageFacts } from '../../host/operation/package-facts.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { diffDirectory, diffFile } from '../../host/plan/diff-file.ts';

export interface InstallPackagesInput {
  readonly templates: Templates;
  readonly install: PackageInstall;
  /**
   * The content of a key file, by URL or path; read when packages are installed, or when a host has no pinned key.
   * @throws AppError
   */
  readonly readKey: (source: string) => Promise<string>;
}

/** Installs the container runtime and the kubelet from the declared repositories, whose keys are pinned. */
export const installPackages = definePhase<InstallPackagesInput, ObservedPackages>({
  name: 'install-packages',
  short: 'Install the container runtime and the kubelet',
  observe: observePackages,
  plan: (situation, { templates, install }) => planPackages(templates, install, situation),
  verify: async ({ host, signal }, { install }) => {
    const why = validateInstalled(install, await observe(host, packageFacts(declaredPackages(install)), signal));
    if (why === null) return;
    const hint = 'Check the declared repository and the log of the package manager';
    throw new AppError({ host: host.name, code: 'INSTALL_INCOMPLETE', message: `install-packages: ${why}`, hint });
  },
});

async function observePackages(context: PhaseContext, input: InstallPackagesInput): Promise<ObservedPackages> {
  const { host, signal } = context;
  const { install } = input;
  const paths = install.repositories.flatMap(({ name }) =>
    (['apt', 'dnf'] as const).flatMap((manager) => Object.values(repositoryPaths(manager, name))),
  );
  const facts = combineFacts({
    packages: packageFacts(declaredPackages(install)),
    files: fileFacts(paths),
    kubelet: unitState('kubelet'),
    runtime: unitState(install.runtime === null ? 'kubelet' : runtimeUnit(install.runtime)),
  });
  const found = await observe(host, facts, signal);
  return { host: host.name, ...found, keys: await keysOf(context, input, found) };
}

/**
 * The key on the host if it is pinned, otherwise the validated key of the repository. Before packages are installed,
 * the key is read again: vendors publish a key with a later expiration time under the same fingerprint.
 */
async function keysOf(
  { host }: PhaseContext,
  { install, readKey }: InstallPackagesInput,
  { packages, files }: { readonly packages: PackageFacts; readonly files: ReadonlyMap<string, FileFact | null> },
): Promise<ReadonlyMap<string, string>> {
  const { manager } = packages;
  if (manager === null) return new Map();
  const installs = missingPackages(install, packages).length > 0;
  const keyOf = async (repository: PackageRepository, index: number): Promise<readonly [string, string]> => {
    const existing = files.get(repositoryPaths(manager, repository.name).key)?.content;
    const isPinned = existing !== undefined && validateKeyFile(existing, repository.keyFingerprints) === null;
    if (isPinned && !installs) return [repository.name, existing];
    const source = repository.key ?? repositoryKeyUrl(manager, repositoryUrl(manager, repository, index === 0));
    const text = await readKey(source);
    const why = validateKeyFile(text, repository.keyFingerprints);
    if (why === null) return [repository.name, text];
    const hint = 'Nothing was installed. Verify the owner of the key before pinning it with keyFingerprints';
    throw new AppError({ host: host.name, code: 'INSTALL_KEY_REFUSED', message: `${source}: ${why}`, hint }, { exitCode: 3 });
  };
  return new Map(await Promise.all(install.repositories.map(keyOf)));
}

export interface InstallBinariesInput {
  readonly install: BinaryInstall;
  /** Files of a bundle replace those of other sources. Null: no bundle. */
  readonly bundle: BundleContents | null;
  /**
   * A file of the local host; read only when a host needs it.
   * @throws AppError INPUT_UNREADABLE
   */
  readonly readFile: (path: string) => Promise<LargeFile>;
}

interface Situation {
  readonly host: string;
  readonly facts: BinaryFacts;
  readonly contents: ReadonlyMap<string, LargeFile>;
}

/** Installs programs and archives, each verified by its SHA-256. */
export const installBinaries = definePhase<InstallBinariesInput, Situation>({
  name: 'install-binaries',
  short: 'Install binaries from a directory or a URL',
  observe: async ({ host, signal }, { install, bundle, readFile }) => {
    const facts = await observe(host, binaryFacts(install), signal);
    const sent = filesToInstall(install, facts).filter(
      ({ source, sha256 }) => !isUrl(source) && (bundle?.fileBySha256(sha256) ?? null) === null,
    );
    const contents = await Promise.all(sent.map(async ({ name, source }) => [name, await readFile(source)] as const));
    return { host: host.name, facts, contents: new Map(contents) };
  },
  plan: ({ host, facts, contents }, { install, bundle }) => planBinaries(install, facts, { host, contents, bundle }),
  verify: async ({ host, signal }, { install }) => {
    const [left] = filesToInstall(install, await observe(host, binaryFacts(install), signal));
    if (left === undefined) return;
    const message = `install-binaries: ${left.path} still differs from the declared file`;
    throw new AppError({ host: host.name, code: 'INSTALL_INCOMPLETE', message, hint: 'Check which other process writes this file' });
  },
});

export interface PrepareKernelInput {
  readonly templates: Templates;
  readonly preparation: HostPreparation;
}

/** Disables swap now and at boot, if declared. */
export const disableSwap = definePhase<PrepareKernelInput, SwapFacts>({
  name: 'swap',
  short: 'Disable swap',
  observe: ({ host, signal }) => observe(host, swapFacts, signal),
  plan: planSwapOff,
});

/** Loads kernel modules now and at boot. */
export const loadKernelModules = definePhase<PrepareKernelInput, ModuleFacts>({
  name: 'kernel-modules',
  short: 'Load kernel modules',
  observe: ({ host, signal }, { preparation: { kernelModules } }) => observe(host, moduleFacts(kernelModules ?? []), signal),
  plan: (facts, { templates, preparation: { kernelModules } }) => planModules(templates, kernelModules ?? [], facts),
});

/** Writes the declared files, before the programs that read them are installed. */
export const writeHostFiles = definePhase<PrepareKernelInput, ReadonlyMap<string, FileFact | null>>({
  name: 'files',
  short: 'Write the files that the fleet file declares',
  observe: ({ host, signal }, { preparation: { files = {} } }) =>
    observe(host, fileFacts(Object.keys(files).flatMap((path) => [dirname(path), path])), signal),
  plan: (found, { preparation: { files = {} } }) => {
    const directories = [...new Set(Object.keys(files).map(dirname))].map((path) => diffDirectory(found.get(path) ?? null, path, 0o755));
    const written = Object.entries(files).map(([path, file]) => diffFile(found.get(path) ?? null, { path, ...file, owner: 'root:root' }));
    const changes = [...directories, ...written].filter((change) => change !== null);
    return changes.length === 0 ? { changes, noop: 'all files have the declared content' } : { changes };
  },
});

function dirname(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

/** Sets kernel parameters now and at boot. */
export const setSysctls = definePhase<PrepareKernelInput, SysctlFacts>({
  name: 'sysctls',
  short: 'Set kernel parameters',
  observe: ({ host, signal }, { preparation: { sysctls } }) => observe(host, sysctlFacts(Object.keys(sysctls ?? {})), signal),
  plan: (facts, { templates, preparation: { sysctls } }) => planSysctls(templates, sysctls ?? {}, facts),
});
