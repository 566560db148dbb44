import { describe, expect, it } from 'vitest';
import { judgeServingCsr, type KnownNames, namesOfNode, withoutShared } from '../../../src/core/kubernetes/judge-serving-csr.ts';
import { CLIENT_SIGNER, type NodeCsr, SERVING_SIGNER } from '../../../src/core/kubernetes/node-csr.ts';

const KNOWN: KnownNames = { names: ['w1', 'w1.example.org'], addresses: ['10.0.0.4', 'fd00::4'], source: 'Node w1' };
const GOOD: NodeCsr = {
  name: 'csr-1',
  created: new Date(0),
  signerName: SERVING_SIGNER,
  username: 'system:node:w1',
  groups: ['system:nodes', 'system:authenticated'],
  usages: ['digital signature', 'server auth'],
  expirationSeconds: null,
  state: { kind: 'pending' },
  request: {
    commonNames: ['system:node:w1'],
    organizations: ['system:nodes'],
    otherSubject: [],
    dnsNames: ['w1'],
    ipAddresses: ['10.0.0.4', 'fd00::4'],
    otherNames: [],
  },
};
const asking = (change: Partial<NonNullable<NodeCsr['request']>>): Partial<NodeCsr> => ({
  request: { ...(GOOD.request as NonNullable<NodeCsr['request']>), ...change },
});

describe('judgeServingCsr', () => {
  it.each<[string, Partial<NodeCsr>, KnownNames | null, readonly string[]]>([
    ['one that is right', {}, KNOWN, []],
    ['names in other letters', asking({ dnsNames: ['W1'] }), KNOWN, []],
    ['addresses written otherwise', asking({ ipAddresses: ['fd00:0:0::4'] }), KNOWN, []],
    ['key encipherment, of an RSA key', { usages: ['digital signature', 'key encipherment', 'server auth'] }, KNOWN, []],
    [
      'a foreign name',
      asking({ dnsNames: ['w1', 'api.example.org'] }),
      KNOWN,
      ['it asks for api.example.org, and Node w1 has only w1, w1.example.org, 10.0.0.4, fd00::4'],
    ],
    ['a wildcard', asking({ dnsNames: ['*.example.org'] }), KNOWN, [expect.stringContaining('it asks for *.example.org')]],
    ['a foreign address', asking({ ipAddresses: ['10.0.0.5'] }), KNOWN, [expect.stringContaining('it asks for 10.0.0.5')]],
    ['a node that is not there', {}, null, ['there is no Node w1']],
    ['another node asking', { username: 'system:node:w2' }, KNOWN, ['system:node:w2 asks for a certificate of system:node:w1']],
    [
      'somebody asking',
      { username: 'jane', groups: ['devs'] },
      KNOWN,
      ['jane asks for a certificate of system:node:w1', 'who asks is not in the group system:nodes (devs)'],
    ],
    ['another signer', { signerName: CLIENT_SIGNER }, KNOWN, [expect.stringContaining('it is for the signer')]],
    ['a decided one', { state: { kind: 'denied', why: 'x' } }, KNOWN, ['it is denied already']],
    ['client auth', { usages: ['digital signature', 'client auth'] }, KNOWN, ['it asks for the usage client auth']],
    [
      'another organization',
      asking({ organizations: ['system:masters'] }),
      KNOWN,
      [expect.stringContaining('its organization is system:masters')],
    ],
    [
      'more in the subject',
      asking({ otherSubject: ['2.5.4.6'] }),
      KNOWN,
      [expect.stringContaining("its subject holds more than a node's: 2.5.4.6")],
    ],
    ['a URI', asking({ otherNames: ['URI:spiffe://x'] }), KNOWN, [expect.stringContaining('URI:spiffe://x')]],
    ['no names', asking({ dnsNames: [], ipAddresses: [] }), KNOWN, [expect.stringContaining('it asks for no names')]],
    ['what cannot be read', { request: null }, KNOWN, ['it holds no readable request']],
  ])('%s', (_, change, known, expected) => {
    expect(judgeServingCsr({ ...GOOD, ...change }, known)).toEqual(expected);
  });

  it('knows the names of a Node', () => {
    const addresses = [
      { type: 'InternalIP', address: '10.0.0.4' },
      { type: 'ExternalIP', address: '1.2.3.4' },
      { type: 'Hostname', address: 'host-1' },
      { type: 'InternalDNS', address: 'w1.internal' },
      { type: 'Odd', address: 'x' },
    ];
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' }, status: { addresses } };
    expect(namesOfNode(node)).toEqual({ names: ['w1', 'host-1', 'w1.internal'], addresses: ['10.0.0.4', '1.2.3.4'], source: 'Node w1' });
  });
});

describe('withoutShared', () => {
  it('leaves each host what no other has', () => {
    const hosts = [
      { ...KNOWN, addresses: ['10.0.0.4', '172.17.0.1', '10.0.0.4'] },
      { names: ['w2'], addresses: ['10.0.0.5', '172.17.0.1', '10.0.0.100'], source: 'host w2' },
      { names: ['w3'], addresses: ['10.0.0.100'], source: 'host w3' },
    ];
    expect(withoutShared(hosts).map(({ addresses }) => addresses)).toEqual([['10.0.0.4', '10.0.0.4'], ['10.0.0.5'], []]);
  });
});
