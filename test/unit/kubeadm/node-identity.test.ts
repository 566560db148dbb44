import { createPrivateKey, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCa, createCertificateRequest, type KeyPair, parseCertificateRequest, type Subject } from '../../../lab/api-server/pki.ts';
import type { NodeClaim } from '../../../src/host/node-claim.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  challengeOf,
  claimNode,
  type NodeProof,
  nodeClaimConflict,
  proveNode,
  validateClaim,
} from '../../../src/kubeadm/node-identity/node-identity.ts';
import type { NodeEvidence } from '../../../src/kubelet/facts/node-evidence.ts';
import { type CertificateContent, readCertificateChain } from '../../../src/x509/read-certificate.ts';

const NOW = new Date('2027-06-01T00:00:00Z');
const FROM = { notBefore: new Date('2027-01-01T00:00:00Z'), notAfter: new Date('2028-01-01T00:00:00Z') };
const CHALLENGE = challengeOf('0123456789abcdef0123456789abcdef');
const N1: Subject = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
const long = { notBefore: new Date('2020-01-01T00:00:00Z'), notAfter: new Date('2040-01-01T00:00:00Z') };
const [cluster, other] = await Promise.all([createCa('kubernetes', long), createCa('kubernetes', long)]);
const own = await cluster.issueClient(N1, FROM);
const certificates = (...pems: readonly string[]): readonly CertificateContent[] => readCertificateChain(pems.join('')) ?? [];
const RULES: Parameters<typeof proveNode>[1] = { cas: certificates(cluster.certPem), challenge: CHALLENGE, now: NOW };

function evidenceOf({ certPem, keyPem }: KeyPair, change: Partial<NodeEvidence> = {}, signed = CHALLENGE): NodeEvidence {
  return {
    source: '/pki/kubelet.pem',
    certificate: certPem,
    signature: sign('sha256', Buffer.from(signed), createPrivateKey(keyPem)),
    errorOutput: null,
    machineId: 'aaaa',
    addresses: ['10.0.0.1'],
    ...change,
  };
}

const prove = (evidence: NodeEvidence, rules: Partial<Parameters<typeof proveNode>[1]> = {}): NodeProof =>
  proveNode(evidence, { ...RULES, ...rules });

