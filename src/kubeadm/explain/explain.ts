import { AppError } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { Catalogue } from '../../kubelet/catalogue.ts';
import { findFlag, flagKey } from '../../kubelet/flags/command-line.ts';
import { explainField, findField, listFields } from './explain-field.ts';
import { explainFlag } from './explain-flag.ts';
import { explainGate } from './explain-gate.ts';
import type { ExplainOptions, Explanation, Matches } from './explanation.ts';
import { searchNames } from './search-names.ts';

/**
 * Explains a field of KubeletConfiguration, a flag of the kubelet or a feature gate.
 * @param name a path such as `logging.vmodule.verbosity` or `evictionHard[memory.available]` (explains the
 *   map), a flag (`--node-ip`) or a gate (`NodeSwap`); a part of names (`swap`) gives the list of names that contain
 *   it, or explains the only one; an empty string gives all top-level fields
 * @throws AppError EXPLAIN_UNKNOWN_NAME, with a suggestion, exit code 2
 */
export function explain(name: string, options: ExplainOptions): Explanation {
  const { catalogue } = options;
  if (name === '') return listFields(options);
  if (name.startsWith('-')) {
    const flag = findFlag(name, options);
    if (flag === undefined) throw unknownFlag(name, catalogue);
    return explainFlag(flag, options);
  }
  const field = findField(name, catalogue);
  if (field !== undefined) return explainField(field, options);
  const gate = catalogue.gates.get(name);
  if (gate !== undefined) return explainGate(gate, options);
  const flag = findFlag(name, options);
  if (flag !== undefined) return explainFlag(flag, options);
  const matches = searchNames(name, options);
  if (matches === null) throw unknownName(name, catalogue);
  const [only, ...more] = namesOf(matches);
  return only === undefined || more.length > 0 ? matches : explain(only, options);
}

function namesOf({ fields, flags, featureGates }: Matches): readonly string[] {
  return [...fields.map(({ path }) => path), ...flags.map(({ name }) => `--${name}`), ...featureGates.map(({ name }) => name)];
}

function unknownFlag(name: string, { flags }: Catalogue): AppError {
  const guess = closestName(flagKey(name), flags.keys());
  return unknown(`no kubelet version has the flag --${flagKey(name)}`, guess === null ? null : `--${guess}`);
}

/** The error for a name that is no field, flag or gate in any minor version, with a suggestion. */
export function unknownName(name: string, { fields, gates, flags }: Catalogue): AppError {
  const paths = [...fields.keys()];
  const last = lastName(name);
  const namesake = paths.find((path) => lastName(path).toLowerCase() === last.toLowerCase());
  const isOf = (path: string): boolean => lastName(path) === closestName(last, paths.map(lastName));
  const guess =
    closestName(name, paths) ?? namesake ?? closestName(name, gates.keys()) ?? closestName(name, flags.keys()) ?? paths.find(isOf) ?? null;
  return unknown(`no kubelet version has a field, flag or feature gate ${name}`, guess);
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1).replaceAll('[]', '');
}

function unknown(message: string, guess: string | null): AppError {
  const hint = guess === null ? 'To list the fields, run kubeletadm config explain' : `Did you mean ${guess}?`;
  return new AppError({ code: 'EXPLAIN_UNKNOWN_NAME', message, hint }, { exitCode: 2 });
}
