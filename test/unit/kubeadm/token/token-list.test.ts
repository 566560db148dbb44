import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { renderTokenList, renderTokenTable } from '../../../../src/kubeadm/token/token-list.ts';
import type { StoredToken } from '../../../../src/kubeadm/token/token-secret.ts';

const NOW = new Date('2026-11-21T19:37:40Z');
const GROUP = 'system:bootstrappers:kubeadm:default-node-token';
const token = (id: string, more: Partial<StoredToken> = {}): StoredToken => ({
  id,
  token: new Secret(`${id}.${'0123456789abcdef'}`),
  description: '',
  expires: null,
  usages: [],
  groups: [],
  ...more,
});
const BOTH = ['authentication', 'signing'];

/** Expected output of kubeadm 1.36.2 for these tokens. */
describe('token list, printed like kubeadm', () => {
  const tokens = [
    token('abcdef', { usages: BOTH }),
    token('eeeeee', {
      expires: '2026-11-21T19:38:56Z',
      usages: BOTH,
      description: 'a very long description of a token that is longer than fifty nine characters for <sure> & more',
      groups: [GROUP],
    }),
    token('ffffff', {
      expires: '2026-11-22T21:37:26Z',
      usages: ['authentication'],
      description: 'ä ü 漢字',
      groups: ['system:bootstrappers:z', GROUP],
    }),
    token('gggggg', { expires: '2030-01-02T03:04:05.5+02:00' }),
    token('iiiiii', { expires: '2400-01-02T03:04:05Z', usages: ['foo'] }),
  ];

  it('as text: the header is aligned with the first row only', () => {
    const padded = (text: string, width: number) => text.padEnd(width);
    const none = padded('<none>', 59);
    expect(renderTokenTable(tokens, NOW, { headers: true })).toBe(
      [
        `TOKEN                     TTL         EXPIRES   USAGES                   ${padded('DESCRIPTION', 59)}EXTRA GROUPS`,
        `abcdef.0123456789abcdef   <forever>   <never>   authentication,signing   ${none}<none>`,
        `eeeeee.0123456789abcdef   1m          2026-11-21T19:38:56Z   authentication,signing   a very long description of a token that is longer than fifty nine characters for <sure> & more   ${GROUP}`,
        `ffffff.0123456789abcdef   1d          2026-11-22T21:37:26Z   authentication           ${padded('ä ü 漢字', 59)}system:bootstrappers:z,${GROUP}`,
        `gggggg.0123456789abcdef   3y          2030-01-02T03:04:05+02:00   <none>                   ${none}<none>`,
        `iiiiii.0123456789abcdef   292y        2400-01-02T03:04:05Z   foo                      ${none}<none>`,
        '',
      ].join('\n'),
    );
  });

  it('as text: a wide first row widens the header', () => {
    const [header] = renderTokenTable([token('aaaaaa', { expires: '2026-11-22T19:26:15Z', usages: BOTH })], NOW, { headers: true }).split(
      '\n',
    );
    expect(header).toBe(
      'TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION                                                EXTRA GROUPS',
    );
  });

  it('as JSON: one object after another, angle brackets escaped', () => {
    expect(renderTokenList(tokens.slice(0, 2), 'json')).toBe(`{
    "kind": "BootstrapToken",
    "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
    "token": "abcdef.0123456789abcdef",
    "usages": [
        "authentication",
        "signing"
    ]
}
{
    "kind": "BootstrapToken",
    "apiVersion": "output.kubeadm.k8s.io/v1alpha3",
    "token": "eeeeee.0123456789abcdef",
    "description": "a very long description of a token that is longer than fifty nine characters for \\u003csure\\u003e \\u0026 more",
    "expires": "2026-11-21T19:38:56Z",
    "usages": [
        "authentication",
        "signing"
    ],
    "groups": [
        "${GROUP}"
    ]
}
`);
  });

  it('as YAML: documents, times in UTC', () => {
    expect(renderTokenList([tokens[0], tokens[3]] as StoredToken[], 'yaml')).toBe(`apiVersion: output.kubeadm.k8s.io/v1alpha3
kind: BootstrapToken
token: abcdef.0123456789abcdef
usages:
- authentication
- signing
---
apiVersion: output.kubeadm.k8s.io/v1alpha3
expires: "2030-01-02T01:04:05Z"
kind: BootstrapToken
token: gggggg.0123456789abcdef
`);
  });

  it.each(['json', 'yaml'] as const)('as %s: empty without tokens', (format) => {
    expect(renderTokenList([], format)).toBe('');
  });

  it('as text: empty without tokens, and without the header on request', () => {
    expect(renderTokenTable([], NOW, { headers: true })).toBe('');
    expect(renderTokenTable(tokens.slice(0, 1), NOW, { headers: false })).toMatch(/^abcdef\.0123456789abcdef {3}<forever> /);
  });

  it.each([
    ['2026-11-21T19:37:38Z', '<invalid>'],
    ['2026-11-21T19:37:39Z', '0s'],
    ['2026-11-21T19:37:40Z', '0s'],
    ['2026-11-21T19:38:39Z', '59s'],
    ['2026-11-21T19:38:40Z', '1m'],
    ['2026-11-21T20:37:39Z', '59m'],
    ['2026-11-22T19:37:39Z', '23h'],
    ['2026-11-22T19:37:40Z', '1d'],
    ['2027-11-21T19:37:39Z', '364d'],
    ['2027-11-21T19:37:40Z', '1y'],
  ])('TTL until %s: %s', (expires, ttl) => {
    expect(
      renderTokenTable([token('aaaaaa', { expires })], NOW, { headers: true })
        .split('\n')[1]
        ?.slice(26, 38)
        .trimEnd(),
    ).toBe(ttl);
  });

  it('removes control characters from a description', () => {
    const text = renderTokenTable([token('aaaaaa', { description: 'a\u001b[31m\nb\tc' })], NOW, { headers: true });
    expect(text.split('\n')).toHaveLength(3);
    expect(text).toContain('a [31m b c');
  });
});
