import { AppError, type Problem } from '../../base/errors.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import { withBigIntegers } from '../../codec/yaml-encode.ts';
import type { Warning } from '../../host/plan/change.ts';
import { KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import type { KubeletToCheck } from '../flags/check-extra-args.ts';
import { enclosingPaths, type FieldStep, formatOrigin, type LayeredConfig, leafPath } from '../layers/layers.ts';
import { isStartupRule, validateKubeletConfiguration } from './validate.ts';

/**
 * Validates the rendered configuration of a node with the rules of its kubelet: values from patches and
 * settings must have valid types and names, be accepted together and let the kubelet start.
 * @returns warnings: values that a kubelet of an assumed minor would reject or fail to start with
 * @throws AppError with exit code 2 and all problems, each with its layer
 */
export function checkNodeFields(layered: LayeredConfig, { minor, assumed, catalogue }: KubeletToCheck): readonly Warning[] {
  const document = documentOfValue(withBigIntegers(layered.config, catalogue.configurationType(minor)), KUBELET_CONFIG_FILE);
  const problems = validateKubeletConfiguration(document, { minor, catalogue })
    .problems.filter(({ severity, code }) => severity !== 'warning' || isStartupRule(code))
    .map(({ severity: _, ...problem }) => withOrigin(problem, layered));
  // Decoding errors have other codes than rules for values.
  const errors = assumed ? problems.filter(({ code }) => !code.startsWith('KUBELET_')) : problems;
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return problems.map(({ code, path, message, hint }) => ({
    code,
    message: `${path}: ${message}${hint === undefined ? '' : `. ${hint}`}`,
    field: path,
  }));
}

/** Adds the layer of the value at the path of a problem: the rendered configuration is not a file yet. */
export function withOrigin(problem: Problem, { history }: Pick<LayeredConfig, 'history'>): Problem {
  const origin = problem.path === undefined ? undefined : stepsOf(leafPath(problem.path), history)?.at(-1)?.origin;
  return origin === undefined ? problem : { ...problem, message: `${problem.message} (${formatOrigin(origin)})` };
}

/** The history of a field, of its enclosing list, or of its first member. */
function stepsOf(path: string, history: LayeredConfig['history']): readonly FieldStep[] | undefined {
  const known = enclosingPaths(path).find((at) => history.has(at));
  if (known !== undefined) return history.get(known);
  return [...history].find(([leaf]) => leaf.startsWith(`${path}.`) || leaf.startsWith(`${path}[`))?.[1];
}
