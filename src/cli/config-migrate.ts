import { migrateConfig } from '../core/config/migrate.ts';
import { AppError, type ExitCode, formatProblem, usageError } from '../core/errors.ts';
import type { Services } from '../ports/services.ts';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';

/** `config migrate`: with `--old-config` kubeadm's documents, else a KubeletConfiguration. */
export async function runMigrate(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  if (options.oldConfig === undefined) return (await import('./config-migrate-kubelet.ts')).runMigrateKubelet(services, args, options);
  if (args.length > 0 || options.from !== undefined || options.to !== undefined)
    throw usageError('--old-config converts kubeadm documents: it has no file, --from or --to beside it');
  return runMigrateKubeadm(services, options);
}

async function runMigrateKubeadm(services: Services, options: CommandOptions): Promise<ExitCode> {
  const file = flagText(options, 'oldConfig') ?? '-';
  const { output, problems } = migrateConfig(await services.input.readText(file), file);
  if (output === null) throw new AppError(problems, { exitCode: 2 });
  for (const problem of problems) services.output.stderr(`${formatProblem(problem)}\n`);
  const target = flagText(options, 'newConfig');
  if (target === undefined) services.output.document(output.reveal());
  else await services.writeLocalFile(target, output.reveal());
  return 0;
}
