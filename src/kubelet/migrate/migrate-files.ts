import { AppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { parseEnvironmentFile, splitCommandWords } from '../../host/systemd/environment.ts';
import { OLDEST_MINOR } from '../catalogue.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { loadCatalogue } from '../load-catalogue.ts';
import { readMinor } from '../minor-option.ts';
import { type KubeletMigration, migrateKubelet } from './migrate-kubelet.ts';

export interface MigrateFilesRequest {
  readonly file: string;
  /** The version of the kubelet that the file is for, and of the one it is converted for. */
  readonly from: string;
  readonly to: string;
  /** Files with flags of the kubelet. */
  readonly flagFiles: readonly string[];
  /** `name=value` of flags of the kubelet. */
  readonly extraArgs: readonly string[];
  /** Write explicit values for defaults that differ. */
  readonly keepDefaults: boolean;
}

export interface FilesMigration extends KubeletMigration {
  /** The kubelet has flags. */
  readonly hasFlags: boolean;
}

/**
 * Converts the configuration file and the flags of a kubelet for another version; writes nothing.
 * @throws AppError with exit code 2: an invalid version, file or flag
 */
export async function migrateFiles(services: Pick<LocalFiles, 'input'>, request: MigrateFilesRequest): Promise<FilesMigration> {
  const { file, keepDefaults } = request;
  const [from, to] = [readMinor(request.from, 'from', OLDEST_MINOR), readMinor(request.to, 'to', OLDEST_MINOR)];
  const catalogue = await loadCatalogue();
  const words = [...(await readFlagFiles(services, request.flagFiles)), ...request.extraArgs.map((text) => `--${text.replace(/^-+/, '')}`)];
  const { flags, others } = parseCommandLine(words, { catalogue, minor: from });
  if (others[0] !== undefined) throw usageError(`${others[0]} is not a flag: a kubelet with this argument does not start`);
  const migration = migrateKubelet(await services.input.readText(file), file, { from, to, catalogue, flags, keepDefaults });
  return { ...migration, hasFlags: words.length > 0 };
}

/** The variables that hold flags in the unit of a kubelet, in the order of its command line. */
const VARIABLES = ['KUBELET_KUBEADM_ARGS', 'KUBELET_EXTRA_ARGS'] as const;

async function readFlagFiles(services: Pick<LocalFiles, 'input'>, files: readonly string[]): Promise<readonly string[]> {
  const found: { readonly order: number; readonly words: readonly string[] }[] = [];
  for (const file of files) {
    const values = parseEnvironmentFile(await services.input.readText(file));
    const own = VARIABLES.flatMap((name, order) => (values.has(name) ? [{ order, words: splitCommandWords(values.get(name) ?? '') }] : []));
    if (own.length === 0)
      throw new AppError(
        {
          code: 'FLAGS_FILE_INVALID',
          message: `${file} sets neither ${VARIABLES.join(' nor ')}`,
          hint: 'Pass kubeadm-flags.env, or flags with --kubelet-extra-args',
        },
        { exitCode: 2 },
      );
    found.push(...own);
  }
  return found.sort((a, b) => a.order - b.order).flatMap(({ words }) => words);
}
