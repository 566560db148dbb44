import type { JsonObject } from '../../base/json.ts';
import { type DecodedDocument, decodeTyped } from '../../codec/decode-typed.ts';
import { encodeTyped, renderTyped } from '../../codec/encode-typed.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { readTypeTable } from '../../codec/type-table.ts';
import type { Warning } from '../../host/plan/change.ts';
import { unknownFieldOf } from '../../kubelet/documents/unknown-fields.ts';
import { valueAt } from '../../kubelet/documents/values.ts';
import { setAt } from '../../kubelet/layers/kubeadm-defaults.ts';

const HEADER = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' } as const;

interface KubeProxyDefaultsInput {
  /** Advertise address of the local API endpoint; its family determines the bind address. */
  readonly advertiseAddress: string;
  readonly podSubnet?: string | undefined;
  /** The mode of a configuration without one; absent: it stays unset, and kube-proxy chooses. */
  readonly mode?: string | undefined;
  /** Whether kubeadm of the release warns about the mode ipvs. */
  readonly warnsOfIpvs?: boolean;
}

/**
 * Reads a KubeProxyConfiguration with the types of kube-proxy 1.36; returns all problems at once (see `decodeTyped`).
 */
export function decodeKubeProxyConfiguration(document: SourceDocument): DecodedDocument {
  const type = typeNamed(HEADER.kind);
  return decodeTyped(document, { type, header: HEADER, unknown: unknownFieldOf(HEADER.kind) });
}

/** The KubeProxyConfiguration that kubeadm writes without one of the user, as Go prints it. */
export function defaultKubeProxyConfiguration(input: KubeProxyDefaultsInput): JsonObject {
  return encodeTyped(typeNamed(HEADER.kind), withDefaults(null, input));
}

/**
 * The text of a KubeProxyConfiguration with kubeadm's values for unset fields.
 * @param written as decoded; null: no configuration of the user
 * @see kubeadm 1.36 componentconfigs/kubeproxy.go; 1.37 sets the mode (release notes, #139777)
 */
export function renderKubeProxyConfiguration(written: JsonObject | null, input: KubeProxyDefaultsInput): string {
  return renderTyped(typeNamed(HEADER.kind), withDefaults(written, input));
}

/** Warnings for values that differ from kubeadm's recommendation, and for a deprecated mode. The values are kept. */
export function kubeProxyWarnings(written: JsonObject, input: KubeProxyDefaultsInput): readonly Warning[] {
  return [...adviseMode(written, input), ...adviseValues(written, input)];
}

/** @see kubeadm 1.37 (release notes, #139067) */
function adviseMode({ mode }: JsonObject, { warnsOfIpvs = false }: KubeProxyDefaultsInput): readonly Warning[] {
  if (!warnsOfIpvs || mode !== 'ipvs') return [];
  const message =
    'KubeProxyConfiguration: mode ipvs is deprecated since Kubernetes 1.35 and will be removed. Set mode: nftables; on kernels before 5.13, set mode: iptables';
  return [{ code: 'KUBE_PROXY_MODE_DEPRECATED', field: 'mode', message }];
}

function adviseValues(written: JsonObject, input: KubeProxyDefaultsInput): readonly Warning[] {
  return kubeadmValues(input).flatMap(({ path, value }) => {
    const field = path.join('.');
    const given = valueAt(written, field) ?? '';
    if (given === '' || given === value) return [];
    const message = `The recommended value for "${field}" in "KubeProxyConfiguration" is: ${value}; the provided value is: ${String(given)}`;
    return [{ code: 'KUBE_PROXY_RECOMMENDED_VALUE', field, message }];
  });
}

function withDefaults(written: JsonObject | null, input: KubeProxyDefaultsInput): JsonObject {
  const values = [...kubeadmValues(input), ...(input.mode === undefined ? [] : [{ path: ['mode'], value: input.mode }])];
  const missing = values.filter(({ path }) => (valueAt(written ?? {}, path.join('.')) ?? '') === '');
  const filled = missing.reduce<JsonObject>((config, { path, value }) => setAt(config, path, value), written ?? {});
  return { ...filled, ...HEADER };
}

function kubeadmValues({ advertiseAddress, podSubnet }: KubeProxyDefaultsInput): readonly { path: readonly string[]; value: string }[] {
  return [
    { path: ['bindAddress'], value: advertiseAddress.includes(':') ? '::' : '0.0.0.0' },
    ...(podSubnet ? [{ path: ['clusterCIDR'], value: podSubnet }] : []),
    { path: ['clientConnection', 'kubeconfig'], value: '/var/lib/kube-proxy/kubeconfig.conf' },
  ];
}

/** @see k8s.io/kube-proxy/config/v1alpha1 (1.36) */
const typeNamed = readTypeTable(`
KubeProxyConfiguration = kind apiVersion featureGates:{}bool clientConnection:ClientConnection! logging:Logging hostnameOverride! bindAddress!
  healthzBindAddress! metricsBindAddress! bindAddressHardFail:bool! enableProfiling:bool! showHiddenMetricsForVersion! mode!
  iptables:IPTables! ipvs:IPVS! nftables:NFTables! winkernel:Winkernel! detectLocalMode! detectLocal:DetectLocal! clusterCIDR!
  nodePortAddresses:[]string! oomScoreAdj:*int32! conntrack:Conntrack! configSyncPeriod:duration! portRange! windowsRunAsService:bool
ClientConnection = kubeconfig! acceptContentTypes! contentType! qps:float32! burst:int32!
Logging = format flushFrequency:durationOrNanoseconds! verbosity:uint32! vmodule:[]VModuleItem options:FormatOptions
VModuleItem = filePattern! verbosity:uint32!
FormatOptions = text:OutputOptions json:OutputOptions
OutputOptions = splitStream:bool infoBufferSize:quantity
IPTables = masqueradeBit:*int32! masqueradeAll:bool! localhostNodePorts:*bool! syncPeriod:duration! minSyncPeriod:duration!
IPVS = syncPeriod:duration! minSyncPeriod:duration! scheduler! excludeCIDRs:[]string! strictARP:bool! tcpTimeout:duration!
  tcpFinTimeout:duration! udpTimeout:duration!
NFTables = masqueradeBit:*int32! masqueradeAll:bool! syncPeriod:duration! minSyncPeriod:duration!
Winkernel = networkName! sourceVip! enableDSR:bool! rootHnsEndpointName! forwardHealthCheckVip:bool!
DetectLocal = bridgeInterface! interfaceNamePrefix!
Conntrack = maxPerCore:*int32! min:*int32! tcpEstablishedTimeout:*duration! tcpCloseWaitTimeout:*duration! tcpBeLiberal:bool!
  udpTimeout:duration! udpStreamTimeout:duration!
`);
