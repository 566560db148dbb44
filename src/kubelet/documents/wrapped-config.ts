import type { Position, Problem } from '../../base/errors.ts';
import { entryOf, parseSource, type SourceDocument, type SourceEntry, type SourceMap, type SourceScalar } from '../../codec/source.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from './decode.ts';

/** A configuration inside another object, whose problems are reported at their places in the file. */
export type WrappedConfig =
  /** A text in a ConfigMap, for example `data.kubelet` of kubelet-config. */
  | { readonly text: string; place(problem: Problem): Problem }
  /** Fields of a KubeletConfiguration, which are merged into others. */
  | { readonly fields: SourceDocument };

const OPENSHIFT = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'KubeletConfig' };
const CONFIG_GROUP = /^(?:kubelet\.config|kubeadm|kubeproxy\.config)\.k8s\.io\//;

/**
 * The configurations in a ConfigMap, as kubeadm uploads them, or in a KubeletConfig of OpenShift.
 * @returns null: another kind of file. A problem if the object contains no configuration
 * @see kubeadm 1.36 app/phases/kubelet/config.go CreateConfigMap; openshift/api machineconfiguration/v1 KubeletConfigSpec
 */
export function unwrapConfigs(text: string, file: string): readonly WrappedConfig[] | Problem | null {
  const [document, ...others] = parseSource(text, file).documents.filter(({ root }) => root !== null);
  if (document === undefined || others.length > 0 || document.root?.kind !== 'map') return null;
  const [apiVersion, kind] = [textOf(document, ['apiVersion']), textOf(document, ['kind'])];
  if (apiVersion === OPENSHIFT.apiVersion && kind === OPENSHIFT.kind) {
    const fields = nodeAt(document, ['spec', 'kubeletConfig']);
    if (fields?.kind !== 'map') return noConfig(document, 'spec.kubeletConfig');
    return [{ fields: { file, index: document.index, root: withHeader(fields), positionAt: (offset) => document.positionAt(offset) } }];
  }
  if (apiVersion !== 'v1' || kind !== 'ConfigMap') return null;
  const data = nodeAt(document, ['data']);
  const found = (data?.kind === 'map' ? data.entries : []).flatMap(({ value }) =>
    value.kind === 'scalar' && isConfig(value.text, file) ? [textIn(document, value, text)] : [],
  );
  return found.length > 0 ? found : noConfig(document, 'data.kubelet');
}

/** OpenShift requires no header of the fields. */
function withHeader(fields: SourceMap): SourceMap {
  const header = Object.entries({ apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND }).filter(
    ([name]) => entryOf(fields, name) === undefined,
  );
  const { offset } = fields;
  const entries = header.map(([key, text]): SourceEntry => {
    return { key, keyOffset: offset, value: { kind: 'scalar', scalar: { type: 'string', value: text }, text, offset } };
  });
  return { ...fields, entries: [...entries, ...fields.entries] };
}

function isConfig(text: string, file: string): boolean {
  return parseSource(text, file).documents.some((inner) => CONFIG_GROUP.test(textOf(inner, ['apiVersion']) ?? ''));
}

function nodeAt(document: SourceDocument, path: readonly string[]): SourceDocument['root'] | undefined {
  let node: SourceDocument['root'] | undefined = document.root;
  for (const name of path) node = node?.kind === 'map' ? entryOf(node, name)?.value : undefined;
  return node;
}

function textOf(document: SourceDocument, path: readonly string[]): string | undefined {
  const node = nodeAt(document, path);
  return node?.kind === 'scalar' ? node.text : undefined;
}

function noConfig(document: SourceDocument, path: string): Problem {
  const message = `the ${textOf(document, ['kind'])} contains no configuration`;
  const position = document.positionAt(document.root?.offset ?? 0);
  return { code: 'CONFIG_EMPTY', message, hint: `Check that this is the right object: the configuration is in ${path}`, position };
}

/**
 * The lines of a literal block (`|`) are those of the file, behind an indentation, so that they keep their numbers; problems
 * in another notation are reported at its beginning.
 */
function textIn(document: SourceDocument, { text, offset }: SourceScalar, whole: string): WrappedConfig {
  const start = document.positionAt(offset);
  const lines = whole.split('\n');
  const isBlock = lines[start.line - 1]?.charAt(start.column - 1) === '|' && !text.trimStart().startsWith('{');
  if (!isBlock) return { text, place: (problem) => (problem.position === undefined ? problem : { ...problem, position: start }) };
  const inner = text.split('\n');
  const first = inner.findIndex((line) => line.trim() !== '');
  const indentation = (lines[start.line + first] ?? '').replace(/\r$/, '').length - (inner[first] ?? '').length;
  const moved = (position: Position): Position => ({ ...position, column: position.column + indentation });
  return {
    text: '\n'.repeat(start.line) + text,
    place: (problem) => (problem.position === undefined ? problem : { ...problem, position: moved(problem.position) }),
  };
}
