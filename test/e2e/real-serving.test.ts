import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createCertificateRequest } from '../../lab/api-server/pki.ts';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { ServingApprover } from '../../src/rollouts/controller/approve-serving.ts';
import { ControllerMetrics } from '../../src/rollouts/controller/metrics.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { REPOSITORY } from '../support/source-files.ts';

const binaries = findRealBinaries();
const missing = typeof binaries === 'string' ? binaries : null;
const NODE = { apiVersion: 'v1', kind: 'Node' } as const;
const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;
const ADDRESS = '198.51.100.1';

describe.skipIf(requirement('the approval of serving certificates on a real kube-apiserver', missing))('a real kube-apiserver', () => {
  let server: RealApiServer;
  let admin: Cluster;
  const opened: Cluster[] = [];
  const open = (text: string): Cluster => {
    const cluster = kubeCluster({ kubeconfig: { text, file: 'test.conf' } });
    opened.push(cluster);
    return cluster;
  };
  beforeAll(async () => {
    if (typeof binaries === 'string') throw new Error(binaries);
    server = await startRealApiServer(binaries);
    admin = open(server.adminKubeconfig());
    await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
    // kube-controller-manager creates it in clusters.
    const metadata = { name: 'kube-root-ca.crt', namespace: 'kubeletadm-system' };
    await admin.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'ca.crt': 'the CA' } });
    await admin.create({ ...NODE, metadata: { name: 'n1' } });
    const status = { addresses: [{ type: 'InternalIP', address: ADDRESS }] };
    await admin.patch({ ...NODE, name: 'n1' }, 'merge', { status }, { subresource: 'status' });
  }, 120_000);
  afterAll(async () => {
    for (const cluster of opened) await cluster.close();
    await server?.close();
  }, 60_000);

  it('lets a controller with the documented rights approve the renewal of a certificate, and no other CSR', async () => {
    const page = readFileSync(join(REPOSITORY, 'docs/certificates.md'), 'utf8');
    const role = parse(/```yaml\n(apiVersion: rbac[^`]*)```/.exec(page)?.[1] ?? '') as KubeObject;
    const apiGroup = 'rbac.authorization.k8s.io';
    await admin.create(role);
    await admin.create({
      apiVersion: role.apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'approver' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: role.metadata.name },
      subjects: [{ apiGroup, kind: 'User', name: 'approver' }],
    });
    const kubelet = open(await server.kubeconfigFor('system:node:n1', ['system:nodes']));
    const request = async (name: string, sans: readonly string[]): Promise<void> => {
      const { requestPem } = await createCertificateRequest({ commonName: 'system:node:n1', organizations: ['system:nodes'] }, sans);
      const spec = { request: Buffer.from(requestPem).toString('base64'), usages: ['digital signature', 'server auth'] };
      await kubelet.create({ ...CSR, metadata: { name }, spec: { ...spec, signerName: 'kubernetes.io/kubelet-serving' } });
    };
    await request('renewal', ['n1', ADDRESS]);
    await request('foreign', ['n1', '198.51.100.9']);
    const dates = { notBefore: new Date(), notAfter: new Date() };
    const peer = { subject: 'O=system:nodes, CN=system:node:n1', issuer: 'CN=ca', names: ['n1', ADDRESS], ...dates };
    const events: string[] = [];
    const approver = new ServingApprover(
      {
        cluster: open(await server.kubeconfigFor('approver')),
        // A server at the address that has the certificate in use; see controller-serving.test.ts.
        web: { get: async () => ({ kind: 'answer', status: 401, contentType: '', date: null, location: null, text: '', peer }) },
        clock: systemClock,
        reporter: { report: ({ code, message }) => void events.push(`${code} ${message}`) },
        signal: new AbortController().signal,
        metrics: new ControllerMetrics(),
      },
      { namespace: 'kubeletadm-system', serverNames: [] },
    );
    await approver.step();
    expect(events.toSorted()).toEqual([
      'CSR_APPROVED CSR renewal is approved: DNS:n1, IP:198.51.100.1',
      expect.stringMatching(/^CSR_FOREIGN_NAME CSR foreign is not approved: IP:198\.51\.100\.9 is not a name or address of Node n1/),
    ]);
    const { items } = await admin.list(CSR);
    expect(items.map(({ metadata, status }) => [metadata.name, JSON.stringify(status ?? {}).includes('"Approved"')]).toSorted()).toEqual([
      ['foreign', false],
      ['renewal', true],
    ]);
  }, 60_000);
});
