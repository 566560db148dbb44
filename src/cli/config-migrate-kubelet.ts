import type { Arg } from '../base/arg.ts';
import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import { parseEnvironmentFile, splitCommandWords } from '../host/systemd/environment.ts';
import { loadCatalogue, OLDEST_MINOR } from '../kubelet/catalogue.ts';
import { parseCommandLine } from '../kubelet/flags/command-line.ts';
import { renderFlagsEnv } from '../kubelet/flags-env.ts';
import { type KubeletMigration, migrateKubelet, refuseLoss, resultText, stepText } from '../kubelet/migrate/migrate-kubelet.ts';
import type { MigrationStep } from '../kubelet/migrate/migration-step.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface MigrateKubeletRequest {
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
  /** Remove settings that have no equivalent. */
  readonly force: boolean;
  /** Undefined: standard output. */
  readonly newConfig: string | undefined;
  /** Undefined: the flags are listed on standard error. */
  readonly newFlags: string | undefined;
  readonly format: DocumentFormat;
}

/**
 * `config migrate FILE --from 1.X --to 1.Y`: exit code 2, and no output is written, when a setting would be
 * lost.
 */
export async function runMigrateKubelet(services: Services, request: MigrateKubeletRequest): Promise<ExitCode> {
  const { file, keepDefaults } = request;
  const [from, to] = [readMinor(request.from, 'from', OLDEST_MINOR), readMinor(request.to, 'to', OLDEST_MINOR)];
  const catalogue = await loadCatalogue();
  const words = [...(await readFlagFiles(services, request.flagFiles)), ...request.extraArgs.map((text) => `--${text.replace(/^-+/, '')}`)];
  const { flags, others } = parseCommandLine(words, { catalogue, minor: from });
  if (others[0] !== undefined) throw usageError(`${others[0]} is not a flag: a kubelet with this argument does not start`);
  const migration = migrateKubelet(await services.input.readText(file), file, {
    from,
    to,
    catalogue,
    flags,
    keepDefaults,
  });
  return report(services, migration, { request, hasFlags: words.length > 0 });
}

async function report(
  services: Services,
  migration: KubeletMigration,
  { request, hasFlags }: { readonly request: MigrateKubeletRequest; readonly hasFlags: boolean },
): Promise<ExitCode> {
  const { text, flags, steps, problems } = migration;
  const refused = request.force ? null : refuseLoss(steps);
  const { format, newConfig, newFlags } = request;
  if (format === 'text')
    for (const step of steps.filter(({ lossy }) => refused === null || !lossy)) services.output.stderr(`${stepText(step)}\n`);
  if (refused !== null) throw refused;
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  if (newFlags !== undefined) await services.writeLocalFile(newFlags, renderFlagsEnv(flags));
  if (newConfig !== undefined) await services.writeLocalFile(newConfig, text);
  if (format !== 'text') {
    services.output.stdout(
      renderDocument({ config: text, flags: flags.map(({ name, value }) => ({ name, value })), steps: steps.map(stepDocument) }, format),
    );
    return 0;
  }
  for (const problem of problems) services.output.stderr(`${resultText(problem)}\n`);
  if (hasFlags && newFlags === undefined) services.output.stderr(`flags that stay: ${flags.map(flagOf).join(' ') || 'none'}\n`);
  if (newConfig === undefined) services.output.document(text);
  return 0;
}

function stepDocument({ did, what, message, lossy }: MigrationStep): MigrationStep {
  return { did, what, message, lossy };
}

function flagOf({ name, value }: Arg): string {
  return `--${name}=${value}`;
}

/** The variables that hold flags in the unit of a kubelet, in the order of its command line. */
const VARIABLES = ['KUBELET_KUBEADM_ARGS', 'KUBELET_EXTRA_ARGS'] as const;

async function readFlagFiles(services: Services, files: readonly string[]): Promise<readonly string[]> {
  const found: { readonly order: number; readonly words: readonly string[] }[] = [];
  for (const file of files) {
    const values = parseEnvironmentFile(await services.input.readText(file));
    const own = VARIABLES.flatMap((name, order) => (values.has(name) ? [{ order, words: splitCommandWords(values.get(name) ?? '') }] : []));
    if (own.length === 0)
      throw new AppError(
        {
          code: 'FLAGS_FILE_INVALID',
          message: `${file} sets neither ${VARIABLES.join(' nor ')}`,
          hint: 'Give kubeadm-flags.env, or flags with --kubelet-extra-args',
        },
        { exitCode: 2 },
      );
    found.push(...own);
  }
  return found.sort((a, b) => a.order - b.order).flatMap(({ words }) => words);
}
