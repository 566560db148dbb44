import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { readCertificate } from '../../src/x509/read-certificate.ts';
import { makePki, pkiContext, pkiNode, pkiOptions } from '../support/control-plane-pki.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { fakeHost } from '../support/fake-host.ts';
import { runCommand } from '../support/run-cli.ts';

const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 192.168.56.10
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
encryptionAlgorithm: ECDSA-P384
`;

describe('certificates of a control plane, over SSH', { timeout: 60_000 }, () => {
  let directory: string;
  let lab: Lab;
  const at = (path: string): string => join(lab.hosts[0]?.rootDir ?? '', path);
  const onHost = (...args: string[]) => runCommand(['certs', ...args, '--host', 'node1', '--ssh-config', lab.sshConfig]);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-certs-cp-'));
    lab = await startLab({ directory, hosts: 2 });
    writeFileSync(join(directory, 'cluster.yaml'), CONFIG);
    const host = fakeHost();
    await makePki(pkiContext(host, fakeClock(new Date())), pkiOptions(pkiNode({ certificateValidityPeriod: '24h0m0s' })));
    for (const [path, text] of Object.entries(host.texts())) {
      if (!path.startsWith('/etc/kubernetes')) continue;
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), text, { mode: path.endsWith('.crt') ? 0o644 : 0o600 });
    }
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('are listed with their expiry', async () => {
    const { code, stdout, stderr } = await onHost('check-expiration', '--config', join(directory, 'cluster.yaml'));
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(
      /^CERTIFICATE +EXPIRES +RESIDUAL TIME +CERTIFICATE AUTHORITY +EXTERNALLY MANAGED\nadmin\.conf +\S+ \d\d, \d{4} \d\d:\d\d UTC +23h +ca +no/,
    );
    const { stdout: json } = await onHost('check-expiration', '--config', join(directory, 'cluster.yaml'), '-o', 'json');
    expect(JSON.parse(json).certificates).toHaveLength(11);
  });

  it("are renewed shortly before expiry with the cluster's settings; no output contains a key", async () => {
    const before = readCertificate(readFileSync(at('/etc/kubernetes/pki/apiserver.crt'), 'utf8'));
    const args = ['renew', 'all', '--expires-within', '720h', '--config', join(directory, 'cluster.yaml')];
    expect((await onHost(...args, '--dry-run', '--exit-code')).code).toBe(6);
    const { code, stdout, stderr } = await onHost(...args, '-o', 'json', '-v', '5');
    expect(code, stderr).toBe(0);
    expect(`${stdout}${stderr}`).not.toMatch(/PRIVATE KEY|client-key-data/);
    for (const path of ['pki/ca.key', 'pki/apiserver.key', 'pki/etcd/ca.key']) {
      const line = readFileSync(at(`/etc/kubernetes/${path}`), 'utf8').split('\n')[1] as string;
      expect(`${stdout}${stderr}`).not.toContain(line);
    }
    const after = readCertificate(readFileSync(at('/etc/kubernetes/pki/apiserver.crt'), 'utf8'));
    expect(after?.x509.publicKey.asymmetricKeyDetails?.namedCurve).toBe('secp384r1');
    expect(after?.dnsNames).toEqual(before?.dnsNames);
    expect((after?.notAfter.getTime() ?? 0) - Date.now()).toBeGreaterThan(364 * 86_400_000);
    const again = await onHost(...args);
    expect(again.code).toBe(0);
    expect(again.stdout).toBe('Nothing to do.\n');
  });

  it('are counted in the last line, with the end of their validity and the components to restart', async () => {
    const config = ['--config', join(directory, 'cluster.yaml')];
    const { code, stdout, stderr } = await onHost('renew', 'apiserver', 'scheduler.conf', ...config);
    expect(code, stderr).toBe(0);
    const { notAfter } = readCertificate(readFileSync(at('/etc/kubernetes/pki/apiserver.crt'), 'utf8')) ?? {};
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(
      `node1: 2 certificates renewed, valid until ${notAfter?.toISOString().slice(0, 10)}; restart kube-apiserver, kube-scheduler to use the renewed certificates: rerun the command with --restart`,
    );
    const one = await onHost('renew', 'admin.conf', ...config);
    expect(one.stdout).toMatch(/^node1: 1 certificate renewed, valid until \d{4}-\d\d-\d\d\n$/m);
    expect((await onHost('renew', 'admin.conf', ...config, '--dry-run')).stdout).not.toContain('renewed, valid');
  });

  it("are checked together with the kubelet's certificates", async () => {
    writeFileSync(at('/etc/kubernetes/pki/apiserver.key'), readFileSync(at('/etc/kubernetes/pki/etcd/server.key')));
    const { code, stdout, stderr } = await onHost('check');
    expect(code).toBe(1);
    expect(stdout).toMatch(/\nnode1 +cp-1 +etcd-peer +CN=cp-1 +CN=etcd-ca +\S+Z +36[45]d +ok\n/);
    expect(stderr).toMatch(
      /apiserver certificate in \/etc\/kubernetes\/pki\/apiserver\.crt: the private key does not match the certificate/,
    );
    expect(stderr).toMatch(/Renew the certificate: kubeletadm certs renew apiserver --host node1/);
  });

  it('are rejected under unknown names', async () => {
    const { code, stderr } = await onHost('renew', 'ca');
    expect(code).toBe(2);
    expect(stderr).toMatch(/unknown certificate ca\. Pass all, or one or more of these names: admin\.conf, /);
  });

  it('are requested in directories relative to the working directory', async () => {
    const here = relative(process.cwd(), directory);
    const where = ['--cert-dir', join(here, 'csr/pki'), '--kubeconfig-dir', join(here, 'csr')];
    const { code, stderr } = await runCommand(['certs', 'generate-csr', '--config', join(directory, 'cluster.yaml'), ...where]);
    expect(code, stderr).toBe(0);
    expect(readdirSync(join(directory, 'csr/pki')).toSorted()).toContain('apiserver.csr');
    const remote = await onHost('generate-csr', '--config', join(directory, 'cluster.yaml'), '--cert-dir', 'pki');
    expect(remote.code).toBe(2);
    expect(remote.stderr).toMatch(/--cert-dir pki is not an absolute path, which --host requires/);
  });

  it('are created by phases of init on a host that is not prepared for a kubelet; a second run changes nothing', async () => {
    const onNode2 = ['--config', join(directory, 'cluster.yaml'), '--host', 'node2', '--ssh-config', lab.sshConfig];
    const phase = (name: string, ...more: readonly string[]) => runCommand(['init', 'phase', name, ...onNode2, ...more]);
    const root = lab.hosts[1]?.rootDir ?? '';
    writeFileSync(join(root, 'proc/sys/net/ipv4/ip_forward'), '0\n');
    expect((await phase('preflight')).stderr).toMatch(/\[FileContent--proc-sys-net-ipv4-ip_forward\]/);
    const early = await phase('kubeconfig');
    expect(early.code).toBe(3);
    expect(early.stderr).toMatch(
      /^node2: \/etc\/kubernetes\/admin\.conf needs the CA \/etc\/kubernetes\/pki\/ca\.crt, which does not exist\. Run the phase certs\/ca first\. /m,
    );
    for (const name of ['certs', 'kubeconfig']) {
      const first = await phase(name);
      expect(first.code, first.stderr).toBe(0);
      const second = await phase(name);
      expect([second.code, second.stdout]).toEqual([0, 'Nothing to do.\n']);
    }
    const reported = await phase('certs', '--dry-run', '-v', '5');
    for (const name of ['ca', 'sa', 'etcd/peer']) {
      const line = readFileSync(join(root, `etc/kubernetes/pki/${name}.key`), 'utf8').split('\n')[1] as string;
      expect(`${reported.stdout}${reported.stderr}`).not.toContain(line);
    }
    expect(readdirSync(join(root, 'etc/kubernetes/pki/etcd')).toSorted()).toContain('peer.crt');
    expect(
      readCertificate(readFileSync(join(root, 'etc/kubernetes/pki/ca.crt'), 'utf8'))?.x509.publicKey.asymmetricKeyDetails?.namedCurve,
    ).toBe('secp384r1');
    expect(statSync(join(root, 'etc/kubernetes/admin.conf')).mode & 0o777).toBe(0o600);
  });

  it('are uploaded with a new certificate key each time', async () => {
    const [one, another] = [await runCommand(['certs', 'certificate-key']), await runCommand(['certs', 'certificate-key'])];
    expect(one.stdout).toMatch(/^[0-9a-f]{64}\n$/);
    expect(another.stdout).not.toBe(one.stdout);
  });
});
