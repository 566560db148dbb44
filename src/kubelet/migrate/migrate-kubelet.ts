import type { Arg } from '../../base/arg.ts';
import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { upTo } from '../../base/text/up-to.ts';
import { documentTexts } from '../../codec/document-text.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { entryOf, parseSource, type SourceDocument } from '../../codec/source.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import { type Catalogue, formatMinor, type Minor } from '../catalogue/catalogue.ts';
import { effectiveConfiguration, gatesOf } from '../defaults/effective-configuration.ts';
import { diffConfigs } from '../diff/diff-configs.ts';
import { decodeKubeletConfiguration, KUBELET_KIND, syntaxOf, withoutHeader } from '../documents/decode.ts';
import { valueAt } from '../documents/values.ts';
import { readFlagSettings } from '../flags/flag-value.ts';
import { setAt } from '../layers/kubeadm-defaults.ts';
import { isAtOrBelow } from '../layers/layers.ts';
import { validateKubeletConfiguration } from '../validate/validate.ts';
import { editYaml } from './edit-yaml.ts';
import type { FieldEdit, Migrated, MigrateOptions, MigrationStep } from './migrate-fields.ts';
import { migrateFields, migrateGates } from './migrate-fields.ts';
import { migrateFlags } from './migrate-flags.ts';

export interface KubeletMigration {
  /** The file for the new minor; documents of other kinds, comments and order are preserved. */
  readonly text: string;
  /** The remaining flags. */
  readonly flags: readonly Arg[];
  readonly steps: readonly MigrationStep[];
  /** Findings of the new kubelet about the result; errors are refused. */
  readonly problems: readonly Problem[];
}

/**
 * Migrates the configuration of a kubelet to another minor: unknown fields and gates are removed, flags with
 * an equivalent field are converted, and each step is reported.
 * @throws AppError with exit code 2 if the old kubelet could not read the file either
 */
export function migrateKubelet(text: string, file: string, options: MigrateOptions): KubeletMigration {
  const { to, catalogue } = options;
  const document = findDocument(text, file);
  const { config, unknownFields } = readWritten(document, text, options);
  const before = effectiveWithFlags(config, options);

  const flags = migrateFlags(config, options);
  const withFlags = flags.edits.reduce(applyEdit, config);
  const gates = migrateGates(gatesOf(withFlags), options);
  const { featureGates: _gates, ...others } = withFlags;
  const fields = migrateFields(others, options);
  const gateEdits = editsOfGates(gatesOf(withFlags), gates.gates);
  const edits = [...unknownFields.edits, ...flags.edits, ...fields.edits, ...gateEdits];
  const migrated = [...fields.edits, ...gateEdits].reduce(applyEdit, withFlags);

  const reported = [...fields.steps.map(({ what }) => what), ...flags.edits.map(({ path }) => path.join('.'))];
  const drift = changesInForce(before, migrated, reported, options);
  const allEdits = [...edits, ...drift.edits];
  const result = drift.edits.reduce(applyEdit, migrated);
  const printed = printResult(text, document, allEdits, result, options);
  return {
    text: printed.text,
    flags: flags.flags,
    steps: [...unknownFields.steps, ...flags.steps, ...gates.steps, ...fields.steps, ...drift.steps, ...printed.steps],
    problems: validateKubeletConfiguration(findDocument(printed.text, file), { minor: to, catalogue, syntax: syntaxOf(printed.text) })
      .problems,
  };
}

function findDocument(text: string, file: string): SourceDocument {
  const { documents, problems } = parseSource(text, file);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  const found = documents.filter(({ root }) => {
    const kind = entryOf(root, 'kind')?.value;
    return kind?.kind === 'scalar' && kind.text === KUBELET_KIND;
  });
  if (found[0] !== undefined && found.length === 1) return found[0];
  const message = `${file} has ${found.length === 0 ? 'no' : 'more than one'} document of kind ${KUBELET_KIND}`;
  throw new AppError(
    {
      code: 'CONFIG_WRONG_KIND',
      message,
      hint: 'Pass a file with one KubeletConfiguration. To convert kubeadm documents, use --old-config',
    },
    { exitCode: 2 },
  );
}

