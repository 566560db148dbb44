import type { Position, Problem } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import {
  documentNotMapping,
  kindNotInVersion,
  missingHeader,
  oldVersion,
  unknownKind,
  unknownVersion,
  wrongHeader,
} from '../../codec/document-problems.ts';
import { entryOf, type SourceDocument } from '../../codec/source.ts';
import { type ConfigKind, MODEL_MEMBERS, type ModelKind } from './model.ts';
import type { SchemaVersion } from './suggest-field.ts';
import { V1BETA3_SCHEMAS } from './v1beta3.ts';

const KUBEADM_GROUP = 'kubeadm.k8s.io';
/** The version used for writing. */
export const V1BETA4 = `${KUBEADM_GROUP}/v1beta4`;
/** The older supported version. */
export const V1BETA3 = `${KUBEADM_GROUP}/v1beta3`;

/**
 * Version stored in clusters by kubeadm 1.15 to 1.21. Its node-related content is equal to v1beta3.
 * @see kubernetes/kubernetes cmd/kubeadm/app/apis/kubeadm/v1beta3/doc.go (1.24): the differences
 */
const V1BETA2 = `${KUBEADM_GROUP}/v1beta2`;
/** Fields of V1BETA2 that v1beta3 removed. */
export const REMOVED_IN_V1BETA3: ReadonlySet<string> = new Set(['dns.type', 'useHyperKubeImage']);

/** Type of a document, with the positions of the two members. */
export interface DocumentHeader {
  readonly apiVersion: string;
  readonly kind: string;
  readonly versionPosition: Position;
  readonly kindPosition: Position;
}

/** A document of a known kind and a supported version. */
export type RecognisedDocument =
  | { readonly kind: ModelKind; readonly version: SchemaVersion }
  | { readonly kind: 'KubeletConfiguration' | 'KubeProxyConfiguration'; readonly version: 'component' };

/** Removed versions of kubeadm.k8s.io, and the last kubeadm that can convert them. */
const OLD_VERSIONS: ReadonlyMap<string, string> = new Map([
  [`${KUBEADM_GROUP}/v1alpha1`, 'v1.11'],
  [`${KUBEADM_GROUP}/v1alpha2`, 'v1.12'],
  [`${KUBEADM_GROUP}/v1alpha3`, 'v1.14'],
  [`${KUBEADM_GROUP}/v1beta1`, 'v1.15'],
  [V1BETA2, 'v1.22'],
]);

const COMPONENT_VERSIONS = {
  KubeletConfiguration: 'kubelet.config.k8s.io/v1beta1',
  KubeProxyConfiguration: 'kubeproxy.config.k8s.io/v1alpha1',
} as const;

const MODEL_KINDS = Object.keys(MODEL_MEMBERS) as readonly ModelKind[];

/** All kinds that a configuration file may contain. */
export const CONFIG_KINDS: readonly ConfigKind[] = [...MODEL_KINDS, 'KubeletConfiguration', 'KubeProxyConfiguration'];

/**
 * Reads apiVersion and kind of a document that is not empty.
 * @returns the header, or its problems: CONFIG_WRONG_TYPE, CONFIG_MISSING_HEADER
 */
export function readHeader(document: SourceDocument): DocumentHeader | readonly Problem[] {
  const start = document.positionAt(document.root?.offset ?? 0);
  if (document.root?.kind !== 'map') return [documentNotMapping(start)];
  const apiVersion = readMember(document, 'apiVersion', start);
  const kind = readMember(document, 'kind', start);
  if ('text' in apiVersion && 'text' in kind) {
    return { apiVersion: apiVersion.text, kind: kind.text, versionPosition: apiVersion.position, kindPosition: kind.position };
  }
  return [apiVersion, kind].filter((member) => 'code' in member);
}

function readMember(
  document: SourceDocument,
  member: 'apiVersion' | 'kind',
  start: Position,
): { readonly text: string; readonly position: Position } | Problem {
  const value = entryOf(document.root, member)?.value;
  if (!value) return missingHeader(member, start);
  const position = document.positionAt(value.offset);
  if (value.kind !== 'scalar') return wrongHeader(member, position);
  if (value.text === '' || value.scalar.type === 'null') return missingHeader(member, position);
  return value.scalar.type === 'string' ? { text: value.text, position } : wrongHeader(member, position);
}

/**
 * Determines the kind of a document from its header.
 * @param lenient read v1beta2 as v1beta3
 * @returns the kind and version, or the problem: CONFIG_OLD_VERSION, CONFIG_UNKNOWN_VERSION, CONFIG_UNKNOWN_KIND
 */
export function recogniseDocument(header: DocumentHeader, lenient = false): RecognisedDocument | Problem {
  const { kind: written, versionPosition, kindPosition } = header;
  const apiVersion = lenient && header.apiVersion === V1BETA2 ? V1BETA3 : header.apiVersion;
  const converter = OLD_VERSIONS.get(apiVersion);
  if (converter !== undefined) return oldVersion(apiVersion, converter, versionPosition);
  const kind = CONFIG_KINDS.find((known) => known === written);
  if (kind === undefined) return unknownKind(apiVersion, written, kindPosition, CONFIG_KINDS, likelyKind(written));
  if (kind === 'KubeletConfiguration' || kind === 'KubeProxyConfiguration') {
    const readable = COMPONENT_VERSIONS[kind];
    return apiVersion === readable ? { kind, version: 'component' } : unknownVersion(apiVersion, versionPosition, [readable]);
  }
  if (apiVersion === V1BETA4) return { kind, version: 'v1beta4' };
  if (apiVersion !== V1BETA3) return unknownVersion(apiVersion, versionPosition, [V1BETA4, V1BETA3]);
  return kind in V1BETA3_SCHEMAS ? { kind, version: 'v1beta3' } : kindNotInVersion(V1BETA3, kind, versionPosition);
}

function likelyKind(kind: string): string | null {
  return CONFIG_KINDS.find((known) => known.toLowerCase() === kind.toLowerCase()) ?? closestName(kind, CONFIG_KINDS);
}
