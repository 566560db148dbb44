import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificateRequest } from '../../lab/api-server/pki.ts';
import { isAppError } from '../../src/base/errors.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type CliResult, runCommand } from './run-cli.ts';

/**
 * An API server with its Service default/kubernetes and the signer for serving certificates: the double or
 * real components.
 */
export interface SigningApiServer {
  adminKubeconfig(): string;
  kubeconfigFor(user: string, groups?: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;
const NODE = { apiVersion: 'v1', kind: 'Node' } as const;
const CLUSTER_CONFIGURATION = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: api.cluster.example:6443
apiServer: {certSANs: [api-internal.cluster.example]}
networking: {serviceSubnet: 10.96.0.0/16, podSubnet: 10.244.0.0/16, dnsDomain: cluster.local}
`;

/**
 * A SAN that the node writes into its own status and requests, and the error code with which `csr approve`
 * rejects it.
 */
const ATTACKS: readonly (readonly [name: string, type: string, san: string, code: string])[] = [
  ['svc', 'InternalDNS', 'kubernetes.default.svc', 'CSR_RESERVED_NAME'],
  ['endpoint', 'ExternalDNS', 'api.cluster.example', 'CSR_RESERVED_NAME'],
  ['cert-san', 'ExternalDNS', 'api-internal.cluster.example', 'CSR_RESERVED_NAME'],
  ['service-ip', 'ExternalIP', '10.96.0.1', 'CSR_RESERVED_NAME'],
  ['pod-ip', 'ExternalIP', '10.244.3.7', 'CSR_RESERVED_NAME'],
  ['control-plane', 'InternalIP', '10.0.0.11', 'CSR_RESERVED_NAME'],
  ['other-node', 'InternalIP', '10.0.0.12', 'CSR_NAME_OF_ANOTHER_NODE'],
  ['other-name', 'Hostname', 'node2', 'CSR_NAME_OF_ANOTHER_NODE'],
  ['foreign', 'ExternalDNS', 'registry.example.com', 'CSR_FOREIGN_NAME'],
];

/** A node that writes other hosts' names into its own Node and requests serving certificates for them. */
export function servingCsrAttack(name: string, start: () => Promise<SigningApiServer>): void {
  describe(name, { timeout: 120_000 }, () => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-csr-attack-'));
    const kubeconfig = join(directory, 'admin.conf');
    const clusters: Cluster[] = [];
    let server: SigningApiServer;
    let admin: Cluster;
    let evil: Cluster;
    let node2: Cluster;
    const csr = (...args: string[]): Promise<CliResult> => runCommand(['csr', ...args, '--kubeconfig', kubeconfig]);
    const connect = (text: string): Cluster => {
      const cluster = kubeCluster({ kubeconfig: { text, file: 'test.conf' } });
      clusters.push(cluster);
      return cluster;
    };
    const asNode = async (node: string): Promise<Cluster> => connect(await server.kubeconfigFor(`system:node:${node}`, ['system:nodes']));
    const conditionsOf = async (request: string): Promise<unknown> =>
      ((await admin.get({ ...CSR, name: request }))?.status as { conditions?: unknown } | undefined)?.conditions ?? [];

    beforeAll(async () => {
      server = await start();
      writeFileSync(kubeconfig, server.adminKubeconfig(), { mode: 0o600 });
      admin = connect(server.adminKubeconfig());
      await createIfMissing(admin, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
        data: { ClusterConfiguration: CLUSTER_CONFIGURATION },
      });
      await createIfMissing(admin, {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'kubernetes', namespace: 'default' },
        subsets: [{ addresses: [{ ip: '10.0.0.11' }], ports: [{ name: 'https', port: 6443, protocol: 'TCP' }] }],
      });
      await admin.create({ ...NODE, metadata: { name: 'cp1', labels: { 'node-role.kubernetes.io/control-plane': '' } } });
      evil = await asNode('evil');
      node2 = await asNode('node2');
      const cp1 = await asNode('cp1');
      for (const [cluster, node] of [
        [evil, 'evil'],
        [node2, 'node2'],
      ] as const)
        await cluster.create({ ...NODE, metadata: { name: node } });
      await setAddresses(cp1, 'cp1', [
        ['InternalIP', '10.0.0.11'],
        ['Hostname', 'cp1'],
      ]);
      await setAddresses(node2, 'node2', [
        ['InternalIP', '10.0.0.12'],
        ['Hostname', 'node2'],
      ]);
      await setAddresses(evil, 'evil', [['InternalIP', '10.0.0.66'], ...ATTACKS.map(([, type, san]) => [type, san] as const)]);
      for (const [attack, , san] of ATTACKS) await evil.create(await servingCsr(`attack-${attack}`, 'evil', ['evil', san]));
      await cp1.create(await servingCsr('honest-cp1', 'cp1', ['cp1', '10.0.0.11']));
    });
    afterAll(async () => {
      for (const cluster of clusters) await cluster.close();
      await server?.close();
      rmSync(directory, { recursive: true, force: true });
    });

    it.each([[['--all']], [['--all', '--trust-node-status']]])('approves no SAN of another host with %s', async (flags) => {
      const { code, stdout, stderr } = await csr('approve', ...flags, '--dry-run');
      expect(stdout).not.toContain('attack-');
      for (const [attack, , san, refusal] of ATTACKS)
        expect(stderr).toMatch(new RegExp(`attack-${attack} is not approved: (DNS|IP):${san.replaceAll('.', '\\.')} .*\\[${refusal}\\]`));
      expect(code).toBe(1);
      const real = await csr('approve', ...flags, ...ATTACKS.map(([attack]) => `attack-${attack}`));
      expect(real.code).toBe(1);
      for (const [attack] of ATTACKS) expect(await conditionsOf(`attack-${attack}`)).toEqual([]);
    });

    it("rejects a node's own address once another Node has it, too", async () => {
      await node2.create(await servingCsr('honest-node2', 'node2', ['node2', '10.0.0.12']));
      expect((await csr('approve', 'honest-node2', '--trust-node-status')).stderr).toMatch(
        /honest-node2 is not approved: IP:10\.0\.0\.12 .*status of Node evil.*\[CSR_NAME_OF_ANOTHER_NODE\]/,
      );
      await setAddresses(evil, 'evil', [['InternalIP', '10.0.0.66']]);
      const { code, stdout } = await csr('approve', 'honest-node2', '--trust-node-status');
      expect([code, stdout]).toEqual([0, 'certificatesigningrequest.certificates.k8s.io/honest-node2 approved\n']);
    });

    it('approves the address of an API server for the control plane itself', async () => {
      expect((await csr('approve', 'honest-cp1')).stderr).toContain('[CSR_NOT_CONFIRMED]');
      expect(await conditionsOf('honest-cp1')).toEqual([]);
      const { code, stdout, stderr } = await csr('approve', 'honest-cp1', '--trust-node-status', '-o', 'json');
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ kind: 'KubeletRequestList', items: [{ name: 'honest-cp1', approved: true }] });
      expect(stderr).toMatch(/^cluster: context .*\n$/);
      const certificate = async (): Promise<string> =>
        ((await admin.get({ ...CSR, name: 'honest-cp1' }))?.status as { certificate?: string } | undefined)?.certificate ?? '';
      await expect.poll(certificate, { timeout: 30_000, interval: 50 }).not.toBe('');
      const { subjectAltName } = new X509Certificate(Buffer.from(await certificate(), 'base64'));
      expect(subjectAltName).toBe('DNS:cp1, IP Address:10.0.0.11');
    });

    it('knows the addresses of Services and API servers without kubeadm-config', async () => {
      await admin.delete({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' });
      const { stderr, code } = await csr('approve', 'attack-service-ip', 'attack-control-plane', '--trust-node-status');
      expect(stderr).toMatch(/attack-service-ip is not approved: IP:10\.96\.0\.1 .*\[CSR_RESERVED_NAME\]/);
      expect(stderr).toMatch(/attack-control-plane is not approved: IP:10\.0\.0\.11 belongs to the API server .*\[CSR_RESERVED_NAME\]/);
      expect(code).toBe(1);
    });
  });
}

async function servingCsr(name: string, node: string, sans: readonly string[]): Promise<KubeObject> {
  const { requestPem } = await createCertificateRequest({ commonName: `system:node:${node}`, organizations: ['system:nodes'] }, sans);
  const request = Buffer.from(requestPem).toString('base64');
  const spec = { request, signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
  return { ...CSR, metadata: { name }, spec };
}

async function setAddresses(
  cluster: Cluster,
  node: string,
  addresses: readonly (readonly [type: string, address: string])[],
): Promise<void> {
  const status = { addresses: addresses.map(([type, address]) => ({ type, address })) };
  await cluster.patch({ ...NODE, name: node }, 'merge', { status }, { subresource: 'status' });
}

async function createIfMissing(cluster: Cluster, object: KubeObject): Promise<void> {
  await cluster.create(object).catch((error: unknown) => {
    if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) throw error;
  });
}
