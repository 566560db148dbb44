import type { JsonObject } from '../../base/json.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Catalogue, Minor } from '../catalogue/catalogue.ts';
import type { FeatureGates } from '../catalogue/feature-gates.ts';

/** Input of a rule. */
export interface RuleFacts {
  /** With the defaults of the minor, as validated by the kubelet. */
  readonly config: JsonObject;
  /** As decoded, without defaults. */
  readonly given: JsonObject;
  readonly minor: Minor;
  readonly gates: FeatureGates;
  readonly catalogue: Catalogue;
  /** Cgroup version of the host, on which some fields depend. */
  readonly cgroupVersion: 1 | 2;
}

/** A violation of a rule. */
export interface Finding {
  /** Place of the fix, in the form of decoded values: `enforceNodeAllocatable[1]`, `kubeReserved[cpu]`. */
  readonly path: string;
  /** The rule as a clause: `must be 0 or more, not -1`. */
  readonly message: string;
  readonly hint?: string;
  /** A possibly misspelled word and its candidates, from which a hint is built. */
  readonly guess?: { readonly word: string; readonly among: readonly string[] };
  /**
   * Other fields that the finding depends on. If `path` is not in the file, because its value is a default,
   * the position is that of the first existing one; if one of them could not be read, the finding is dropped.
   */
  readonly near?: readonly string[];
}

/** A finding with the rule. */
export type NamedFinding = Finding & { readonly id: string };

/** A rule of the kubelet for the minors that have its subject. */
export interface Rule {
  /** Stable, upper-case: the `rule` in a report. */
  readonly id: string;
  /** First and last minor that enforce the rule; open if omitted. */
  readonly since?: Minor;
  readonly until?: Minor;
  check(facts: RuleFacts): readonly Finding[];
}

/** The findings of the rules that the minor enforces. */
export function applyRules(rules: readonly Rule[], facts: RuleFacts): readonly NamedFinding[] {
  const found: NamedFinding[] = [];
  for (const rule of rules) {
    const { since = 0, until = Number.POSITIVE_INFINITY } = rule;
    if (facts.minor < since || facts.minor > until) continue;
    for (const finding of rule.check(facts)) found.push({ ...finding, id: rule.id });
  }
  return found;
}

/** The finding for an unknown word. */
export function unknownEnumValue(word: string, known: readonly string[]): Pick<Finding, 'message' | 'guess'> {
  const list = known.length < 2 ? known.join('') : `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`;
  return { message: `must be ${list}, not ${quoteValue(word)}`, guess: { word, among: known } };
}
