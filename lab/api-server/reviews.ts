import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { apiVersionOf, type ResourceType } from '../../src/kube/resources.ts';
import { type Authenticator, type UserInfo, userOf } from './authenticate.ts';
import { authorize } from './authorize.ts';
import { memberOf, textOf, textsOf } from './members.ts';
import type { RequestInfo } from './request-info.ts';
import { invalid, invalidValue, notFound } from './status.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamp.ts';

export interface ReviewContext {
  readonly store: Store;
  readonly authenticator: Authenticator;
  readonly user: UserInfo;
  readonly now: Date;
}

/** Answers a review: the posted object with its status. Nothing is stored. */
export function answerReview(type: ResourceType, body: Json, { store, authenticator, user, now }: ReviewContext): JsonObject {
  const spec = memberOf(isJsonObject(body) ? body : undefined, 'spec');
  const answer = (status: JsonObject) => ({
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: type.kind === 'SelfSubjectReview' ? { creationTimestamp: timestamp(now) } : {},
    ...(type.kind === 'SelfSubjectReview' ? {} : { spec }),
    status,
  });
  const access = (subject: UserInfo) => {
    const verdict = authorize(store, subject, requestOf(spec));
    return answer(verdict.allowed ? { allowed: true } : { allowed: false, ...(verdict.reason === '' ? {} : { reason: verdict.reason }) });
  };
  switch (type.kind) {
    case 'SelfSubjectReview':
      return answer({ userInfo: userInfo(user) });
    case 'TokenReview': {
      const known = authenticator.userOfToken(textOf(spec, 'token'));
      return answer(known === null ? { user: {} } : { authenticated: true, user: userInfo(known) });
    }
    case 'SubjectAccessReview':
      return access({ ...userOf(textOf(spec, 'user'), []), groups: textsOf(spec, 'groups') });
    default:
      return access(user);
  }
}

const SHORTEST_SECONDS = 600;

/**
 * Creates a token for a service account (TokenRequest).
 * @throws StatusError 404 for a missing service account, 422 for too short a duration
 */
export function requestToken(
  type: ResourceType,
  at: { readonly namespace: string; readonly name: string },
  body: Json,
  context: ReviewContext,
): JsonObject {
  const account = context.store.get(type, at.namespace, at.name);
  if (account === null) throw notFound(type, at.name);
  const spec = memberOf(isJsonObject(body) ? body : undefined, 'spec');
  const seconds = typeof spec.expirationSeconds === 'number' ? spec.expirationSeconds : 3600;
  if (seconds < SHORTEST_SECONDS) {
    const cause = invalidValue('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes');
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [cause]);
  }
  const expires = new Date(context.now.getTime() + seconds * 1000);
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: at.name, namespace: at.namespace, creationTimestamp: timestamp(context.now) },
    spec: { audiences: ['https://kubernetes.default.svc'], expirationSeconds: seconds, boundObjectRef: null },
    status: { token: context.authenticator.issueServiceAccountToken(account, expires), expirationTimestamp: timestamp(expires) },
  };
}

function userInfo({ name, uid, groups, extra }: UserInfo): JsonObject {
  return { username: name, ...(uid ? { uid } : {}), groups, ...(Object.keys(extra).length > 0 ? { extra } : {}) };
}

function requestOf(spec: JsonObject): RequestInfo {
  const query = new URLSearchParams();
  const url = memberOf(spec, 'nonResourceAttributes');
  if (Object.keys(url).length > 0) return { kind: 'path', path: textOf(url, 'path'), verb: textOf(url, 'verb'), query };
  const asked = memberOf(spec, 'resourceAttributes');
  const text = (name: string) => textOf(asked, name);
  return {
    kind: 'resource',
    path: '',
    verb: text('verb'),
    group: text('group'),
    version: text('version'),
    resource: text('resource'),
    subresource: text('subresource'),
    namespace: text('namespace'),
    name: text('name'),
    named: text('name') !== '',
    query,
  };
}
