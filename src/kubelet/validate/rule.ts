import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, Minor } from '../catalogue.ts';
import type { FeatureGates } from '../feature-gates.ts';

/** What a rule may look at. */
export interface RuleFacts {
  /** With the defaults of the minor filled in: what the kubelet judges. */
  readonly config: JsonObject;
  /** As decoded: what was written. */
  readonly given: JsonObject;
  readonly minor: Minor;
  readonly gates: FeatureGates;
  readonly catalogue: Catalogue;
  /** The version of the control groups of the host: some fields are refused on one of them. */
  readonly cgroupVersion: 1 | 2;
}

/** Something a rule objects to. */
export interface Finding {
  /** Where the user can fix it, as decoded values are addressed: `enforceNodeAllocatable[1]`, `kubeReserved[cpu]`. */
  readonly path: string;
  /** A clause that says the rule: `must be 0 or more, not -1`. */
  readonly message: string;
  readonly hint?: string;
  /** A word that may be a slip of the pen, and those it may stand for: makes the hint where there is a likely one. */
  readonly guess?: { readonly word: string; readonly among: readonly string[] };
  /**
   * Other fields the verdict rests on. Where `path` is not in the file, its value being a default, the first of them that is there is pointed
   * at; where one of them could not be read, nothing is said.
   */
  readonly near?: readonly string[];
}

/** A rule of the kubelet. It holds for the minors that know what it is about. */
export interface Rule {
  /** Stable, upper-case: the `rule` of a report. */
  readonly id: string;
  /** First and last minor that enforce it; open when left out. */
  readonly since?: Minor;
  readonly until?: Minor;
  check(facts: RuleFacts): readonly Finding[];
}

/** The findings of those rules that the minor enforces. */
export function applyRules(rules: readonly Rule[], facts: RuleFacts): readonly (Finding & { readonly id: string })[] {
  const found: (Finding & { readonly id: string })[] = [];
  for (const rule of enforcedRules(rules, facts.minor)) {
    for (const finding of rule.check(facts)) found.push({ ...finding, id: rule.id });
  }
  return found;
}

const enforcedByMinor = new WeakMap<readonly Rule[], Map<Minor, readonly Rule[]>>();

/** Worked out once for each list: thousands of files may be judged by it. */
function enforcedRules(rules: readonly Rule[], minor: Minor): readonly Rule[] {
  const byMinor = enforcedByMinor.get(rules) ?? new Map<Minor, readonly Rule[]>();
  enforcedByMinor.set(rules, byMinor);
  const known = byMinor.get(minor);
  if (known !== undefined) return known;
  const enforced = rules.filter(({ since = 0, until = Number.POSITIVE_INFINITY }) => since <= minor && minor <= until);
  byMinor.set(minor, enforced);
  return enforced;
}
