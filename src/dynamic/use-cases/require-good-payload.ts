import { AppError, formatPosition, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { DEFAULT_MINOR, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { readValidatedMinor } from '../../kubelet/minor-option.ts';
import { validatePayload } from '../agent/validate-payload.ts';
import type { NodeConfig } from '../status/node-config.ts';

/** Options for validating a payload. */
export interface ValidationRequest {
  /** Undefined: the versions of the nodes. */
  readonly kubernetesVersion: string | undefined;
  /** Accept a configuration that the kubelet rejects. */
  readonly skipValidation: boolean;
}

/**
 * Validates a payload for the nodes that will read it: with `--kubernetes-version`, otherwise with the
 * versions of the nodes. Warnings are reported.
 * @throws AppError with every error (exit code 2), unless `--skip-validation`
 */
export async function requireGoodPayload(
  text: string,
  file: string,
  {
    nodes,
    validation,
    reporter,
  }: { readonly nodes: readonly NodeConfig[]; readonly validation: ValidationRequest; readonly reporter: Reporter },
): Promise<void> {
  const { kubernetesVersion: chosen, skipValidation: skip } = validation;
  const minors = chosen === undefined ? minorsOf(nodes) : [readValidatedMinor(chosen)];
  const native = nodes.length === 0 ? minors.some((minor) => minor <= LAST_DYNAMIC_MINOR) : nodes.some((node) => node.backend === 'native');
  const problems = await validatePayload(text, file, { minors, catalogue: await loadCatalogue(), native });
  const isError = ({ severity }: Problem): boolean => severity !== 'warning';
  for (const problem of problems) if (skip || !isError(problem)) report(reporter, problem);
  const errors = problems.filter(isError);
  if (errors.length > 0 && !skip) throw new AppError(errors, { exitCode: 2 });
}

function minorsOf(nodes: readonly NodeConfig[]): readonly Minor[] {
  const minors = [...new Set(nodes.flatMap(({ minor }) => minor ?? []))].sort((a, b) => a - b);
  return minors.length === 0 ? [DEFAULT_MINOR] : minors;
}

function report(reporter: Reporter, { code, message, hint, path, position }: Problem): void {
  const where = [position === undefined ? '' : formatPosition(position), path ?? ''].filter(Boolean).join(' ');
  const text = `${where === '' ? '' : `${where}: `}${message}${hint === undefined ? '' : `. ${hint}`}`;
  reporter.report({ level: 'warning', code, message: text });
}
