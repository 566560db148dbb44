import type { Position, Problem } from '../../base/errors.ts';
import { parentPath, showFieldPath } from '../../codec/field-path.ts';
import type { WrittenOrigin } from '../../codec/read-document.ts';
import type { ModelKind } from './model.ts';

/** Where a value of the model comes from: a place in a file, or a flag of the command line. */
export type Origin = WrittenOrigin | { readonly flag: string };

/** By kind and path of the model: `InitConfiguration.nodeRegistration.name`; a document itself is under its kind. */
export type Origins = ReadonlyMap<string, Origin>;

/** A problem of a model, before it is known where the value was written. */
export interface Finding {
  /** Kind and path of the model. */
  readonly path: string;
  readonly problem: Problem;
  /** Something needed is absent: not worth saying while the document has errors that may explain it. */
  readonly missing?: true;
  /** A rule for files: a flag may break it. */
  readonly notForFlags?: true;
  /** The other of two that contradict each other: told with its place. */
  readonly rival?: string;
}

/** The origins that are places in files. */
export function positionsOf(origins: Origins): ReadonlyMap<string, Position> {
  return new Map([...origins].flatMap(([path, origin]) => ('position' in origin ? [[path, origin.position] as const] : [])));
}

/** The model's path of a field. */
export function modelPath(kind: ModelKind, path: string): string {
  if (path === '') return kind;
  return path.startsWith('[') ? `${kind}${path}` : `${kind}.${path}`;
}

/**
 * Gives a finding its place: where the value was written or, when it was not, where the nearest thing around it was; or the flag that set
 * it. A finding about a document that is not there keeps only its field path.
 */
export function placeFinding(finding: Finding, origins: Origins): Problem {
  const { path } = finding;
  const problem = withRival(finding, origins);
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

/** Tells whether a flag set the value at a path, or something around it. */
export function isFromFlag(path: string, origins: Origins): boolean {
  for (let around = path; around !== ''; around = parentPath(around)) {
    const origin = origins.get(around);
    if (origin) return 'flag' in origin;
  }
  return false;
}

function withRival({ problem, rival }: Finding, origins: Origins): Problem {
  const origin = rival === undefined ? undefined : nearestOrigin(rival, origins);
  return origin ? { ...problem, hint: `Keep one of them; the other is ${describeOrigin(origin)}` } : problem;
}

/** Of a struct that flags made, the first member they set. */
function nearestOrigin(path: string, origins: Origins): Origin | undefined {
  return origins.get(path) ?? [...origins].find(([known]) => known.startsWith(`${path}.`))?.[1];
}

/** Where an origin is, for the text of a message: `--discovery-file`, `at join.yaml:5:3`. */
function describeOrigin(origin: Origin): string {
  return 'flag' in origin ? origin.flag : `at ${origin.position.file}:${origin.position.line}:${origin.position.column}`;
}

/** Problems in the order of their places; those without one come last, in the order found. */
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
