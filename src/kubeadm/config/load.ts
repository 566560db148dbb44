import type * as z from 'zod';
import type { Position, Problem } from '../../base/errors.ts';
import { deprecatedVersion, duplicateKind, ignoredDocument, noDocument } from '../../codec/document-problems.ts';
import { type DocumentGrammar, readDocument } from '../../codec/read-document.ts';
import { parseSource, type Source, type SourceDocument } from '../../codec/source.ts';
import {
  type DocumentHeader,
  REMOVED_IN_V1BETA3,
  type RecognisedDocument,
  readHeader,
  recogniseDocument,
  V1BETA3,
} from './document-header.ts';
import { type ConfigKind, type DurationText, MODEL_MEMBERS, type ModelKind, type ModelSet } from './model.ts';
import {
  type ConfigFinding,
  isFromFlag,
  modelPath,
  type Origin,
  type Origins,
  placeFinding,
  positionsOf,
  sortProblems,
} from './origins.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';
import { type SchemaVersion, suggestField } from './suggest-field.ts';
import { type ConvertedModel, V1BETA3_CONVERSIONS, V1BETA3_SCHEMAS } from './v1beta3.ts';
import { modelFindings } from './validate.ts';

interface LoadOptions {
  /** The kinds that the command reads. Documents of other known kinds are skipped with a warning. */
  readonly kinds: readonly ConfigKind[];
  /**
   * `structure` only parses; the values are validated after flags have been merged (`mergeInitFlags` and similar).
   * Default `values`.
   */
  readonly check?: 'structure' | 'values';
  /** No warning about deprecated API versions. */
  readonly allowDeprecated?: boolean;
  /**
   * Unknown fields are warnings, and v1beta2 is accepted: for documents in a cluster that a newer or older
   * kubeadm may have written.
   */
  readonly lenient?: boolean;
  /**
   * Fields that are ignored with a warning: `metadata` of a document, which older tools write; `unknown-fields`: all unknown
   * and duplicate fields, as kubeadm does unless it validates or migrates a file. Default: none.
   */
  readonly ignores?: 'metadata' | 'unknown-fields';
}

/** Problems that kubeadm only warns of in its own documents in the cluster, and names that a newer kubeadm may know. */
const LENIENT: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_FIELD', 'CONFIG_DUPLICATE_FIELD', 'CONFIG_UNKNOWN_FEATURE_GATE']);

/**
 * The content of a configuration file. If a problem is an error, the models lack the invalid values and must
 * not be used.
 */
export interface LoadedConfig extends ModelSet {
  /** Passed through without decoding. */
  readonly kubelet?: SourceDocument;
  readonly kubeProxy?: SourceDocument;
  /** All problems, in file order. */
  readonly problems: readonly Problem[];
  /** Position of each model value, by kind and field path: `InitConfiguration.nodeRegistration.name`. */
  readonly positions: ReadonlyMap<string, Position>;
  /** The same with the original path, and with flags after merging. */
  readonly origins: Origins;
  /** Kinds whose document has errors: missing values are not reported for them. */
  readonly damaged: ReadonlySet<ModelKind>;
  /** Original version of each kubeadm document. */
  readonly versions: ReadonlyMap<ModelKind, SchemaVersion>;
}

/**
 * Reads a kubeadm configuration file: one or several documents of kubeadm.k8s.io v1beta4 or v1beta3, and
 * KubeletConfiguration and KubeProxyConfiguration, which are passed through. As strict as `kubeadm config
 * validate`; reports all problems at once.
 * @param text content of the file; YAML or JSON
 * @param file its name in positions, `-` for standard input
 * @see kubernetes/kubernetes cmd/kubeadm/app/util/config (1.36)
 */
export function loadConfig(text: string, file: string, options: LoadOptions): LoadedConfig {
  const source = parseSource(text, file);
  const { documents, problems } = selectDocuments(source, file, options);
  const parts: ModelPart[] = [];
  for (const { document, recognised } of documents) {
    if (recognised.version === 'component') continue;
    const part = readModel(document, recognised.kind, recognised.version);
    parts.push({ ...part, problems: part.problems.map((problem) => ignored(problem, options.ignores)) });
  }
  const components = documents.filter(({ recognised }) => recognised.version === 'component');
  const component = (kind: ConfigKind): SourceDocument | undefined => {
    const document = components.find(({ recognised }) => recognised.kind === kind)?.document;
    return document && options.ignores ? withoutMetadata(document, options.ignores) : document;
  };
  const kubelet = component('KubeletConfiguration');
  const kubeProxy = component('KubeProxyConfiguration');
  const loaded = {
    ...joinParts(parts, options.kinds),
    ...(kubelet && { kubelet }),
    ...(kubeProxy && { kubeProxy }),
    problems: sortProblems([
      ...problems,
      ...parts.flatMap((part) => part.problems),
      ...(options.ignores ? components.flatMap(({ document }) => metadataWarnings(document)) : []),
    ]),
  };
  const checked = options.check === 'structure' ? loaded : checkValues(loaded);
  return options.lenient ? { ...checked, problems: checked.problems.filter(isOfConcern).map(softened) } : checked;
}