/**
 * The fields that the old kubelet read. Ignored fields are kept if the new kubelet knows them, which then
 * takes effect.
 */
function readWritten(
  document: SourceDocument,
  text: string,
  { from, to, catalogue }: MigrateOptions,
): { readonly config: JsonObject; readonly unknownFields: Migrated } {
  const syntax = syntaxOf(text);
  const old = decodeKubeletConfiguration(document, { minor: from, catalogue, lenient: true, syntax });
  const errors = old.problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  const next = decodeKubeletConfiguration(document, { minor: to, catalogue, lenient: true, syntax });
  const unknownTo = new Set(next.problems.filter(({ code }) => code === 'CONFIG_UNKNOWN_FIELD').map(({ path }) => path));
  const unknownFields = old.problems.filter(({ code }) => code === 'CONFIG_UNKNOWN_FIELD');
  const steps = unknownFields.map(({ path = '', message }): MigrationStep => {
    if (!unknownTo.has(path))
      return { did: 'kept', what: path, message: `${message}; a ${formatMinor(to)} kubelet uses the field`, lossy: false };
    return { did: 'removed', what: path, message: `${message}; neither of the two kubelet versions reads the field`, lossy: true };
  });
  // A null has no effect, but the new kubelet warns about unknown fields even so.
  const ignored = new Set(unknownFields.map(({ path }) => path));
  const nulls = [...unknownTo].filter((path) => path !== undefined && !ignored.has(path) && isUnset(old.value, stepsOf(path)));
  for (const path of nulls)
    steps.push({ did: 'removed', what: path ?? '', message: `unknown to a ${formatMinor(to)} kubelet`, lossy: false });
  const edits = steps.filter(({ did }) => did === 'removed').map(({ what }) => ({ path: stepsOf(what), value: undefined }));
  const kept = new Set(steps.filter(({ did }) => did === 'kept').map(({ what }) => what));
  return { config: withoutHeader(withIgnoredFields(old.value, next.value, kept)), unknownFields: { edits, steps } };
}

/** `registerWithTaints[0].x` gives `registerWithTaints`, `0`, `x`. */
function stepsOf(path: string): readonly string[] {
  return path.split(/[.[\]]+/).filter(Boolean);
}

function isUnset(value: Json | undefined, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return value === undefined;
  if (Array.isArray(value)) return isUnset(value[Number(name)], rest);
  return !isJsonObject(value) || isUnset(value[name], rest);
}

/** The fields that the old kubelet read, and the ignored fields at these paths as the new kubelet reads them. */
function withIgnoredFields(old: JsonObject, next: JsonObject, paths: ReadonlySet<string>, parent = ''): JsonObject {
  const added = Object.entries(next).flatMap(([name, value]): [string, Json][] => {
    const path = parent === '' ? name : `${parent}.${name}`;
    const under = old[name];
    if (paths.has(path)) return [[name, value]];
    return isJsonObject(value) && isJsonObject(under) ? [[name, withIgnoredFields(under, value, paths, path)]] : [];
  });
  return { ...old, ...Object.fromEntries(added) };
}

/** Flags are applied after defaulting: derived defaults follow from fields, not from flags. */
function effectiveWithFlags(config: JsonObject, { from, flags, catalogue }: MigrateOptions): JsonObject {
  const options = { minor: from, catalogue };
  const filled = effectiveConfiguration(config, options);
  return readFlagSettings(flags, filled, options).settings.reduce((under, { path, value }) => setAt(under, path.split('.'), value), filled);
}

/**
 * Effective values that change without a change of the field: defaults that differ in the new minor, or
 * follow from other fields.
 */
