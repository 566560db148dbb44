import type { Json, JsonObject } from '../base/json.ts';
import { encodeTyped, printableTyped } from '../codec/encode-typed.ts';
import type { TypeNode } from '../codec/type-node.ts';
import { encodeYaml, type YamlValue } from '../codec/yaml-encode.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from './decode.ts';
import { kubeletConfigurationType } from './type.ts';

export interface EncodeOptions {
  /** The minor of the reading kubelet. */
  readonly minor: Minor;
  readonly catalogue: Catalogue;
}

/**
 * Encodes a KubeletConfiguration as Go's json.Marshal prints the v1beta1 struct of a minor (see
 * `encodeTyped`): the form in which kubeadm writes config.yaml and the ConfigMap. Fields unknown to the minor
 * are omitted.
 * @param value apiVersion and kind are optional
 * @param options.keepsRotationOff `rotateCertificates: false` is kept, although Go omits a false that is not
 *   behind a pointer: kubeadm treats the field as unset and enables rotation
 * @throws AppError with the codes of `decodeKubeletConfiguration` if a value does not have its field's type
 */
export function encodeKubeletConfiguration(
  value: JsonObject,
  { catalogue, minor, keepsRotationOff = false }: EncodeOptions & { readonly keepsRotationOff?: boolean },
): JsonObject {
  const encoded = encodeTyped(kubeletConfigurationType(catalogue, minor), withHeader(value));
  return keepsRotationOff && value.rotateCertificates === false ? { ...encoded, rotateCertificates: false } : encoded;
}

/** The same for `encodeYaml` and `documentOfValue`: numbers beyond ±(2^53 - 1) are bigint. */
export function printableKubeletConfiguration(value: JsonObject, { catalogue, minor }: EncodeOptions): YamlValue {
  return printableTyped(kubeletConfigurationType(catalogue, minor), withHeader(value));
}

/** The same as YAML text, byte-for-byte identical to kubeadm's output. */
export function renderKubeletConfiguration(value: JsonObject, options: EncodeOptions): string {
  return encodeYaml(printableKubeletConfiguration(value, options));
}

/**
 * The YAML text of a configuration that is encoded already, with its fields in order. It may hold fields that
 * the minor does not know, because patches add fields after the encoding.
 */
export function renderEncodedConfiguration(config: JsonObject, options: EncodeOptions): string {
  const entries = Object.entries(withBigIntegers(config, options)).sort(([a], [b]) => (a < b ? -1 : 1));
  return encodeYaml(Object.fromEntries(entries));
}

function withHeader(value: JsonObject): JsonObject {
  return { ...value, apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
}

/**
 * Prepares a KubeletConfiguration for printing: integers beyond ±(2^53 - 1), which JSON values hold as
 * decimal strings, become numbers where the field's type is an integer. Everything else is unchanged, also
 * fields that the minor does not know.
 */
export function withBigIntegers(config: JsonObject, { minor, catalogue }: EncodeOptions): { readonly [key: string]: YamlValue } {
  return restore(config, kubeletConfigurationType(catalogue, minor)) as { readonly [key: string]: YamlValue };
}

function restore(value: Json, type: TypeNode | undefined): YamlValue {
  if (typeof value === 'string')
    return (type?.kind === 'int64' || type?.kind === 'durationOrNanoseconds') && isBig(value) ? BigInt(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => restore(item, type?.kind === 'list' ? type.items : undefined));
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, item]) => [key, restore(item, memberType(type, key))]));
}

function memberType(type: TypeNode | undefined, key: string): TypeNode | undefined {
  if (type?.kind === 'map') return type.values;
  return type?.kind === 'object' ? type.fields.get(key)?.type : undefined;
}

function isBig(text: string): boolean {
  return /^-?[0-9]{16,19}$/.test(text) && !Number.isSafeInteger(Number(text));
}
