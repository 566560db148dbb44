import { describe, expect, it } from 'vitest';
import { type Cidr, parseCidr } from '../../../src/base/text/ip.ts';
import { CLIENT_SIGNER, type NodeCsr, SERVING_SIGNER } from '../../../src/kubeadm/node-identity/node-csr.ts';
import type { ReservedNames } from '../../../src/kubeadm/node-identity/reserved-names.ts';
import {
  csrProblems,
  type KnownNames,
  type ServingNode,
  servingFacts,
  servingNode,
  validateServingCsr,
} from '../../../src/kubeadm/node-identity/validate-serving-csr.ts';

const cidr = (text: string): Cidr => parseCidr(text) as Cidr;
const RESERVED: ReservedNames = {
  clusterDomain: 'corp.cluster',
  serviceSubnets: [cidr('10.96.0.0/12'), cidr('fd00:10:96::/112')],
  podSubnets: [cidr('10.244.0.0/16')],
  services: new Map([['192.0.2.80', 'Service web/shop']]),
  apiServer: new Map([
    ['api.example.org', 'controlPlaneEndpoint of kubeadm-config'],
    ['10.0.0.1', 'Endpoints default/kubernetes'],
    ['cp1', 'apiServer.certSANs of kubeadm-config'],
    ['*.lb.example.org', 'apiServer.certSANs of kubeadm-config'],
  ]),
};

function node(name: string, statusAddresses: readonly string[], change: Partial<ServingNode> = {}): ServingNode {
  return { name, isControlPlane: false, statusAddresses, podCidrs: [], ...change };
}

/** Each Node reports the SANs that the tests request: the rules must reject them nevertheless. */
const NODES: readonly ServingNode[] = [
  node('cp1', ['10.0.0.1', 'cp1', 'cp1.example.org'], { isControlPlane: true }),
  node('w1', ['10.0.0.4', 'fd00::4', 'w1', 'w1.example.org', 'w1.lb.example.org'], { podCidrs: [cidr('10.200.1.0/24')] }),
  node('w2', ['10.0.0.5', 'W2.Internal', '10.0.0.99'], { podCidrs: [cidr('10.200.2.0/24'), cidr('fd00:200::/64')] }),
  node('w3', ['10.0.0.99']),
  node('w1.example.net', ['10.0.0.7']),
  node('10.0.0.8', ['10.0.0.8']),
];

