import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { isDnsSubdomain } from '../../base/text/dns-subdomain.ts';
import { textAt } from '../documents/values.ts';

/** Source of a node configuration: one key of a ConfigMap, as in `Node.spec.configSource.configMap`. */
export interface ConfigSource {
  readonly namespace: string;
  readonly name: string;
  readonly kubeletConfigKey: string;
}

/** One version of a ConfigMap, as in assigned, active and lastKnownGood of `Node.status.config`. */
export interface ConfigIdentity extends ConfigSource {
  readonly uid: string;
  readonly resourceVersion: string;
}

/** `Node.status.config`. Null: the local configuration, or no error. */
export interface ConfigStatus {
  readonly assigned: ConfigIdentity | null;
  readonly active: ConfigIdentity | null;
  readonly lastKnownGood: ConfigIdentity | null;
  readonly error: string | null;
}

/** Only local configuration: reported as `{}`. */
export const LOCAL_STATUS: ConfigStatus = { assigned: null, active: null, lastKnownGood: null, error: null };

/** The key used by kubeadm and by `kubectl create configmap --from-file=kubelet=FILE`. */
export const DEFAULT_CONFIG_KEY = 'kubelet';

/** Node annotation with the assignment, in the JSON of `spec.configSource`. Read by the agent. */
export const CONFIG_SOURCE_ANNOTATION = 'kubeletadm.dev/config-source';
/** Node annotation with the status, in the JSON of `status.config`. Written by the agent. */
export const CONFIG_STATUS_ANNOTATION = 'kubeletadm.dev/config-status';
/**
 * Node annotation with the condition that belongs to the status, and its time. Written by the agent together
 * with the status.
 */
export const CONFIG_REPORT_ANNOTATION = 'kubeletadm.dev/config-report';
/** Node annotation whose new value requests a retry of a rejected payload. */
export const RETRY_ANNOTATION = 'kubeletadm.dev/config-retry';
/**
 * Node annotation with which an operator allows one assignment (`NAMESPACE/NAME/KEY`) to end pods. Written by
 * `dynamic assign --allow-pod-loss` together with that assignment.
 */
export const ALLOW_POD_LOSS_ANNOTATION = 'kubeletadm.dev/config-allow-pod-loss';

/** A parsed source, or a clause with the error and its place. */
export type ParsedSource =
  | { readonly source: ConfigSource | null; readonly issue: null }
  | { readonly source: null; readonly issue: string };

/**
 * Parses `spec.configSource`. Null and undefined mean no source.
 * @returns `issue` for values that an API server would reject: no member, a missing or invalid member, uid or
 *   resourceVersion
 */
export function parseConfigSource(value: Json | undefined): ParsedSource {
  if (value === undefined || value === null) return { source: null, issue: null };
  const map = isJsonObject(value) ? value.configMap : undefined;
  if (!isJsonObject(map)) return issue('must have exactly one member, configMap');
  for (const name of ['uid', 'resourceVersion'] as const)
    if (map[name] !== undefined && map[name] !== '') return issue(`configMap.${name} must not be set`);
  const source = membersOf(map);
  const why = configSourceFailure(source);
  return why === null ? { source, issue: null } : issue(`configMap.${why}`);
}

/**
 * `{"configMap": {...}}` with sorted keys, for `spec.configSource` and the annotation. The uid and
 * resourceVersion of an identity are omitted.
 */
export function formatConfigSource({ namespace, name, kubeletConfigKey }: ConfigSource): JsonObject {
  return { configMap: { kubeletConfigKey, name, namespace } };
}

/** Parses the annotation `kubeletadm.dev/config-source`; missing and empty mean no source. */
export function parseSourceAnnotation(text: string | undefined): ParsedSource {
  if (text === undefined || text.trim() === '') return { source: null, issue: null };
  try {
    return parseConfigSource(JSON.parse(text) as Json);
  } catch {
    return issue('not valid JSON');
  }
}

/** The text of the annotation `kubeletadm.dev/config-source`. */
export function formatSourceAnnotation(source: ConfigSource): string {
  return JSON.stringify(formatConfigSource(source));
}

/**
 * Parses `NAMESPACE/NAME[/KEY]`; the default key is `kubelet`.
 * @returns `issue` for anything else, and for invalid ConfigMap names
 */
export function parseSourceArgument(text: string): ParsedSource {
  const parts = text.split('/');
  if (parts.length < 2 || parts.length > 3) return issue('the value does not have the form NAMESPACE/NAME or NAMESPACE/NAME/KEY');
  const [namespace = '', name = '', kubeletConfigKey = DEFAULT_CONFIG_KEY] = parts;
  const source = { namespace, name, kubeletConfigKey };
  const why = configSourceFailure(source);
  return why === null ? { source, issue: null } : issue(why);
}

