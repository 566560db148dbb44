import type { JsonObject } from '../base/json.ts';
import { encodeTyped, printableTyped } from '../codec/encode-typed.ts';
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
 * @throws AppError with the codes of `decodeKubeletConfiguration` if a value does not have its field's type
 */
export function encodeKubeletConfiguration(value: JsonObject, { catalogue, minor }: EncodeOptions): JsonObject {
  return encodeTyped(kubeletConfigurationType(catalogue, minor), withHeader(value));
}

/** The same for `encodeYaml` and `documentOfValue`: numbers beyond ±(2^53 - 1) are bigint. */
export function printableKubeletConfiguration(value: JsonObject, { catalogue, minor }: EncodeOptions): YamlValue {
  return printableTyped(kubeletConfigurationType(catalogue, minor), withHeader(value));
}

/** The same as YAML text, byte-for-byte identical to kubeadm's output. */
export function renderKubeletConfiguration(value: JsonObject, options: EncodeOptions): string {
  return encodeYaml(printableKubeletConfiguration(value, options));
}

function withHeader(value: JsonObject): JsonObject {
  return { ...value, apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
}
