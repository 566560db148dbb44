import type { Problem } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import {
  type Catalogue,
  type Field,
  type FieldEntry,
  formatMinor,
  type KubeletReader,
  NEWEST_MINOR,
  OLDEST_KNOWN_MINOR,
} from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { setAt } from '../../kubelet/layers/kubeadm-defaults.ts';
import { UNSAFE_DIRECTORY } from '../../kubelet/validate/directory-rules.ts';
import { isStartupRule, STARTUP_FAILURE_MESSAGE, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import { kubeadmProfile } from '../render/profile-defaults.ts';
import { type ExplainOptions, type Member, periods, typeText } from './explanation.ts';
import { gatesOfField } from './field-gates.ts';

/**
 * Finds a field by a user's spelling: indices and `[]` are ignored; the part after a map name is a key of the map.
 * @returns undefined when no minor version has the field
 */
export function findField(name: string, { fields }: Catalogue): FieldEntry | undefined {
  const plain = name.replace(/\[\d*\]/g, '');
  if (plain === '') return undefined;
  const entries = [...fields.values()];
  const plainPath = ({ path }: FieldEntry): string => path.replaceAll('[]', '');
  return (
    entries.find((entry) => plainPath(entry) === plain) ??
    entries.find(
      (entry) => entry.type.startsWith('map<') && (plain.startsWith(`${plainPath(entry)}[`) || plain.startsWith(`${plainPath(entry)}.`)),
    )
  );
}

/** All information about a field for one minor version. */
export type FieldExplanation = ReturnType<typeof explainField>;

export function explainField(entry: FieldEntry, options: ExplainOptions) {
  const { catalogue, minor } = options;
  const [since, until] = entry.minors;
  const known = minor >= since && minor <= until;
  const field = catalogue.field(entry.path, Math.min(Math.max(minor, since), until));
  return {
    kind: 'Field' as const,
    path: entry.path,
    /** `1.36`: the explained kubelet version. */
    kubernetesVersion: formatMinor(minor),
    /** False: this version does not have the field. Type and values are then those of the nearest version that has it. */
    known,
    type: typeText(field?.type ?? entry.type),
    description: entry.description,
    since: formatMinor(since),
    /** The last minor version that has the field; null while it exists. */
    until: until >= NEWEST_MINOR ? null : formatMinor(until),
    /** Null: stays unset. */
    default: known ? (field?.default ?? null) : null,
    defaults: periods(entry.defaultByMinor, until, ({ value }): Json => value),
    /** The allowed values; null if the field is not an enumeration. */
    values: field?.values ?? null,
    valuesByVersion: periods(entry.enumByMinor ?? [], until, ({ values }) => values),
    /** The value that kubeadm writes for an unset field. */
    kubeadm: known ? kubeadmValue(entry.path) : null,
    /** The flag with the same meaning, which overrides the field. */
    flag: entry.flag === null ? null : explainCounterpart(entry.flag, entry.flagAliases ?? [], options),
    /** Gates that the field needs, or that determine whether it has an effect. */
    featureGates: gatesOfField(entry.path).map((name) => explainFieldGate(name, options)),
    /** Validation rules of the kubelet, in words. */
    rules: known && minor >= OLDEST_KNOWN_MINOR ? probeRules(entry.path, options) : [],
    liveChange: { class: entry.liveChange, reason: entry.liveChangeReason },
    /** What the kubelet does by the field, beyond the pods of the node. */
    danger: entry.danger,
    /** The usual values; others have the class `unsafe`. */
    bounds: entry.bounds ?? null,
    note: entry.note ?? null,
    members: membersOf(entry.path, options),
  };
}

export function listFields(options: ExplainOptions) {
  return { kind: 'FieldList' as const, kubernetesVersion: formatMinor(options.minor), members: membersOf('', options) };
}

/** Members of an object or of the objects in a list; with `recursive` also nested members. */
function membersOf(parent: string, options: ExplainOptions): readonly Member[] {
  const { catalogue, minor } = options;
  return [...catalogue.fields.values()].flatMap((entry): Member[] => {
    const field = catalogue.field(entry.path, minor);
    if (field === null || parentOf(entry.path) !== parent) return [];
    const under = options.recursive === true ? membersOf(entry.path, options) : [];
    const { path, description } = entry;
    return [{ path, type: typeText(field.type), description, default: field.default, ...(under.length === 0 ? {} : { members: under }) }];
  });
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('.'), 0)).replace(/\[\]$/, '');
}

