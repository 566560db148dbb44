import { AppError, type ExitCode, formatProblem, type Problem } from '../base/errors.ts';
import { migrateConfig } from '../kubeadm/config/migrate.ts';
import type { MigrateKubeletRequest } from './config-migrate-kubelet.ts';
import type { Services } from './services.ts';

/** `config migrate`: kubeadm documents, or a KubeletConfiguration. */
export type ConfigMigrateRequest =
  | ({ readonly kind: 'kubeadm' } & MigrateKubeadmRequest)
  | ({ readonly kind: 'kubelet' } & MigrateKubeletRequest);

interface MigrateKubeadmRequest {
  readonly oldConfig: string;
  /** Undefined: standard output. */
  readonly newConfig: string | undefined;
}

/** `config migrate`: with `--old-config` kubeadm's documents, else a KubeletConfiguration. */
export async function runMigrate(services: Services, request: ConfigMigrateRequest): Promise<ExitCode> {
  if (request.kind === 'kubeadm') return runMigrateKubeadm(services, request);
  return (await import('./config-migrate-kubelet.ts')).runMigrateKubelet(services, request);
}

/** Prints a KubeletConfiguration unchanged, and only when it is valid by the rules of `config validate`. */
async function kubeletErrors(text: string, file: string): Promise<readonly Problem[]> {
  if (!/^[ \t]*["']?kind["']?[ \t]*:[ \t]*["']?KubeletConfiguration/m.test(text)) return [];
  const [{ loadCatalogue }, { validateDocuments }] = await Promise.all([
    import('../kubelet/catalogue.ts'),
    import('../kubeadm/use-cases/validate-documents.ts'),
  ]);
  const { problems } = validateDocuments(text, file, { catalogue: await loadCatalogue(), chosen: null, allowDeprecated: true });
  return problems.filter(({ severity }) => severity !== 'warning');
}

async function runMigrateKubeadm(services: Services, { oldConfig: file, newConfig: target }: MigrateKubeadmRequest): Promise<ExitCode> {
  const text = await services.input.readText(file);
  const { output, problems } = migrateConfig(text, file);
  if (output === null) throw new AppError(problems, { exitCode: 2 });
  const refused = await kubeletErrors(text, file);
  if (refused.length > 0) throw new AppError(refused, { exitCode: 2 });
  for (const problem of problems) services.output.stderr(`${formatProblem(problem)}\n`);
  if (target === undefined) services.output.document(output.reveal());
  else await services.writeLocalFile(target, output.reveal());
  return 0;
}
