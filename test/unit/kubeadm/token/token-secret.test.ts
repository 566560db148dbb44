import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import type { DefaultedBootstrapToken } from '../../../../src/kubeadm/config/defaults.ts';
import { readTokenSecret, remainingMs, tokenSecret } from '../../../../src/kubeadm/token/token-secret.ts';

const NOW = new Date('2026-01-02T03:04:05.678Z');
const TOKEN: DefaultedBootstrapToken = { token: new Secret('abcdef.0123456789abcdef'), usages: [], groups: [] };

function decoded({ data }: KubeObject): Record<string, string> {
  const entries = Object.entries(data as Record<string, string>);
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

const secret = (data: Record<string, string>, name = 'bootstrap-token-abcdef'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'kube-system' },
  type: 'bootstrap.kubernetes.io/token',
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
});
const VALID = { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef' };

describe('tokenSecret', () => {
  it.each<[string, Partial<DefaultedBootstrapToken>, Record<string, string>]>([
    ['only the token', {}, {}],
    ['a description', { description: 'for rack 7' }, { description: 'for rack 7' }],
    ['no empty description', { description: '' }, {}],
    ['a TTL', { ttl: '24h0m0s' }, { expiration: '2026-01-03T03:04:05Z' }],
    ['a TTL with fractions', { ttl: '1.4s' }, { expiration: '2026-01-02T03:04:07Z' }],
    ['no expiration for TTL 0s', { ttl: '0s' }, {}],
    ['an expiration time', { expires: '2030-01-02T03:04:05Z' }, { expiration: '2030-01-02T03:04:05Z' }],
    ['an expiration time in another zone', { expires: '2030-01-02T03:04:05.9+02:00' }, { expiration: '2030-01-02T01:04:05Z' }],
    ['an expiration time that overrides a TTL', { expires: '2030-01-02T03:04:05Z', ttl: '1h0m0s' }, { expiration: '2030-01-02T03:04:05Z' }],
    ['usages', { usages: ['signing', 'authentication'] }, { 'usage-bootstrap-signing': 'true', 'usage-bootstrap-authentication': 'true' }],
    [
      'groups',
      { groups: ['system:bootstrappers:b', 'system:bootstrappers:a'] },
      { 'auth-extra-groups': 'system:bootstrappers:b,system:bootstrappers:a' },
    ],
  ])('has %s', (_, token, more) => {
    const made = tokenSecret({ ...TOKEN, ...token }, NOW);
    expect(decoded(made)).toEqual({ ...VALID, ...more });
    const { data: __, ...object } = made;
    expect(object).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
      type: 'bootstrap.kubernetes.io/token',
    });
  });
});

describe('readTokenSecret', () => {
  it('reads a Secret of tokenSecret', () => {
    const usages = ['authentication', 'signing'];
    const groups = ['system:bootstrappers:kubeadm:default-node-token'];
    const read = readTokenSecret(tokenSecret({ ...TOKEN, usages, groups, description: 'ä', ttl: '1h0m0s' }, NOW));
    expect(read).toEqual({ id: 'abcdef', token: expect.any(Secret), description: 'ä', expires: '2026-01-02T04:04:05Z', usages, groups });
    expect(typeof read === 'string' ? read : read.token.reveal()).toBe(TOKEN.token.reveal());
  });

  it.each<[string, KubeObject]>([
    ['Secret bootstrap-token-abcdef has no token-id', secret({ 'token-secret': '0123456789abcdef' })],
    ['Secret bootstrap-token-other1 contains the token of another id', secret(VALID, 'bootstrap-token-other1')],
    ['Secret bootstrap-token-abcdef contains no valid bootstrap token', secret({ 'token-id': 'abcdef' })],
    ['Secret bootstrap-token-abcdef contains no valid bootstrap token', secret({ ...VALID, 'token-secret': '0123456789ABCDEF' })],
    ['Secret bootstrap-token-abcdef contains no valid bootstrap token', secret({ ...VALID, 'token-secret': '0123456789abcdef\n' })],
    ['Secret bootstrap-token-abcdef has an invalid expiration', secret({ ...VALID, expiration: 'tomorrow' })],
  ])('%s', (message, object) => {
    expect(readTokenSecret(object)).toBe(message);
  });

  it('reads only usages with the value "true", sorted, and no groups from an empty string', () => {
    const read = readTokenSecret(
      secret({
        ...VALID,
        'usage-bootstrap-signing': 'true',
        'usage-bootstrap-authentication': 'yes',
        'usage-bootstrap-foo': 'true',
        'auth-extra-groups': '',
      }),
    );
    expect(read).toMatchObject({ usages: ['foo', 'signing'], groups: [], expires: null, description: '' });
  });
});

describe('remainingMs', () => {
  it.each([
    [null, null],
    ['2026-01-02T03:04:06Z', 322],
    ['2026-01-02T03:04:05Z', -678],
    ['2026-01-02T05:04:06+02:00', 322],
  ])('%s', (expires, ms) => {
    expect(remainingMs({ expires }, NOW)).toBe(ms);
  });
});
