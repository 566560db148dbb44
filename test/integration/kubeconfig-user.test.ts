import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { describeCertificate } from '../../src/x509/describe-certificate.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const root = mkdtempSync(join(tmpdir(), 'kubeletadm-kubeconfig-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const pki = join(root, 'pki');
const config = join(root, 'cluster.yaml');
const kubeadm = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubeadm');
const absent = existsSync(kubeadm) && kubeadmVersion(kubeadm) === 'v1.36.2' ? null : 'KUBEBUILDER_ASSETS has no kubeadm v1.36.2';
const NODE = ['--kubernetes-version', 'v1.36.2', '--node-name', 'cp-1', '--apiserver-advertise-address', '192.0.2.1'];
const user = (...more: readonly string[]) => runCommand(['kubeconfig', 'user', '--config', config, ...more]);

beforeAll(async () => {
  writeFileSync(
    config,
    `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
certificatesDir: ${pki}
kubernetesVersion: v1.36.2
controlPlaneEndpoint: api.example:6443
clusterName: blue
`,
  );
  const made = await runCommand([...['init', 'phase', 'certs', 'ca', '--rootfs', root, '--cert-dir', '/pki'], ...NODE]);
  expect(made.code, made.stderr).toBe(0);
});

describe('kubeconfig user', () => {
  it('prints a kubeconfig with a client certificate of the CA', async () => {
    const started = Date.now();
    const { code, stdout, stderr } = await user('--client-name', 'alice', '--org', 'dev,ops', '--org', 'night', '--validity-period', '24h');
    const ended = Date.now();
    expect([code, stderr]).toEqual([0, '']);
    const { clusters, users, contexts, 'current-context': current } = parse(stdout) as Record<string, unknown>;
    expect({ clusters, contexts, current }).toMatchObject({
      clusters: [{ name: 'blue', cluster: { server: 'https://api.example:6443' } }],
      contexts: [{ name: 'alice@blue', context: { cluster: 'blue', user: 'alice' } }],
      current: 'alice@blue',
    });
    const [{ user: credentials }] = users as [{ user: Record<string, string> }];
    const pem = Buffer.from(credentials['client-certificate-data'] ?? '', 'base64').toString();
    const described = describeCertificate(pem);
    expect(described).toMatchObject({ subject: 'CN=alice,O=night,O=ops,O=dev', issuer: 'CN=kubernetes' });
    // Certificates have whole seconds.
    expect(Date.parse(described.notAfter)).toBeGreaterThan(started + 86_400_000 - 1000);
    expect(Date.parse(described.notAfter)).toBeLessThanOrEqual(ended + 86_400_000);
    writeFileSync(join(root, 'alice.crt'), pem);
    expect(execFileSync('openssl', ['verify', '-CAfile', join(pki, 'ca.crt'), join(root, 'alice.crt')], { encoding: 'utf8' })).toContain(
      'OK',
    );
    expect(parseKubeconfig(stdout, 'alice.conf').users).toHaveLength(1);
  });

  it('writes nothing', () => {
    expect(readdirSync(pki).sort()).toEqual(['ca.crt', 'ca.key']);
  });

  it('takes a token in place of a certificate, also without the key of the CA', async () => {
    const key = readFileSync(join(pki, 'ca.key'), 'utf8');
    rmSync(join(pki, 'ca.key'));
    try {
      const { code, stdout } = await user('--client-name=ci', '--token=secret');
      expect(code).toBe(0);
      expect(parse(stdout)).toMatchObject({ users: [{ name: 'ci', user: { token: 'secret' } }] });
      expect(await user('--client-name=ci')).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('[PKI_KEY_MISSING]') });
    } finally {
      writeFileSync(join(pki, 'ca.key'), key, { mode: 0o600 });
    }
  });

  it('reads a token from standard input, and not the key of the CA', async () => {
    const argv = ['kubeconfig', 'user', '--config', config, '--client-name=ci', '--token', '-', '-v', '6'];
    const { code, stdout, stderr } = await runCommand(argv, { stdin: 'secret\n' });
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({ users: [{ name: 'ci', user: { token: 'secret' } }] });
    expect(stderr).toContain(join(pki, 'ca.crt'));
    expect(stderr).not.toMatch(/ca\.key|secret/);
    for (const stdin of ['', ' \n', 'one two\n'])
      expect(await runCommand(argv, { stdin }), stdin).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('standard input does not contain one token'),
      });
  });

  it.each([
    [[], '--client-name is missing'],
    [['--client-name', 'a', '--validity-period', 'x'], '--validity-period x is not a valid duration'],
    [['--client-name', 'a', '--host', 'h1', '--host', 'h2'], '--host is given more than once'],
  ])('refuses %j', async (more, message) => {
    expect(await user(...more)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
  });

  it('names a missing CA', async () => {
    const { code, stderr } = await runCommand(['kubeconfig', 'user', '--client-name', 'a', '--config', '-'], {
      stdin: `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncertificatesDir: ${root}/none\nkubernetesVersion: v1.36.2\n`,
    });
    expect(code).toBe(3);
    expect(stderr).toContain(`${root}/none/ca.crt does not exist`);
  });

  it.skipIf(requirement('kubeconfig user compared with kubeadm', absent))('prints the bytes of kubeadm', async () => {
    const real = execFileSync(kubeadm, ['kubeconfig', 'user', '--client-name=ci', '--token=abc', '--config', config], { encoding: 'utf8' });
    expect((await user('--client-name=ci', '--token=abc')).stdout).toBe(real);
  });
});

