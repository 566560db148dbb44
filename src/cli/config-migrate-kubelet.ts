import type { Arg } from '../base/arg.ts';
import { AppError, type ExitCode } from '../base/errors.ts';
import { renderFlagsEnv } from '../kubelet/flags-env.ts';
import { type FilesMigration, type MigrateFilesRequest, migrateFiles } from '../kubelet/migrate/migrate-files.ts';
import { refuseLoss, resultText, stepText } from '../kubelet/migrate/migrate-kubelet.ts';
import type { MigrationStep } from '../kubelet/migrate/migration-step.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface MigrateKubeletRequest extends MigrateFilesRequest {
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
  return report(services, await migrateFiles(services, request), request);
}

async function report(services: Services, migration: FilesMigration, request: MigrateKubeletRequest): Promise<ExitCode> {
  const { text, flags, steps, problems, hasFlags } = migration;
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
  if (hasFlags && newFlags === undefined) services.output.stderr(`flags without a field: ${flags.map(flagOf).join(' ') || 'none'}\n`);
  if (newConfig === undefined) services.output.document(text);
  return 0;
}

function stepDocument({ did, what, message, lossy }: MigrationStep): MigrationStep {
  return { did, what, message, lossy };
}

function flagOf({ name, value }: Arg): string {
  return `--${name}=${value}`;
}
