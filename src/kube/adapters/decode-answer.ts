import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { type ExpectedObject, eventIssue, listIssue, objectIssue } from '../api-answer.ts';
import type { WatchEvent } from '../cluster.ts';
import { clusterAnswerInvalid } from '../cluster-problems.ts';
import type { KubeObject } from '../object.ts';
import type { RawWatchEvent } from '../watch-lines.ts';
import type { ApiRequest } from './send-request.ts';

export interface RequestContext extends Pick<ApiRequest, 'what' | 'method' | 'path'> {
  readonly server: string;
}

/**
 * Validates a response as the requested object.
 * @throws AppError CLUSTER_ANSWER_INVALID, as all functions of this file
 */
export function decodeObject(request: RequestContext, body: JsonObject, expected: ExpectedObject): KubeObject {
  requireValid(request, objectIssue(body, expected));
  return body as KubeObject;
}

/** A page of a list, whose items have neither apiVersion nor kind; `next` is undefined on the last page. */
export function decodeList(request: RequestContext, body: JsonObject, kind: string) {
  requireValid(request, listIssue(body, kind));
  const { resourceVersion, continue: next } = body.metadata as { readonly resourceVersion?: string; readonly continue?: string };
  const items = (body.items ?? []) as readonly JsonObject[];
  return { items: items.filter(isJsonObject), resourceVersion: resourceVersion ?? '', next: next || undefined };
}

export function decodeEvent(request: RequestContext, type: WatchEvent['type'], { object }: RawWatchEvent, kind: string): WatchEvent {
  requireValid(request, eventIssue(type, object, kind));
  return { type, object: object as KubeObject };
}

function requireValid({ server, ...request }: RequestContext, issue: string | null): void {
  if (issue !== null) throw clusterAnswerInvalid(server, request, issue);
}
