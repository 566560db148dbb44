import { describe, expect, it } from 'vitest';
import { createCertificateRequest } from '../../../lab/api-server/pki.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { explainBootstrap } from '../../../src/kubeadm/explain/explain-bootstrap.ts';
import {
  CLIENT_SIGNER,
  nodeOfCsr,
  readNodeCsr,
  SERVING_SIGNER,
  signerRejectionReason,
} from '../../../src/kubeadm/node-identity/node-csr.ts';

interface Csr {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
  readonly names?: readonly string[];
  readonly signerName?: string;
  readonly usages?: readonly string[];
  readonly status?: object;
  readonly created?: string;
  readonly name?: string;
}

async function csr(change: Csr = {}): Promise<KubeObject> {
  const { commonName = 'system:node:w1', organizations = ['system:nodes'], names = [], signerName = CLIENT_SIGNER } = change;
  const { requestPem } = await createCertificateRequest({ commonName, organizations }, names);
  const usage = signerName === SERVING_SIGNER ? 'server auth' : 'client auth';
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: change.name ?? 'node-csr-1', creationTimestamp: change.created ?? '2026-01-02T03:04:05Z' },
    spec: {
      request: Buffer.from(requestPem).toString('base64'),
      signerName,
      usages: change.usages ?? ['digital signature', usage],
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
    ...(change.status === undefined ? {} : { status: change.status as never }),
  };
}

const condition = (type: string, message: string) => ({ conditions: [{ type, status: 'True', reason: 'ByHand', message }] });
const explain = async (...changes: readonly Csr[]) =>
  explainBootstrap(await Promise.all(changes.map(async (one) => readNodeCsr(await csr(one)))));

describe('a kubelet without a client certificate', () => {
  it.each<[string, readonly Csr[], RegExp, boolean]>([
    ['no CSR', [], /^the kubelet has created no CSR/, false],
    [
      'no approval',
      [{}],
      /node-csr-1 of system:bootstrap:abcdef is pending\. .* names one of its groups: system:bootstrappers, system:auth/,
      false,
    ],
    [
      'wrong usages',
      [{ usages: ['digital signature', 'server auth'] }],
      /pending and cannot be approved automatically: it requests the usage server auth/,
      false,
    ],
    [
      'wrong organization',
      [{ organizations: ['a'] }],
      /cannot be approved automatically: its organization is a, not only system:nodes/,
      false,
    ],
    ['denied', [{ status: condition('Denied', 'unknown host') }], /^CSR node-csr-1 was denied: ByHand: unknown host$/, true],
    ['failed', [{ status: condition('Failed', 'bad key') }], /^the signer rejected CSR node-csr-1: ByHand: bad key$/, true],
    ['no signer', [{ status: condition('Approved', '') }], /is approved but not signed$/, false],
    ['issued', [{ status: { ...condition('Approved', ''), certificate: 'eA==' } }], /is signed, but the kubelet has not stored/, false],
    [
      'denied, and created again by the kubelet',
      [
        { created: '2026-01-01T00:00:00Z', status: condition('Denied', 'x') },
        { name: 'node-csr-2', created: '2026-01-03T00:00:00Z' },
      ],
      /node-csr-1 was denied: ByHand: x$/,
      true,
    ],
  ])('%s', async (_, csrs, why, final) => {
    const reason = await explain(...csrs);
    expect(reason.why).toMatch(why);
    expect(reason.final).toBe(final);
    expect(reason.hint).not.toBe('');
  });
});

it('uses the latest CSR when earlier ones were rejected before', async () => {
  const denied = readNodeCsr(await csr({ created: '2026-01-01T00:00:00Z', status: condition('Denied', 'x') }));
  const again = readNodeCsr(await csr({ name: 'node-csr-2', created: '2026-01-03T00:00:00Z' }));
  expect(explainBootstrap([denied, again], { refusedBefore: new Set(['node-csr-1']) }).why).toMatch(/node-csr-2 of .* is pending/);
  expect(explainBootstrap([denied], { refusedBefore: new Set(['node-csr-1']) })).toMatchObject({ final: true });
});

it.each([
  ['dial tcp 10.0.0.1:6443: connect: connection refused', 'Check that the host can reach the API server'],
  ['cannot create certificate signing request: Unauthorized', 'Create a new token with kubeletadm token create'],
])('prints the error of a kubelet that cannot create a CSR: %s', (reported, hint) => {
  const reason = explainBootstrap([], { reported });
  expect(reason).toMatchObject({ why: `the kubelet cannot request a certificate: ${reported}`, final: false });
  expect(reason.hint).toContain(hint);
});

describe('signerRejectionReason', () => {
  it.each<[Csr, string | null]>([
    [{}, null],
    [{ usages: ['key encipherment', 'digital signature', 'client auth'] }, null],
    [{ names: ['w1'] }, 'it requests SANs (w1), but a client certificate must have none'],
    [{ commonName: 'admin' }, 'its common name is admin, not system:node:NAME'],
    [{ organizations: ['system:nodes', 'system:masters'] }, 'its organization is system:nodes, system:masters, not only system:nodes'],
    [{ usages: ['client auth'] }, 'it does not request the usage digital signature'],
    [{ signerName: SERVING_SIGNER }, 'it requests no SANs, but a serving certificate needs at least one'],
    [{ signerName: SERVING_SIGNER, names: ['w1', '10.0.0.4'] }, null],
    [
      { signerName: SERVING_SIGNER, names: ['w1'], usages: ['digital signature', 'server auth', 'client auth'] },
      'it requests the usage client auth',
    ],
  ])('%j', async (change, expected) => {
    const read = readNodeCsr(await csr(change));
    expect(signerRejectionReason(read)).toBe(expected);
    expect(nodeOfCsr(read)).toBe(change.commonName === 'admin' ? null : 'w1');
  });

  it('rejects an invalid CSR', () => {
    const object = { apiVersion: 'x', kind: 'y', metadata: { name: 'n' }, spec: { request: 'eA==' } };
    expect(signerRejectionReason(readNodeCsr(object))).toBe('it contains no readable request');
  });
});