describe('proof of the Node of a host', () => {
  it('requires a certificate of the cluster and its private key', () => {
    expect(prove(evidenceOf(own))).toEqual({ kind: 'proven', nodeName: 'n1' });
  });

  it('accepts any CA of a bundle, as during a CA rotation', () => {
    const cas = certificates(other.certPem, cluster.certPem);
    expect(prove(evidenceOf(own), { cas })).toEqual({ kind: 'proven', nodeName: 'n1' });
  });

  it('fails without the private key of the certificate', async () => {
    const another = await cluster.issueClient({ ...N1, commonName: 'system:node:n2' }, FROM);
    const copied = evidenceOf({ certPem: own.certPem, keyPem: another.keyPem });
    expect(prove(copied)).toMatchObject({ cause: 'no-key', claimed: 'n1', why: expect.stringContaining('does not hold its private key') });
    expect(prove(evidenceOf(own, { signature: null, errorOutput: 'Could not read\u001b[2J private key' }))).toMatchObject({
      cause: 'no-key',
      why: expect.stringContaining('(Could not read [2J private key)'),
    });
    expect(prove(evidenceOf(own, { signature: Buffer.from('junk') }))).toMatchObject({ cause: 'no-key' });
  });

  it('fails with the signature of another challenge, which prevents replays', () => {
    expect(prove(evidenceOf(own, {}, challengeOf('fedcba9876543210fedcba9876543210')))).toMatchObject({ cause: 'no-key' });
  });

  it('fails with the CA of another cluster of the same name', async () => {
    const foreign = await other.issueClient(N1, FROM);
    expect(prove(evidenceOf(foreign))).toMatchObject({
      cause: 'untrusted',
      claimed: 'n1',
      why: 'the kubelet client certificate in /pki/kubelet.pem names n1 but is not signed by the cluster CA',
    });
  });

  it('fails with a non-CA certificate of the cluster as the CA', async () => {
    const notCa = certificates(own.certPem);
    expect(prove(evidenceOf(own), { cas: notCa })).toMatchObject({ cause: 'untrusted' });
  });

  it('fails without a known CA', () => {
    expect(prove(evidenceOf(own), { cas: [] })).toMatchObject({ cause: 'no-ca' });
  });

  it('checks validity with the local clock; a renewal accepts an expired certificate', async () => {
    const late = { now: new Date('2028-01-01T00:00:01Z') };
    expect(prove(evidenceOf(own), late)).toMatchObject({
      cause: 'expired',
      why: expect.stringContaining('expired on 2028-01-01T00:00:00.000Z'),
    });
    expect(prove(evidenceOf(own), { ...late, acceptsExpired: true })).toEqual({ kind: 'proven', nodeName: 'n1' });
    expect(prove(evidenceOf(own), { now: new Date('2026-12-01T00:00:00Z') })).toMatchObject({ cause: 'expired' });
    // Issued a moment ago by a host whose clock is ahead of the local clock.
    expect(prove(evidenceOf(own), { now: new Date('2026-12-31T23:30:00Z') })).toEqual({ kind: 'proven', nodeName: 'n1' });
    const short = await createCa('kubernetes', { notBefore: FROM.notBefore, notAfter: new Date('2027-03-01T00:00:00Z') });
    const outlives = await short.issueClient(N1, FROM);
    expect(prove(evidenceOf(outlives), { cas: certificates(short.certPem) })).toMatchObject({ cause: 'untrusted' });
  });

  it('requires a client certificate: a serving certificate is rejected', async () => {
    const { requestPem, keyPem } = await createCertificateRequest(N1, ['n1']);
    const request = parseCertificateRequest(requestPem);
    const certPem = await cluster.signRequest(request, ['digital signature', 'server auth'], FROM);
    expect(prove(evidenceOf({ certPem, keyPem }))).toMatchObject({
      cause: 'untrusted',
      why: expect.stringContaining('does not allow client authentication'),
    });
  });

  it.each<[string, Subject]>([
    ['a user that is not a node', { commonName: 'kubernetes-admin', organizations: ['system:nodes'] }],
    ['a node outside of its group', { commonName: 'system:node:n1', organizations: ['system:masters'] }],
    ['a node with additional groups', { commonName: 'system:node:n1', organizations: ['system:nodes', 'system:masters'] }],
    ['a node without a name', { commonName: 'system:node:', organizations: ['system:nodes'] }],
    ['an invalid Node name', { commonName: 'system:node:N1/../n2', organizations: ['system:nodes'] }],
  ])('fails for %s', async (_, subject) => {
    expect(prove(evidenceOf(await cluster.issueClient(subject, FROM)))).toMatchObject({ cause: 'missing', claimed: null });
  });

  it.each([
    ['missing', null, 'the host has no kubelet client certificate in /pki/kubelet.pem'],
    [
      'damaged',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      'the kubelet client certificate in /pki/kubelet.pem is damaged',
    ],
  ])('reports that the certificate is %s', (_, certificate, why) => {
    expect(prove(evidenceOf(own, { certificate }))).toEqual({ kind: 'unproven', cause: 'missing', claimed: null, why });
  });

  it('reports a missing openssl, which is independent of the certificate', () => {
    const without = evidenceOf(own, { signature: null, lacksOpenssl: true });
    expect(prove(without)).toMatchObject({ cause: 'no-openssl', claimed: 'n1' });
  });
});

