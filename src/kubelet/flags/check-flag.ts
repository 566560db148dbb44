import type { Arg } from '../../base/arg.ts';
import type { Problem } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { expectedFlagValue } from '../../base/text/go-flag-value.ts';
import { quoteValue } from '../../codec/document-problems.ts';

/** The flags of one version of a program. */
export interface ProgramFlags {
  /** `kube-apiserver 1.36` */
  readonly program: string;
  /** The type of a flag; null if this version does not have the flag. */
  readonly typeOf: (name: string) => string | null;
  /** Names of this version, for the nearest one to an unknown name. */
  readonly names: () => Iterable<string>;
}

/** The hint for an unknown flag: the nearest known name, otherwise `otherwise`. */
export function nearestFlag(name: string, { names }: ProgramFlags, otherwise: string): string {
  const nearest = name.length < 3 ? null : closestName(name, names());
  return nearest === null ? otherwise : `Did you mean --${nearest}?`;
}

/** A value with which the program exits while it parses its flags. */
export function wrongFlagValue({ name, value }: Arg, { program, typeOf }: ProgramFlags): Problem | null {
  const expected = expectedFlagValue(typeOf(name) ?? '', value);
  if (expected === null) return null;
  return {
    code: 'FLAG_INVALID_VALUE',
    message: `--${name} of ${program} expects ${expected}, not ${quoteValue(value)}`,
    hint: 'Correct the value',
  };
}
