import { AppError, type Position, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { type DecodedDocument, decodeTyped } from '../../codec/decode-typed.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { invalidJson } from '../../codec/typed-problems.ts';
import type { YamlValue } from '../../codec/yaml-encode.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { unknownFieldReporter } from './unknown-fields.ts';

/** The only version in all minors. */
export const KUBELET_API_VERSION = 'kubelet.config.k8s.io/v1beta1';
export const KUBELET_KIND = 'KubeletConfiguration';

export interface DecodeOptions extends KubeletReader {
  /**
   * Report unknown and duplicate fields as warnings, as the kubelet does (1.17 and later); only errors that
   * prevent its start remain errors.
   */
  readonly lenient?: boolean;
  /** Syntax of the file, see `syntaxOf`. JSON has fewer number formats and merges duplicate objects. Default `yaml`. */
  readonly syntax?: 'yaml' | 'json';
}

/**
 * Decodes a KubeletConfiguration document as the kubelet of a minor does, with the same result, but reports
 * all problems at once.
 *
 * Codes: CONFIG_MISSING_HEADER, CONFIG_WRONG_KIND (decoding stops), CONFIG_UNKNOWN_FIELD,
 * CONFIG_DUPLICATE_FIELD, CONFIG_WRONG_TYPE, CONFIG_OUT_OF_RANGE, CONFIG_INVALID_DURATION,
 * CONFIG_INVALID_QUANTITY, CONFIG_INVALID_TIMESTAMP. Fields with a problem are omitted from `value`. In a document
 * built from a value (`documentOfValue`), fields and problems have no positions.
 * @see Kubernetes 1.20 to 1.36 pkg/kubelet/kubeletconfig/util/codec: strict decode, then lenient;
 *   sigs.k8s.io/yaml, sigs.k8s.io/json
 */
export function decodeKubeletConfiguration(document: SourceDocument, options: DecodeOptions): DecodedDocument {
  const decoded = decodeInOrder(document, options);
  if (document.isValue !== true) return decoded;
  return { value: decoded.value, fields: new Map(), problems: decoded.problems.map(withoutPosition) };
}

/** Declared fields as a kubelet of the minor reads them (`60s` is `1m0s`), without the header; wrong ones are omitted. */
export function decodeDeclaredFields(declared: JsonObject, options: KubeletReader): JsonObject {
  const document = documentOfValue({ ...declared, apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND } as YamlValue, 'declared fields');
  return withoutHeader(decodeKubeletConfiguration(document, { ...options, lenient: true }).value);
}

/** The fields of a configuration without apiVersion and kind. */
export function withoutHeader({ apiVersion: _version, kind: _kind, ...fields }: JsonObject): JsonObject {
  return fields;
}

/** A decoded KubeletConfiguration and the positions of its fields. */
export interface ParsedConfig {
  readonly value: JsonObject;
  readonly fields: ReadonlyMap<string, Position>;
  /** e.g. `ConfigMap kube-system/kubelet-config`, for fields without a position. */
  readonly source: string;
}

/**
 * Decodes a KubeletConfiguration document that must be valid.
 * @param onWarning receives the problems that are warnings
 * @throws AppError with all problems of the document, exit code 2
 */
export function readKubeletConfiguration(
  document: SourceDocument,
  options: KubeletReader,
  onWarning: (problem: Problem) => void = () => undefined,
): ParsedConfig {
  const { value, fields, problems } = decodeKubeletConfiguration(document, options);
  for (const problem of problems) if (problem.severity === 'warning') onWarning(problem);
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return { value, fields, source: document.file };
}

/**
 * As `decodeKubeletConfiguration`, but problems of a document that was built from a value have positions too, for
 * sorting them among other findings. Such positions must not be shown to users.
 */
export function decodeInOrder(document: SourceDocument, options: DecodeOptions): DecodedDocument {
  const { catalogue, minor, lenient = document.isLenient ?? false, syntax = 'yaml' } = options;
  return decodeTyped(document, {
    type: catalogue.configurationType(minor),
    header: { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND },
    unknown: unknownFieldReporter({ catalogue, minor, lenient }),
    lenient,
    syntax,
    confidential: ['staticPodURLHeader'],
  });
}

/** Removes the position of a problem in a document that the user cannot open. */
export function withoutPosition({ position: _, ...problem }: Problem): Problem {
  return problem;
}

/**
 * The syntax in which the kubelet reads a file: JSON if the first character after white space is `{`,
 * otherwise YAML.
 */
export function syntaxOf(text: string): 'yaml' | 'json' {
  return /^[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*\{/.test(text) ? 'json' : 'yaml';
}

/** The problem of a file that must be JSON (see `syntaxOf`) but is only YAML; null if valid. */
export function checkJsonSyntax(text: string, file: string): Problem | null {
  try {
    JSON.parse(text.replace(/^[\v\f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/, ''));
    return null;
  } catch {
    return invalidJson({ file, line: 1, column: 1 });
  }
}
