import type { JsonObject } from '../../base/json.ts';
import { encodeTyped } from '../../codec/encode-typed.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from './decode.ts';

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
  { catalogue, minor, keepsRotationOff = false }: KubeletReader & { readonly keepsRotationOff?: boolean },
): JsonObject {
  const encoded = encodeTyped(catalogue.configurationType(minor), { ...value, apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND });
  return keepsRotationOff && value.rotateCertificates === false ? { ...encoded, rotateCertificates: false } : encoded;
}
