import type { JsonObject } from '../../src/base/json.ts';
import { apiVersionOf, REVIEWS, type ResourceType, resourcePath } from '../../src/kube/resources.ts';

/**
 * Minimal OpenAPI v3: it declares that the server validates fields itself (`fieldValidation`), so that
 * kubectl requests no schemas.
 * @returns the document at a path under /openapi/v3, or null
 */
export function openapiDocument(types: readonly ResourceType[], path: string): JsonObject | null {
  const groups = new Map<string, ResourceType[]>();
  for (const type of types.filter((each) => !REVIEWS.includes(each))) {
    const key = type.group === '' ? `api/${type.version}` : `apis/${apiVersionOf(type)}`;
    groups.set(key, [...(groups.get(key) ?? []), type]);
  }
  if (path === '/openapi/v3') {
    return { paths: Object.fromEntries([...groups.keys()].map((key) => [key, { serverRelativeURL: `/openapi/v3/${key}` }])) };
  }
  const found = groups.get(path.slice('/openapi/v3/'.length));
  if (!path.startsWith('/openapi/v3/') || !found) return null;
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(found.map((type) => [objectPath(type), operations(type)])),
    components: { schemas: {} },
  };
}

function objectPath(type: ResourceType): string {
  return resourcePath(type, { namespace: 'NAMESPACE', name: 'NAME' }).replace('NAMESPACE', '{namespace}').replace('NAME', '{name}');
}

function operations(type: ResourceType): JsonObject {
  const parameters = ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
    name,
    in: 'query',
    schema: { type: 'string', uniqueItems: true },
  }));
  const operation = {
    parameters,
    responses: { 200: { description: 'OK' } },
    'x-kubernetes-group-version-kind': { group: type.group, version: type.version, kind: type.kind },
  };
  return { patch: operation, put: operation, post: operation };
}
