import type { JsonObject } from '../../base/json.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { V1BETA4 } from './document-header.ts';
import type {
  BootstrapToken,
  ClusterConfiguration,
  ControlPlaneComponent,
  Discovery,
  EnvVar,
  ExternalEtcd,
  HostPathMount,
  InitConfiguration,
  JoinConfiguration,
  LocalEtcd,
  ModelKind,
  NodeRegistration,
  ResetConfiguration,
  UpgradeApply,
  UpgradeConfiguration,
  UpgradeNode,
  UpgradePlan,
} from './model.ts';

/** A document of kubeadm.k8s.io/v1beta4 for `renderConfig`. Tokens and keys are Secrets. */
export interface ConfigDocument {
  readonly [member: string]: ConfigValue;
}
type ConfigValue = JsonObject[string] | Secret | readonly ConfigValue[] | { readonly [member: string]: ConfigValue };

/**
 * ClusterConfiguration as kubeadm stores it in kube-system/kubeadm-config: zero members are omitted where Go
 * omits them, structs stay as `{}`.
 * @param cluster with its defaults (`applyClusterDefaults`), and a release in `kubernetesVersion`
 * @see kubeadm 1.36 upload-config kubeadm
 */
export function encodeClusterConfiguration(cluster: ClusterConfiguration): JsonObject {
  const { etcd = {}, featureGates, networking, dns, proxy, apiServer, controllerManager, scheduler, ...plain } = cluster;
  return {
    ...header('ClusterConfiguration'),
    ...nonZero({ ...plain, featureGates }),
    apiServer: { ...component(apiServer), ...nonZero({ certSANs: apiServer?.certSANs }) },
    controllerManager: component(controllerManager),
    scheduler: component(scheduler),
    dns: nonZero({ ...dns }),
    etcd: { ...(etcd.local && { local: localEtcd(etcd.local) }), ...(etcd.external && { external: externalEtcd(etcd.external) }) },
    networking: nonZero({ ...networking }),
    proxy: nonZero({ ...proxy }),
  } as JsonObject;
}

export function encodeInitConfiguration(init: InitConfiguration): ConfigDocument {
  const { bootstrapTokens = [], localAPIEndpoint, nodeRegistration, patches, timeouts, ...plain } = init;
  return {
    ...header('InitConfiguration'),
    ...nonZero({ ...plain, bootstrapTokens: bootstrapTokens.map(bootstrapToken) }),
    localAPIEndpoint: nonZero({ ...localAPIEndpoint }),
    nodeRegistration: node(nodeRegistration),
    ...(patches && { patches: nonZero({ ...patches }) }),
    ...(timeouts && { timeouts: { ...timeouts } }),
  };
}

export function encodeJoinConfiguration(join: JoinConfiguration): ConfigDocument {
  const { discovery: found = {}, nodeRegistration, controlPlane, patches, timeouts, ...plain } = join;
  return {
    ...header('JoinConfiguration'),
    ...nonZero(plain),
    discovery: discovery(found),
    nodeRegistration: node(nodeRegistration),
    ...(controlPlane && {
      controlPlane: {
        localAPIEndpoint: nonZero({ ...controlPlane.localAPIEndpoint }),
        ...nonZero({ certificateKey: controlPlane.certificateKey }),
      },
    }),
    ...(patches && { patches: nonZero({ ...patches }) }),
    ...(timeouts && { timeouts: { ...timeouts } }),
  };
}

export function encodeResetConfiguration({ timeouts, ...plain }: ResetConfiguration): ConfigDocument {
  return { ...header('ResetConfiguration'), ...nonZero(plain), ...(timeouts && { timeouts: { ...timeouts } }) };
}

export function encodeUpgradeConfiguration({ apply, diff, node: nodes, plan, timeouts }: UpgradeConfiguration): ConfigDocument {
  return {
    ...header('UpgradeConfiguration'),
    apply: upgradePart(apply ?? {}),
    diff: nonZero({ ...diff }),
    node: upgradePart(nodes ?? {}),
    plan: upgradePart(plan ?? {}),
    ...(timeouts && { timeouts: { ...timeouts } }),
  };
}

/** A model as written, without defaults or omissions. For migration. */
export function encodeAsWritten(kind: ModelKind, model: object): ConfigDocument {
  return { ...header(kind), ...(model as ConfigDocument) };
}

/**
 * Documents as one YAML file in kubeadm's format: sorted keys, separated by `---`.
 * @param documents as encoded here, or text that is inserted unchanged
 * @param hidden secrets in such text
 * @returns text that shows `[secret]` instead of tokens and keys except in its file
 */
