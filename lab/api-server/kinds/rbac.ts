import { jsonEqual } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { itemsOf, memberOf, textOf, textsOf } from '../members.ts';
import { pathSegment } from '../name-rules.ts';
import { type Cause, invalidValue, nameCauses, requiredValue, unsupportedValue } from '../status.ts';
import type { KindRules } from './kind.ts';

const GROUP = 'rbac.authorization.k8s.io';

/**
 * Roles and ClusterRoles. An empty `rules` is sent too. @see kubernetes/kubernetes pkg/apis/rbac/validation
 * (1.36)
 */
export const roles: KindRules = {
  members: ['rules', 'aggregationRule'],
  name: pathSegment,
  createOnUpdate: true,
  prepareCreate: (role) => ({ ...role, rules: itemsOf(role, 'rules').length > 0 ? (role.rules ?? null) : null }),
  prepareUpdate: (role) => ({ ...role, rules: itemsOf(role, 'rules').length > 0 ? (role.rules ?? null) : null }),
  validate: (role) => itemsOf(role, 'rules').flatMap((rule, index) => ruleCauses(rule, `rules[${index}]`, role.kind === 'Role')),
};

export const roleBindings: KindRules = bindingsOf(['Role', 'ClusterRole']);
export const clusterRoleBindings: KindRules = bindingsOf(['ClusterRole']);

function bindingsOf(kinds: readonly string[]): KindRules {
  return {
    name: pathSegment,
    members: ['roleRef', 'subjects'],
    createOnUpdate: true,
    prepareCreate: complete,
    prepareUpdate: complete,
    validate: (binding, old) => [
      ...roleRefCauses(binding, kinds),
      ...itemsOf(binding, 'subjects').flatMap((subject, index) =>
        subjectCauses(subject, `subjects[${index}]`, binding.kind === 'RoleBinding'),
      ),
      ...(old && !jsonEqual(binding.roleRef, old.roleRef) ? [invalidValue('roleRef', roleRefText(binding), 'cannot change roleRef')] : []),
    ],
  };
}

/** Sets default API groups. */
function complete(binding: KubeObject): KubeObject {
  const subjects = itemsOf(binding, 'subjects').map((subject) => {
    const byName = subject.kind === 'User' || subject.kind === 'Group';
    return byName && textOf(subject, 'apiGroup') === '' ? { ...subject, apiGroup: GROUP } : subject;
  });
  const roleRef = memberOf(binding, 'roleRef');
  return {
    ...binding,
    ...(subjects.length > 0 ? { subjects } : {}),
    roleRef: { apiGroup: textOf(roleRef, 'apiGroup') || GROUP, kind: textOf(roleRef, 'kind'), name: textOf(roleRef, 'name') },
  };
}

function ruleCauses(rule: Parameters<typeof textsOf>[0], field: string, namespaced: boolean): readonly Cause[] {
  if (textsOf(rule, 'verbs').length === 0) return [requiredValue(`${field}.verbs`, 'verbs must contain at least one value')];
  if (textsOf(rule, 'nonResourceURLs').length > 0) {
    return namespaced
      ? [
          invalidValue(
            `${field}.nonResourceURLs`,
            `[${textsOf(rule, 'nonResourceURLs').join(' ')}]`,
            'namespaced rules cannot apply to non-resource URLs',
          ),
        ]
      : [];
  }
  return [
    ...(textsOf(rule, 'apiGroups').length === 0
      ? [requiredValue(`${field}.apiGroups`, 'resource rules must supply at least one api group')]
      : []),
    ...(textsOf(rule, 'resources').length === 0
      ? [requiredValue(`${field}.resources`, 'resource rules must supply at least one resource')]
      : []),
  ];
}

function roleRefCauses(binding: KubeObject, kinds: readonly string[]): readonly Cause[] {
  const ref = memberOf(binding, 'roleRef');
  const [apiGroup, kind, name] = [textOf(ref, 'apiGroup'), textOf(ref, 'kind'), textOf(ref, 'name')];
  return [
    ...(apiGroup === GROUP ? [] : [unsupportedValue('roleRef.apiGroup', apiGroup, [GROUP])]),
    ...(kinds.includes(kind) ? [] : [unsupportedValue('roleRef.kind', kind, kinds)]),
    ...(name === '' ? [requiredValue('roleRef.name')] : nameCauses(pathSegment, 'roleRef.name', name)),
  ];
}

function subjectCauses(subject: Parameters<typeof textOf>[0], field: string, namespaced: boolean): readonly Cause[] {
  const [kind, name, namespace] = [textOf(subject, 'kind'), textOf(subject, 'name'), textOf(subject, 'namespace')];
  return [
    ...(name === '' ? [requiredValue(`${field}.name`)] : []),
    ...(kind === 'ServiceAccount' && !namespaced && namespace === '' ? [requiredValue(`${field}.namespace`)] : []),
    ...(['ServiceAccount', 'User', 'Group'].includes(kind)
      ? []
      : [unsupportedValue(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]),
  ];
}

function roleRefText(binding: KubeObject): string {
  return JSON.stringify(memberOf(binding, 'roleRef'));
}