const VALID: NodeCsr = {
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
const withRequest = (change: Partial<NonNullable<NodeCsr['request']>>): Partial<NodeCsr> => ({
  request: { ...(VALID.request as NonNullable<NodeCsr['request']>), ...change },
});
const forNode = (name: string, change: Partial<NonNullable<NodeCsr['request']>>): Partial<NodeCsr> => ({
  username: `system:node:${name}`,
  ...withRequest({ commonNames: [`system:node:${name}`], dnsNames: [], ipAddresses: [], ...change }),
});
const validate = (change: Partial<NodeCsr>, known: readonly KnownNames[] = [], nodes = NODES) =>
  validateServingCsr({ ...VALID, ...change }, servingFacts(RESERVED, nodes, known));
const refusalsOf = (...args: Parameters<typeof validate>) => validate(...args).refusals.map(({ code, message }) => `${message} [${code}]`);

describe('validateServingCsr', () => {
  it.each<[string, Partial<NodeCsr>]>([
    ['names and addresses of the Node', {}],
    ['names in upper case', withRequest({ dnsNames: ['W1', 'w1.Example.ORG'] })],
    ['addresses in another notation', withRequest({ ipAddresses: ['fd00:0:0::4'] })],
    ['key encipherment, for an RSA key', { usages: ['digital signature', 'key encipherment', 'server auth'] }],
    ['an API server address for its own control plane', forNode('cp1', { dnsNames: ['cp1'], ipAddresses: ['10.0.0.1'] })],
    ['the address of a Node with that name', forNode('10.0.0.8', { ipAddresses: ['10.0.0.8'] })],
    ['the full name of a Node whose prefix is the name of another Node', forNode('w1.example.net', { dnsNames: ['w1.example.net'] })],
  ])('accepts %s', (_, change) => {
    expect(refusalsOf(change)).toEqual([]);
  });

  it.each<[string, Partial<NodeCsr>, readonly unknown[]]>([
    [
      'another Node',
      { username: 'system:node:w2' },
      ['the requester is system:node:w2, but the certificate is for system:node:w1 [CSR_REFUSED]'],
    ],
    [
      'a user that is not a node',
      { username: 'jane', groups: ['devs'] },
      [
        'the requester is jane, but the certificate is for system:node:w1 [CSR_REFUSED]',
        'the requester is not in the group system:nodes (devs) [CSR_REFUSED]',
      ],
    ],
    ['another signer', { signerName: CLIENT_SIGNER }, [`the signer is ${CLIENT_SIGNER}, not ${SERVING_SIGNER} [CSR_REFUSED]`]],
    ['a denied CSR', { state: { kind: 'denied', why: 'x' } }, ['the CSR is already denied [CSR_REFUSED]']],
    ['client auth', { usages: ['digital signature', 'client auth'] }, ['it requests the usage client auth [CSR_REFUSED]']],
    [
      'another organization',
      withRequest({ organizations: ['system:masters'] }),
      [expect.stringContaining('organization is system:masters')],
    ],
    [
      'additional subject attributes',
      withRequest({ otherSubject: ['2.5.4.6'] }),
      [expect.stringContaining('an organization: 2.5.4.6 [CSR_REFUSED]')],
    ],
    ['a URI', withRequest({ otherNames: ['URI:spiffe://x'] }), [expect.stringContaining('URI:spiffe://x')]],
    ['no SANs', withRequest({ dnsNames: [], ipAddresses: [] }), [expect.stringContaining('it requests no SANs')]],
    ['an unreadable CSR', { request: null }, ['it contains no readable request [CSR_REFUSED]']],
    [
      'a common name without a node',
      withRequest({ commonNames: ['system:node:'] }),
      ['the common name is not system:node:NAME [CSR_REFUSED]'],
    ],
    ['a Node that does not exist', forNode('w9', { dnsNames: ['w9'] }), ['Node w9 does not exist [CSR_REFUSED]']],
    [
      'too many SANs',
      withRequest({ ipAddresses: Array.from({ length: 70 }, (_, i) => `10.1.0.${i}`) }),
      ['the CSR has 71 SANs, more than 64 [CSR_REFUSED]'],
    ],
    ['escape sequences in the requester', { username: 'a\u001b[2J' }, [expect.stringContaining('the requester is "a\\x1b[2J", but')]],
  ])('rejects %s', (_, change, expected) => {
    expect(refusalsOf(change)).toEqual(expected);
  });

  it.each<[san: string, why: string]>([
    ['kubernetes', 'is a name of the API server inside the cluster'],
    ['Kubernetes.Default', 'is a name of the API server inside the cluster'],
    ['kubernetes.default.svc', 'is a name of the API server inside the cluster'],
    ['w1.default.svc', 'is a name of a Service'],
    ['svc', 'is a name of a Service'],
    ['w1.default.svc.corp.cluster', 'is a name in the cluster domain corp.cluster'],
    ['w1.corp.cluster', 'is a name in the cluster domain corp.cluster'],
    ['corp.cluster', 'is a name in the cluster domain corp.cluster'],
    ['localhost', 'is a name of the local host'],
    ['w1.localhost', 'is a name of the local host'],
    ['api.example.org', 'belongs to the API server (controlPlaneEndpoint of kubeadm-config)'],
    ['cp1', 'belongs to the API server (apiServer.certSANs of kubeadm-config)'],
    ['w1.lb.example.org', 'is covered by *.lb.example.org, a name of the API server (apiServer.certSANs of kubeadm-config)'],
    ['10.0.0.1', 'belongs to the API server (Endpoints default/kubernetes)'],
    ['10.96.0.1', 'is an address in the service subnet 10.96.0.0/12'],
    ['10.111.255.255', 'is an address in the service subnet 10.96.0.0/12'],
    ['::ffff:10.96.0.1', 'is an address in the service subnet 10.96.0.0/12'],
    ['fd00:10:96::1', 'is an address in the service subnet fd00:10:96::/112'],
    ['192.0.2.80', 'belongs to Service web/shop'],
    ['10.244.7.8', 'is an address in the pod subnet 10.244.0.0/16'],
    ['10.200.2.77', 'is an address in a pod CIDR of Node w2'],
    ['fd00:200::1:2', 'is an address in a pod CIDR of Node w2'],
    ...['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '169.254.169.254', 'fe80::1', '224.0.0.1', 'ff02::1', '255.255.255.255'].map(
      (address): [string, string] => [address, 'is a loopback, unspecified, link-local, multicast or broadcast address'],
    ),
  ])('rejects the reserved SAN %s, although every source confirms it', (san, why) => {
    const nodes = NODES.map((one) => (one.name === 'w1' ? { ...one, statusAddresses: [...one.statusAddresses, san] } : one));
    const known = [{ node: 'w1', values: [san], source: 'fleet.yaml:3' }];
    const change = /^[0-9.]+$|:/.test(san) ? withRequest({ ipAddresses: [san] }) : withRequest({ dnsNames: [san] });
    expect(refusalsOf(change, known, nodes)).toEqual([expect.stringContaining(`${why} [CSR_RESERVED_NAME]`)]);
  });

  it('accepts an address in the pod CIDR of its own node', () => {
    const nodes = [node('w1', ['10.200.1.9'], { podCidrs: [cidr('10.200.1.0/24')] })];
    expect(refusalsOf(withRequest({ dnsNames: [], ipAddresses: ['10.200.1.9'] }), [], nodes)).toEqual([]);
  });

  it.each<[string, Partial<NodeCsr>, string]>([
    ['the name of another Node', withRequest({ dnsNames: ['w2'] }), 'DNS:w2 also belongs to: name of Node w2'],
    [
      'a name in the status of another Node',
      withRequest({ dnsNames: ['w2.internal'] }),
      'DNS:w2.internal also belongs to: status of Node w2',
    ],
    [
      'a name with the name of another Node as its first label',
      withRequest({ dnsNames: ['w2.example.org'] }),
      'DNS:w2.example.org also belongs to: name of Node w2',
    ],
    [
      'a name with its own name as a prefix, but the longer name of another Node too',
      withRequest({ dnsNames: ['w1.example.net.corp'] }),
      'DNS:w1.example.net.corp also belongs to: name of Node w1.example.net',
    ],
    ['an address of another Node', withRequest({ ipAddresses: ['10.0.0.5'] }), 'IP:10.0.0.5 also belongs to: status of Node w2'],
    [
      'its own address that another Node has too',
      forNode('w3', { ipAddresses: ['10.0.0.99'] }),
      'IP:10.0.0.99 also belongs to: status of Node w2',
    ],
  ])('rejects %s', (_, change, expected) => {
    expect(refusalsOf(change)).toEqual([`${expected} [CSR_NAME_OF_ANOTHER_NODE]`]);
  });

  it('rejects the address of an API server for another control plane', () => {
    const nodes = [...NODES, node('cp2', ['10.0.0.1'], { isControlPlane: true })];
    expect(refusalsOf(forNode('cp2', { ipAddresses: ['10.0.0.1'] }), [], nodes)).toEqual([
      'IP:10.0.0.1 also belongs to: status of Node cp1 [CSR_NAME_OF_ANOTHER_NODE]',
    ]);
    expect(refusalsOf(forNode('cp1', { ipAddresses: ['10.0.0.1'] }), [], nodes)).toEqual([
      'IP:10.0.0.1 also belongs to: status of Node cp2 [CSR_NAME_OF_ANOTHER_NODE]',
    ]);
  });

  it.each<[string, Partial<NodeCsr>, unknown]>([
    [
      'a DNS name without the name of the Node as a prefix',
      forNode('w2', { dnsNames: ['registry.example.org'] }),
      'DNS:registry.example.org is not a name of Node w2: expected w2, or w2 followed by a domain [CSR_FOREIGN_NAME]',
    ],
    [
      'a DNS name with the name of the Node as a prefix but without a dot',
      withRequest({ dnsNames: ['w1-mirror.example.org'] }),
      expect.stringContaining('[CSR_FOREIGN_NAME]'),
    ],
    [
      'a name of the Node without a source',
      withRequest({ dnsNames: ['w1.example.com'] }),
      'DNS:w1.example.com is not a name or address of Node w1; its known names and addresses are w1, 10.0.0.4, fd00::4, w1.example.org, w1.lb.example.org [CSR_FOREIGN_NAME]',
    ],
    [
      'an address without a source',
      withRequest({ ipAddresses: ['10.0.0.6'] }),
      expect.stringMatching(/^IP:10.0.0.6 is not .*FOREIGN_NAME\]$/),
    ],
    ['a wildcard', withRequest({ dnsNames: ['*.example.org'] }), 'DNS:*.example.org is a wildcard [CSR_INVALID_NAME]'],
    ['a final dot', withRequest({ dnsNames: ['w1.'] }), 'DNS:w1. is not a valid DNS name [CSR_INVALID_NAME]'],
    [
      'an address as a DNS name',
      withRequest({ dnsNames: ['10.96.0.1'] }),
      expect.stringContaining('ends in a number like an IP address [CSR_INVALID'),
    ],
    ['an empty name', withRequest({ dnsNames: [''] }), 'DNS:"" is not a valid DNS name [CSR_INVALID_NAME]'],
    ['control characters', withRequest({ dnsNames: ['w1\u0000.x'] }), 'DNS:"w1\\x00.x" is not a valid DNS name [CSR_INVALID_NAME]'],
    [
      'escape sequences',
      withRequest({ dnsNames: ['w1\u001b]0;x\u0007\n'] }),
      'DNS:"w1\\x1b]0;x\\a\\n" is not a valid DNS name [CSR_INVALID_NAME]',
    ],
    ['bidirectional text', withRequest({ dnsNames: ['w1.\u202egro'] }), 'DNS:"w1.\\u202egro" is not a valid DNS name [CSR_INVALID_NAME]'],
    ['look-alike letters', withRequest({ dnsNames: ['w1.\u0430pi'] }), 'DNS:"w1.\\u{430}pi" is not a valid DNS name [CSR_INVALID_NAME]'],
  ])('rejects %s', (_, change, expected) => {
    expect(refusalsOf(change)).toEqual([expected]);
  });

  it('returns the sources of each SAN, and whether one is independent of the Node status', () => {
    const known: readonly KnownNames[] = [
      { node: 'w1', values: ['w1', '10.0.0.4'], source: 'fleet.yaml:3' },
      { node: 'w9', values: ['fd00::4'], source: 'fleet.yaml:9' },
    ];
    expect(validate({}, known)).toEqual({
      refusals: [],
      sans: [
        { san: 'DNS:w1', sources: ['name of Node w1', 'fleet.yaml:3', 'status of Node w1'], independent: true },
        { san: 'IP:10.0.0.4', sources: ['fleet.yaml:3', 'status of Node w1'], independent: true },
        { san: 'IP:fd00::4', sources: ['status of Node w1'], independent: false },
      ],
    });
    expect(validate(forNode('10.0.0.8', { ipAddresses: ['10.0.0.8'] })).sans).toMatchObject([{ san: 'IP:10.0.0.8', independent: false }]);
  });

  it('rejects an address that two hosts report, such as a bridge address', () => {
    const known = ['w1', 'w2'].map((name) => ({ node: name, values: ['172.17.0.1'], source: `host ${name}` }));
    expect(refusalsOf(withRequest({ ipAddresses: ['172.17.0.1'] }), known)).toEqual([
      'IP:172.17.0.1 also belongs to: host w2 [CSR_NAME_OF_ANOTHER_NODE]',
    ]);
  });
});