describe('init phase', () => {
  it('kubeconfig writes to --kubeconfig-dir', async () => {
    const argv = ['init', 'phase', 'kubeconfig', 'admin', '--kubeconfig-dir', '/conf', '--rootfs', root, '--cert-dir', '/pki'];
    const { code, stderr } = await runCommand([...argv, ...NODE]);
    expect(code, stderr).toBe(0);
    expect(readdirSync(join(root, 'conf'))).toEqual(['admin.conf']);
  });

  const address = '--apiserver-advertise-address=192.0.2.1';
  it.skipIf(requirement('--print-manifest compared with kubeadm', absent)).each([
    ['coredns', [], ['Deployment', 'ConfigMap', 'Service', 'ClusterRole', 'ClusterRoleBinding', 'ServiceAccount']],
    ['kube-proxy', [address], ['ServiceAccount', 'ClusterRoleBinding', 'Role', 'RoleBinding', 'ConfigMap', 'DaemonSet']],
  ])('addon %s prints the objects of kubeadm with --print-manifest', async (addon, more, kinds) => {
    const argv = ['init', 'phase', 'addon', addon, '--print-manifest', '--kubernetes-version=v1.36.2', ...more];
    const { code, stdout, stderr } = await runCommand(argv);
    expect([code, stderr]).toEqual([0, '']);
    const objectsOf = (text: string) => parseAllDocuments(text).flatMap((document) => document.toJS() ?? []) as Record<string, unknown>[];
    expect(objectsOf(stdout).map(({ kind }) => kind)).toEqual(kinds);
    const real = objectsOf(execFileSync(kubeadm, argv, { encoding: 'utf8' }));
    expect(objectsOf(stdout).map(compared)).toEqual(real.map(compared));
  });
});

/**
 * An object as it is compared: kubeadm prints a template, here the object is printed that init creates. Both are equal for
 * the API server: empty members and `false` are defaults, and texts in a ConfigMap are compared as documents.
 */
function compared(object: unknown): unknown {
  return JSON.parse(JSON.stringify(object), (key, value: unknown) => {
    const isDefault = value === false || (key !== 'emptyDir' && JSON.stringify(value) === '{}');
    if (isDefault || key === 'kubeadm.kubernetes.io/component-config.hash') return undefined;
    return /^(?:config|kubeconfig)\.conf$/.test(key) ? parse(String(value)) : value;
  });
}