/** `kube-system/my-config/kubelet`. */
export function describeSource({ namespace, name, kubeletConfigKey }: ConfigSource): string {
  return `${namespace}/${name}/${kubeletConfigKey}`;
}

/** `kube-system/my-config/kubelet@1326`: a source with its resourceVersion. */
export function describeIdentity(identity: ConfigIdentity): string {
  return `${describeSource(identity)}@${identity.resourceVersion}`;
}

/**
 * The error in the members of a source, as a clause that begins with the member; null: valid. Rules of API
 * servers up to 1.25.
 */
export function configSourceFailure({ namespace, name, kubeletConfigKey: key }: ConfigSource): string | null {
  if (namespace === '') return 'namespace must be set';
  if (name === '') return 'name must be set';
  if (key === '') return 'kubeletConfigKey must be set';
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    return `namespace: ${JSON.stringify(namespace)} is not a valid namespace name`;
  if (!isDnsSubdomain(name)) return `name: ${JSON.stringify(name)} is not a valid ConfigMap name`;
  if (!isConfigMapKey(key)) return `kubeletConfigKey: ${JSON.stringify(key)} is not a valid ConfigMap key`;
  return null;
}

/**
 * Whether a ConfigMap can have this key: letters, digits, `-`, `_` and `.`, at most 253 characters, not `.`
 * and not starting with `..`.
 */
export function isConfigMapKey(key: string): boolean {
  return /^[-._a-zA-Z0-9]{1,253}$/.test(key) && key !== '.' && !key.startsWith('..');
}

/** Same namespace, name and key. Null is the local configuration. */
export function sameSource(a: ConfigSource | null, b: ConfigSource | null): boolean {
  if (a === null || b === null) return a === b;
  return a.namespace === b.namespace && a.name === b.name && a.kubeletConfigKey === b.kubeletConfigKey;
}

/** Same version of the same object, and same key: the kubelet's own comparison before a restart. */
export function sameIdentity(a: ConfigIdentity | null, b: ConfigIdentity | null): boolean {
  if (a === null || b === null) return a === b;
  return sameSource(a, b) && a.uid === b.uid && a.resourceVersion === b.resourceVersion;
}

/**
 * Parses `status.config` leniently, because another program wrote it: members without a ConfigMap are treated
 * as absent.
 * @returns null if missing: the feature was never active on the node
 */
export function parseConfigStatus(value: Json | undefined): ConfigStatus | null {
  if (!isJsonObject(value)) return null;
  return {
    assigned: parseIdentity(value.assigned),
    active: parseIdentity(value.active),
    lastKnownGood: parseIdentity(value.lastKnownGood),
    error: typeof value.error === 'string' && value.error !== '' ? value.error : null,
  };
}

/** The JSON of `status.config`; null members are omitted, so that the local configuration alone is `{}`. */
export function formatConfigStatus({ assigned, active, lastKnownGood, error }: ConfigStatus): JsonObject {
  return {
    ...(active === null ? {} : { active: formatIdentity(active) }),
    ...(assigned === null ? {} : { assigned: formatIdentity(assigned) }),
    ...(error === null ? {} : { error }),
    ...(lastKnownGood === null ? {} : { lastKnownGood: formatIdentity(lastKnownGood) }),
  };
}

/** Parses the annotation `kubeletadm.dev/config-status`; null if missing or not JSON. */
export function parseStatusAnnotation(text: string | undefined): ConfigStatus | null {
  if (text === undefined) return null;
  try {
    return parseConfigStatus(JSON.parse(text) as Json);
  } catch {
    return null;
  }
}

/** Parses assigned, active or lastKnownGood; null without a ConfigMap. */
export function parseIdentity(value: Json | undefined): ConfigIdentity | null {
  const map = isJsonObject(value) ? value.configMap : undefined;
  if (!isJsonObject(map)) return null;
  return { ...membersOf(map), uid: textAt(map, 'uid'), resourceVersion: textAt(map, 'resourceVersion') };
}

/** `{"configMap": {...}}` with uid and resourceVersion, keys sorted. */
export function formatIdentity({ namespace, name, kubeletConfigKey, uid, resourceVersion }: ConfigIdentity): JsonObject {
  return { configMap: { kubeletConfigKey, name, namespace, resourceVersion, uid } };
}

function membersOf(map: JsonObject): ConfigSource {
  return { namespace: textAt(map, 'namespace'), name: textAt(map, 'name'), kubeletConfigKey: textAt(map, 'kubeletConfigKey') };
}

function issue(why: string): ParsedSource {
  return { source: null, issue: why };
}
