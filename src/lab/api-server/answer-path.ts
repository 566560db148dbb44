import type { JsonObject } from '../../base/json.ts';
import { discoveryDocument, discoveryPaths, isServedGroup } from './discovery.ts';
import { type Answer, PAGE_NOT_FOUND } from './exchange.ts';
import { openapiDocument } from './openapi.ts';
import type { PathRequest } from './request-info.ts';
import { methodNotAllowed, noSuchResource } from './status.ts';

/**
 * Answers requests for paths without a resource: health, version, discovery.
 * @param address `host:port` for the discovery document
 * @throws StatusError 404, 405
 */
export function answerPath({ path, verb, query }: PathRequest, gitVersion: string, address: string): Answer {
  if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
  const health = /^\/(healthz|livez|readyz)(?:\/[\w-]+)?$/.exec(path)?.[1];
  if (health !== undefined) return { status: 200, text: query.has('verbose') ? `[+]ping ok\n${health} check passed\n` : 'ok' };
  const body = documentAt(path, gitVersion, address);
  if (body !== null) return { status: 200, body };
  if (isServedGroup(path)) throw noSuchResource();
  return PAGE_NOT_FOUND;
}

function documentAt(path: string, gitVersion: string, address: string): JsonObject | null {
  if (path === '/version' || path === '/version/') return versionDocument(gitVersion);
  if (path === '/') return { paths: [...discoveryPaths(), '/healthz', '/livez', '/openapi/v3', '/readyz', '/version'] };
  return discoveryDocument(path, address) ?? openapiDocument(path);
}

function versionDocument(gitVersion: string): JsonObject {
  const [, major = '1', minor = ''] = /^v(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  const built = { gitCommit: '', gitTreeState: 'clean', buildDate: '1970-01-01T00:00:00Z', goVersion: '', compiler: '' };
  return { major, minor, gitVersion, ...built, platform: 'linux/amd64' };
}
