import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';

const BINDING = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  name: 'kubeadm:node-autoapprove-bootstrap',
} as const;
const PEM = 'var/lib/kubelet/pki/kubelet-client-current.pem';

describe('certs', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  let expired: string;
  const at = (path: string): string => join(lab.hosts[1]?.rootDir ?? '', path);
  const onNode2 = (): string[] => ['--host', 'node2', '--ssh-config', lab.sshConfig];
  const check = (...args: string[]) => runCommand(['certs', 'check', ...onNode2(), ...args]);
  const renew = (...args: string[]) => runCommand(['certs', 'renew-kubelet', ...onNode2(), ...args]);
  const tokens = async (): Promise<number> =>
    (await admin.list({ apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system' })).items.length;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-certs-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    await startFirstNode(lab);
    const join2 = ['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, '--host', 'node2'];
    expect((await runCommand(join2)).code).toBe(0);
    const validity = { notBefore: new Date('2025-01-01T00:00:00Z'), notAfter: new Date('2026-01-01T00:00:00Z') };
    const old = await (await createCa()).issueClient({ commonName: 'system:node:node2', organizations: ['system:nodes'] }, validity);
    expired = old.certPem + old.keyPem;
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('reports no issue right after a join', async () => {
    const { code, stdout, stderr } = await check();
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^HOST +CERTIFICATE +SUBJECT +ISSUER +EXPIRES +RESIDUAL TIME +STATE\n/);
    expect(stdout).toMatch(/\nnode2 +client +O=system:nodes, CN=system:node:node2 +CN=kubernetes +\S+Z +\d+d +ok\n/);
    expect(stdout).toMatch(/\nnode2 +ca +CN=kubernetes +CN=kubernetes +\S+Z +\d+y\S* +ok\n/);
    expect((await renew('--kubeconfig', lab.kubeconfig, '--dry-run', '--exit-code')).code).toBe(0);
    expect((await check('--expires-within', '17520h')).code).toBe(1);
  });

  it('reports an invalid certificate as text and as JSON, without any key', async () => {
    writeFileSync(at(PEM), expired);
    const { code, stdout, stderr } = await check();
    expect(code).toBe(1);
    expect(stderr).toContain(
      'node2: client certificate in /var/lib/kubelet/pki/kubelet-client-current.pem: expired on 2026-01-01T00:00:00.000Z.',
    );
    expect(stderr).toContain('not issued by the cluster CA on this host');
    const json = await check('-o', 'json', '-v', '9');
    expect(JSON.parse(json.stdout)).toMatchObject({
      kind: 'CertificateReport',
      hosts: [
        { name: 'node2', ok: false, certificates: [{ role: 'client', state: 'error', notAfter: '2026-01-01T00:00:00.000Z' }, {}, {}] },
      ],
    });
    expect(stdout + json.stdout + json.stderr).not.toContain('PRIVATE KEY');
  });

  it('restores the moved files when no certificate is issued, and leaves no token behind', async () => {
    const before = await tokens();
    const binding = await admin.get(BINDING);
    await admin.delete(BINDING);
    const conf = readFileSync(at('etc/kubernetes/kubelet.conf'), 'utf8');
    // The certificate is of another CA, so it does not authenticate the node.
    const refused = await renew('--kubeconfig', lab.kubeconfig);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain('[NODE_NOT_PROVEN]');
    expect(await tokens()).toBe(before);
    const { code, stdout, stderr } = await renew('--node-name', 'node2', '--kubeconfig', lab.kubeconfig, '--timeout', '3s', '-v', '9');
    expect(code, stderr).toBe(5);
    expect(stderr).toMatch(/is pending\. .*\[BOOTSTRAP_TIMEOUT\][\s\S]*the previous files were restored \[ROLLED_BACK\]/);
    expect(readFileSync(at(PEM), 'utf8')).toBe(expired);
    expect(readFileSync(at('etc/kubernetes/kubelet.conf'), 'utf8')).toBe(conf);
    expect(existsSync(at('etc/kubernetes/bootstrap-kubelet.conf'))).toBe(false);
    expect(await tokens()).toBe(before);
    expect(stdout + stderr).not.toMatch(/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/);
    const { resourceVersion: _, uid: __, creationTimestamp: ___, ...metadata } = binding?.metadata ?? { name: '' };
    await admin.create({ ...(binding ?? BINDING), metadata });
  });

  it("renews the kubelet's certificate with a temporary token", async () => {
    const before = await tokens();
    const { code, stderr } = await renew('--node-name', 'node2', '--kubeconfig', lab.kubeconfig);
    expect(code, stderr).toBe(0);
    expect(new X509Certificate(readFileSync(at(PEM))).subject).toBe('O=system:nodes\nCN=system:node:node2');
    expect((await check()).code).toBe(0);
    expect(await tokens()).toBe(before);
    expect(existsSync(at('etc/kubernetes/bootstrap-kubelet.conf'))).toBe(false);
    const aside = readdirSync(at('etc/kubernetes/tmp')).filter((name) => name.startsWith('kubeletadm-renew-'));
    expect(readFileSync(at(`etc/kubernetes/tmp/${aside.at(-1)}/kubelet-client-current.pem`), 'utf8')).toBe(expired);
    const again = await renew('--kubeconfig', lab.kubeconfig);
    expect(again).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
  });

  it('with --token needs no administrator, even when the certificate is missing', async () => {
    rmSync(at(PEM));
    expect((await check()).stderr).toContain('client certificate in /var/lib/kubelet/pki/kubelet-client-current.pem: does not exist');
    const { code, stderr } = await renew('--token', lab.token.reveal());
    expect(code, stderr).toBe(0);
    expect((await check()).code).toBe(0);
  });
});
