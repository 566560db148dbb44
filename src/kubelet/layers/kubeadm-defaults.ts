import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import type { Warning } from '../../host/plan/change.ts';
import { MANIFESTS_DIR } from '../../kube/well-known.ts';
import { leavesOf } from './layers.ts';

export interface KubeadmDefaultsInput {
  /** DNS service address: the 10th of the first service subnet; the caller handles an unknown subnet. */
  readonly clusterDNS: string;
  /** `networking.dnsDomain`; empty if unknown. */
  readonly dnsDomain: string;
  readonly certificatesDir: string;
}

/** kubeadm's values of fields. `advise`: a different value is kept with a warning. */
function kubeadmDefaultList(
  input: KubeadmDefaultsInput,
): readonly { readonly path: readonly string[]; readonly value: Json; readonly advise: boolean }[] {
  return [
    { path: ['staticPodPath'], value: MANIFESTS_DIR, advise: true },
    { path: ['clusterDNS'], value: [input.clusterDNS], advise: true },
    ...(input.dnsDomain === '' ? [] : [{ path: ['clusterDomain'], value: input.dnsDomain, advise: true }]),
    { path: ['authentication', 'x509', 'clientCAFile'], value: cleanPath(`${input.certificatesDir}/ca.crt`), advise: true },
    { path: ['authentication', 'anonymous', 'enabled'], value: false, advise: true },
    { path: ['authorization', 'mode'], value: 'Webhook', advise: true },
    { path: ['authentication', 'webhook', 'enabled'], value: true, advise: true },
    { path: ['healthzBindAddress'], value: '127.0.0.1', advise: true },
    { path: ['healthzPort'], value: 10248, advise: true },
    { path: ['rotateCertificates'], value: true, advise: false },
    { path: ['cgroupDriver'], value: 'systemd', advise: false },
  ];
}

/**
 * The values that kubeadm sets in every KubeletConfiguration for fields that the user omitted.
 * @see kubeadm 1.36 componentconfigs/kubelet.go
 */
export function kubeadmDefaults(input: KubeadmDefaultsInput): JsonObject {
  return kubeadmDefaultList(input).reduce<JsonObject>((config, { path, value }) => setAt(config, path, value), {});
}

/**
 * Returns warnings for values that differ from kubeadm's recommendation; the values are kept. That includes
 * `rotateCertificates: false`, which kubeadm silently changes to true.
 */
export function adviseKubeadmDefaults(config: JsonObject, input: KubeadmDefaultsInput): readonly Warning[] {
  const leaves = leavesOf(config);
  const warnings = kubeadmDefaultList(input)
    .filter(({ path, value, advise }) => advise && leaves.has(path.join('.')) && !jsonEqual(leaves.get(path.join('.')), value))
    .map(({ path, value }) => recommended(path.join('.'), value, leaves.get(path.join('.')) as Json));
  if (typeof config.readOnlyPort === 'number' && config.readOnlyPort !== 0)
    warnings.push(recommended('readOnlyPort', 0, config.readOnlyPort));
  if (config.rotateCertificates === false) {
    const message =
      'rotateCertificates is false: the kubelet does not renew its client certificate and stops working when the certificate expires (a year after TLS bootstrap)';
    warnings.push({ code: 'KUBELET_NO_ROTATION', field: 'rotateCertificates', message });
  }
  return warnings;
}

function recommended(field: string, value: Json, given: Json): Warning {
  const message = `The recommended value for "${field}" in "KubeletConfiguration" is: ${formatGo(value)}; the provided value is: ${formatGo(given)}`;
  return { code: 'KUBELET_RECOMMENDED_VALUE', field, message };
}

/** A value as printed by Go's `%v` in kubeadm's message. */
function formatGo(value: Json): string {
  return Array.isArray(value) ? `[${value.map((item) => formatGo(item as Json)).join(' ')}]` : String(value);
}

/** Returns a copy with one value set; missing parents are created. */
export function setAt(config: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return config;
  if (rest.length === 0) return { ...config, [key]: value };
  const under = config[key];
  const object = typeof under === 'object' && under !== null && !Array.isArray(under) ? (under as JsonObject) : {};
  return { ...config, [key]: setAt(object, rest, value) };
}
