import { type ExitCode, formatProblem } from '../base/errors.ts';
import type { MigrateKubeletRequest } from './config-migrate-kubelet.ts';
import type { Services } from './output/services.ts';

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

async function runMigrateKubeadm(services: Services, { oldConfig: file, newConfig: target }: MigrateKubeadmRequest): Promise<ExitCode> {
  const text = await services.input.readText(file);
  const { migrateDocuments } = await import('../kubeadm/use-cases/migrate-documents.ts');
  const { input, programName } = services;
  const rules = { asKubeadm: programName === 'kubeadm', exists: (path: string) => input.exists(path) };
  const { output, warnings } = await migrateDocuments(text, file, rules);
  for (const problem of warnings) services.output.stderr(`${formatProblem(problem)}\n`);
  if (target === undefined) services.output.document(output.reveal());
  else await services.writeLocalFile(target, output.reveal());
  return 0;
}
