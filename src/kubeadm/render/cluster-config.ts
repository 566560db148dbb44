import type { JsonObject } from '../../base/json.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import type { ParsedConfig } from '../../kubelet/documents/decode.ts';
import { encodeKubeletConfiguration } from '../../kubelet/documents/encode.ts';
import { adviseKubeadmDefaults, type KubeadmDefaultsInput, kubeadmDefaults } from '../../kubelet/layers/kubeadm-defaults.ts';
import { addLayer, type LayeredConfig, leavesOf, NO_LAYERS } from '../../kubelet/layers/layers.ts';

/** Position of a field: `init.yaml:12:3`, or the source as a whole. */
export function placeOf(written: ParsedConfig, path: string): string {
  const position = written.fields.get(path);
  return position === undefined ? written.source : `${position.file}:${position.line}:${position.column}`;
}

/** kubeadm's defaults, overridden by the user's configuration for all nodes. Empty strings count as unset, as in Go. */
export function mergeClusterKubeletConfig(defaults: KubeadmDefaultsInput, baseline: ParsedConfig | null): LayeredConfig {
  const kubeadm = kubeadmDefaults(defaults);
  const bottom = addLayer(NO_LAYERS, {
    result: kubeadm,
    originOf: (path) => ({ layer: 'kubeadm default', source: defaultSource(path) }),
  });
  if (baseline === null) return bottom;
  return addLayer(bottom, {
    overlay: withoutEmptyStrings(baseline.value, leavesOf(kubeadm)),
    originOf: (path) => ({ layer: 'cluster', source: placeOf(baseline, path) }),
  });
}

function defaultSource(path: string): string {
  if (path === 'clusterDNS') return '10th address of networking.serviceSubnet';
  if (path === 'clusterDomain') return 'networking.dnsDomain';
  return path === 'authentication.x509.clientCAFile' ? 'certificatesDir' : 'kubeadm 1.36';
}

function withoutEmptyStrings(config: JsonObject, defaults: ReadonlyMap<string, unknown>, prefix = ''): JsonObject {
  const entries = Object.entries(config).flatMap(([key, value]): [string, JsonObject[string]][] => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    if (value === '' && defaults.has(path)) return [];
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return [[key, withoutEmptyStrings(value as JsonObject, defaults, path)]];
    return [[key, value]];
  });
  return Object.fromEntries(entries);
}

/**
 * The KubeletConfiguration to upload for all nodes: the user's configuration over kubeadm's defaults, encoded
 * as by Go. It contains no value that was detected on or set for one host. `rotateCertificates: false` is
 * written, although Go would omit it, so that the user's value is kept.
 */
export function renderClusterConfig(layered: LayeredConfig, minor: Minor, catalogue: Catalogue): string {
  const encoded = encodeKubeletConfiguration(layered.config, { minor, catalogue, keepsRotationOff: true });
  return encodeYaml(encoded, catalogue.configurationType(minor));
}

/** Warnings about the configuration for all nodes. */
export function adviseClusterConfig(layered: LayeredConfig, defaults: KubeadmDefaultsInput): readonly Warning[] {
  return adviseKubeadmDefaults(layered.config, defaults);
}
