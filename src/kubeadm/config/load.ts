import type { Position, Problem } from '../../base/errors.ts';
import { deprecatedVersion, duplicateKind, ignoredDocument, noDocument } from '../../codec/document-problems.ts';
import { parseSource, type Source, type SourceDocument } from '../../codec/source.ts';
import {
  type DocumentHeader,
  GONE_WITH_V1BETA2,
  type RecognisedDocument,
  readHeader,
  recogniseDocument,
  V1BETA3,
} from './document-header.ts';
import type { ConfigKind, DurationText, ModelKind, ModelSet } from './model.ts';
import { type Finding, isFromFlag, type Origin, type Origins, placeFinding, positionsOf, sortProblems } from './origins.ts';
import { type ModelPart, readModel } from './read-model.ts';
import type { SchemaVersion } from './suggest-field.ts';
import { modelFindings } from './validate.ts';

export interface LoadOptions {
  /** The kinds the command reads. Documents of other known kinds are passed over with a warning. */
  readonly kinds: readonly ConfigKind[];
  /**
   * `structure` only reads; whether the values make sense is judged when flags have been laid over them (`mergeInitFlags` and its like).
   * Default `values`.
   */
  readonly check?: 'structure' | 'values';
  /** No warning about API versions that will go. */
  readonly allowDeprecated?: boolean;
  /** What is not known is a warning, and v1beta2 is read: for documents that a newer or an older kubeadm may have put into a cluster. */
  readonly lenient?: boolean;
}

/** What kubeadm only warns of when it reads a document of its own from the cluster, and names that a newer one may know. */
const LENIENT: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_FIELD', 'CONFIG_DUPLICATE_FIELD', 'CONFIG_UNKNOWN_FEATURE_GATE']);

/** What a configuration file says. When a problem is an error, the models lack what is wrong and must not be used. */
export interface LoadedConfig extends ModelSet {
  /** Handed through unread. */
  readonly kubelet?: SourceDocument;
  readonly kubeProxy?: SourceDocument;
  /** All of them, in the order of the file. */
  readonly problems: readonly Problem[];
  /** Where each value of the models was written, by kind and field path: `InitConfiguration.nodeRegistration.name`. */
  readonly positions: ReadonlyMap<string, Position>;
  /** The same with the path as written, and with flags once they have been merged. */
  readonly origins: Origins;
  /** Kinds whose document has errors: that something is absent from them is not complained of. */
  readonly damaged: ReadonlySet<ModelKind>;
  /** Version each kubeadm document was written in. */
  readonly versions: ReadonlyMap<ModelKind, SchemaVersion>;
}

/**
 * Reads a configuration file of kubeadm: one or several documents of kubeadm.k8s.io v1beta4 or v1beta3, and KubeletConfiguration and
 * KubeProxyConfiguration, which are handed on as they are. It is as strict as `kubeadm config validate` and finds all problems at once.
 * @param text the file's text; YAML or JSON
 * @param file its name in positions, `-` for standard input
 * @see kubernetes/kubernetes cmd/kubeadm/app/util/config (1.36)
 */
export function loadConfig(text: string, file: string, options: LoadOptions): LoadedConfig {
  const source = parseSource(text, file);
  const { documents, problems } = selectDocuments(source, file, options);
  const parts: ModelPart[] = [];
  for (const { document, recognised } of documents) {
    if (recognised.version !== 'component') parts.push(readModel(document, recognised.kind, recognised.version));
  }
  const component = (kind: ConfigKind) => documents.find(({ recognised }) => recognised.kind === kind)?.document;
  const kubelet = component('KubeletConfiguration');
  const kubeProxy = component('KubeProxyConfiguration');
  const loaded = {
    ...joinParts(parts, options.kinds),
    ...(kubelet && { kubelet }),
    ...(kubeProxy && { kubeProxy }),
    problems: sortProblems([...problems, ...parts.flatMap((part) => part.problems)]),
  };
  const checked = options.check === 'structure' ? loaded : checkValues(loaded);
  return options.lenient ? { ...checked, problems: checked.problems.filter(isOfConcern).map(softened) } : checked;
}

function isOfConcern({ code, path = '' }: Problem): boolean {
  return code !== 'CONFIG_UNKNOWN_FIELD' || !GONE_WITH_V1BETA2.has(path);
}

function softened(problem: Problem): Problem {
  return LENIENT.has(problem.code) ? { ...problem, severity: 'warning' } : problem;
}

/** A configuration without any file: the ground that flags are laid on. */
export function emptyConfig(): LoadedConfig {
  return { problems: [], positions: new Map(), origins: new Map(), damaged: new Set(), versions: new Map() };
}

/**
 * Judges the values of models, wherever they come from, and adds what is wrong to the problems there already.
 * @param loaded models with the origins of their values
 */
export function checkValues(loaded: LoadedConfig): LoadedConfig {
  const problems = [...loaded.problems];
  for (const finding of modelFindings(loaded)) {
    if (isWorthSaying(finding, loaded)) problems.push(placeFinding(finding, loaded.origins));
  }
  return { ...loaded, problems: sortProblems(problems) };
}

function isWorthSaying({ path, missing, notForFlags }: Finding, { damaged, origins }: LoadedConfig): boolean {
  if (missing && [...damaged].some((kind) => path === kind || path.startsWith(`${kind}.`))) return false;
  return !(notForFlags && isFromFlag(path, origins));
}

interface Selected {
  readonly document: SourceDocument;
  readonly recognised: RecognisedDocument;
}

/** The documents the command reads, and what is wrong with the others. Empty documents are passed over. */
function selectDocuments(
  source: Source,
  file: string,
  { kinds, allowDeprecated, lenient }: LoadOptions,
): { readonly documents: readonly Selected[]; readonly problems: readonly Problem[] } {
  const documents: Selected[] = [];
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
  const failed = problems.some(({ severity }) => severity !== 'warning');
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
  const models = Object.assign({}, ...parts.map((part) => part.models)) as ModelSet;
  const timeout = parts.find((part) => part.timeoutForControlPlane !== undefined)?.timeoutForControlPlane;
  const moved = timeout !== undefined && kinds.includes('InitConfiguration') ? moveTimeout(models, timeout, origins) : models;
  return {
    ...moved,
    positions: positionsOf(origins),
    origins,
    damaged: new Set(parts.filter((part) => part.problems.length > 0).map((part) => part.kind)),
    versions: new Map(parts.map((part) => [part.kind, part.version])),
  };
}

/**
 * v1beta3 had this timeout of `init` in ClusterConfiguration. As in kubeadm it goes before one of InitConfiguration, unless it is the
 * default of 4m0s, which can't be told from none.
 */
function moveTimeout(models: ModelSet, timeout: DurationText, origins: Map<string, Origin>): ModelSet {
  const own = models.init?.timeouts?.controlPlaneComponentHealthCheck;
  if (timeout === '0s' || (timeout === '4m0s' && own !== undefined)) return models;
  const written = origins.get('ClusterConfiguration.apiServer.timeoutForControlPlane');
  if (written) origins.set('InitConfiguration.timeouts.controlPlaneComponentHealthCheck', written);
  return { ...models, init: { ...models.init, timeouts: { ...models.init?.timeouts, controlPlaneComponentHealthCheck: timeout } } };
}
