import { formatPosition, type Position, type Problem } from '../../base/errors.ts';
import { parentPath, showFieldPath } from '../../codec/field-path.ts';
import type { FieldLocation } from '../../codec/typed-problems.ts';
import type { ModelKind } from './model.ts';

/** Source of a model value: a position in a file, or a command-line flag. */
export type Origin = FieldLocation | { readonly flag: string };

/** By kind and model path: `InitConfiguration.nodeRegistration.name`; a document itself is under its kind. */
export type Origins = ReadonlyMap<string, Origin>;

/** A problem of a model, before its position is known. */
export interface ConfigFinding {
  /** Kind and model path. */
  readonly path: string;
  readonly problem: Problem;
  /** A required value is absent: not reported if errors in the document may explain it. */
  readonly missing?: true;
  /** A rule for files only: a flag may violate it. */
  readonly notForFlags?: true;
  /** The conflicting value, reported with its position: its path, and its name in the message. */
  readonly conflictsWith?: { readonly path: string; readonly name: string };
}

export function positionsOf(origins: Origins): ReadonlyMap<string, Position> {
  return new Map([...origins].flatMap(([path, origin]) => ('position' in origin ? [[path, origin.position] as const] : [])));
}

export function modelPath(kind: ModelKind, path: string): string {
  if (path === '') return kind;
  return path.startsWith('[') ? `${kind}${path}` : `${kind}.${path}`;
}

/**
 * Adds the position to a finding: the position of the value or of its nearest parent, or the flag that set
 * it. A finding about a document that does not exist keeps only its field path.
 */
export function placeFinding(finding: ConfigFinding, origins: Origins): Problem {
  const { path } = finding;
  const problem = withConflictOrigin(finding, origins);
  const field = withoutKind(path);
  for (let around = path; around !== ''; around = parentPath(around)) {
    const origin = origins.get(around);
    if (!origin) continue;
    if ('flag' in origin) return { ...problem, path: origin.flag };
    const written = around === path ? origin.path : field;
    return { ...problem, position: origin.position, ...(written === '' ? {} : { path: showFieldPath(written) }) };
  }
  return { ...problem, ...(field === '' ? {} : { path: showFieldPath(field) }) };
}

/** Whether a flag set the value at a path, or one of its parents. */
export function isFromFlag(path: string, origins: Origins): boolean {
  for (let around = path; around !== ''; around = parentPath(around)) {
    const origin = origins.get(around);
    if (origin) return 'flag' in origin;
  }
  return false;
}

function withConflictOrigin({ problem, conflictsWith }: ConfigFinding, origins: Origins): Problem {
  const origin = conflictsWith === undefined ? undefined : nearestOrigin(conflictsWith.path, origins);
  return origin ? { ...problem, message: `${problem.message}: ${conflictsWith?.name} is set ${describeOrigin(origin)}` } : problem;
}

/** For a struct created by flags, the first member that they set. */
function nearestOrigin(path: string, origins: Origins): Origin | undefined {
  return origins.get(path) ?? [...origins].find(([known]) => known.startsWith(`${path}.`))?.[1];
}

/** Location of an origin for messages: `by --discovery-file`, `at join.yaml:5:3`. */
function describeOrigin(origin: Origin): string {
  return 'flag' in origin ? `by ${origin.flag}` : `at ${formatPosition(origin.position)}`;
}

/** Problems sorted by position; those without one are last, in their original order. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const line = ({ position }: Problem) => position?.line ?? Number.POSITIVE_INFINITY;
  const column = ({ position }: Problem) => position?.column ?? 0;
  return problems.toSorted((a, b) => (line(a) === line(b) ? column(a) - column(b) : line(a) - line(b)));
}

function withoutKind(path: string): string {
  const end = /[.[]/.exec(path);
  if (!end) return '';
  return path.slice(end[0] === '.' ? end.index + 1 : end.index);
}
