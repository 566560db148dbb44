import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/adapters/cluster-kube.ts';
import { createCertificateRequest } from '../../src/lab/api-server/pki.ts';
import { startLab } from '../../src/lab/lab.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import type { Lab } from '../../src/ports/services.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const SERVING = 'kubernetes.io/kubelet-serving';
const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;

describe('csr', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  const csr = (...args: string[]) => runCommand(['csr', ...args, '--kubeconfig', lab.kubeconfig]);
  const onNode2 = (): string[] => ['--host', 'node2', '--ssh-config', lab.sshConfig];
  const pem = (): string => join(lab.hosts[1]?.rootDir ?? '', 'var/lib/kubelet/pki/kubelet-server-current.pem');

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-csr-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    expect((await runCommand(['init', '--kubeconfig', lab.kubeconfig, '--host', 'node1', ...shared])).code).toBe(0);
    const own = ['--host', 'node2', '--set', 'serverTLSBootstrap=true'];
    expect((await runCommand(['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, ...own])).code).toBe(0);
    await untilTrue(async () => (await admin.list(CSR)).items.some(({ spec }) => JSON.stringify(spec).includes('kubelet-serving')));
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('lists what waits, with what was checked', async () => {
    const { code, stdout } = await csr('list');
    expect(code).toBe(0);
    const [header = '', row = '', ...more] = stdout.trimEnd().split('\n');
    expect(header.split(/ {2,}/)).toEqual(['NAME', 'AGE', 'SIGNERNAME', 'REQUESTOR', 'REQUESTEDDURATION', 'CONDITION', 'NAMES', 'CHECK']);
    expect(row).toMatch(/^csr-\S+ +\d+s +kubernetes.io\/kubelet-serving +system:node:node2 +<none> +Pending +node2,10\.99\.0\.12 +ok$/);
    expect(more).toEqual([]);
    expect((await csr('list', '--all')).stdout).toContain('kubernetes.io/kube-apiserver-client-kubelet');
    const document = JSON.parse((await csr('list', '-o', 'json')).stdout);
    expect(document).toMatchObject({ kind: 'KubeletRequestList', items: [{ node: 'node2', approvable: true, against: [] }] });
  });

  it('refuses what somebody else asks for, or names that are not the node', async () => {
    const subject = { commonName: 'system:node:node2', organizations: ['system:nodes'] };
    const { requestPem } = await createCertificateRequest(subject, ['api.example.org']);
    const request = Buffer.from(requestPem).toString('base64');
    const spec = { request, signerName: SERVING, usages: ['digital signature', 'server auth'] };
    await admin.create({ ...CSR, metadata: { name: 'evil' }, spec });
    const { code, stdout, stderr } = await csr('approve', 'evil');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('evil is not approved: kubernetes-admin asks for a certificate of system:node:node2.');
    expect(stderr).toContain('evil is not approved: it asks for api.example.org, and Node node2 has only node2, 10.99.0.12.');
    expect((await admin.get({ ...CSR, name: 'evil' }))?.status).toEqual({});
  });

  it('does not give a host the address of a bridge that every host has', async () => {
    const node2 = { commonName: 'system:node:node2', organizations: ['system:nodes'] };
    const { requestPem } = await createCertificateRequest(node2, ['node2', '172.17.0.1']);
    const spec = { request: Buffer.from(requestPem).toString('base64'), signerName: SERVING, usages: ['digital signature', 'server auth'] };
    await admin.create({ ...CSR, metadata: { name: 'bridge' }, spec });
    expect((await csr('approve', 'bridge', ...onNode2())).stderr).toContain(
      'it asks for 172.17.0.1, and host node2 has only node2, 10.99.0.12.',
    );
    await admin.delete({ ...CSR, name: 'bridge' });
  });

  it('approves by the host itself, and the kubelet gets its certificate', async () => {
    const dryRun = await csr('approve', ...onNode2(), '--dry-run');
    expect(dryRun.stdout).toMatch(/csr-\S+ approved \(dry run\)\n/);
    const { stdout, stderr, code } = await csr('approve', ...onNode2());
    expect(stdout).toMatch(/^certificatesigningrequest.certificates.k8s.io\/csr-\S+ approved\n$/);
    expect([code, stderr]).toEqual([1, expect.stringContaining('evil is not approved')]);
    await untilTrue(() => existsSync(pem()));
    expect(new X509Certificate(readFileSync(pem())).subjectAltName).toBe('DNS:node2, IP Address:10.99.0.12');
  });

  it('has nothing to approve then', async () => {
    await admin.delete({ ...CSR, name: 'evil' });
    expect(await csr('approve', '--all')).toMatchObject({ code: 0, stdout: 'No certificate signing request is pending.\n' });
    expect((await csr('approve', 'nobody')).stderr).toContain('there is no certificate signing request nobody of a kubelet');
    expect((await csr('approve')).code).toBe(2);
  });
});
