import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import { isDnsSubdomain } from '../base/text/dns-subdomain.ts';
import type { KubeObject } from '../kube/object.ts';
import { parseMinor } from './catalogue.ts';
import { LAST_DYNAMIC_MINOR } from './effective/dynamic-store.ts';

/** Where the configuration of a node is to come from: one key of a ConfigMap. What `Node.spec.configSource.configMap` holds. */
export interface ConfigSource {
  readonly namespace: string;
  readonly name: string;
  readonly kubeletConfigKey: string;
}

/** The very object that was read: a version of a ConfigMap. What `Node.status.config` holds of assigned, active and lastKnownGood. */
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

/** Everything local: what is reported as `{}`. */
export const LOCAL_STATUS: ConfigStatus = { assigned: null, active: null, lastKnownGood: null, error: null };

/** The key kubeadm and `kubectl create configmap --from-file=kubelet=FILE` use. */
const DEFAULT_CONFIG_KEY = 'kubelet';

/** On a Node: what it is assigned, in the JSON of `spec.configSource`. Read by the agent. */
export const CONFIG_SOURCE_ANNOTATION = 'kubeletadm.dev/config-source';
/** On a Node: what became of it, in the JSON of `status.config`. Written by the agent. */
export const CONFIG_STATUS_ANNOTATION = 'kubeletadm.dev/config-status';
/** On a Node: the condition that belongs to the status, and when. Written by the agent in the same request as the status. */
export const CONFIG_REPORT_ANNOTATION = 'kubeletadm.dev/config-report';
/** On a Node: a word in it that was not there before has a rejected payload tried once more. */
export const RETRY_ANNOTATION = 'kubeletadm.dev/config-retry';

/** A source as it was read, or a clause that says what is wrong with it and where. */
export type ParsedSource =
  | { readonly source: ConfigSource | null; readonly issue: null }
  | { readonly source: null; readonly issue: string };

/**
 * Reads `spec.configSource`. Null and undefined are no source.
 * @returns `trouble` for what an API server would refuse: no member, a member missing or with characters it may not have, uid or resourceVersion
 */
export function parseConfigSource(value: Json | undefined): ParsedSource {
  if (value === undefined || value === null) return { source: null, issue: null };
  const map = isJsonObject(value) ? value.configMap : undefined;
  if (!isJsonObject(map)) return issue('exactly one member is needed: configMap');
  for (const name of ['uid', 'resourceVersion'] as const)
    if (map[name] !== undefined && map[name] !== '') return issue(`configMap.${name} must not be set`);
  const source = membersOf(map);
  const why = configSourceFailure(source);
  return why === null ? { source, issue: null } : issue(`configMap.${why}`);
}

/** `{"configMap": {...}}`, keys sorted: what `spec.configSource` and the annotation hold. Of an identity too, without uid and resourceVersion. */
export function formatConfigSource({ namespace, name, kubeletConfigKey }: ConfigSource): JsonObject {
  return { configMap: { kubeletConfigKey, name, namespace } };
}

/** Reads the annotation `kubeletadm.dev/config-source`; absent and empty are no source. */
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
 * Reads `NAMESPACE/NAME[/KEY]`, the key being `kubelet`.
 * @returns `trouble` for anything else, and for names no ConfigMap can have
 */
export function parseSourceArgument(text: string): ParsedSource {
  const parts = text.split('/');
  if (parts.length < 2 || parts.length > 3) return issue('not of the form NAMESPACE/NAME/KEY');
  const [namespace = '', name = '', kubeletConfigKey = DEFAULT_CONFIG_KEY] = parts;
  const source = { namespace, name, kubeletConfigKey };
  const why = configSourceFailure(source);
  return why === null ? { source, issue: null } : issue(why);
}

/** `kube-system/my-config/kubelet`. */
export function describeSource({ namespace, name, kubeletConfigKey }: ConfigSource): string {
  return `${namespace}/${name}/${kubeletConfigKey}`;
}

/** `kube-system/my-config/kubelet@1326`: a version of it. */
export function describeIdentity(identity: ConfigIdentity): string {
  return `${describeSource(identity)}@${identity.resourceVersion}`;
}

