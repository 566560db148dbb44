import { AppError } from '../../base/errors.ts';
import type { Templates } from '../../codec/render-template.ts';
import type { FileFact } from '../facts/query.ts';
import type { UnitState } from '../facts/unit.ts';
import type { PackageInstall } from '../operation/install-model.ts';
import type { PackageFacts, PackageManager } from '../operation/package-facts.ts';
import type { HostChange, PhasePlan } from '../plan/change.ts';
import { diffFile } from '../plan/diff-file.ts';
import type { Impact } from '../plan/impact.ts';
import { readKeyFingerprints } from './openpgp.ts';
import { repositoryFile, repositoryPaths, repositoryUrl } from './repository-files.ts';

/** The packages on the host, and the repository keys by repository name. */
export interface ObservedPackages {
  readonly host: string;
  readonly packages: PackageFacts;
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly keys: ReadonlyMap<string, string>;
  readonly kubelet: UnitState | null;
  readonly runtime: UnitState | null;
}

/** Package held at its version, because it belongs to a Kubernetes version. */
const HELD_PACKAGE = 'kubelet';

/** With the kubelet comes `cri-tools`: crictl is the standard tool to inspect a runtime. */
export function declaredPackages({ runtime, extra }: PackageInstall): readonly string[] {
  return [...new Set([HELD_PACKAGE, 'cri-tools', ...(runtime === null ? [] : [runtime]), ...extra])];
}

/** The declared packages that are not installed in the declared version. */
export function missingPackages(install: PackageInstall, { installed }: PackageFacts): readonly string[] {
  return declaredPackages(install).filter((name) => {
    const version = installed.get(name);
    return version === undefined || (name === HELD_PACKAGE && !isVersion(version, install.version));
  });
}

export function runtimeUnit(runtime: string): string {
  return { 'containerd.io': 'containerd', 'cri-o': 'crio', 'docker-ce': 'docker' }[runtime] ?? runtime;
}

/**
 * Plans repositories with their keys, then packages, then the unit of the runtime.
 * @throws AppError (exit code 3) PACKAGE_MANAGER_UNKNOWN, INSTALL_DOWNGRADE
 */
export function planPackages(templates: Templates, install: PackageInstall, situation: ObservedPackages): PhasePlan {
  const { packages, host } = situation;
  const { manager, installed } = packages;
  if (manager === null) {
    const hint = 'Use install: binaries for this host, or remove install';
    throw refused(host, 'PACKAGE_MANAGER_UNKNOWN', 'install: packages needs apt-get, dnf or yum, but none of them is installed', hint);
  }
  const before = installed.get(HELD_PACKAGE);
  if (before !== undefined && isNewerMinor(before, install.version)) {
    const message = `kubelet ${before} is installed, but ${install.version} is declared: a downgrade to an older minor version is not supported`;
    throw refused(host, 'INSTALL_DOWNGRADE', message, 'Declare the installed version, or reset the host and remove the package');
  }
  const missing = missingPackages(install, packages);
  const changes = [
    ...repositoryChanges(templates, { install, manager, situation }),
    ...(missing.length === 0
      ? []
      : [{ ...installChange(install, manager, { missing, before }), ...impactOf(install, missing, situation) }]),
    ...holdChanges(manager, packages, missing),
    ...unitChanges(install, missing, situation),
  ];
  if (changes.length > 0) return { changes };
  const shown = declaredPackages(install).map((name) => `${name} ${installed.get(name)}`);
  return { changes, noop: `${shown.join(', ')}: installed` };
}

function refused(host: string, code: string, message: string, hint: string): AppError {
  return new AppError({ host, code, message, hint }, { exitCode: 3 });
}

function repositoryChanges(
  templates: Templates,
  {
    install,
    manager,
    situation: { files, keys },
  }: { readonly install: PackageInstall; readonly manager: PackageManager; readonly situation: ObservedPackages },
): readonly HostChange[] {
  return install.repositories.flatMap((repository, index) => {
    const { key, list } = repositoryPaths(manager, repository.name);
    const url = repositoryUrl(manager, repository, index === 0);
    const content = repositoryFile(templates, manager, repository, { url, held: index === 0 ? [HELD_PACKAGE] : [] });
    const desired = [
      { path: key, content: keys.get(repository.name) ?? '', mode: 0o644, owner: 'root:root' },
      { path: list, content, mode: 0o644, owner: 'root:root' },
    ];
    return desired.flatMap((file) => diffFile(files.get(file.path) ?? null, file) ?? []);
  });
}