function explainCounterpart(name: string, aliases: readonly string[], { catalogue, minor }: ExplainOptions) {
  const flag = catalogue.flag(name, minor);
  const removedIn = catalogue.flags.get(name)?.removedIn ?? null;
  return {
    name,
    aliases,
    known: flag !== null,
    deprecation: flag?.deprecation ?? null,
    removedIn: removedIn === null ? null : formatMinor(removedIn),
  };
}

function explainFieldGate(name: string, { catalogue, minor }: ExplainOptions) {
  const gate = catalogue.gate(name, minor);
  return { name, stage: gate?.stage ?? null, default: gate?.default ?? null, locked: gate?.locked ?? false };
}

/** Uses the defaults of kubeadm's ClusterConfiguration. */
function kubeadmValue(path: string) {
  const { history } = kubeadmProfile();
  const step = history.get(path)?.at(-1);
  return step?.value === undefined ? null : { value: step.value, source: step.origin.source };
}

const WORD = 'no such word';

/** Values that are rejected by any validation. */
const PROBES: Readonly<Partial<Record<Field['type'], readonly Json[]>>> = {
  bool: [true, false],
  int32: [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1],
  int64: [-(2 ** 31), -1, 0, 1, 2 ** 53 - 1],
  uint32: [2 ** 32 - 1],
  float: [-1, 0, 2],
  string: [WORD, 'a/b'],
  enum: [WORD],
  duration: ['-1h', '1ns', '2400h'],
  'array<string>': [[WORD]],
  'array<enum>': [[WORD]],
  'map<string,string>': [{ [WORD]: 'x' }],
};

/**
 * The validation rules of the kubelet for a field, in words: the field is validated with invalid values, and
 * the messages are collected without the values. Rules that need several fields are not found.
 */
function probeRules(path: string, { minor, catalogue }: KubeletReader): readonly string[] {
  const field = catalogue.field(path, minor);
  if (field === null || path.includes('[]')) return [];
  const words = (PROBES[field.type] ?? []).flatMap((probe) => {
    const header = { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
    const document = documentOfValue(setAt(header, path.split('.'), probe), 'probe');
    return validateKubeletConfiguration(document, { minor, catalogue })
      .problems.filter((problem) => problem.path === path || problem.path?.startsWith(`${path}[`))
      .flatMap((problem) => ruleOf(problem, problem.path === path ? '' : field.type.startsWith('map') ? 'each name ' : 'each item '));
  });
  return [...new Set(words)];
}

/** Empty if the message is only about the value itself or its type. */
function ruleOf({ code, message }: Problem, of: string): readonly string[] {
  // The bounds and the danger of a field are shown on their own.
  if (code.startsWith('CONFIG_') || code === 'KUBELET_UNUSUAL_VALUE' || code === UNSAFE_DIRECTORY) return [];
  const rule = message
    .replace(`; ${STARTUP_FAILURE_MESSAGE}`, '')
    .replace(/, (?:not|and is) (?:"[^"]{0,64}"|-?[0-9][^ ]{0,64})$/, '')
    .replace(/: -?[0-9][^ ]{0,64} is (?:not|more) .*$/s, '');
  if (rule.startsWith('"') || rule.includes(WORD)) return [];
  const whole = rule.startsWith('must ') ? `${of}${rule}` : rule;
  return [isStartupRule(code) ? `${whole}; otherwise the kubelet fails at startup` : whole];
}