describe('the Node of a host', () => {
  const PROVEN: NodeProof = { kind: 'proven', nodeName: 'n1' };
  const MISSING: NodeProof = { kind: 'unproven', cause: 'missing', why: 'the host has no kubelet client certificate', claimed: null };
  const evidence = evidenceOf(own);
  const claim = (proof: NodeProof, named: string | null) => claimNode({ host: 'h', proof, named, evidence, nameHint: 'name it' });

  it('is the proven Node, or the Node configured by the operator', () => {
    expect(claim(PROVEN, null)).toEqual({ nodeName: 'n1', isProven: true, machineId: 'aaaa' });
    expect(claim(PROVEN, 'n1')).toEqual({ nodeName: 'n1', isProven: true, machineId: 'aaaa' });
    expect(claim(MISSING, 'n1')).toEqual({ nodeName: 'n1', isProven: false, machineId: 'aaaa' });
  });

  it('is rejected without either, with a hint', () => {
    const hintOf = (cause: Extract<NodeProof, { kind: 'unproven' }>['cause']) =>
      (claim({ ...MISSING, cause }, null) as { readonly hint?: string }).hint;
    expect(claim(MISSING, null)).toEqual({
      host: 'h',
      code: 'NODE_NOT_PROVEN',
      message: 'cannot determine the Node of this host: the host has no kubelet client certificate',
      hint: 'Name it',
    });
    expect(hintOf('no-openssl')).toBe('Install openssl on the host, or name it');
    expect(hintOf('untrusted')).toMatch(/^Check the host: .* is forged\. If this is the right host, name it$/);
    expect(hintOf('no-key')).toMatch(/^Check the host: .* was copied/);
  });

  it.each([
    ['proven', PROVEN],
    ['unproven', { ...MISSING, claimed: 'n1' }],
  ] as const)('is rejected when the configured name differs from the certificate, %s', (_, proof) => {
    expect(claim(proof, 'n2')).toMatchObject({
      code: 'NODE_NAME_CONFLICT',
      message: 'the kubelet has a client certificate for Node n1, but the configured Node name is n2',
    });
  });

  const node = (machineID: string, ...addresses: readonly string[]): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1' },
    status: {
      nodeInfo: { machineID },
      addresses: [{ type: 'Hostname', address: 'n1' }, ...addresses.map((address) => ({ type: 'InternalIP', address }))],
    },
  });
  const validate = (isProven: boolean, found: KubeObject | null, change: Partial<NodeEvidence> = {}): readonly string[] => {
    const all = { ...evidence, ...change };
    return validateClaim('h', { claim: { nodeName: 'n1', isProven, machineId: all.machineId }, evidence: all, node: found }).map(
      ({ code }) => code,
    );
  };

  it.each<[string, boolean, KubeObject | null, Partial<NodeEvidence>, readonly string[]]>([
    ['proven, same machine-id', true, node('aaaa'), {}, []],
    ['proven, other machine-id', true, node('bbbb'), {}, ['NodeOfAnotherHost']],
    ['proven, the Node reports none', true, node(''), {}, []],
    ['proven, the host has none', true, node('aaaa'), { machineId: '' }, ['MACHINE_ID_EMPTY']],
    ['proven, not registered', true, null, {}, []],
    ['proven, addresses of NAT', true, node('aaaa', '192.0.2.1'), {}, []],
    ['configured, same machine-id and address', false, node('aaaa', '10.0.0.1'), {}, []],
    ['configured, other machine-id', false, node('bbbb', '10.0.0.1'), {}, ['NodeOfAnotherHost']],
    ['configured, the Node reports none', false, node('', '10.0.0.1'), {}, ['MACHINE_ID_EMPTY']],
    ['configured, the host has none', false, node('aaaa', '10.0.0.1'), { machineId: '' }, ['MACHINE_ID_EMPTY']],
    ['configured, neither has one', false, node('', '10.0.0.1'), { machineId: '' }, ['MACHINE_ID_EMPTY']],
    ['configured, a clone with other addresses', false, node('aaaa', '10.0.0.2'), {}, ['NODE_ADDRESS_MISMATCH']],
    ['configured, one of several addresses', false, node('aaaa', '10.0.0.2', 'fd00:0::1'), { addresses: ['192.168.1.1', 'fd00::1'] }, []],
    ['configured, the Node has no addresses yet', false, node('aaaa'), {}, []],
    ['configured, addresses of the host unknown', false, node('aaaa', '10.0.0.2'), { addresses: null }, []],
    ['configured, not registered, without a machine-id', false, null, { machineId: '' }, []],
  ])('%s', (_, isProven, found, change, codes) => {
    expect(validate(isProven, found, change)).toEqual(codes);
  });
});

describe('two hosts of one run', () => {
  const of = (nodeName: string, machineId: string | null, isProven: boolean): NodeClaim => ({ nodeName, machineId, isProven });
  it.each<[string, NodeClaim, NodeClaim, string | undefined]>([
    ['of different Nodes', of('n1', 'a', true), of('n2', 'b', true), undefined],
    ['of the same Node', of('n1', 'a', true), of('n1', 'b', true), 'NODE_CLAIMED_TWICE'],
    ['of the same Node, by hostname only', of('n1', null, false), of('n1', null, false), 'NODE_CLAIMED_TWICE'],
    ['that are clones with proofs of different Nodes', of('n1', 'a', true), of('n2', 'a', true), undefined],
    ['that are clones, one of them configured only', of('n1', 'a', true), of('n2', 'a', false), 'MACHINE_ID_SHARED'],
    ['without machine-ids', of('n1', '', false), of('n2', '', false), undefined],
  ])('%s', (_, one, another, code) => {
    expect(nodeClaimConflict('h1', one, { host: 'h2', claim: another })?.code).toBe(code);
    expect(nodeClaimConflict('h2', another, { host: 'h1', claim: one })?.code).toBe(code);
  });
});
