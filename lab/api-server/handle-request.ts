import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { answerResource } from './answer-resource.ts';
import { type Credentials, type UserInfo, userOf } from './authenticate.ts';
import { authorize, refusal } from './authorize.ts';
import { servedTypes } from './custom-resources.ts';
import { discoveryDocument, discoveryPaths, isServedGroup, servedType } from './discovery.ts';
import { type Answer, PAGE_NOT_FOUND } from './exchange.ts';
import type { HandlerContext } from './handler-context.ts';
import { answerNodeProxy } from './node-proxy.ts';
import { openapiDocument } from './openapi.ts';
import type { PathRequest, RequestInfo } from './request-info.ts';
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
  const types = servedTypes(context.store);
  if (info.kind === 'path') return answerPath(types, info, context.gitVersion, context.address());
  const type = servedType(types, info.group, info.version, info.resource);
  if (type?.plural === 'nodes' && info.subresource === 'proxy') {
    if (request.method !== 'GET') throw methodNotAllowed();
    return answerNodeProxy(context.store, context.nodeProxies, type, info);
  }
  if (type !== null) return answerResource({ context, user, info, type, request, response });
  if (isServedGroup(types, info.path)) throw noSuchResource();
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

/**
 * Answers requests for paths without a resource: health, version, discovery.
 * @param address `host:port` for the discovery document
 * @throws StatusError 404, 405
 */
function answerPath(types: readonly ResourceType[], { path, verb, query }: PathRequest, gitVersion: string, address: string): Answer {
  if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
  const health = /^\/(healthz|livez|readyz)(?:\/[\w-]+)?$/.exec(path)?.[1];
  if (health !== undefined) return { status: 200, text: query.has('verbose') ? `[+]ping ok\n${health} check passed\n` : 'ok' };
  const body = documentAt(types, path, gitVersion, address);
  if (body !== null) return { status: 200, body };
  if (isServedGroup(types, path)) throw noSuchResource();
  return PAGE_NOT_FOUND;
}

function documentAt(types: readonly ResourceType[], path: string, gitVersion: string, address: string): JsonObject | null {
  if (path === '/version' || path === '/version/') return versionDocument(gitVersion);
  if (path === '/') return { paths: [...discoveryPaths(types), '/healthz', '/livez', '/openapi/v3', '/readyz', '/version'] };
  return discoveryDocument(types, path, address) ?? openapiDocument(types, path);
}

function versionDocument(gitVersion: string): JsonObject {
  const [, major = '1', minor = ''] = /^v(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  const built = { gitCommit: '', gitTreeState: 'clean', buildDate: '1970-01-01T00:00:00Z', goVersion: '', compiler: '' };
  return { major, minor, gitVersion, ...built, platform: 'linux/amd64' };
}