function changesInForce(before: JsonObject, migrated: JsonObject, reported: readonly string[], options: MigrateOptions): Migrated {
  const { from, to, catalogue, keepDefaults } = options;
  const sides = [
    { name: 'before', minor: from, config: before },
    { name: 'after', minor: to, config: migrated },
  ] as const;
  const isReported = (path: string): boolean => reported.some((what) => isAtOrBelow(path, what));
  const edits: FieldEdit[] = [];
  const steps: MigrationStep[] = [];
  for (const { path, before: old, after, class: liveChange } of diffConfigs(...sides, catalogue).differences) {
    if (path.startsWith('featureGates') || isReported(path)) continue;
    const field = upTo(path, '[');
    const isDefault = (old.isDefault || old.value === undefined) && (after.isDefault || after.value === undefined);
    const values = `${isDefault ? 'the default' : 'the effective value'} is ${inlineValue(old.value)} in ${formatMinor(from)}, ${inlineValue(after.value)} in ${formatMinor(to)}`;
    const value = valueAt(before, field);
    if (keepDefaults && value !== undefined) {
      if (!edits.some((edit) => edit.path.join('.') === field)) edits.push({ path: field.split('.'), value });
      steps.push({ did: 'pinned', what: path, message: `${values}: the old value is written to the file`, lossy: false });
    } else steps.push({ did: 'changes', what: path, message: `${values} (live change: ${liveChange})`, lossy: false });
  }
  return { edits, steps };
}

function editsOfGates(before: Readonly<Record<string, boolean>>, after: Readonly<Record<string, boolean>>): readonly FieldEdit[] {
  return Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => ({ path: ['featureGates', name], value: undefined }));
}

/** The text with its edits; if not possible in place, the values are rendered again. */
function printResult(
  text: string,
  document: SourceDocument,
  edits: readonly FieldEdit[],
  result: JsonObject,
  { to, catalogue }: MigrateOptions,
): { readonly text: string; readonly steps: readonly MigrationStep[] } {
  if (edits.length === 0) return { text, steps: [] };
  const parts = documentTexts(text);
  const put = (own: string): string =>
    parts
      .map((part, i) => (i === document.index ? own : part))
      .filter((part) => part.trim() !== '')
      .join('---\n');
  const edited = editYaml(parts[document.index] ?? '', edits);
  if (edited !== null && jsonEqual(readBack(edited, to, catalogue), result)) return { text: put(edited), steps: [] };
  const header = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: KUBELET_KIND };
  const message = 'the file cannot be edited in place, so it was written again without comments';
  return {
    text: put(encodeYaml({ ...header, ...result } as YamlValue)),
    steps: [{ did: 'rewritten', what: 'the file', message, lossy: false }],
  };
}

function readBack(text: string, minor: Minor, catalogue: Catalogue): JsonObject | null {
  const document = parseSource(text, '').documents[0];
  return document === undefined ? null : withoutHeader(decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value);
}

function applyEdit(config: JsonObject, { path, value }: FieldEdit): JsonObject {
  return value === undefined ? remove(config, path) : setAt(config, path, value);
}

function remove(config: JsonObject, [name, ...rest]: readonly string[]): JsonObject {
  if (name === undefined || !Object.hasOwn(config, name)) return config;
  const { [name]: under, ...others } = config;
  if (rest.length === 0 || !isJsonObject(under)) return rest.length === 0 ? others : config;
  const inner = remove(under, rest);
  return Object.keys(inner).length === 0 ? others : { ...config, [name]: inner };
}

/** The lossy steps as one error; nothing is written. */
export function lossyStepsError(steps: readonly MigrationStep[]): AppError | null {
  const lossy = steps.filter((step) => step.lossy);
  if (lossy.length === 0) return null;
  return new AppError(
    lossy.map(({ did, what, message }) => ({
      code: 'MIGRATION_LOSES',
      path: what,
      message,
      hint:
        did === 'removed'
          ? 'Remove the setting from the old configuration, or accept the loss with --force'
          : 'Change the setting in the old configuration first',
    })),
    { exitCode: 2 },
  );
}

/** A step as one line. */
export function stepText({ did, what, message }: MigrationStep): string {
  return `${did}: ${what}: ${message}`;
}

/** A problem of the result as one line. */
export function resultText(problem: Problem): string {
  return `${problem.severity === 'warning' ? 'warning: ' : ''}${formatProblem(problem)}`;
}