/** The problem as a warning if the field is ignored. */
function ignored(problem: Problem, ignores: LoadOptions['ignores']): Problem {
  const isIgnored =
    ignores === 'unknown-fields'
      ? problem.code === 'CONFIG_UNKNOWN_FIELD' || problem.code === 'CONFIG_DUPLICATE_FIELD'
      : ignores === 'metadata' && problem.code === 'CONFIG_UNKNOWN_FIELD' && problem.path === METADATA;
  if (!isIgnored) return problem;
  const { hint: _, ...rest } = problem;
  return { ...rest, severity: 'warning', message: problem.code === 'CONFIG_UNKNOWN_FIELD' ? IGNORED : problem.message };
}

const METADATA = 'metadata';
const IGNORED = 'unknown field, ignored';

function withoutMetadata(document: SourceDocument, ignores: LoadOptions['ignores']): SourceDocument {
  const { root } = document;
  if (root?.kind !== 'map') return document;
  const entries = root.entries.filter(({ key }) => key !== METADATA);
  return { ...document, root: { ...root, entries }, isLenient: ignores === 'unknown-fields' };
}

function metadataWarnings({ root, positionAt }: SourceDocument): readonly Problem[] {
  if (root?.kind !== 'map') return [];
  return root.entries
    .filter(({ key }) => key === METADATA)
    .map(({ keyOffset }) => ({
      ...({ code: 'CONFIG_UNKNOWN_FIELD', message: IGNORED, severity: 'warning', path: METADATA } as const),
      position: positionAt(keyOffset),
    }));
}

function isError({ severity }: Problem): boolean {
  return severity !== 'warning';
}

function isOfConcern({ code, path = '' }: Problem): boolean {
  return code !== 'CONFIG_UNKNOWN_FIELD' || !REMOVED_IN_V1BETA3.has(path);
}

function softened(problem: Problem): Problem {
  return LENIENT.has(problem.code) ? { ...problem, severity: 'warning' } : problem;
}

export function emptyConfig(): LoadedConfig {
  return { problems: [], positions: new Map(), origins: new Map(), damaged: new Set(), versions: new Map() };
}

/**
 * Validates the values of models from any source, and adds the problems to the existing ones.
 * @param loaded models with the origins of their values
 */
export function checkValues(loaded: LoadedConfig): LoadedConfig {
  const problems = [...loaded.problems];
  for (const finding of modelFindings(loaded)) {
    if (isFindingReported(finding, loaded)) problems.push(placeFinding(finding, loaded.origins));
  }
  return { ...loaded, problems: sortProblems(problems) };
}

function isFindingReported({ path, missing, notForFlags }: ConfigFinding, { damaged, origins }: LoadedConfig): boolean {
  if (missing && [...damaged].some((kind) => path === kind || path.startsWith(`${kind}.`))) return false;
  return !(notForFlags && isFromFlag(path, origins));
}

/** The documents that the command reads, and problems with the others. Empty documents are skipped. */
function selectDocuments(source: Source, file: string, { kinds, allowDeprecated, lenient }: LoadOptions) {
  const documents: { readonly document: SourceDocument; readonly recognised: RecognisedDocument }[] = [];
  const problems: Problem[] = [...source.problems];
  const firstLines = new Map<string, number>();
  for (const document of source.documents) {
    if (document.root === null) continue;
    const header = readHeader(document);
    if (!('kind' in header)) {
      problems.push(...header);
      continue;
    }
    const { problem, recognised } = validateHeader(header, firstLines, { kinds, lenient });
    if (problem) problems.push(problem);
    if (recognised) documents.push({ document, recognised });
    if (recognised?.version === 'v1beta3' && !allowDeprecated) problems.push(deprecatedVersion(V1BETA3, header.versionPosition));
  }
  const failed = problems.some(isError);
  return { documents, problems: documents.length > 0 || failed ? problems : [...problems, noDocument(file, kinds)] };
}

