import type { JsonObject } from '../../src/base/json.ts';
import { apiVersionOf, REVIEWS, type ResourceType } from '../../src/kube/resources.ts';
import { shortNamesOf, subresourcesOf } from './served-kinds.ts';

type Types = readonly ResourceType[];

const SHOWN_BY_GET_ALL = ['daemonsets', 'deployments', 'pods', 'services'];
const STORED_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** The type of a path; null when the server does not serve it. */
export function servedType(types: Types, group: string, version: string, plural: string): ResourceType | null {
  return types.find((type) => type.group === group && type.version === version && type.plural === plural) ?? null;
}

/** Whether a kind is only created and never stored. */
export function isReview(type: ResourceType): boolean {
  return REVIEWS.includes(type);
}

/**
 * The discovery document of a path, or null. `group` reports whether the path belongs to a served group.
 * @see Kubernetes API concepts, "API discovery"
 */
export function discoveryDocument(types: Types, path: string, server: string): JsonObject | null {
  const [root, group, version, ...more] = path.split('/').filter((part) => part !== '');
  if (more.length > 0) return null;
  if (root === 'api' && group === undefined) {
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: server }] };
  }
  if (root === 'api' && version === undefined) return resourceList(types, '', group ?? '');
  if (root !== 'apis') return null;
  if (group === undefined) return { kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf(types).map((name) => groupOf(types, name)) };
  if (!groupsOf(types).includes(group)) return null;
  return version === undefined ? { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(types, group) } : resourceList(types, group, version);
}

/** Whether a path belongs to a served group, even if not to a served version or resource. */
export function isServedGroup(types: Types, path: string): boolean {
  const [root, group] = path.split('/').filter((part) => part !== '');
  return root === 'api' || (root === 'apis' && groupsOf(types).includes(group ?? ''));
}

/** Every path with a discovery document. */
export function discoveryPaths(types: Types): readonly string[] {
  const versions = groupsOf(types).flatMap((group) => [
    `/apis/${group}`,
    ...versionsOf(types, group).map((version) => `/apis/${group}/${version}`),
  ]);
  return ['/api', '/api/v1', '/apis', ...versions];
}

function groupsOf(types: Types): readonly string[] {
  return [...new Set(types.map(({ group }) => group))].filter((group) => group !== '').sort();
}

function versionsOf(types: Types, group: string): readonly string[] {
  return [...new Set(types.filter((type) => type.group === group).map(({ version }) => version))];
}

function groupOf(types: Types, group: string): JsonObject {
  const versions = versionsOf(types, group).map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions, preferredVersion: versions[0] ?? null };
}

function resourceList(all: Types, group: string, version: string): JsonObject | null {
  const types = all.filter((type) => type.group === group && type.version === version);
  if (types.length === 0) return null;
  const resources = types.flatMap((type) => [describe(type), ...subresourcesOf(type).map((name) => describeSubresource(type, name))]);
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf({ group, version }),
    resources: resources.sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1)),
  };
}

function describe(type: ResourceType): JsonObject {
  const stored = type.plural === 'namespaces' ? STORED_VERBS.filter((verb) => verb !== 'deletecollection') : STORED_VERBS;
  return {
    name: type.plural,
    singularName: type.kind.toLowerCase(),
    namespaced: type.namespaced,
    kind: type.kind,
    verbs: isReview(type) ? ['create'] : stored,
    ...(shortNamesOf(type).length > 0 ? { shortNames: shortNamesOf(type) } : {}),
    ...(SHOWN_BY_GET_ALL.includes(type.plural) ? { categories: ['all'] } : {}),
  };
}

function describeSubresource(type: ResourceType, name: string): JsonObject {
  const base = { name: `${type.plural}/${name}`, singularName: '', namespaced: type.namespaced };
  if (name === 'token') return { ...base, group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', verbs: ['create'] };
  if (name === 'eviction') return { ...base, group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] };
  return { ...base, kind: type.kind, verbs: name === 'finalize' ? ['update'] : ['get', 'patch', 'update'] };
}
