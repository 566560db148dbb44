import { describe, expect, it } from 'vitest';
import { bootstrapTokenOf, createAuthenticator } from '../../../../lab/api-server/authenticate.ts';
import { createStore } from '../../../../lab/api-server/store.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../../src/kube/resources.ts';

const NOW = new Date('2030-06-01T12:00:00Z');
const SECRETS = resourceOf('v1', 'Secret') as ResourceType;
const ACCOUNTS = resourceOf('v1', 'ServiceAccount') as ResourceType;
const secret = (data: Record<string, string>, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: `bootstrap-token-${data['token-id'] ?? 'aaaaaa'}`, namespace: 'kube-system' },
  type: 'bootstrap.kubernetes.io/token',
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
  ...more,
});
const TOKEN = {
  'token-id': 'aaaaaa',
  'token-secret': '0123456789abcdef',
  'usage-bootstrap-authentication': 'true',
  'usage-bootstrap-signing': 'true',
};

describe('bootstrapTokenOf', () => {
  it.each<[string, Record<string, string>, object, object | null]>([
    ['a complete one', TOKEN, {}, { id: 'aaaaaa', usages: ['authentication', 'signing'], groups: ['system:bootstrappers'] }],
    ['one that expires later', { ...TOKEN, expiration: '2030-06-01T12:00:01Z' }, {}, { id: 'aaaaaa' }],
    ['one that expires now', { ...TOKEN, expiration: '2030-06-01T12:00:00Z' }, {}, null],
    ['one that expires in another time zone', { ...TOKEN, expiration: '2030-06-01T14:00:01+02:00' }, {}, { id: 'aaaaaa' }],
    ['an invalid expiration', { ...TOKEN, expiration: 'tomorrow' }, {}, null],
    ['another type', TOKEN, { type: 'Opaque' }, null],
    ['one being deleted', TOKEN, { metadata: { name: 'x', deletionTimestamp: '2030-01-01T00:00:00Z' } }, null],
    ['a usage that is not exactly true', { ...TOKEN, 'usage-bootstrap-signing': 'True' }, {}, { usages: ['authentication'] }],
    [
      'groups, sorted, each once',
      { ...TOKEN, 'auth-extra-groups': 'system:bootstrappers:b,system:bootstrappers:a,system:bootstrappers:b' },
      {},
      { groups: ['system:bootstrappers', 'system:bootstrappers:a', 'system:bootstrappers:b'] },
    ],
    ['a forbidden group', { ...TOKEN, 'auth-extra-groups': 'system:masters' }, {}, { groups: null }],
  ])('%s', (_, data, more, expected) => {
    const token = bootstrapTokenOf(secret(data, more), NOW);
    if (expected === null) expect(token).toBeNull();
    else expect(token).toMatchObject(expected);
  });
});

describe('createAuthenticator', () => {
  const world = (now = NOW) => {
    const store = createStore();
    store.put(SECRETS, secret(TOKEN));
    const authenticator = createAuthenticator({ store, now: () => now, tokens: { static: { user: 'robot', groups: ['g'] } } });
    return { store, authenticator };
  };
  const bearer = (token: string) => ({ certificate: null, authorization: `Bearer ${token}` });

  it.each<[string, Parameters<ReturnType<typeof createAuthenticator>['authenticate']>[0], object]>([
    ['no credentials', { certificate: null, authorization: '' }, { name: 'system:anonymous', groups: ['system:unauthenticated'] }],
    ['Basic is not supported', { certificate: null, authorization: 'Basic eDp5' }, { name: 'system:anonymous' }],
    ['a known token', bearer('static'), { name: 'robot', groups: ['g', 'system:authenticated'] }],
    [
      'a bootstrap token',
      bearer('aaaaaa.0123456789abcdef'),
      { name: 'system:bootstrap:aaaaaa', groups: ['system:bootstrappers', 'system:authenticated'] },
    ],
    [
      'a certificate, before any token',
      { certificate: { commonName: 'system:node:w1', organizations: ['system:nodes'], sha256: 'ab' }, authorization: 'Bearer nonsense' },
      {
        name: 'system:node:w1',
        groups: ['system:nodes', 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=ab'] },
      },
    ],
  ])('%s', (_, credentials, user) => {
    expect(world().authenticator.authenticate(credentials)).toMatchObject(user);
  });

  it.each([
    ['an unknown token', bearer('nonsense')],
    ['a wrong secret', bearer('aaaaaa.0123456789abcdee')],
    ['a certificate of another CA', { certificate: 'invalid' as const, authorization: '' }],
  ])('%s is refused', (_, credentials) => {
    expect(() => world().authenticator.authenticate(credentials)).toThrow('Unauthorized');
  });

  it('accepts service account tokens until they expire or the account is deleted', () => {
    const { store, authenticator } = world();
    const account = store.put(ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'bot', namespace: 'ci' } });
    const token = authenticator.issueServiceAccountToken(account, new Date(NOW.getTime() + 1000));
    expect(authenticator.userOfToken(token)).toMatchObject({
      name: 'system:serviceaccount:ci:bot',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ci', 'system:authenticated'],
    });
    expect(authenticator.userOfToken(`${token}x`)).toBeNull();
    expect(authenticator.userOfToken(authenticator.issueServiceAccountToken(account, NOW))).toBeNull();
    store.remove(ACCOUNTS, 'ci', 'bot');
    expect(authenticator.userOfToken(token)).toBeNull();
  });
});