/** What is wrong with the members of a source, as a clause that begins with the member; null: nothing. The rules of an API server up to 1.25. */
export function configSourceFailure({ namespace, name, kubeletConfigKey: key }: ConfigSource): string | null {
  if (namespace === '') return 'namespace must be set';
  if (name === '') return 'name must be set';
  if (key === '') return 'kubeletConfigKey must be set';
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) return `namespace: ${JSON.stringify(namespace)} is no name of a namespace`;
  if (!isDnsSubdomain(name)) return `name: ${JSON.stringify(name)} is no name of a ConfigMap`;
  if (!isConfigMapKey(key)) return `kubeletConfigKey: ${JSON.stringify(key)} is no key of a ConfigMap`;
  return null;
}

/** Whether a ConfigMap can have such a key: letters, digits, `-`, `_` and `.`, at most 253, and no path upwards. */
export function isConfigMapKey(key: string): boolean {
  return /^[-._a-zA-Z0-9]{1,253}$/.test(key) && key !== '.' && !key.startsWith('..');
}

/** The same namespace, name and key. Null is the local configuration. */
export function sameSource(a: ConfigSource | null, b: ConfigSource | null): boolean {
  if (a === null || b === null) return a === b;
  return a.namespace === b.namespace && a.name === b.name && a.kubeletConfigKey === b.kubeletConfigKey;
}

/** The same version of the same object and the same key: what the kubelet compares before it restarts. */
export function sameIdentity(a: ConfigIdentity | null, b: ConfigIdentity | null): boolean {
  if (a === null || b === null) return a === b;
  return sameSource(a, b) && a.uid === b.uid && a.resourceVersion === b.resourceVersion;
}

/**
 * Reads `status.config`. Lenient, as a reader of what another program reported: what has no ConfigMap counts as absent.
 * @returns null when there is none: the feature never ran there
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

/** The JSON of `status.config`; what is null is left out, so that all local is `{}`. */
export function formatConfigStatus({ assigned, active, lastKnownGood, error }: ConfigStatus): JsonObject {
  return {
    ...(active === null ? {} : { active: formatIdentity(active) }),
    ...(assigned === null ? {} : { assigned: formatIdentity(assigned) }),
    ...(error === null ? {} : { error }),
    ...(lastKnownGood === null ? {} : { lastKnownGood: formatIdentity(lastKnownGood) }),
  };
}

/** Reads the annotation `kubeletadm.dev/config-status`; null when there is none, or no JSON in it. */
export function parseStatusAnnotation(text: string | undefined): ConfigStatus | null {
  if (text === undefined) return null;
  try {
    return parseConfigStatus(JSON.parse(text) as Json);
  } catch {
    return null;
  }
}

/** Reads one of assigned, active, lastKnownGood; null when there is no ConfigMap in it. */
export function parseIdentity(value: Json | undefined): ConfigIdentity | null {
  const map = isJsonObject(value) ? value.configMap : undefined;
  if (!isJsonObject(map)) return null;
  return { ...membersOf(map), uid: textOf(map, 'uid'), resourceVersion: textOf(map, 'resourceVersion') };
}

/** `{"configMap": {...}}` with uid and resourceVersion, keys sorted. */
export function formatIdentity({ namespace, name, kubeletConfigKey, uid, resourceVersion }: ConfigIdentity): JsonObject {
  return { configMap: { kubeletConfigKey, name, namespace, resourceVersion, uid } };
}

function membersOf(map: JsonObject): ConfigSource {
  return { namespace: textOf(map, 'namespace'), name: textOf(map, 'name'), kubeletConfigKey: textOf(map, 'kubeletConfigKey') };
}

function textOf(map: JsonObject, name: string): string {
  const value = map[name];
  return typeof value === 'string' ? value : '';
}

function issue(why: string): ParsedSource {
  return { source: null, issue: why };
}

/**
 * The ConfigMap that an agent, or a kubelet up to 1.23, reports as active.
 * @returns null: the local configuration. A status that a kubelet of an earlier version left on the Node is ignored.
 */
export function sourceInForce(node: KubeObject): ConfigSource | null {
  const reported = node.metadata.annotations?.[CONFIG_STATUS_ANNOTATION];
  if (reported !== undefined) return parseStatusAnnotation(reported)?.active ?? null;
  const { status = {} } = node as { readonly status?: NodeStatus };
  const minor = parseMinor(status.nodeInfo?.kubeletVersion ?? '');
  if (minor === null || minor > LAST_DYNAMIC_MINOR) return null;
  return parseConfigStatus(status.config)?.active ?? null;
}

interface NodeStatus {
  readonly nodeInfo?: { readonly kubeletVersion?: string };
  readonly config?: Parameters<typeof parseConfigStatus>[0];
}
