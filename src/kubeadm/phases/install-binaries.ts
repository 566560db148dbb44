import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import type { BundleContents } from '../../host/bundle/ports.ts';
import { type BinaryFacts, binaryFacts, filesToInstall, planBinaries } from '../../host/install/plan-binaries.ts';
import { type BinaryInstall, isUrl } from '../../host/operation/install-model.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';
import { definePhase } from '../../host/phase.ts';

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
