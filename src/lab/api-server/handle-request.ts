import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerPath } from './answer-path.ts';
import { answerResource } from './answer-resource.ts';
import { type Credentials, type UserInfo, userOf } from './authenticate.ts';
import { authorize, refusal } from './authorize.ts';
import { isServedGroup, servedType } from './discovery.ts';
import { type Answer, PAGE_NOT_FOUND } from './exchange.ts';
import type { HandlerContext } from './handler-context.ts';
import { answerNodeProxy } from './node-proxy.ts';
import type { RequestInfo } from './request-info.ts';
import { methodNotAllowed, noSuchResource } from './status.ts';

/**
 * Executes a request after authorization.
 * @throws StatusError with the response, when it is not an object
 */
export async function handleRequest(
  context: HandlerContext,
  user: UserInfo,
  info: RequestInfo,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer> {
  const verdict = authorize(context.store, user, info);
  if (!verdict.allowed) throw refusal(user, info, verdict.reason);
  if (info.kind === 'path') return answerPath(info, context.gitVersion, context.address());
  const type = servedType(info.group, info.version, info.resource);
  if (type?.plural === 'nodes' && info.subresource === 'proxy') {
    if (request.method !== 'GET') throw methodNotAllowed();
    return answerNodeProxy(context.store, context.nodeProxies, type, info);
  }
  if (type !== null) return answerResource({ context, user, info, type, request, response });
  if (isServedGroup(info.path)) throw noSuchResource();
  return PAGE_NOT_FOUND;
}

/**
 * The user of a request, after impersonation.
 * @throws StatusError 401, 403
 */
export function requesterOf(
  { authenticator, store }: HandlerContext,
  credentials: Credentials,
  headers: IncomingMessage['headers'],
): UserInfo {
  const user = authenticator.authenticate(credentials);
  const name = headers['impersonate-user'];
  if (typeof name !== 'string' || name === '') return user;
  const groups = [headers['impersonate-group'] ?? []].flat().flatMap((value) => value.split(', '));
  const query = new URLSearchParams();
  const asked = {
    kind: 'resource',
    path: '',
    verb: 'impersonate',
    group: '',
    version: 'v1',
    subresource: '',
    namespace: '',
    named: true,
    query,
  } as const;
  for (const [resource, desired] of [['users', name], ...groups.map((group) => ['groups', group])] as const) {
    const request = { ...asked, resource: resource ?? '', name: desired ?? '' };
    const verdict = authorize(store, user, request);
    if (!verdict.allowed) throw refusal(user, request, verdict.reason);
  }
  return name === 'system:anonymous' ? { name, groups: ['system:unauthenticated'], extra: {} } : userOf(name, groups);
}
