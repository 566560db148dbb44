import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { signDetached } from '../../src/kubeadm/token/jws.ts';
import { NODE_CSR } from './api-server-requests.ts';

/** A cluster with running controllers. */
export interface ControlledWorld {
  /** As an admin. */
  readonly cluster: Cluster;
  readonly caPem: string;
  withToken(token: string): Cluster;
  close(): Promise<void>;
}

const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;
const SECRET = '0123456789abcdef';
const poll = { timeout: 30_000, interval: 50 };

const tokenSecret = (id: string, more: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
  type: 'bootstrap.kubernetes.io/token',
  stringData: {
    'token-id': id,
    'token-secret': SECRET,
    'usage-bootstrap-signing': 'true',
    'usage-bootstrap-authentication': 'true',
    ...more,
  },
});

const csr = (name: string, signerName: string, usage: string): KubeObject => ({
  ...CSR,
  metadata: { name },
  spec: { request: Buffer.from(NODE_CSR).toString('base64'), signerName, usages: ['digital signature', usage] },
});

const bindTo = (name: string, role: string): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers' }],
});

/** The behaviour of an API server's controllers for joining nodes. */
export function controllersContract(name: string, start: () => Promise<ControlledWorld>): void {
  describe(name, () => {
    let world: ControlledWorld;
    beforeAll(async () => {
      world = await start();
    });
    afterAll(() => world?.close());
    const statusOf = async (request: string) => ((await world.cluster.get({ ...CSR, name: request }))?.status ?? {}) as JsonObject;

    it('sign cluster-info for each signing token, and again when it changes', async () => {
      const at = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' };
      const data = async () => (await world.cluster.get(at))?.data;
      await world.cluster.create(tokenSecret('aaaaaa'));
      await world.cluster.create(tokenSecret('bbbbbb', { 'usage-bootstrap-signing': 'false' }));
      await world.cluster.create({ ...at, metadata: { name: at.name, namespace: at.namespace }, data: { kubeconfig: 'one\n' } });
      const signed = (kubeconfig: string) => ({
        kubeconfig,
        'jws-kubeconfig-aaaaaa': signDetached('aaaaaa', new Secret(SECRET), kubeconfig),
      });
      await expect.poll(data, poll).toEqual(signed('one\n'));
      await world.cluster.patch(at, 'merge', { data: { kubeconfig: 'zwei: ä\n' } });
      await expect.poll(data, poll).toEqual(signed('zwei: ä\n'));
    });

    it('delete an expired token', async () => {
      const ends = new Date(Date.now() + 1500).toISOString().replace(/\.\d+Z/, 'Z');
      const { metadata } = await world.cluster.create(tokenSecret('cccccc', { expiration: ends }));
      const at = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: metadata.name };
      await expect.poll(() => world.cluster.get(at), poll).toBeNull();
    });

    it('approve and sign the client certificate of a node for a permitted token', async () => {
      await world.cluster.create(tokenSecret('dddddd'));
      await world.cluster.create(bindTo('post', 'system:node-bootstrapper'));
      await world.cluster.create(bindTo('approve', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'));
      const token = world.withToken(`dddddd.${SECRET}`);
      const request = csr('node-csr-1', 'kubernetes.io/kube-apiserver-client-kubelet', 'client auth');
      await expect.poll(() => token.create(request).catch((error: Error) => error), poll).toMatchObject({ kind: CSR.kind });
      await expect.poll(async () => (await statusOf('node-csr-1')).certificate, poll).toBeTypeOf('string');
      const status = await statusOf('node-csr-1');
      expect(status.conditions).toMatchObject([
        {
          type: 'Approved',
          status: 'True',
          reason: 'AutoApproved',
          message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
        },
      ]);
      const certificate = new X509Certificate(Buffer.from(String(status.certificate), 'base64'));
      expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:w1');
      expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
      expect(certificate.verify(new X509Certificate(world.caPem).publicKey)).toBe(true);
      await token.close();
    });

    it('fail a serving certificate without names, once it is approved', async () => {
      await world.cluster.create(csr('serving-1', 'kubernetes.io/kubelet-serving', 'server auth'));
      const approval = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand', message: 'by a test' }] } };
      await world.cluster.patch({ ...CSR, name: 'serving-1' }, 'merge', approval, { subresource: 'approval' });
      await expect
        .poll(async () => (await statusOf('serving-1')).conditions, poll)
        .toMatchObject([
          { type: 'Approved', reason: 'ByHand' },
          { type: 'Failed', reason: 'SignerValidationFailure', message: 'DNS or IP subjectAltName is required' },
        ]);
    });
  });
}
