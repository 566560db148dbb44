import type { Json, JsonObject } from '../../base/json.ts';
import { applyPatch } from '../../codec/patch.ts';
import { KUBELET_PATCH_SCHEMA } from '../../codec/patch-schema.ts';
import type { Warning } from '../../host/plan/change.ts';
import { INSTANCE_CONFIG } from '../../kube/well-known.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import type { ParsedConfig } from '../../kubelet/documents/decode.ts';
import { encodeKubeletConfiguration } from '../../kubelet/documents/encode.ts';
import { listUnknownFields } from '../../kubelet/documents/unknown-fields.ts';
import type { RuntimeCgroupDriver } from '../../kubelet/facts/cgroup-driver.ts';
import { setAt } from '../../kubelet/layers/kubeadm-defaults.ts';
import { addLayer, type LayeredConfig, leavesOf, type Origin } from '../../kubelet/layers/layers.ts';
import { applyPatchFile, type KubeletPatch } from '../../kubelet/layers/patch-files.ts';
import type { FieldSetting } from '../../kubelet/layers/setting.ts';
import { placeOf } from './cluster-config.ts';

const RESOLVED_FILE = '/run/systemd/resolve/resolv.conf';
const DEFAULT_RESOLV_CONF = '/etc/resolv.conf';

export interface NodeConfigInput {
  readonly catalogue: Catalogue;
  /** Minor version of the kubelet on this host. */
  readonly minor: Minor;
  /** kubeadm's defaults and the configuration for all nodes. */
  readonly cluster: LayeredConfig;
  /**
   * True when the user passed the cluster configuration in this run, so that its values are meant for this host too.
   */
  readonly clusterIsDeclared: boolean;
  readonly resolvedActive: boolean;
  readonly runtimeCgroupDriver: RuntimeCgroupDriver | null;
  readonly criSocket: string;
  readonly criSocketSource: string;
  /** instance-config.yaml that is kept on the host, with any fields. Absent: written again with only the CRI socket. */
  readonly instancePatch?: JsonObject | undefined;
  /** instance-config.yaml contains the CRI socket. */
  readonly instanceConfig: boolean;
  /** KubeletConfigurations for this node only; later ones win. */
  readonly overlays: readonly ParsedConfig[];
  /** Per-host flags: part of the node's overlay. */
  readonly declared: readonly FieldSetting[];
  readonly patches: readonly KubeletPatch[];
  readonly settings: readonly FieldSetting[];
}

/**
 * The KubeletConfiguration of one node: cluster < detected facts of the host < the node's overlay < patches <
 * instance-config < `--set`. Fields that the kubelet version does not know are dropped.
 * @throws AppError of a patch that cannot be applied
 * @see kubeadm 1.36 phases/kubelet/config.go: patches apply to the written form, and the instance
 *   configuration is applied after them
 */
export function layerNodeConfig(input: NodeConfigInput): { readonly layered: LayeredConfig; readonly warnings: readonly Warning[] } {
  const { catalogue, minor } = input;
  const detected = detectFields(input);
  const withHost = detected.settings.reduce(setField('host'), input.cluster);
  const withOverlays = input.overlays.reduce(addOverlay, withHost);
  const withDeclared = input.declared.reduce(setField('node'), withOverlays);
  const encoded = encodeKubeletConfiguration(withDeclared.config, { minor, catalogue, keepsRotationOff: true });
  const withDefaults = addLayer(withDeclared, {
    result: encoded,
    originOf: () => ({ layer: 'kubelet default', source: 'unset: kubelet default' }),
  });
  const withPatches = input.patches.reduce(addPatch, withDefaults);
  const withInstance = input.instanceConfig ? addInstanceConfig(withPatches, input) : withPatches;
  const layered = input.settings.reduce(setField('set'), withInstance);
  const omitted = listUnknownFields(withDeclared.config, minor, catalogue).map(
    ({ path, why }): Warning => ({ code: 'KUBELET_FIELD_UNKNOWN', field: path, message: `${path} is omitted on this node: ${why}` }),
  );
  return { layered, warnings: [...detected.warnings, ...omitted] };
}

function setField(layer: Origin['layer']): (current: LayeredConfig, setting: FieldSetting) => LayeredConfig {
  return (current, { path, value, source }) => {
    const config = value === null ? removeAt(current.config, path) : setAt(current.config, path, value);
    return addLayer(current, { result: config, originOf: () => ({ layer, source }), sets: leavesOf(setAt({}, path, value)).keys() });
  };
}

