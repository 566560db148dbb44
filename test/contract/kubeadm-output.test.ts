import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { fakeHost } from '../support/fake-host.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { type CliOptions, runCommand } from '../support/run-cli.ts';
import { upgradeCluster } from '../support/upgrade-cluster.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (kubeadm === null || kubeadmVersion(kubeadm) !== 'v1.36.2') return 'kubeadm v1.36.2 not found (KUBEBUILDER_ASSETS)';
  return process.getuid?.() === 0 ? null : 'kubeadm --rootfs needs root';
}

const CONF = '/etc/kubernetes/admin.conf';
const PKI = '/etc/kubernetes/pki';
const CONFIG = '/config.yaml';
const TOKEN = 'abcdef.0123456789abcdef';
const COMMANDS = { 'date +%s': { stdout: String(Math.floor(Date.now() / 1000)) } };
const NODE = hostname().toLowerCase();

describe.skipIf(requirement('standard output compared with kubeadm, with a real kube-apiserver', whyNot()))(
  'the standard output of kubeadm, with a real kube-apiserver',
  () => {
    let server: RealApiServer;
    const root = mkdtempSync(join(tmpdir(), 'kubeletadm-output-'));
    const theirs = (...argv: readonly string[]): string =>
      execFileSync(kubeadm ?? '', argv, { encoding: 'utf8', env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'ignore'] });
    const inRoot = (...argv: readonly string[]): string => theirs('--rootfs', root, ...argv);
    const ours = async (argv: readonly string[], options: CliOptions = {}): Promise<string> => {
      const { code, stdout, stderr } = await runCommand(argv, { ...options, env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
      expect(code, stderr).toBe(0);
      return stdout;
    };
    /** Runs a command on a host with the files of the root directory. */
    const onHost = (...argv: readonly string[]): Promise<string> =>
      ours(
        argv.map((word) => (word === CONFIG ? join(root, CONFIG) : word)),
        { services: () => ({ connectHost: async () => fakeHost({ name: 'localhost', files: filesBelow(root), commands: COMMANDS }) }) },
      );

    beforeAll(async () => {
      if (typeof binaries === 'string') return;
      server = await startRealApiServer(binaries);
      // kubeadm renews admin.conf with this CA.
      mkdirSync(join(root, PKI), { recursive: true });
      writeFileSync(join(root, PKI, 'ca.crt'), server.ca.certPem);
      writeFileSync(join(root, PKI, 'ca.key'), server.ca.keyPem, { mode: 0o600 });
      writeFileSync(
        join(root, CONFIG),
        'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.0.0.11}\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n',
      );
      for (const phase of ['certs', 'kubeconfig', 'control-plane']) inRoot('init', 'phase', phase, 'all', '--config', CONFIG);
      writeFileSync(join(root, CONF), server.adminKubeconfig(), { mode: 0o600 });
      // The rights of a node are those that init grants.
      const kubelet = await server.kubeconfigFor(`system:node:${NODE}`, ['system:masters']);
      writeFileSync(join(root, '/etc/kubernetes/kubelet.conf'), kubelet, { mode: 0o600 });
    }, 120_000);
    afterAll(async () => {
      await server?.close();
      rmSync(root, { recursive: true, force: true });
    });

    it.each([[['certs', 'renew', 'apiserver']], [['certs', 'check-expiration']]])('%j without kubeadm-config', async (argv) => {
      const expected = inRoot(...argv);
      expect(expected).toContain('Falling back to default configuration');
      expect(await onHost(...argv)).toBe(expected);
    });

    describe('with kubeadm-config', () => {
      beforeAll(async () => {
        const cluster = kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file: 'test.conf' } });
        for (const object of upgradeCluster({ version: 'v1.36.2', kubelets: { [NODE]: 'v1.36.2' } }))
          await cluster.create(object).catch((error: unknown) => {
            if (!String(error).includes('already exists')) throw error;
          });
        await cluster.close();
      });

      it.each([
        [['certs', 'renew', 'etcd-healthcheck-client']],
        [['certs', 'renew', 'all']],
        [['certs', 'renew', 'front-proxy-client', '--config', CONFIG]],
        [['certs', 'check-expiration']],
      ])('%j', async (argv) => {
        expect(await onHost(...argv)).toBe(inRoot(...argv));
      });

      it('certs renew with an external CA and without a certificate', async () => {
        rmSync(join(root, PKI, 'front-proxy-ca.key'));
        rmSync(join(root, PKI, 'etcd/server.crt'));
        for (const name of ['front-proxy-client', 'etcd-server']) {
          const expected = inRoot('certs', 'renew', name);
          expect(expected).toMatch(/Detected external|MISSING!/);
          expect(await onHost('certs', 'renew', name)).toBe(expected);
        }
      });

      it.each([[['v1.36.2']], [['v1.36.3']], [['v1.36.3', '-c', '2']]])('upgrade diff %j', async (args) => {
        expect(sections(await onHost('upgrade', 'diff', ...args))).toEqual(sections(inRoot('upgrade', 'diff', ...args)));
      });

      it('token create', async () => {
        const kubeconfig = ['--kubeconfig', join(root, CONF)];
        for (const more of [
          [],
          ['--ttl', '0', '--description', 'x'],
          ['--print-join-command'],
          ['--print-join-command', '--certificate-key', '0'.repeat(64)],
        ]) {
          const line = ['token', 'create', TOKEN, ...more, ...kubeconfig];
          const expected = theirs(...line);
          theirs('token', 'delete', TOKEN, ...kubeconfig);
          expect(await ours(line)).toBe(expected);
          expect(await ours(['token', 'list', ...kubeconfig])).toBe(theirs('token', 'list', ...kubeconfig));
          expect(await ours(['token', 'delete', TOKEN, ...kubeconfig])).toBe('bootstrap token "abcdef" deleted\n');
        }
      });
    });
  },
);

/** Files below a directory by absolute path. */
function filesBelow(root: string): Readonly<Record<string, string>> {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(root, path)).isFile());
  return Object.fromEntries(paths.map((path) => [`/${path}`, readFileSync(join(root, path), 'utf8')]));
}

/** The lines before the first manifest, and those of each manifest: kubeadm prints them in a random order. */
function sections(text: string): readonly string[] {
  return text.split(/^(?=--- )/m).toSorted();
}
