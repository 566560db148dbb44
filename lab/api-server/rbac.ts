import type { JsonObject } from '../../src/base/json.ts';
import { trimTrailing } from '../../src/base/text/trim-trailing.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import type { UserInfo } from './authenticate.ts';
import { itemsOf, memberOf, textOf, textsOf } from './members.ts';
import type { RequestInfo } from './request-info.ts';
import type { Store } from './store.ts';

/** Allowed, or denied with the server's additional explanation (may be empty). */
export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const GROUP = 'rbac.authorization.k8s.io';

/**
 * Evaluates the Roles and bindings in the store.
 * @see kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac (1.36)
 */
export function rbacAllows(store: Store, user: UserInfo, request: RequestInfo): Verdict {
  const namespace = request.kind === 'resource' ? request.namespace : '';
  const missing: string[] = [];
  for (const binding of bindingsOf(store, user, namespace)) {
    const role = roleOf(store, binding);
    if (role === null) missing.push(roleNotFound(memberOf(binding, 'roleRef')));
    else if (itemsOf(role, 'rules').some((rule) => ruleAllows(rule, request))) return { allowed: true };
  }
  return { allowed: false, reason: missing.length === 0 ? '' : `RBAC: ${missing.length === 1 ? missing[0] : `[${missing.join(', ')}]`}` };
}

/** Whether a rule covers a request. */
export function ruleAllows(rule: JsonObject, request: RequestInfo): boolean {
  if (!matches(textsOf(rule, 'verbs'), request.verb)) return false;
  if (request.kind === 'path') return textsOf(rule, 'nonResourceURLs').some((url) => urlMatches(url, request.path));
  const { group, resource, subresource, name } = request;
  const asked = subresource === '' ? resource : `${resource}/${subresource}`;
  const names = textsOf(rule, 'resourceNames');
  return (
    matches(textsOf(rule, 'apiGroups'), group) &&
    textsOf(rule, 'resources').some((each) => each === '*' || each === asked || (subresource !== '' && each === `*/${subresource}`)) &&
    (names.length === 0 || names.includes(name))
  );
}

function* bindingsOf(store: Store, user: UserInfo, namespace: string): Generator<KubeObject> {
  for (const binding of store.list(rbacType('ClusterRoleBinding'))) if (isBound(binding, user)) yield binding;
  if (namespace === '') return;
  for (const binding of store.list(rbacType('RoleBinding'), namespace)) if (isBound(binding, user)) yield binding;
}

function isBound(binding: KubeObject, user: UserInfo): boolean {
  return itemsOf(binding, 'subjects').some((subject) => {
    const name = textOf(subject, 'name');
    switch (textOf(subject, 'kind')) {
      case 'User':
        return name === user.name;
      case 'Group':
        return user.groups.includes(name);
      case 'ServiceAccount':
        return user.name === `system:serviceaccount:${textOf(subject, 'namespace') || (binding.metadata.namespace ?? '')}:${name}`;
      default:
        return false;
    }
  });
}

function roleOf(store: Store, binding: KubeObject): KubeObject | null {
  const ref = memberOf(binding, 'roleRef');
  const [kind, name] = [textOf(ref, 'kind'), textOf(ref, 'name')];
  if (kind === 'ClusterRole') return store.get(rbacType('ClusterRole'), '', name);
  return kind === 'Role' ? store.get(rbacType('Role'), binding.metadata.namespace ?? '', name) : null;
}

function roleNotFound(ref: JsonObject): string {
  return `${textOf(ref, 'kind').toLowerCase()}.${GROUP} ${JSON.stringify(textOf(ref, 'name'))} not found`;
}

function rbacType(kind: string): ResourceType {
  const type = resourceOf(`${GROUP}/v1`, kind);
  if (!type) throw new Error(`no resource for ${kind}`);
  return type;
}

function matches(allowed: readonly string[], asked: string): boolean {
  return allowed.includes('*') || allowed.includes(asked);
}

function urlMatches(rule: string, path: string): boolean {
  return rule === '*' || rule === path || (rule.endsWith('*') && path.startsWith(trimTrailing(rule, '*')));
}
