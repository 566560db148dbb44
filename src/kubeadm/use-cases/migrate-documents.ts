import { AppError, type Problem } from '../../base/errors.ts';
import type { SensitiveText } from '../../base/text/secret.ts';
import { migrateConfig } from '../config/migrate.ts';

export interface MigratedDocuments {
  readonly output: SensitiveText;
  readonly warnings: readonly Problem[];
}

/**
 * Converts kubeadm's documents to the newest API version. A KubeletConfiguration is kept unchanged, and must be valid by
 * the rules of `config validate`.
 * @throws AppError with exit code 2 and all problems
 */
export async function migrateDocuments(text: string, file: string): Promise<MigratedDocuments> {
  const { output, problems } = migrateConfig(text, file);
  if (output === null) throw new AppError(problems, { exitCode: 2 });
  const refused = await kubeletErrors(text, file);
  if (refused.length > 0) throw new AppError(refused, { exitCode: 2 });
  return { output, warnings: problems };
}

async function kubeletErrors(text: string, file: string): Promise<readonly Problem[]> {
  if (!/^[ \t]*["']?kind["']?[ \t]*:[ \t]*["']?KubeletConfiguration/m.test(text)) return [];
  const [{ loadCatalogue }, { validateDocuments }] = await Promise.all([
    import('../../kubelet/load-catalogue.ts'),
    import('./validate-documents.ts'),
  ]);
  const { problems } = validateDocuments(text, file, { catalogue: await loadCatalogue(), chosen: null, allowDeprecated: true });
  return problems.filter(({ severity }) => severity !== 'warning');
}
