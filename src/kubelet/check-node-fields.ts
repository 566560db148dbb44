import { AppError, type Problem } from '../base/errors.ts';
import { identityOf, Memo } from '../base/memo.ts';
import { documentOfValue } from '../codec/document-of-value.ts';
import type { Warning } from '../host/plan/change.ts';
import { CONFIG_YAML } from '../kube/well-known.ts';
import { withBigIntegers } from './big-integers.ts';
import type { KubeletToCheck } from './check-extra-args.ts';
import { enclosingPaths } from './enclosing-paths.ts';
import { type FieldStep, formatOrigin, type LayeredConfig } from './layers.ts';
import { isStartupRule, validateKubeletConfiguration } from './validate/validate.ts';

/**
 * Judges the finished configuration of a node as its kubelet will: what patches and settings put in must have the right types and names, be
 * accepted together, and let the kubelet start.
 * @returns warnings: what a kubelet of an assumed minor would not accept or not start with
 * @throws AppError with exit code 2 and all problems, each with the layer it comes from
 */
export function checkNodeFields(layered: LayeredConfig, kubelet: KubeletToCheck): readonly Warning[] {
  const key = `${kubelet.minor} ${kubelet.assumed} ${identityOf(kubelet.catalogue)}`;
  return CHECKED.get(layered, key, () => check(layered, kubelet));
}

/** Hosts that share a configuration share the verdict. */
const CHECKED = new Memo<LayeredConfig, readonly Warning[]>();

function check(layered: LayeredConfig, { minor, assumed, catalogue }: KubeletToCheck): readonly Warning[] {
  const document = documentOfValue(withBigIntegers(layered.config, { minor, catalogue }), CONFIG_YAML);
  const problems = validateKubeletConfiguration(document, { minor, catalogue })
    .problems.filter(({ severity, code }) => severity !== 'warning' || isStartupRule(code))
    .map(({ severity: _, ...problem }) => withOrigin(problem, layered));
  const errors = assumed ? problems.filter(({ code }) => !isRule(code)) : problems;
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return problems.map(({ code, path, message, hint }) => ({
    code,
    message: `${path}: ${message}${hint === undefined ? '' : `. ${hint}`}`,
    ...(path === undefined ? {} : { field: path }),
  }));
}

/** A rule of the kubelet about values, as against what no kubelet could read. */
function isRule(code: string): boolean {
  return code.startsWith('KUBELET_');
}

/** Where a value came from: the configuration is not a file yet. */
function withOrigin(problem: Problem, { history }: LayeredConfig): Problem {
  const origin = problem.path === undefined ? undefined : stepsOf(leafPath(problem.path), history)?.at(-1)?.origin;
  return origin === undefined ? problem : { ...problem, message: `${problem.message} (${formatOrigin(origin)})` };
}

/** Members of maps stand in brackets in a problem, among the leaves only where their name is no plain one. */
function leafPath(path: string): string {
  return path.replace(/\[([A-Za-z_][\w-]*)\]/g, '.$1');
}

/** What the layers said about a field, about the list it stands in, or about the first of its members. */
function stepsOf(path: string, history: LayeredConfig['history']): readonly FieldStep[] | undefined {
  const known = enclosingPaths(path).find((at) => history.has(at));
  if (known !== undefined) return history.get(known);
  return [...history].find(([leaf]) => leaf.startsWith(`${path}.`) || leaf.startsWith(`${path}[`))?.[1];
}
