import type { Arg } from '../../base/arg.ts';
import type { Position, Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { SourceDocument } from '../../codec/source.ts';
import type { Catalogue, Minor } from '../catalogue.ts';
import { NEWEST_MINOR, nearestKnownMinor } from '../catalogue.ts';
import { type DecodedKubeletConfiguration, decodeInOrder, withoutPosition } from '../decode.ts';
import { fillKubeletDefaults, gatesOf } from '../defaults/default-kubelet-configuration.ts';
import { enclosingPaths } from '../enclosing-paths.ts';
import { type GateFault, resolveFeatureGates } from '../feature-gates.ts';
import { gateFindings } from './gate-rules.ts';
import { liveChangeWarnings, shadowWarnings } from './live-warnings.ts';
import { otherMinorWarning } from './other-minor.ts';
import { applyRules, type Finding, type RuleFacts } from './rule.ts';
import { ADVICE_RULES, STARTUP_RULES, VALIDATION_RULES } from './rules.ts';

export interface ValidationOptions {
  /**
   * The minor of the kubelet that is to read it. One newer than the catalogue is validated by the newest minor known, and its unknown fields and
   * gates are warnings. A minor whose rules are not all known gets one warning, KUBELET_RULES_OF_OTHER_MINOR.
   */
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  /** Unknown and duplicate fields are warnings, as to the kubelet itself. */
  readonly lenient?: boolean;
  /** How the kubelet reads the file: see `syntaxOf`. Default `yaml`. */
  readonly syntax?: 'yaml' | 'json';
  /** The kubelet's command line, where it is known: what a flag says wins over the file. */
  readonly flags?: readonly Arg[];
  /** What the node runs with now, where it is known: fields that are not safe to change on a running node are then warned of. */
  readonly running?: JsonObject;
  /** The version of the control groups of the host. Default 2. */
  readonly cgroupVersion?: 1 | 2;
}

export interface Verdict {
  /** What was written, as `decodeKubeletConfiguration` gives it. */
  readonly decoded: DecodedKubeletConfiguration;
  /** The same with the kubelet's defaults. */
  readonly effective: JsonObject;
  /** True: the kubelet accepts it. Warnings do not count. */
  readonly ok: boolean;
  /** All at once, in order of position. Each has path, position (none in a document of a value) and, in `code`, its rule. */
  readonly problems: readonly Problem[];
}

/**
 * Judges a KubeletConfiguration as the kubelet of a minor does when it decodes, defaults and validates its file: errors are what that kubelet
 * refuses (and, unless `lenient`, unknown and duplicate fields), warnings what else an operator should know.
 * @see shared by `config validate` and the preflight checks
 */
export function validateKubeletConfiguration(document: SourceDocument, options: ValidationOptions): Verdict {
  const { catalogue } = options;
  const minor = nearestKnownMinor(options.minor);
  const isNewer = options.minor > NEWEST_MINOR;
  const lenient = options.lenient === true || isNewer;
  const decoded = decodeInOrder(document, { minor, catalogue, lenient, ...(options.syntax && { syntax: options.syntax }) });
  const gates = resolveFeatureGates(gatesOf(decoded.value), minor, catalogue);
  const effective = fillKubeletDefaults(decoded.value, { minor, catalogue, gates });
  const facts: RuleFacts = { config: effective, given: decoded.value, minor, gates, catalogue, cgroupVersion: options.cgroupVersion ?? 2 };
  const place = placer(document, decoded);
  // A document of another kind was not read: there is nothing to judge.
  const isRead = decoded.problems.every(({ code }) => code !== 'CONFIG_WRONG_KIND');
  const found = isRead ? [...errorsOf(facts, gates.faults), ...warningsOf(facts, options)] : [];
  const isWarning = (finding: Named): boolean => finding.kind === 'warning' || (isNewer && finding.id === 'KUBELET_UNKNOWN_GATE');
  const otherMinor = isRead ? otherMinorWarning(options.minor) : null;
  const problems: Problem[] = [
    ...(otherMinor === null
      ? []
      : [{ ...otherMinor, severity: 'warning' as const, path: '', position: document.positionAt(document.root?.offset ?? 0) }]),
    ...decoded.problems,
    ...found.map((finding) => place(finding, isWarning(finding))).filter((problem) => problem !== null),
  ].sort(byPosition);
  const ok = problems.every(({ severity }) => severity === 'warning');
  if (document.isValue !== true) return { decoded, effective, ok, problems };
  const unplaced = { ...decoded, fields: new Map<string, Position>(), problems: decoded.problems.map(withoutPosition) };
  return { decoded: unplaced, effective, ok, problems: problems.map(withoutPosition) };
}

type Named = Finding & { readonly id: string; readonly kind: 'error' | 'warning' };

function errorsOf(facts: RuleFacts, faults: readonly GateFault[]): readonly Named[] {
  const findings = [...gateFindings(faults, facts.minor, facts.catalogue), ...applyRules(VALIDATION_RULES, facts)];
  return findings.map((finding) => ({ ...finding, kind: 'error' }));
}

function warningsOf(facts: RuleFacts, { flags, running }: ValidationOptions): readonly Named[] {
  const advice = [
    ...applyRules(ADVICE_RULES, facts),
    ...(flags === undefined ? [] : shadowWarnings(flags, facts.given, facts)),
    ...(running === undefined ? [] : liveChangeWarnings(running, facts.given, facts)),
  ];
  return [
    ...applyRules(STARTUP_RULES, facts).map(
      (finding): Named => ({
        ...finding,
        message: `${finding.message}; ${EXITS_AT_STARTUP}`,
        kind: 'warning',
      }),
    ),
    ...advice.map((finding): Named => ({ ...finding, kind: 'warning' })),
  ];
}

/** What becomes of a kubelet whose configuration breaks a rule of startup. */
export const EXITS_AT_STARTUP = 'the kubelet accepts the file but exits at startup';

const STARTUP_IDS: ReadonlySet<string> = new Set(STARTUP_RULES.map(({ id }) => id));

/** Tells whether a problem's code is that of a rule on what the kubelet accepts and then does not start with. */
export function isStartupRule(code: string): boolean {
  return STARTUP_IDS.has(code);
}

/** Beyond this many findings nothing is guessed any more: the file is something else, and guessing takes time. */
const MAX_GUESSES = 100;

/** Makes problems of findings; null for those that rest on a value that could not be read. */
function placer(document: SourceDocument, { fields, problems }: DecodedKubeletConfiguration) {
  const isDamaged = damageOf(problems);
  let guesses = 0;
  return ({ id, path, message, hint: given, guess, near = [] }: Finding & { readonly id: string }, isWarning: boolean): Problem | null => {
    if (isDamaged(path) || near.some(isDamaged)) return null;
    const likely = guess !== undefined && guesses++ < MAX_GUESSES ? likelyName(guess) : null;
    const hint = likely === null ? given : `Did you mean ${likely}?`;
    const position = positionOf(path, fields) ?? near.map((other) => positionOf(other, fields)).find((found) => found !== undefined);
    return {
      code: id,
      message,
      ...(hint !== undefined && { hint }),
      ...(isWarning && { severity: 'warning' as const }),
      path,
      position: position ?? document.positionAt(document.root?.offset ?? 0),
    };
  };
}

function likelyName({ word, among }: NonNullable<Finding['guess']>): string | null {
  return among.find((name) => name.toLowerCase() === word.toLowerCase()) ?? closestName(word, among);
}

/** Tells of a path whether it, something in it or something around it could not be read. */
function damageOf(problems: readonly Problem[]): (path: string) => boolean {
  const damaged = new Set<string>();
  const around = new Set<string>();
  for (const { severity, code, path = '' } of problems) {
    if (severity === 'warning' || STRICT_CODES.has(code)) continue;
    damaged.add(path);
    for (const at of enclosingPaths(path)) around.add(at);
  }
  return (path) => {
    return around.has(path) || (damaged.size > 0 && enclosingPaths(path).some((at) => damaged.has(at)));
  };
}

/** Findings of strict decoding: the value was read all the same, or there is none. */
const STRICT_CODES: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_FIELD', 'CONFIG_DUPLICATE_FIELD', 'CONFIG_MISSING_HEADER']);

/** Where a field or the nearest thing around it was written. */
function positionOf(path: string, fields: ReadonlyMap<string, Position>): Position | undefined {
  return fields.get(path) ?? fields.get(enclosingPaths(path).find((at) => fields.has(at)) ?? '');
}

function byPosition(a: Problem, b: Problem): number {
  return lineOf(a.position) - lineOf(b.position) || (a.position?.column ?? 0) - (b.position?.column ?? 0);
}

function lineOf(position: Position | undefined): number {
  return position?.line ?? 0;
}
