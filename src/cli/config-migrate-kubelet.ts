import type { Arg } from '../base/arg.ts';
import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import { renderFlagsEnv } from '../kubelet/flags/flags-env.ts';
import type { MigrationStep } from '../kubelet/migrate/migrate-fields.ts';
import { type FilesMigration, type MigrateFilesRequest, migrateFiles } from '../kubelet/migrate/migrate-files.ts';
import { lossyStepsError, resultText, stepText } from '../kubelet/migrate/migrate-kubelet.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';

export interface MigrateKubeletRequest extends Omit<MigrateFilesRequest, 'from' | 'to'> {
  /** Version of the current kubelet; undefined: missing on the command line. */
  readonly from: string | undefined;
  /** Version of the new kubelet; undefined: missing on the command line. */
  readonly to: string | undefined;
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
  const { from, to } = request;
  if (from === undefined || to === undefined) throw versionMissing(request.file, await services.input.readText(request.file), from);
  return report(services, await migrateFiles(services, { ...request, from, to }), request);
}

/** Without versions, the file may be of the other kind that `config migrate` converts. */
function versionMissing(file: string, text: string, from: string | undefined): AppError {
  if (/^apiVersion: *["']?kubeadm\.k8s\.io\//m.test(text))
    return usageError(
      `${file} contains kubeadm documents`,
      `Pass the file with --old-config: kubeletadm config migrate --old-config ${file}`,
    );
  const missing = from === undefined ? '--from' : '--to';
  return usageError(`${missing} is missing`, 'Pass the current and the new kubelet version, e.g. --from 1.26 --to 1.36');
}

async function report(services: Services, migration: FilesMigration, request: MigrateKubeletRequest): Promise<ExitCode> {
  const { text, flags, steps, problems, hasFlags, flagNotes } = migration;
  for (const note of flagNotes) services.output.stderr(`${resultText(note)}\n`);
  const refused = request.force ? null : lossyStepsError(steps);
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
  if (hasFlags && newFlags === undefined)
    services.output.stderr(`flags that no field replaces: ${flags.map(flagOf).join(' ') || 'none'}\n`);
  if (newConfig === undefined) services.output.document(text);
  return 0;
}

function stepDocument({ did, what, message, lossy }: MigrationStep): MigrationStep {
  return { did, what, message, lossy };
}

function flagOf({ name, value }: Arg): string {
  return `--${name}=${value}`;
}
