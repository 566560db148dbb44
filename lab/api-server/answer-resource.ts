import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import type { UserInfo } from './authenticate.ts';
import { unrecognized } from './decode.ts';
import { isReview } from './discovery.ts';
import { evictPod } from './eviction.ts';
import { type Answer, mediaType, parseBody, readBody } from './exchange.ts';
import type { HandlerContext } from './handler-context.ts';
import type { PageQuery } from './list-pages.ts';
import { memberOf, textOf } from './members.ts';
import type { PatchType } from './patch.ts';
import { type DeleteOptions, type ObjectKey, requireKnownResourceVersion, type WriteOptions } from './registry.ts';
import { isTrue, type ResourceRequest } from './request-info.ts';
import { answerReview, requestToken } from './reviews.ts';
import { subresourcesOf } from './served-kinds.ts';
import { badRequest, goQuote, invalid, methodNotAllowed, noSuchResource, unsupportedMediaType, unsupportedValue } from './status.ts';
import { renderTable, wantsTable } from './table.ts';

/** A request for a resource that the server serves. */
export interface ResourceCall {
  readonly context: HandlerContext;
  readonly user: UserInfo;
  readonly info: ResourceRequest;
  readonly type: ResourceType;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

type PlacedCall = ResourceCall & { readonly at: ObjectKey };

/**
 * Executes a request for a resource.
 * @throws StatusError with the response, when it is not an object
 */
export async function answerResource(call: ResourceCall): Promise<Answer> {
  const { info, type, request } = call;
  const { verb, subresource, namespace } = info;
  const elsewhere = !type.namespaced && namespace !== '' && type.plural !== 'namespaces';
  if (elsewhere || (subresource !== '' && !subresourcesOf(type).includes(subresource))) throw noSuchResource();
  const placed = { ...call, at: { namespace: type.namespaced ? namespace : '', name: info.name } };
  const spansNamespaces = type.namespaced && namespace === '';
  if (request.method === 'HEAD' || (spansNamespaces && !['list', 'watch'].includes(verb))) throw methodNotAllowed();
  if (isReview(type) || subresource === 'token') return review(placed);
  if (subresource === 'eviction') return evict(placed);
  const answer = VERBS.get(verb);
  if (!answer || (NAMED.includes(verb) && !info.named) || (verb === 'create' && info.named)) throw methodNotAllowed();
  return answer(placed);
}

const NAMED = ['update', 'patch'];
const PATCH_TYPES: Readonly<Record<string, PatchType>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
};

type Verb = (call: PlacedCall) => Answer | Promise<Answer>;
const VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  [
    'get',
    (call) => {
      requireKnownResourceVersion(call.context.store, call.info.query.get('resourceVersion'));
      return show(call, 200, call.context.registry.get(call.type, call.at));
    },
  ],
  [
    'list',
    (call) => {
      requireKnownResourceVersion(call.context.store, call.info.query.get('resourceVersion'));
      return show(call, 200, call.context.registry.list(call.type, call.at.namespace, pageQuery(call.info.query)));
    },
  ],
  ['watch', watch],
  [
    'create',
    async (call) =>
      show(
        call,
        201,
        call.context.registry.create(call.type, call.at.namespace, await requestBodyOf(call), writeOptions(call, 'CreateOptions')),
      ),
  ],
  [
    'update',
    async (call) => {
      const { object, created } = call.context.registry.update(
        call.type,
        call.at,
        await requestBodyOf(call),
        writeOptions(call, 'UpdateOptions'),
      );
      return show(call, created ? 201 : 200, object);
    },
  ],
  ['patch', patch],
  [
    'delete',
    async (call) => {
      const deletion = await deleteOptions(call.request);
      return { status: 200, body: call.context.registry.delete(call.type, call.at, deletion, writeOptions(call, 'DeleteOptions')) };
    },
  ],
  [
    'deletecollection',
    async (call) => {
      if (call.type.plural === 'namespaces') throw methodNotAllowed();
      await deleteOptions(call.request);
      const query = pageQuery(call.info.query);
      return {
        status: 200,
        body: call.context.registry.deleteCollection(call.type, call.at.namespace, query, writeOptions(call, 'DeleteOptions')),
      };
    },
  ],
]);

