/** A version of the form `v1.36.2-rc.1+abcdef`, without its build metadata. */
export interface SemanticVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** `rc.1`; empty: a release. */
  readonly preRelease: string;
}

const FORM = /^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([-.0-9A-Za-z]+))?(?:\+[-.0-9A-Za-z]+)?$/;

/** A leading `v` is allowed; null: another form. @see https://semver.org, version 2.0.0 */
export function parseSemanticVersion(text: string): SemanticVersion | null {
  const [, major, minor, patch, preRelease = ''] = FORM.exec(text.trim()) ?? [];
  return major === undefined ? null : { major: Number(major), minor: Number(minor), patch: Number(patch), preRelease };
}

/** By precedence: a pre-release is lower than its release. Negative: `a` is lower. */
export function compareSemanticVersions(a: SemanticVersion, b: SemanticVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch || comparePreReleases(a.preRelease, b.preRelease);
}

function comparePreReleases(a: string, b: string): number {
  if (a === '' || b === '') return Number(a === '') - Number(b === '');
  const [left, right] = [a.split('.'), b.split('.')];
  for (const [i, part] of left.entries()) {
    const other = right[i];
    if (other === undefined) return 1;
    const order = compareIdentifiers(part, other);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** Numbers are lower than words, and are compared as numbers. */
function compareIdentifiers(a: string, b: string): number {
  const [aIsNumber, bIsNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (aIsNumber && bIsNumber) return Number(a) - Number(b);
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}
