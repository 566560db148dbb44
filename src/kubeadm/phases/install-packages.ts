import { AppError } from '../../base/errors.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { unitState } from '../../host/facts/unit.ts';
import {
  declaredPackages,
  type ObservedPackages,
  planPackages,
  runtimeUnit,
  validateInstalled,
  validateKeyFile,
} from '../../host/install/plan-packages.ts';
import { repositoryKeyUrl, repositoryPaths, repositoryUrl } from '../../host/install/repository-files.ts';
import type { PackageInstall, PackageRepository } from '../../host/operation/install-model.ts';
import { type PackageFacts, packageFacts } from '../../host/operation/package-facts.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';

export interface InstallPackagesInput {
  readonly templates: Templates;
  readonly install: PackageInstall;
  /**
   * The content of a key file, by URL or path; read only when a host has no valid key.
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

/** The key on the host if it is valid, otherwise the validated key of the repository. */
async function keysOf(
  { host, clock }: PhaseContext,
  { install, readKey }: InstallPackagesInput,
  { packages: { manager }, files }: { readonly packages: PackageFacts; readonly files: ReadonlyMap<string, FileFact | null> },
): Promise<ReadonlyMap<string, string>> {
  if (manager === null) return new Map();
  const now = clock.now();
  const keyOf = async (repository: PackageRepository, index: number): Promise<readonly [string, string]> => {
    const existing = files.get(repositoryPaths(manager, repository.name).key)?.content;
    if (existing !== undefined && validateKeyFile(existing, repository.keyFingerprints, now) === null) return [repository.name, existing];
    const source = repository.key ?? repositoryKeyUrl(manager, repositoryUrl(manager, repository, index === 0));
    const text = await readKey(source);
    const why = validateKeyFile(text, repository.keyFingerprints, now);
    if (why === null) return [repository.name, text];
    const hint = 'Nothing was installed. Verify the owner of the key before pinning it with keyFingerprints';
    throw new AppError({ host: host.name, code: 'INSTALL_KEY_REFUSED', message: `${source}: ${why}`, hint }, { exitCode: 3 });
  };
  return new Map(await Promise.all(install.repositories.map(keyOf)));
}