export function renderConfig(documents: readonly (ConfigDocument | string)[], hidden: readonly Secret[] = []): SensitiveText {
  const texts = documents.map((document) =>
    typeof document === 'string' ? endLine(document) : encodeYaml(reveal(document) as JsonObject),
  );
  return withSecrets(texts.join('---\n'), new Set([...secretsOf(documents), ...hidden].map((secret) => secret.reveal())));
}

export function secretsOf(value: unknown): readonly Secret[] {
  if (value instanceof Secret) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(secretsOf) : [];
}

function header(kind: ModelKind): { readonly apiVersion: string; readonly kind: ModelKind } {
  return { apiVersion: V1BETA4, kind };
}

/** Omits the values that Go's `omitempty` omits: false, 0, empty strings, lists and maps. */
function nonZero(members: object): { readonly [member: string]: ConfigValue } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => !isZero(value)));
}

function isZero(value: unknown): boolean {
  if (value === undefined || value === false || value === 0 || value === '') return true;
  if (value instanceof Secret) return false;
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function bootstrapToken({ token, ...plain }: BootstrapToken): ConfigValue {
  return { ...nonZero(plain), ...(token && { token }) };
}

function node(registration: NodeRegistration = {}): ConfigValue {
  const { taints, imagePullSerial, ...plain } = registration;
  return { ...nonZero(plain), taints: (taints ?? null) as ConfigValue, ...(imagePullSerial !== undefined && { imagePullSerial }) };
}

function component({ extraArgs, extraVolumes, extraEnvs }: ControlPlaneComponent = {}): { readonly [member: string]: ConfigValue } {
  return nonZero({ extraArgs, extraVolumes: extraVolumes?.map(volume), extraEnvs: extraEnvs?.map(encodeEnvVar) });
}

function volume({ name, hostPath, mountPath, readOnly, pathType }: HostPathMount): ConfigValue {
  return { name, hostPath, mountPath, ...nonZero({ readOnly, pathType }) };
}

/** An environment variable: `fieldRef` gets Go's default version; a quantity is printed even when it is zero. */
export function encodeEnvVar({ name, value, valueFrom }: EnvVar): JsonObject {
  if (!valueFrom) return { name, ...nonZero({ value }) } as JsonObject;
  const { fieldRef, resourceFieldRef, ...others } = valueFrom;
  const source = {
    ...others,
    ...(fieldRef && { fieldRef: { apiVersion: 'v1', ...fieldRef } }),
    ...(resourceFieldRef && { resourceFieldRef: { divisor: '0', ...resourceFieldRef } }),
  };
  return { name, ...nonZero({ value }), valueFrom: source as ConfigValue } as JsonObject;
}

function localEtcd({ dataDir = '', extraEnvs, ...plain }: LocalEtcd): ConfigValue {
  return { dataDir, ...nonZero({ ...plain, extraEnvs: extraEnvs?.map(encodeEnvVar) }) };
}

function externalEtcd({ endpoints, httpEndpoints, caFile = '', certFile = '', keyFile = '' }: ExternalEtcd): ConfigValue {
  return { endpoints: endpoints ?? null, ...nonZero({ httpEndpoints }), caFile, certFile, keyFile };
}

function discovery({ bootstrapToken: token, file, tlsBootstrapToken }: Discovery): ConfigValue {
  return {
    ...(token && { bootstrapToken: { ...nonZero({ ...token }), token: token.token ?? '' } }),
    ...(file && { file: { kubeConfigPath: file.kubeConfigPath ?? '' } }),
    ...nonZero({ tlsBootstrapToken }),
  };
}

/** Booleans are pointers in Go, so false is printed. */
function upgradePart(part: UpgradeApply | UpgradeNode | UpgradePlan): ConfigValue {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => typeof value === 'boolean' || !isZero(value))) as ConfigValue;
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function reveal(value: ConfigValue): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map((item: ConfigValue) => reveal(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, reveal(member as ConfigValue)]));
}

/** Text in which every occurrence of a secret is masked. */
function withSecrets(text: string, secrets: ReadonlySet<string>): SensitiveText {
  let parts: (string | Secret)[] = [text];
  for (const secret of secrets) {
    parts = parts.flatMap((part) =>
      typeof part === 'string' ? part.split(secret).flatMap((piece, i) => (i === 0 ? [piece] : [new Secret(secret), piece])) : [part],
    );
  }
  return new SensitiveText(parts);
}
