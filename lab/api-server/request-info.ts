/** The attributes of a request for authorizers and the log. */
export type RequestInfo = ResourceRequest | PathRequest;

export interface ResourceRequest {
  readonly kind: 'resource';
  readonly path: string;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  /** Plural name. */
  readonly resource: string;
  /** Empty: none. */
  readonly subresource: string;
  /** Empty: cluster-scoped. */
  readonly namespace: string;
  /** Empty: a collection. A list or watch of one name by field selector has this name. */
  readonly name: string;
  /** Whether the path itself names an object. */
  readonly named: boolean;
  readonly query: URLSearchParams;
}

export interface PathRequest {
  readonly kind: 'path';
  readonly path: string;
  /** The HTTP method in lower case. */
  readonly verb: string;
  readonly query: URLSearchParams;
}

const VERBS: Readonly<Record<string, readonly [named: string, collection: string]>> = {
  GET: ['get', 'list'],
  HEAD: ['get', 'list'],
  POST: ['create', 'create'],
  PUT: ['update', 'update'],
  PATCH: ['patch', 'patch'],
  DELETE: ['delete', 'deletecollection'],
};

/**
 * Parses a request line.
 * @param method e.g. `GET`
 * @param target path and query as sent
 * @see k8s.io/apiserver pkg/endpoints/request/requestinfo.go (1.36)
 */
export function parseRequest(method: string, target: string): RequestInfo {
  const url = new URL(target, 'http://api');
  const query = url.searchParams;
  const path = url.pathname;
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodePart);
  const [root, ...rest] = parts;
  const asPath: PathRequest = { kind: 'path', path, verb: method.toLowerCase(), query };
  if (root === 'api' && rest.length >= 2) return parseResource(method, path, query, '', rest[0] ?? '', rest.slice(1));
  if (root === 'apis' && rest.length >= 3) return parseResource(method, path, query, rest[0] ?? '', rest[1] ?? '', rest.slice(2));
  return asPath;
}

function parseResource(
  method: string,
  path: string,
  query: URLSearchParams,
  group: string,
  version: string,
  parts: readonly string[],
): ResourceRequest {
  const scoped = parts[0] === 'namespaces' && parts.length > 2 && !['status', 'finalize'].includes(parts[2] ?? '');
  // A Namespace belongs to itself, so that a Role in the namespace may grant access to it.
  const namespace = scoped || (parts[0] === 'namespaces' && parts.length > 1) ? (parts[1] ?? '') : '';
  const [resource = '', name = '', ...sub] = scoped ? parts.slice(2) : parts;
  // The part after `proxy` is a separate path.
  const subresource = sub[0] === 'proxy' ? 'proxy' : sub.join('/');
  const [onObject = method.toLowerCase(), onCollection = method.toLowerCase()] = VERBS[method] ?? [];
  const named = name !== '';
  const watching = !named && onCollection === 'list' && isTrue(query.get('watch'));
  const verb = watching ? 'watch' : named ? onObject : onCollection;
  const selected = named || !['list', 'watch', 'deletecollection'].includes(verb) ? '' : nameSelected(query.get('fieldSelector') ?? '');
  return { kind: 'resource', path, verb, group, version, resource, subresource, namespace, name: name || selected, named, query };
}

/**
 * The name that a field selector selects: authorizers distinguish such a list from a list of all objects.
 * Empty: none.
 */
export function nameSelected(fieldSelector: string): string {
  return /(?:^|,)metadata\.name==?([^,=\\]+)(?:,|$)/.exec(fieldSelector)?.[1] ?? '';
}

/** Parses booleans as Go's query conversion does: every value except false and 0 is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && !['false', '0', 'False', 'FALSE', 'f', 'F'].includes(value);
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