describe('servingNode', () => {
  const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' } };

  it('reads label, addresses and pod CIDRs of a Node', () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    const status = { addresses: [{ type: 'InternalIP', address: '10.0.0.4' }] };
    const spec = { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24', 'fd00::/64', 'x'] };
    expect(servingNode({ ...object, metadata: { name: 'w1', labels }, spec, status })).toEqual({
      name: 'w1',
      isControlPlane: true,
      statusAddresses: ['10.0.0.4'],
      podCidrs: [cidr('10.244.0.0/24'), cidr('fd00::/64')],
    });
    expect(servingNode(object)).toEqual({ name: 'w1', isControlPlane: false, statusAddresses: [], podCidrs: [] });
  });

  it('rejects a Node with fields of another type', () => {
    expect(() => servingNode({ ...object, status: { addresses: [{ address: 4 }] } })).toThrow(
      /invalid Node w1: status\.addresses\[0\]\.address: expected string, received number.*\[CLUSTER_ANSWER_INVALID\]/,
    );
  });
});

describe('csrProblems', () => {
  it('returns a problem with its code for each refusal', () => {
    const [problem] = csrProblems('csr-1', [{ code: 'CSR_RESERVED_NAME', message: 'DNS:kubernetes is a name of the API server' }]);
    expect(problem).toMatchObject({
      code: 'CSR_RESERVED_NAME',
      message: 'csr-1 is not approved: DNS:kubernetes is a name of the API server',
    });
  });
});
