import type { Arg } from '../../base/arg.ts';
import type { Position, Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { DecodedDocument } from '../../codec/decode-typed.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { type LiveChange, NEWEST_MINOR, nearestKnownMinor } from '../catalogue/catalogue.ts';
import { type GateFault, resolveFeatureGates } from '../catalogue/feature-gates.ts';
import { fillKubeletDefaults, gatesOf } from '../defaults/effective-configuration.ts';
import { type DecodeOptions, decodeInOrder, withoutPosition } from '../documents/decode.ts';
import { enclosingPaths, isAtOrBelow, leavesOf } from '../layers/layers.ts';
import { otherMinorWarning } from '../minor-option.ts';
import { BOUND_RULES, DEPRECATION_RULES } from './advice-rules.ts';
import { type ClassifiedChange, classifyChanges } from './classify-changes.ts';
import { DIRECTORY_RULES } from './directory-rules.ts';
import { GATED_FIELD_RULES, gateFindings } from './gate-rules.ts';
import { IMAGE_RULES } from './image-rules.ts';
import { LOGGING_RULES } from './logging-rules.ts';
import { ALLOCATABLE_RULES, RESERVATION_STARTUP_RULES } from './reservation-rules.ts';
import { RESOURCE_RULES } from './resource-rules.ts';
import { applyRules, type Finding, type NamedFinding, type Rule, type RuleFacts } from './rule.ts';
import { SHUTDOWN_RULES } from './shutdown-rules.ts';
import { EVICTION_ADVICE_RULES, EVICTION_STARTUP_RULES } from './startup-eviction.ts';
import { MANAGER_STARTUP_RULES } from './startup-managers.ts';
import { IGNORED_VALUE_RULES, SERVING_STARTUP_RULES } from './startup-serving.ts';
import { SYSCTL_RULES, SYSCTL_STARTUP_RULES } from './sysctl-rules.ts';
import { TAINT_RULES } from './taint-rules.ts';
import { ENUM_RULES, NUMBER_RULES } from './value-rules.ts';

/**
 * Rules of the kubelet's validation after decoding, for all minors from 1.11, and DIRECTORY_RULES.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/validation (1.11 to 1.37)
 */
export const VALIDATION_RULES: readonly Rule[] = [
  ...NUMBER_RULES,
  ...ENUM_RULES,
  ...GATED_FIELD_RULES,
  ...IMAGE_RULES,
  ...SHUTDOWN_RULES,
  ...ALLOCATABLE_RULES,
  ...RESOURCE_RULES,
  ...TAINT_RULES,
  ...SYSCTL_RULES,
  ...LOGGING_RULES,
  ...DIRECTORY_RULES,
];

/** Rules that the kubelet applies only after accepting the file, as far as the host does not matter. */
export const STARTUP_RULES: readonly Rule[] = [
  ...EVICTION_STARTUP_RULES,
  ...RESERVATION_STARTUP_RULES,
  ...MANAGER_STARTUP_RULES,
  ...SERVING_STARTUP_RULES,
  ...SYSCTL_STARTUP_RULES,
];

/** Rules for settings that work, but not as intended or not for long. */
export const ADVICE_RULES: readonly Rule[] = [...IGNORED_VALUE_RULES, ...EVICTION_ADVICE_RULES, ...DEPRECATION_RULES, ...BOUND_RULES];

/**
 * A minor newer than the catalogue is validated by the newest known one, with unknown fields and gates as warnings. A
 * minor whose rules are not all known causes one warning, KUBELET_RULES_OF_OTHER_MINOR.
 */
export interface ValidationOptions extends DecodeOptions {
  /** The kubelet's command line, if known: flags override the file. */
  readonly flags?: readonly Arg[];
  /** The current configuration of the node, if known: unsafe live changes then cause warnings. */
  readonly running?: JsonObject;
  /** Cgroup version of the host. Default 2. */
  readonly cgroupVersion?: 1 | 2;
}

export interface Verdict {
  /** The result of `decodeKubeletConfiguration`. */
  readonly decoded: DecodedDocument;
  /** The configuration with the kubelet's defaults. */
  readonly effective: JsonObject;
  /** True if the kubelet accepts the file. Warnings are ignored. */
  readonly ok: boolean;
  /** In order of position (none in a document built from a value). Each has path, position and the rule in `code`. */
  readonly problems: readonly Problem[];
}

/**
 * Validates a KubeletConfiguration as the kubelet of a minor does when it decodes, defaults and validates its
 * file. Errors are reasons for that kubelet to reject the file (and, unless `lenient`, unknown and duplicate
 * fields); warnings are other findings for the operator.
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
  // A document of another kind was not decoded and cannot be validated.
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

type Named = NamedFinding & { readonly kind: 'error' | 'warning' };

function errorsOf(facts: RuleFacts, faults: readonly GateFault[]): readonly Named[] {
  const findings = [...gateFindings(faults, facts), ...applyRules(VALIDATION_RULES, facts)];
  return findings.map((finding) => ({ ...finding, kind: 'error' }));
}

function warningsOf(facts: RuleFacts, { flags, running }: ValidationOptions): readonly Named[] {
  const advice = [
    ...applyRules(ADVICE_RULES, facts),
    ...(flags === undefined ? [] : shadowWarnings(flags, facts.given, facts)),
    ...(running === undefined ? [] : liveChangeWarnings(running, facts.given, facts)),
  ];
  const startup = applyRules(STARTUP_RULES, facts).map((one) => ({ ...one, message: `${one.message}; ${STARTUP_FAILURE_MESSAGE}` }));
  return [...startup, ...advice].map((finding) => ({ ...finding, kind: 'warning' }));
}

/** Effect of a violated startup rule. */
export const STARTUP_FAILURE_MESSAGE = 'the kubelet accepts the file but exits at startup';

const STARTUP_IDS: ReadonlySet<string> = new Set(STARTUP_RULES.map(({ id }) => id));

/** Whether a problem's code is a rule that the kubelet applies only at startup, after accepting the file. */
export function isStartupRule(code: string): boolean {
  return STARTUP_IDS.has(code);
}

/**
 * Beyond this number of findings suggestions are omitted: the file is probably of another kind, and
 * suggestions are slow.
 */
const MAX_GUESSES = 100;

/** Converts findings to problems; null for findings that depend on an unreadable value. */
function placer(document: SourceDocument, { fields, problems }: DecodedDocument) {
  const isDamaged = damageOf(problems);
  let guesses = 0;
  return ({ id, path, message, hint: given, guess, near = [] }: NamedFinding, isWarning: boolean): Problem | null => {
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

/** Returns a function that checks whether a path, one of its members or parents could not be read. */
function damageOf(problems: readonly Problem[]): (path: string) => boolean {
  const damaged = new Set<string>();
  const around = new Set<string>();
  for (const { severity, code, path = '' } of problems) {
    if (severity === 'warning' || STRICT_CODES.has(code)) continue;
    damaged.add(path);
    for (const at of enclosingPaths(path)) around.add(at);
  }
  return (path) => around.has(path) || (damaged.size > 0 && enclosingPaths(path).some((at) => damaged.has(at)));
}

/** Findings of strict decoding: the value was read nevertheless, or does not exist. */
const STRICT_CODES: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_FIELD', 'CONFIG_DUPLICATE_FIELD', 'CONFIG_MISSING_HEADER']);

/** The position of a field, or of its nearest parent in the file. */
function positionOf(path: string, fields: ReadonlyMap<string, Position>): Position | undefined {
  return fields.get(path) ?? fields.get(enclosingPaths(path).find((at) => fields.has(at)) ?? '');
}

function byPosition({ position: a }: Problem, { position: b }: Problem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}

const REPORTED: { readonly [C in Exclude<LiveChange, 'safe'>]: string } = {
  unsafe: 'can disconnect or stop a running node',
  drain: 'requires a drained node',
  'new-pods-only': 'does not apply to running pods, or can evict them',
};

/** Warnings about changes that are not safe on a node running with another configuration. */
function liveChangeWarnings(running: JsonObject, desired: JsonObject, options: RuleFacts): readonly NamedFinding[] {
  return classifyChanges(running, desired, options).flatMap((change): NamedFinding[] =>
    change.class === 'safe' ? [] : [{ id: 'KUBELET_UNSAFE_LIVE', path: change.path, message: liveMessage(change, change.class) }],
  );
}

function liveMessage({ before, after, reason }: ClassifiedChange, kind: Exclude<LiveChange, 'safe'>): string {
  return `the change from ${shown(before)} to ${shown(after)} ${REPORTED[kind]}: ${reason}`;
}

function shown(value: ClassifiedChange['before']): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

/** Warnings about command-line flags that override the file. */
function shadowWarnings(flags: readonly Arg[], given: JsonObject, { minor, catalogue }: RuleFacts): readonly NamedFinding[] {
  const leaves = leavesOf(given);
  return [...new Map(flags.map((flag) => [flag.name, flag.value]))].flatMap(([name, value]): NamedFinding[] => {
    const field = catalogue.flag(name, minor)?.field ?? null;
    if (field === null) return [];
    const reported = [...leaves].find(([path, leaf]) => isAtOrBelow(path, field) && String(leaf) !== value);
    if (reported === undefined) return [];
    const message = `--${name}=${value} on the kubelet's command line overrides this field`;
    return [{ id: 'FLAG_SHADOWS_FIELD', path: field, message, hint: 'Remove the flag or the field' }];
  });
}
