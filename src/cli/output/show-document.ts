import { Document, Scalar, visit } from 'yaml';
import type { Json, JsonObject } from '../../base/json.ts';
import { hasUnprintable, printableJson, replaceUnprintable } from '../../base/text/printable.ts';
import { encodeGoJson } from '../../codec/json-text.ts';
import { applyJsonPath } from '../../codec/jsonpath/apply.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { type JsonPathFormat, withTemplatePosition } from './jsonpath-format.ts';

export type DocumentFormat = 'text' | 'json' | 'yaml';
/** A format of commands that only read. */
export type ReadFormat = DocumentFormat | JsonPathFormat;

/** Output format and log verbosity. */
export interface OutputRequest {
  readonly format: DocumentFormat;
  readonly verbosity: number;
  /** A plan has the contents and diffs of files and objects. Default: false */
  readonly showsDiff?: boolean | undefined;
}

/**
 * A result as a document, in the order of its members. Characters that a terminal interprets or hides are
 * escaped. A JSONPath template prints its results without a final newline, as kubectl does.
 * @throws AppError USAGE for a template that cannot be applied to the document
 */
export function renderDocument(value: object, format: Exclude<ReadFormat, 'text'>): string {
  if (typeof format === 'object') return renderJsonPath(format, value);
  if (format === 'json') return `${printableJson(value, 2)}\n`;
  // Strings that YAML 1.1 reads as another type (`on`, `1_000`) are quoted, as Kubernetes' parsers require.
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && hasUnprintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return replaceUnprintable(document.toString({ lineWidth: 0 }), (code) => `\\U${code.toString(16).padStart(8, '0')}`);
}

/** Objects for kubectl apply: YAML documents, or a List as JSON. */
export function renderManifests(objects: readonly object[], format: 'yaml' | 'json'): string {
  if (format === 'json') return renderDocument({ apiVersion: 'v1', kind: 'List', items: objects }, format);
  return objects.map((object) => renderDocument(object, format)).join('---\n');
}

/**
 * Applies a template to a result.
 * @throws AppError USAGE (exit code 2) for an index out of bounds, or an index or filter of another value than a list
 */
function renderJsonPath({ path, ...options }: JsonPathFormat, value: object): string {
  return withTemplatePosition(path.template, () => applyJsonPath(path, asJson(value), options));
}

/** Without the members that JSON omits: they do not exist for a template either. */
function asJson(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

/**
 * A document of kubeadm, byte-for-byte as kubeadm prints it: JSON with four spaces, YAML with sorted members.
 * @see kubeadm 1.36 app/util/output
 */
export function renderKubeadmDocument(value: JsonObject, format: Exclude<ReadFormat, 'text'>): string {
  if (format === 'json') return encodeGoJson(value);
  return format === 'yaml' ? encodeYaml(value) : renderDocument(value, format);
}
