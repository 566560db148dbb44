import { type Problem, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { OLDEST_MINOR } from '../catalogue/catalogue.ts';
import { loadCatalogue } from '../catalogue/load-catalogue.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { readMinor } from '../minor-option.ts';
import { type KubeletMigration, migrateKubelet } from './migrate-kubelet.ts';
import { readFlagSources } from './read-flag-sources.ts';

export interface MigrateFilesRequest {
  readonly file: string;
  /** The version of the kubelet that the file is for, and of the one it is converted for. */
  readonly from: string;
  readonly to: string;
  /** Units, drop-ins and environment files of a kubelet, files with a command line, or command lines. */
  readonly flagFiles: readonly string[];
  /** `name=value` of flags of the kubelet. */
  readonly extraArgs: readonly string[];
  /** Write explicit values for defaults that differ. */
  readonly keepDefaults: boolean;
}

export interface FilesMigration extends KubeletMigration {
  /** The kubelet has flags. */
  readonly hasFlags: boolean;
  /** Warnings about the sources of the flags. */
  readonly flagNotes: readonly Problem[];
}

/**
 * Converts the configuration file and the flags of a kubelet for another version; writes nothing.
 * @throws AppError with exit code 2: an invalid version, file or flag
 */
export async function migrateFiles(services: Pick<LocalFiles, 'input'>, request: MigrateFilesRequest): Promise<FilesMigration> {
  const { file, keepDefaults } = request;
  const [from, to] = [readMinor(request.from, 'from', OLDEST_MINOR), readMinor(request.to, 'to', OLDEST_MINOR)];
  const catalogue = await loadCatalogue();
  const read = await readFlagSources(services, request.flagFiles);
  const words = [...read.words.map(({ word }) => word), ...request.extraArgs.map((text) => `--${text.replace(/^-+/, '')}`)];
  const { flags, others } = parseCommandLine(words, { catalogue, minor: from });
  if (others[0] !== undefined) {
    const source = read.words.find(({ word }) => word === others[0])?.source;
    const place = source === undefined ? '' : ` (${source})`;
    throw usageError(`${others[0]}${place} is not a flag: a kubelet with this argument does not start`);
  }
  const migration = migrateKubelet(await services.input.readText(file), file, { from, to, catalogue, flags, keepDefaults });
  return { ...migration, hasFlags: words.length > 0, flagNotes: read.notes };
}