function addOverlay(current: LayeredConfig, overlay: ParsedConfig): LayeredConfig {
  return addLayer(current, { overlay: overlay.value, originOf: (path) => ({ layer: 'node', source: placeOf(overlay, path) }) });
}

function addPatch(current: LayeredConfig, patch: KubeletPatch): LayeredConfig {
  const patched = applyPatchFile(current.config, patch, KUBELET_PATCH_SCHEMA);
  return addLayer(current, { result: patched, originOf: () => ({ layer: 'patch', source: patch.source }) });
}

function addInstanceConfig(current: LayeredConfig, { criSocket, criSocketSource, instancePatch }: NodeConfigInput): LayeredConfig {
  if (instancePatch !== undefined) {
    const patched = applyPatch(current.config, instancePatch, 'strategic', KUBELET_PATCH_SCHEMA);
    const originOf = (): Origin => ({ layer: 'instance-config', source: INSTANCE_CONFIG });
    return addLayer(current, { result: patched, originOf, sets: leavesOf(instancePatch).keys() });
  }
  const originOf = (): Origin => ({ layer: 'instance-config', source: `${INSTANCE_CONFIG} (${criSocketSource})` });
  return addLayer(current, { overlay: { containerRuntimeEndpoint: criSocket }, originOf });
}

export function removeAt(config: JsonObject, path: readonly string[]): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined || !Object.hasOwn(config, key)) return config;
  const { [key]: under, ...others } = config;
  if (rest.length === 0) return others;
  return {
    ...others,
    [key]: typeof under === 'object' && under !== null && !Array.isArray(under) ? removeAt(under as JsonObject, rest) : (under as Json),
  };
}

interface Detected {
  readonly settings: readonly FieldSetting[];
  readonly warnings: readonly Warning[];
}

function detectFields(input: NodeConfigInput): Detected {
  const parts = [detectResolvConf(input), detectCgroupDriver(input)];
  return { settings: parts.flatMap((part) => part.settings), warnings: parts.flatMap((part) => part.warnings) };
}

/**
 * With systemd-resolved the kubelet must not read /etc/resolv.conf, which refers Pods to the loopback address
 * of the host. If the shared cluster configuration names the resolved file (kubeadm up to 1.36.2 leaks the path into
 * the ConfigMap), the value is corrected on hosts without systemd-resolved; a value that the user passed in this run
 * is kept.
 */
function detectResolvConf({ cluster, clusterIsDeclared, resolvedActive }: NodeConfigInput): Detected {
  const given = cluster.config.resolvConf;
  const setting = (value: string, source: string): Detected => ({ settings: [{ path: ['resolvConf'], value, source }], warnings: [] });
  if (resolvedActive && given === undefined) return setting(RESOLVED_FILE, 'systemd-resolved is active');
  if (resolvedActive === (given === RESOLVED_FILE) || given === undefined) return { settings: [], warnings: [] };
  const warning = (message: string): Detected => ({ settings: [], warnings: [{ code: 'RESOLV_CONF', field: 'resolvConf', message }] });
  if (resolvedActive)
    return warning(
      `systemd-resolved is active on this host, but resolvConf is ${String(given)}: DNS may fail in Pods. Set resolvConf to ${RESOLVED_FILE}`,
    );
  if (!clusterIsDeclared) return setting(DEFAULT_RESOLV_CONF, 'systemd-resolved is not active');
  return warning(
    `systemd-resolved is not active on this host, but resolvConf is ${RESOLVED_FILE}: DNS may fail in Pods. Set resolvConf to ${DEFAULT_RESOLV_CONF}`,
  );
}

/**
 * The cgroup driver of the runtime is used if none was declared for this host; preflight rejects a declared
 * one that differs.
 */
function detectCgroupDriver({ cluster, clusterIsDeclared, runtimeCgroupDriver }: NodeConfigInput): Detected {
  if (runtimeCgroupDriver === null) return { settings: [], warnings: [] };
  const origin = cluster.history.get('cgroupDriver')?.at(-1)?.origin;
  if (origin?.layer === 'cluster' && clusterIsDeclared) return { settings: [], warnings: [] };
  const { driver, source } = runtimeCgroupDriver;
  const differs = origin?.layer === 'cluster' && cluster.config.cgroupDriver !== driver;
  const message = `the cluster configuration sets cgroupDriver: ${String(cluster.config.cgroupDriver)}, but the container runtime of this host uses ${driver} (${source}); this node uses ${driver}`;
  return {
    settings: [{ path: ['cgroupDriver'], value: driver, source }],
    warnings: differs ? [{ code: 'CGROUP_DRIVER_DIFFERS', field: 'cgroupDriver', message }] : [],
  };
}
