/**
 * A document (without header) and the kubelet's verdict on it. Those of errors were compared with the real decode and validation of
 * that minor.
 */
export interface ValidateCase {
  /** The rule that the case shows. */
  readonly about: string;
  readonly yaml: string;
  readonly minor: number;
  /** `path RULE` of each error or warning, in any order. */
  readonly found: readonly string[];
}

type Minors = number | readonly number[];

export const OLD = 21;
export const NEW = 36;
export const BOTH = [OLD, NEW];

/** Documents the kubelets of these minors accept. */
export function accepts(about: string, minors: Minors, rows: readonly string[]): ValidateCase[] {
  return rows.flatMap((yaml) => [minors].flat().map((minor) => ({ about, yaml, minor, found: [] })));
}

/** Documents with findings: `path RULE` each. */
export function finds(about: string, minors: Minors, rows: readonly (readonly [yaml: string, ...found: string[]])[]): ValidateCase[] {
  return rows.flatMap(([yaml, ...found]) => [minors].flat().map((minor) => ({ about, yaml, minor, found })));
}

/** Documents with a finding of one rule at one path. */
export function refuses(about: string, minors: Minors, found: string, rows: readonly string[]): ValidateCase[] {
  return finds(
    about,
    minors,
    rows.map((yaml) => [yaml, found]),
  );
}