function validateHeader(
  header: DocumentHeader,
  firstLines: Map<string, number>,
  { kinds, lenient = false }: { readonly kinds: readonly ConfigKind[]; readonly lenient: boolean | undefined },
): { readonly problem?: Problem; readonly recognised?: RecognisedDocument } {
  const { kind, kindPosition } = header;
  const firstLine = firstLines.get(kind);
  if (firstLine !== undefined) return { problem: duplicateKind(kind, kindPosition, firstLine) };
  firstLines.set(kind, kindPosition.line);
  const recognised = recogniseDocument(header, lenient);
  if ('code' in recognised) return { problem: recognised };
  return kinds.includes(recognised.kind) ? { recognised } : { problem: ignoredDocument(kind, kindPosition, kinds) };
}

function joinParts(parts: readonly ModelPart[], kinds: readonly ConfigKind[]): Omit<LoadedConfig, 'problems'> {
  const origins = new Map(parts.flatMap((part) => [...part.origins]));
  const { timeoutForControlPlane: timeout, ...models }: ConvertedModel = Object.assign({}, ...parts.map((part) => part.models));
  const moved = timeout !== undefined && kinds.includes('InitConfiguration') ? moveTimeout(models, timeout, origins) : models;
  return {
    ...moved,
    positions: positionsOf(origins),
    origins,
    damaged: new Set(parts.filter(({ problems }) => problems.some(isError)).map((part) => part.kind)),
    versions: new Map(parts.map((part) => [part.kind, part.version])),
  };
}

/**
 * v1beta3 had this timeout of `init` in ClusterConfiguration. As in kubeadm it overrides the one in
 * InitConfiguration, unless it is 4m0s, which cannot be distinguished from the default.
 */
function moveTimeout(models: ModelSet, timeout: DurationText, origins: Map<string, Origin>): ModelSet {
  const own = models.init?.timeouts?.controlPlaneComponentHealthCheck;
  if (timeout === '0s' || (timeout === '4m0s' && own !== undefined)) return models;
  const written = origins.get('ClusterConfiguration.apiServer.timeoutForControlPlane');
  if (written) origins.set('InitConfiguration.timeouts.controlPlaneComponentHealthCheck', written);
  return { ...models, init: { ...models.init, timeouts: { ...models.init?.timeouts, controlPlaneComponentHealthCheck: timeout } } };
}

/** The content of one document of a file; its origins are by kind and model path. */
type ModelPart = ReturnType<typeof readModel>;

/** Reads one document of kubeadm.k8s.io into the model; converts v1beta3. */
function readModel(document: SourceDocument, kind: ModelKind, version: SchemaVersion) {
  const oldKind = version === 'v1beta3' && kind in V1BETA3_SCHEMAS ? (kind as keyof typeof V1BETA3_SCHEMAS) : null;
  const schema: z.ZodType<object> = oldKind === null ? V1BETA4_SCHEMAS[kind] : V1BETA3_SCHEMAS[oldKind];
  const { value, problems, origins } = readDocument(document, schema, grammarOf(kind, version));
  const moved = new Map<string, string>();
  const convert = oldKind && (V1BETA3_CONVERSIONS[oldKind] as (written: object, paths: typeof moved) => ConvertedModel);
  const models: ConvertedModel = convert === null ? { [MODEL_MEMBERS[kind]]: value } : convert(value, moved);
  return { kind, version, models, problems, origins: inModel(kind, document, origins, moved) };
}

/** Origins by model path; a moved member is also found under its new path. */
function inModel(
  kind: ModelKind,
  document: SourceDocument,
  written: ReadonlyMap<string, Origin>,
  moved: ReadonlyMap<string, string>,
): Origins {
  const origins = new Map<string, Origin>([[kind, { position: document.positionAt(document.root?.offset ?? 0), path: '' }]]);
  for (const [path, origin] of written) origins.set(modelPath(kind, path), origin);
  for (const [path, from] of moved) {
    const origin = written.get(from);
    if (origin) origins.set(modelPath(kind, path), origin);
  }
  return origins;
}

function grammarOf(kind: ModelKind, version: SchemaVersion): DocumentGrammar {
  const suggest = (parents: readonly string[], name: string) => suggestField({ kind, version, parents, name });
  if (version !== 'v1beta4') return { suggest };
  return { suggest, argumentHint: (name) => `Write a list of names and values (v1beta4): - {name: ${name}, value: …}` };
}
