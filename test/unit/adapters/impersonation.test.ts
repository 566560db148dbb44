import { describe, expect, it } from 'vitest';
import { impersonationHeaders } from '../../../src/kube/adapters/connection.ts';
import { parseKubeconfig, resolveContext } from '../../../src/kube/kubeconfig.ts';

function target(user: object) {
  const text = JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'k', cluster: { server: 'https://k' } }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    users: [{ name: 'u', user: { token: 't', ...user } }],
  });
  return resolveContext(parseKubeconfig(text, 'x.json'));
}

describe('impersonation by a kubeconfig', () => {
  it('sends the headers that client-go sends', () => {
    const extra = { 'example.com/Reason %': ['a', 'b'], scopes: ['view'] };
    const user = { as: 'jané', 'as-groups': ['dev', 'ops'], 'as-uid': '7', 'as-user-extra': extra };
    expect(impersonationHeaders(target(user).user)).toEqual({
      'Impersonate-User': Buffer.from('jané', 'utf8').toString('latin1'),
      'Impersonate-Group': ['dev', 'ops'],
      'Impersonate-Uid': '7',
      'Impersonate-Extra-example.com%2FReason%20%25': ['a', 'b'],
      'Impersonate-Extra-scopes': ['view'],
    });
  });

  it('sends none without as', () => {
    expect(impersonationHeaders(target({}).user)).toEqual({});
  });

  it.each([
    ['groups without a user', { 'as-groups': ['dev'] }, /user "u" has as-groups, but the field as .* is missing/],
    ['extra without a user', { 'as-user-extra': { a: ['b'] } }, /user "u" has as-user-extra, but the field as .* is missing/],
    ['an uid without a user', { 'as-uid': '7' }, /user "u" has as-uid, but the field as .* is missing/],
    ['groups that are a string', { as: 'jane', 'as-groups': 'dev' }, /as-groups: must be a list of strings/],
    [
      'extra without lists',
      { as: 'jane', 'as-user-extra': { a: 'b' } },
      /as-user-extra: must be an object whose values are lists of strings/,
    ],
    ['a line break, which no header can have', { as: 'jane\nImpersonate-Group: system:masters' }, /user "u": .* control characters/],
  ])('refuses %s', (_, user, expected) => {
    expect(() => target(user)).toThrow(expected);
  });
});
