import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { revealText } from '../../src/base/text/secret.ts';
import type { PkiConfiguration } from '../../src/kubeadm/pki/alt-names.ts';
import { type PreparedPki, preparePki } from '../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import type { EncryptionAlgorithm } from '../../src/x509/certificate-issuer.ts';
import { pkiContext, pkiNode, pkiOptions } from '../support/control-plane-pki.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { requirement } from '../support/requirement.ts';

const noOpenssl = spawnSync('openssl', ['version']).status === 0 ? null : 'openssl is not installed';
const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-pki-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

/** OpenSSL checks certificates against the clock of the local host. */
const now = new Date();

async function makeFiles(node: PkiConfiguration, directory: string): Promise<PreparedPki> {
  const prepared = await preparePki(pkiContext(undefined, fakeClock(now)), pkiOptions(node));
  for (const { files } of [...prepared.certificates.values(), ...prepared.kubeconfigs.values()]) {
    for (const { path, content } of files) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), revealText(content), { mode: 0o600 });
    }
  }
  return prepared;
}

describe.skipIf(requirement('the PKI, verified by openssl', noOpenssl)).each<EncryptionAlgorithm>(['RSA-2048', 'ECDSA-P256', 'ECDSA-P384'])(
  'a PKI with %s keys, verified by openssl',
  (encryptionAlgorithm) => {
    const directory = join(temporary, encryptionAlgorithm);
    const pki = join(directory, 'etc/kubernetes/pki');
    const openssl = (...args: readonly string[]): string => {
      const { status, stdout, stderr } = spawnSync('openssl', args, { cwd: pki, encoding: 'utf8' });
      expect(status, `openssl ${args.join(' ')}: ${stderr}`).toBe(0);
      return stdout;
    };
    beforeAll(async () => {
      const cluster = {
        encryptionAlgorithm,
        caCertificateValidityPeriod: '876000h',
        apiServer: { certSANs: ['fd00::1', '*.lab.example'] },
      };
      await makeFiles(pkiNode(cluster), directory);
    });

    const CHAINS = {
      'ca.crt': ['apiserver.crt', 'apiserver-kubelet-client.crt'],
      'front-proxy-ca.crt': ['front-proxy-client.crt'],
      'etcd/ca.crt': ['etcd/server.crt', 'etcd/peer.crt', 'etcd/healthcheck-client.crt', 'apiserver-etcd-client.crt'],
    };

    it('has chains that pass strict verification', () => {
      for (const [ca, leaves] of Object.entries(CHAINS)) {
        expect(openssl('verify', '-x509_strict', '-check_ss_sig', '-CAfile', ca, ca, ...leaves)).toBe(
          [ca, ...leaves].map((name) => `${name}: OK\n`).join(''),
        );
        for (const other of Object.keys(CHAINS).filter((each) => each !== ca)) {
          expect(spawnSync('openssl', ['verify', '-CAfile', other, leaves[0] as string], { cwd: pki }).status).not.toBe(0);
        }
      }
    });

    it('has certificates that are valid for their purposes and names, and for no others', () => {
      const purpose = (which: string, leaf: string, ca: string, ...more: readonly string[]): boolean =>
        spawnSync('openssl', ['verify', '-purpose', which, '-CAfile', ca, ...more, leaf], { cwd: pki }).status === 0;
      expect(purpose('sslserver', 'apiserver.crt', 'ca.crt', '-verify_hostname', 'kubernetes.default.svc.cluster.local')).toBe(true);
      expect(purpose('sslserver', 'apiserver.crt', 'ca.crt', '-verify_hostname', 'api.lab.example')).toBe(true);
      expect(purpose('sslserver', 'apiserver.crt', 'ca.crt', '-verify_ip', 'fd00::1')).toBe(true);
      expect(purpose('sslserver', 'apiserver.crt', 'ca.crt', '-verify_ip', '10.96.0.1')).toBe(true);
      expect(purpose('sslserver', 'apiserver.crt', 'ca.crt', '-verify_hostname', 'example.org')).toBe(false);
      expect(purpose('sslclient', 'apiserver.crt', 'ca.crt')).toBe(false);
      expect(purpose('sslclient', 'apiserver-kubelet-client.crt', 'ca.crt')).toBe(true);
      expect(purpose('sslserver', 'apiserver-kubelet-client.crt', 'ca.crt')).toBe(false);
      for (const both of ['sslserver', 'sslclient']) expect(purpose(both, 'etcd/peer.crt', 'etcd/ca.crt', '-verify_ip', '::1')).toBe(true);
    });

    it('has keys that match, in the formats that kubeadm writes', () => {
      const label = encryptionAlgorithm.startsWith('RSA') ? 'RSA PRIVATE KEY' : 'EC PRIVATE KEY';
      for (const name of [...Object.keys(CHAINS), ...Object.values(CHAINS).flat()]) {
        const key = name.replace('.crt', '.key');
        expect(readFileSync(join(pki, key), 'utf8')).toMatch(new RegExp(`^-----BEGIN ${label}-----\n(?:[A-Za-z0-9+/]{64}\n)+`));
        expect(openssl('pkey', '-in', key, '-pubout')).toBe(openssl('x509', '-in', name, '-noout', '-pubkey'));
        expect(openssl('pkey', '-in', key, '-check', '-noout')).toBe('Key is valid\n');
      }
      expect(openssl('pkey', '-in', 'sa.key', '-pubout')).toBe(readFileSync(join(pki, 'sa.pub'), 'utf8'));
    });

    it('has a unique serial number in each certificate, and the intended expiry, also after 2050', () => {
      const all = [...Object.keys(CHAINS), ...Object.values(CHAINS).flat()];
      const serials = all.map((name) => openssl('x509', '-in', name, '-noout', '-serial'));
      expect(new Set(serials).size).toBe(all.length);
      const end = (name: string): number => Date.parse(openssl('x509', '-in', name, '-noout', '-enddate').replace('notAfter=', ''));
      expect(end('ca.crt')).toBe(Math.floor(now.getTime() / 1000) * 1000 + 876_000 * 3_600_000);
      expect(end('apiserver.crt')).toBe(Math.floor(now.getTime() / 1000) * 1000 + 8_760 * 3_600_000);
    });

    it('has kubeconfigs whose certificates are clients of the cluster', () => {
      for (const name of ['admin', 'super-admin', 'kubelet', 'controller-manager', 'scheduler']) {
        const { clusters, users } = parse(readFileSync(join(directory, 'etc/kubernetes', `${name}.conf`), 'utf8'));
        expect(Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64').toString()).toBe(
          readFileSync(join(pki, 'ca.crt'), 'utf8'),
        );
        writeFileSync(join(pki, 'client.crt'), Buffer.from(users[0].user['client-certificate-data'], 'base64'));
        writeFileSync(join(pki, 'client.key'), Buffer.from(users[0].user['client-key-data'], 'base64'));
        expect(openssl('verify', '-x509_strict', '-purpose', 'sslclient', '-CAfile', 'ca.crt', 'client.crt')).toBe('client.crt: OK\n');
        expect(openssl('pkey', '-in', 'client.key', '-pubout')).toBe(openssl('x509', '-in', 'client.crt', '-noout', '-pubkey'));
        rmSync(join(pki, 'client.key'));
      }
    });
  },
);
