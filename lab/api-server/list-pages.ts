import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf, type ResourceType } from '../../src/kube/resources.ts';
import { withMember } from './members.ts';
import { badRequest, expired } from './status.ts';
import type { Store } from './store.ts';

/** A List object; its items have neither kind nor apiVersion. */
export function listOf(type: ResourceType, items: readonly KubeObject[], metadata: JsonObject): JsonObject {
  return {
    kind: `${type.kind}List`,
    apiVersion: apiVersionOf(type),
    metadata,
    items: items.map((item) => withMember(withMember(item as JsonObject, 'kind', undefined), 'apiVersion', undefined)),
  };
}

/** The requested part of a list. */
export interface PageQuery {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly limit?: number;
  readonly continue?: string;
}

/** The start of the next page of a list, and the resourceVersion of the list. */
interface Position {
  readonly revision: number;
  readonly after: string;
}

const CONTINUE_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.';

/**
 * One page of the objects that match a query, as a List. Unlike a real server's, later pages contain the
 * current objects.
 * @throws StatusError 410 when the resourceVersion of the first page has expired, 400 for an invalid token
 */
export function pageOf(type: ResourceType, matching: readonly KubeObject[], query: PageQuery, store: Store): JsonObject {
  const position = query.continue ? decodePosition(query.continue) : null;
  if (position && store.since(position.revision) === null) throw expired(CONTINUE_EXPIRED);
  const rest = matching.filter((object) => position === null || placeOf(object) > position.after);
  const items = rest.slice(0, query.limit && query.limit > 0 ? query.limit : rest.length);
  const revision = position?.revision ?? store.revision();
  const last = items.at(-1);
  if (last === undefined || rest.length === items.length) return listOf(type, items, { resourceVersion: String(revision) });
  const counted = query.fieldSelector || query.labelSelector ? {} : { remainingItemCount: rest.length - items.length };
  return listOf(type, items, {
    resourceVersion: String(revision),
    continue: encodePosition({ revision, after: placeOf(last) }),
    ...counted,
  });
}

function placeOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

function encodePosition(position: Position): string {
  return Buffer.from(JSON.stringify(position), 'utf8').toString('base64url');
}

function decodePosition(token: string): Position {
  const value = parseOrNull(Buffer.from(token, 'base64url').toString('utf8'));
  if (isJsonObject(value) && typeof value.revision === 'number' && typeof value.after === 'string') {
    return { revision: value.revision, after: value.after };
  }
  throw badRequest('invalid continue token: continue key is not valid');
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