function installChange(
  { version, repositories }: PackageInstall,
  manager: PackageManager,
  { missing, before }: { readonly missing: readonly string[]; readonly before: string | undefined },
): HostChange {
  const reason =
    before === undefined || !missing.includes(HELD_PACKAGE)
      ? `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not installed`
      : `kubelet ${before} is installed, but ${version} is declared`;
  return {
    kind: 'install-packages',
    manager,
    packages: missing.map((name) => packageArgument(manager, name, name === HELD_PACKAGE ? version : null)),
    repositories: repositories.map(({ name }) => name),
    reason,
  };
}

/** Another minor version of a running kubelet, and another container runtime, need a drained node. */
function impactOf(
  { version, runtime }: PackageInstall,
  missing: readonly string[],
  { packages: { installed }, kubelet }: ObservedPackages,
): { readonly impact?: Impact } {
  if (kubelet?.activeState !== 'active') return {};
  const before = missing.includes(HELD_PACKAGE) ? installed.get(HELD_PACKAGE) : undefined;
  const isOtherMinor = before !== undefined && minorOf(before) !== minorOf(version);
  const isOtherRuntime = runtime !== null && missing.includes(runtime);
  return { impact: isOtherMinor || isOtherRuntime ? 'drain' : 'safe' };
}

/** With dnf, the repository file holds the packages. */
function holdChanges(manager: PackageManager, { held }: PackageFacts, missing: readonly string[]): readonly HostChange[] {
  if (manager !== 'apt' || (held.has(HELD_PACKAGE) && !missing.includes(HELD_PACKAGE))) return [];
  return [{ kind: 'hold-packages', packages: [HELD_PACKAGE], reason: 'system upgrades must not change its version' }];
}

function unitChanges({ runtime }: PackageInstall, missing: readonly string[], { kubelet, runtime: state }: ObservedPackages) {
  const changes: HostChange[] = [];
  if (runtime !== null) {
    const unit = runtimeUnit(runtime);
    const isNew = missing.includes(runtime);
    if (isNew || state?.unitFileState !== 'enabled') changes.push({ kind: 'enable-unit', unit, reason: 'the unit is not enabled at boot' });
    if (isNew || state?.activeState !== 'active') changes.push({ kind: 'start-unit', unit, reason: 'the unit is not running' });
  }
  if (missing.includes(HELD_PACKAGE) && kubelet?.activeState === 'active')
    changes.push({ kind: 'restart-unit', unit: 'kubelet', reason: 'the kubelet package is replaced', impact: 'safe' });
  return changes;
}

/** Why the installed packages differ from the declared ones; null: they match. */
export function validateInstalled(install: PackageInstall, { installed }: PackageFacts): string | null {
  for (const name of declaredPackages(install)) {
    const version = installed.get(name);
    if (version === undefined) return `${name} is not installed`;
    if (name === HELD_PACKAGE && !isVersion(version, install.version))
      return `${name} ${version} is installed, not ${minorOf(version) === minorOf(install.version) ? install.version : `${install.version}: check the repository`}`;
  }
  return null;
}

export const PACKAGE_VERSION = /^1\.[0-9]{2}(?:\.[0-9]+(?:-[A-Za-z0-9.+~]+)?)?$/;

/** Whether an installed version satisfies the declared one: `1.36` matches any patch release, `1.36.2` any build. */
export function isVersion(installed: string, desired: string): boolean {
  if (installed === desired) return true;
  return /^1\.[0-9]+$/.test(desired) ? installed.startsWith(`${desired}.`) : !desired.includes('-') && installed.startsWith(`${desired}-`);
}

/** `1.36` of `1.36.2-1.1`. */
export function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

function isNewerMinor(a: string, b: string): boolean {
  return Number(a.split('.')[1]) > Number(b.split('.')[1]);
}

export function packageArgument(manager: 'apt' | 'dnf' | 'yum', name: string, version: string | null): string {
  if (version === null) return name;
  const pattern = /^1\.[0-9]+$/.test(version) ? `${version}.*` : version.includes('-') ? version : `${version}-*`;
  return manager === 'apt' ? `${name}=${pattern}` : `${name}-${pattern}`;
}

/**
 * A key file must contain only pinned keys (upper case): one foreign key could sign any package.
 * @returns the reason for a rejection, as a clause; null: trusted
 */
export function validateKeyFile(text: string, pins: readonly string[]): string | null {
  const keys = readKeyFingerprints(text);
  if (keys === null) return 'not a file of ASCII-armored OpenPGP public keys';
  const foreign = keys.find((key) => !pins.includes(key));
  return foreign === undefined ? null : `contains the key ${foreign}; expected only ${pins.join(', ')}`;
}
