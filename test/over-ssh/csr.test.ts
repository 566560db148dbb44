import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificateRequest } from '../../lab/api-server/pki.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const SERVING = 'kubernetes.io/kubelet-serving';
const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;

describe('csr', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  let asNode2: Cluster;
  let own: string;
  const csr = (...args: string[]) => runCommand(['csr', ...args, '--kubeconfig', lab.kubeconfig]);
  /** Runs the command with an answer typed at the terminal; the prompts are appended to a list. */
  const answering = (answer: boolean, queries: string[], ...args: string[]) =>
    runCommand(['csr', ...args, '--kubeconfig', lab.kubeconfig], {
      services: () => ({
        confirm: async (question) => {
          queries.push(question);
          return answer;
        },
      }),
    });
  const put = async (name: string, sans: readonly string[]): Promise<void> => {
    const node2 = { commonName: 'system:node:node2', organizations: ['system:nodes'] };
    const { requestPem } = await createCertificateRequest(node2, sans);
    const spec = { request: Buffer.from(requestPem).toString('base64'), signerName: SERVING, usages: ['digital signature', 'server auth'] };
    await asNode2.create({ ...CSR, metadata: { name }, spec });
  };
  const stateOf = async (name: string): Promise<unknown> => (await admin.get({ ...CSR, name }))?.status;
  const onNode2 = (): string[] => ['--host', 'node2', '--ssh-config', lab.sshConfig];
  const pem = (): string => join(lab.hosts[1]?.rootDir ?? '', 'var/lib/kubelet/pki/kubelet-server-current.pem');

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-csr-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    await startFirstNode(lab);
    const declared = ['--host', 'node2', '--set', 'serverTLSBootstrap=true'];
    expect((await runCommand(['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, ...declared])).code).toBe(0);
    const isServing = ({ spec }: KubeObject): boolean => JSON.stringify(spec).includes('kubelet-serving');
    await untilTrue(async () => (await admin.list(CSR)).items.some(isServing));
    own = (await admin.list(CSR)).items.find(isServing)?.metadata.name ?? '';
    const root = lab.hosts[1]?.rootDir ?? '';
    const kubeletConf = readFileSync(join(root, 'etc/kubernetes/kubelet.conf'), 'utf8').replaceAll(
      '/var/lib/kubelet',
      `${root}/var/lib/kubelet`,
    );
    asNode2 = kubeCluster({ kubeconfig: { text: kubeletConf, file: 'kubelet.conf' } });
  });
  afterAll(async () => {
    await asNode2?.close();
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('lists pending CSRs with the result of the checks', async () => {
    const { code, stdout } = await csr('list');
    expect(code).toBe(0);
    const [header = '', row = '', ...more] = stdout.trimEnd().split('\n');
    expect(header.split(/ {2,}/)).toEqual(['NAME', 'AGE', 'SIGNERNAME', 'REQUESTOR', 'REQUESTEDDURATION', 'CONDITION', 'NAMES', 'CHECK']);
    expect(row).toMatch(
      /^csr-\S+ +\d+s +kubernetes.io\/kubelet-serving +system:node:node2 +<none> +Pending +node2,192\.168\.99\.12 +needs a decision/,
    );
    expect(row).toMatch(/needs a decision: only the status of the Node contains IP:192\.168\.99\.12$/);
    expect(more).toEqual([]);
    expect((await csr('list', ...onNode2())).stdout).toMatch(/node2,192\.168\.99\.12 +ok\n$/);
    expect((await csr('list', '--all')).stdout).toContain('kubernetes.io/kube-apiserver-client-kubelet');
    const document = JSON.parse((await csr('list', '-o', 'json')).stdout);
    const sans = [
      { san: 'DNS:node2', sources: ['name of Node node2', 'status of Node node2'], independent: true },
      { san: 'IP:192.168.99.12', sources: ['status of Node node2'], independent: false },
    ];
    expect(document.items).toMatchObject([{ node: 'node2', approvable: true, needsConfirmation: true, sans, refusals: [] }]);
  });

  it('rejects a CSR of another user, and SANs that are not of the node', async () => {
    const subject = { commonName: 'system:node:node2', organizations: ['system:nodes'] };
    const { requestPem } = await createCertificateRequest(subject, ['api.example.org']);
    const request = Buffer.from(requestPem).toString('base64');
    const spec = { request, signerName: SERVING, usages: ['digital signature', 'server auth'] };
    await admin.create({ ...CSR, metadata: { name: 'evil' }, spec });
    const { code, stdout, stderr } = await csr('approve', 'evil', '--trust-node-status');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('evil is not approved: the requester is kubernetes-admin, but the certificate is for system:node:node2.');
    expect(stderr).toMatch(/evil is not approved: DNS:api.example.org is not a name of Node node2: .*\[CSR_FOREIGN_NAME\]/);
    expect(await stateOf('evil')).toEqual({});
    await admin.delete({ ...CSR, name: 'evil' });
  });

  it('does not confirm the address of a bridge that every host has', async () => {
    await put('bridge', ['node2', '172.17.0.1']);
    const { stderr } = await csr('approve', 'bridge', ...onNode2());
    expect(stderr).toContain(
      'IP:172.17.0.1 is not a name or address of Node node2; its known names and addresses are node2, 192.168.99.12.',
    );
    await admin.delete({ ...CSR, name: 'bridge' });
  });

  it('prints no control character of a CSR', async () => {
    await put('rewrites', ['node2', 'a\u001b]0;PWN\u0007\u001b[2Jb', 'node2\n.\u202eelpmaxe']);
    for (const args of [['list'], ['approve', 'rewrites']]) {
      const { stdout, stderr } = await csr(...args);
      expect(`${stdout}${stderr}`).toContain('a\\x1b]0;PWN\\a\\x1b[2Jb');
      expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.toMatch(/\p{C}/u);
      expect(stdout.split('\n').filter(Boolean).length).toBeLessThanOrEqual(3);
    }
    await admin.delete({ ...CSR, name: 'rewrites' });
  });

  it.each([[['--all']], [['NAME']]])('needs a flag or a confirmation when only the Node status confirms an address: %s', async (args) => {
    const named = args.map((arg) => (arg === 'NAME' ? own : arg));
    const refused = await csr('approve', ...named);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(
      /csr-\S+ is not approved: only the Node status, which the kubelet itself can write, confirms IP:192\.168\.99\.12\. .*--trust-node-status.*\[CSR_NOT_CONFIRMED\]/,
    );
    const queries: string[] = [];
    const no = await answering(false, queries, 'approve', ...named);
    expect([no.code, no.stdout]).toEqual([1, '']);
    expect(no.stderr).toMatch(/\ncsr-\S+ is not approved: you declined the CSR\. .*\[CSR_NOT_CONFIRMED\]/);
    expect(no.stderr).toContain(
      `${own} for Node node2, requested by system:node:node2\n  DNS:node2         name of Node node2, status of Node node2\n  IP:192.168.99.12  status of Node node2\n`,
    );
    expect(queries).toEqual(['Approve this CSR? [y/N] ']);
    const dryRun = await csr('approve', ...named, '--dry-run');
    expect([dryRun.code, dryRun.stdout]).toEqual([0, expect.stringMatching(/csr-\S+ needs a decision \(dry run\)\n$/)]);
    expect((await csr('approve', ...named, '--dry-run', '--trust-node-status')).stdout).toMatch(/^\S+\/csr-\S+ approved \(dry run\)\n$/);
    expect((await answering(true, [], 'approve', ...named, '--dry-run')).stdout).toContain('needs a decision');
    expect(await stateOf(own)).toEqual({});
  });

  it('accepts the addresses that a fleet file declares, and uses its kubeconfig', async () => {
    const fleet = (address: string): string => {
      const file = join(directory, 'fleet.yaml');
      const hosts = `hosts:\n- name: node1\n  address: 192.168.99.11\n- name: node2\n  address: 192.0.2.2\n  nodeIP: ${address}\n`;
      writeFileSync(file, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n${hosts}`);
      return file;
    };
    const approve = (file: string) => runCommand(['csr', 'approve', '--all', '--dry-run', '-f', file]);
    expect(await approve(fleet('192.168.99.12'))).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\S+ approved \(dry run\)\n$/),
      stderr: expect.stringMatching(/^cluster: context "kubernetes-admin@kubernetes", https:\S+ \(.*admin\.conf\)\n$/),
    });
    expect((await approve(fleet('192.168.99.13'))).stdout).toContain('needs a decision (dry run)');
    const listed = await runCommand(['csr', 'list', '-o', 'json', '-f', fleet('192.168.99.12')]);
    expect(JSON.parse(listed.stdout).items[0].sans[1].sources).toEqual([`${join(directory, 'fleet.yaml')}:7`, 'status of Node node2']);
  });

  it('approves the CSR of a host by evidence from that host, and the kubelet receives its certificate', async () => {
    await put('other', ['node2', '192.168.99.99']);
    const dryRun = await csr('approve', ...onNode2(), '--dry-run');
    expect(dryRun.stdout).toMatch(/csr-\S+ approved \(dry run\)\n/);
    const { stdout, stderr, code } = await csr('approve', ...onNode2());
    expect(stdout).toBe(`certificatesigningrequest.certificates.k8s.io/${own} approved\n`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('other is not approved')]);
    await untilTrue(() => existsSync(pem()));
    expect(new X509Certificate(readFileSync(pem())).subjectAltName).toBe('DNS:node2, IP Address:192.168.99.12');
  });

  it('approves a CSR confirmed at the terminal', async () => {
    await admin.delete({ ...CSR, name: 'other' });
    await put('again', ['node2', '192.168.99.12']);
    const { code, stdout } = await answering(true, [], 'approve', 'again');
    expect([code, stdout]).toEqual([0, 'certificatesigningrequest.certificates.k8s.io/again approved\n']);
  });

  it('has nothing to approve afterwards', async () => {
    expect(await csr('approve', '--all')).toMatchObject({ code: 0, stdout: 'No certificate signing request is pending.\n' });
    expect((await csr('approve', 'nobody')).stderr).toContain('the CSR nobody does not exist or was not created by a kubelet');
    expect((await csr('approve')).code).toBe(2);
  });
});
