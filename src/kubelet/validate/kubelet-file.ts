import type { Problem } from '../../base/errors.ts';
import { parseSource, type SourceDocument } from '../../codec/source.ts';
import { checkJsonSyntax, KUBELET_API_VERSION, KUBELET_KIND, syntaxOf } from '../documents/decode.ts';
import { type ValidationOptions, validateKubeletConfiguration } from './validate.ts';

/**
 * Validates a kubelet's own file (`--config`) as that kubelet reads it: only the first of several documents,
 * and as JSON if the file begins with a brace.
 * @returns all problems in order of position; null if the file is not a kubelet's: it contains kubeadm
 *   documents, or no KubeletConfiguration
 */
export function validateKubeletFile(text: string, file: string, options: ValidationOptions): readonly Problem[] | null {
  const source = parseSource(text, file);
  const [document] = source.documents;
  if (document === undefined || !isForKubelets(source.documents)) return null;
  const syntax = syntaxOf(text);
  const json = syntax === 'json' ? checkJsonSyntax(text, file) : null;
  if (json !== null) return [json];
  if (source.problems.length > 0) return source.problems;
  const { problems } = validateKubeletConfiguration(document, { ...options, syntax });
  return [...problems, ...source.documents.slice(1).flatMap(unreadDocument)];
}

function isForKubelets(documents: readonly SourceDocument[]): boolean {
  const groups = documents.map((document) => ({
    group: memberText(document, 'apiVersion')?.split('/')[0],
    kind: memberText(document, 'kind'),
  }));
  if (groups.some(({ group }) => group === 'kubeadm.k8s.io' || group === 'kubeproxy.config.k8s.io')) return false;
  const [own] = KUBELET_API_VERSION.split('/');
  return groups.some(({ group, kind }) => group === own || kind === KUBELET_KIND);
}

function memberText({ root }: SourceDocument, member: string): string | undefined {
  const value = root?.kind === 'map' ? root.entries.findLast(({ key }) => key === member)?.value : undefined;
  return value?.kind === 'scalar' ? value.text : undefined;
}

function unreadDocument({ root, positionAt }: SourceDocument): readonly Problem[] {
  if (root === null) return [];
  return [
    {
      code: 'CONFIG_IGNORED_DOCUMENT',
      severity: 'warning',
      message: 'this document is ignored: the kubelet reads only the first document of a file',
      hint: 'Remove this document, or move it to a separate file',
      path: '',
      position: positionAt(root.offset),
    },
  ];
}
