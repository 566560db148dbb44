import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { migrateConfig } from '../config/migrate.ts';
import { type TextOptions, validateDocuments } from './validate-documents.ts';

/**
 * Converts kubeadm's documents to the newest API version. Values that `config validate` refuses are kept, with a warning
 * for each; fields that cannot be decoded are errors. As kubeadm, so are invalid values of its documents.
 * @throws AppError with exit code 2 and all problems
 */
export async function migrateDocuments(text: string, file: string, rules: Pick<TextOptions, 'asKubeadm' | 'exists'>) {
  const { output, problems } = migrateConfig(text, file, rules);
  if (output === null || (rules.asKubeadm && problems.some(isError))) throw new AppError(problems, { exitCode: 2 });
  const catalogue = await loadCatalogue();
  const verdict = await validateDocuments(text, file, { ...rules, catalogue, chosen: null, allowDeprecated: true });
  const errors = verdict.problems.filter(isError);
  // Problems of decoding have codes CONFIG_*; those of kubeadm's documents are known.
  const known = new Set(problems.map(formatProblem));
  const undecoded = errors.filter((problem) => problem.code.startsWith('CONFIG_') && !known.has(formatProblem(problem)));
  if (undecoded.length > 0) throw new AppError(undecoded, { exitCode: 2 });
  const kept = errors.map((problem) => ({ ...problem, severity: 'warning' as const }));
  return { output, warnings: [...problems.filter((problem) => !isError(problem)), ...kept] };
}

function isError({ severity }: Problem): boolean {
  return severity !== 'warning';
}