async function review(call: PlacedCall): Promise<Answer> {
  const { context, info, user, type, at } = call;
  if (info.verb !== 'create') throw methodNotAllowed();
  const body = await requestBodyOf(call);
  const reviewContext = { store: context.store, authenticator: context.authenticator, user, now: context.clock.now() };
  return {
    status: 201,
    body: info.subresource === 'token' ? requestToken(type, at, body, reviewContext) : answerReview(type, body, reviewContext),
  };
}

async function evict(call: PlacedCall): Promise<Answer> {
  if (call.info.verb !== 'create') throw methodNotAllowed();
  const { store, registry, clock } = call.context;
  const body = await requestBodyOf(call);
  return { status: 201, body: evictPod({ store, registry, now: clock.now() }, call.at, body, writeOptions(call, 'CreateOptions')) };
}

function watch({ context, info: { query }, type, at, request, response }: PlacedCall): Answer {
  const watched = {
    type,
    namespace: at.namespace,
    selector: context.registry.selector(type, pageQuery(query)),
    resourceVersion: query.get('resourceVersion') ?? '',
    sendInitialEvents: isTrue(query.get('sendInitialEvents')),
  };
  context.watches.serve(watched, query, response, wantsTable(request.headers.accept));
  return 'streamed';
}

async function patch(call: PlacedCall): Promise<Answer> {
  const patchType = PATCH_TYPES[mediaType(call.request.headers['content-type'])];
  if (patchType === undefined) throw unsupportedMediaType('415: Unsupported Media Type', {});
  const body = parsePatch((await readBody(call.request)).toString('utf8'));
  return show(call, 200, call.context.registry.patch(call.type, call.at, patchType, body, writeOptions(call, 'PatchOptions')));
}

/** An object or a list in the format that the client accepts. */
function show({ context, type, request }: PlacedCall, status: number, object: JsonObject): Answer {
  if (!wantsTable(request.headers.accept)) return { status, body: object };
  const { items } = object;
  const rows = (Array.isArray(items) ? items : [object]) as readonly KubeObject[];
  const { resourceVersion = null, ...more } = memberOf(object, 'metadata');
  const metadata = { resourceVersion, ...(Array.isArray(items) ? more : {}) };
  return { status, body: renderTable(type, rows, metadata, context.clock.now()) };
}

async function requestBodyOf({ type, request }: ResourceCall): Promise<Json> {
  return parseBody(await readBody(request), mediaType(request.headers['content-type']), unrecognized(type));
}

function parsePatch(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw badRequest('error decoding patch: invalid JSON');
  }
}

async function deleteOptions(request: IncomingMessage): Promise<DeleteOptions> {
  const sent = await readBody(request);
  if (sent.length === 0) return {};
  const what = 'the object provided is unrecognized (must be of type DeleteOptions)';
  const body = parseBody(sent, mediaType(request.headers['content-type']), what);
  const preconditions = memberOf(isJsonObject(body) ? body : undefined, 'preconditions');
  const [uid, resourceVersion] = [textOf(preconditions, 'uid'), textOf(preconditions, 'resourceVersion')];
  return { preconditions: { ...(uid === '' ? {} : { uid }), ...(resourceVersion === '' ? {} : { resourceVersion }) } };
}

function pageQuery(query: URLSearchParams): PageQuery {
  const limit = query.get('limit');
  if (limit !== null && limit !== '' && !/^[+-]?\d+$/.test(limit))
    throw badRequest(`strconv.ParseInt: parsing ${goQuote(limit)}: invalid syntax`);
  return {
    fieldSelector: query.get('fieldSelector') ?? '',
    labelSelector: query.get('labelSelector') ?? '',
    ...(limit ? { limit: Number(limit) } : {}),
    continue: query.get('continue') ?? '',
  };
}

function writeOptions({ user, info: { query, subresource } }: ResourceCall, kind: string): WriteOptions {
  const dryRun = query.getAll('dryRun');
  const wrong = dryRun.filter((value) => value !== 'All');
  if (wrong.length > 0) {
    const message = `Unsupported value: [${wrong.map(goQuote).join(',')}]: supported values: "All"`;
    throw invalid({ group: 'meta.k8s.io', kind }, '', [{ ...unsupportedValue('dryRun', '', ['All']), message }]);
  }
  return { user, dryRun: dryRun.length > 0, subresource, strict: query.get('fieldValidation') === 'Strict' };
}
