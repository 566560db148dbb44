import { AppError, type ExitCode, formatProblem, type Problem, usageError } from '../base/errors.ts';
import { migrateConfig } from '../kubeadm/config/migrate.ts';
import type { CommandOptions } from './command.ts';
import { flagText } from './read-options.ts';
import type { Services } from './services.ts';

/** `config migrate`: with `--old-config` kubeadm's documents, else a KubeletConfiguration. */
export async function runMigrate(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  if (options.oldConfig === undefined) return (await import('./config-migrate-kubelet.ts')).runMigrateKubelet(services, args, options);
  if (args.length > 0 || options.from !== undefined || options.to !== undefined)
    throw usageError('--old-config converts kubeadm documents: it has no file, --from or --to beside it');
  return runMigrateKubeadm(services, options);
}

/** A KubeletConfiguration is printed as it is, and only when a kubelet accepts it: as config validate judges it. */
async function kubeletErrors(text: string, file: string): Promise<readonly Problem[]> {
  if (!/^[ \t]*["']?kind["']?[ \t]*:[ \t]*["']?KubeletConfiguration/m.test(text)) return [];
  const [{ loadCatalogue }, { validateDocuments }] = await Promise.all([
    import('../kubelet/catalogue.ts'),
    import('./validate-documents.ts'),
  ]);
  const { problems } = validateDocuments(text, file, { catalogue: await loadCatalogue(), chosen: null, allowDeprecated: true });
  return problems.filter(({ severity }) => severity !== 'warning');
}

async function runMigrateKubeadm(services: Services, options: CommandOptions): Promise<ExitCode> {
  const file = flagText(options, 'oldConfig') ?? '-';
  const text = await services.input.readText(file);
  const { output, problems } = migrateConfig(text, file);
  if (output === null) throw new AppError(problems, { exitCode: 2 });
  const refused = await kubeletErrors(text, file);
  if (refused.length > 0) throw new AppError(refused, { exitCode: 2 });
  for (const problem of problems) services.output.stderr(`${formatProblem(problem)}\n`);
  const target = flagText(options, 'newConfig');
  if (target === undefined) services.output.document(output.reveal());
  else await services.writeLocalFile(target, output.reveal());
  return 0;
}
