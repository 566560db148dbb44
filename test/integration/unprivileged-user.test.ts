import { execFile } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';
import { builtProgram } from '../support/run-bundle.ts';

const OTHER_USER = 65534;
const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.10}
nodeRegistration: {name: cp-1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
encryptionAlgorithm: ECDSA-P256
`;

describe.skipIf(requirement('an unprivileged user', process.getuid?.() === 0 ? null : 'the tests do not run as root'))(
  'an unprivileged user',
  () => {
    let top = '';
    let program = '';
    beforeAll(() => {
      top = mkdtempSync(join(tmpdir(), 'kubeletadm-csr-'));
      chmodSync(top, 0o755);
      // This user may not be able to read the working copy.
      program = join(top, 'kubeletadm.mjs');
      cpSync(builtProgram(), program);
      cpSync(join(dirname(builtProgram()), 'chunks'), join(top, 'chunks'), { recursive: true });
      writeFileSync(join(top, 'config.yaml'), CONFIG);
      mkdirSync(join(top, 'own'));
      chownSync(join(top, 'own'), OTHER_USER, OTHER_USER);
    });
    afterAll(() => rmSync(top, { recursive: true, force: true }));

    const run = (...args: readonly string[]): Promise<{ stdout: string; failure: string }> => {
      const env = { PATH: process.env.PATH, HOME: join(top, 'own') };
      return new Promise((resolve) => {
        execFile(process.execPath, [program, ...args], { uid: OTHER_USER, gid: OTHER_USER, env, cwd: '/' }, (error, stdout, stderr) =>
          resolve({ stdout, failure: error === null ? '' : stderr }),
        );
      });
    };

    it('creates certificate signing requests, like kubeadm', async () => {
      const directories = ['--cert-dir', join(top, 'own/pki'), '--kubeconfig-dir', join(top, 'own')];
      const { failure } = await run('certs', 'generate-csr', '--config', join(top, 'config.yaml'), ...directories);
      expect(failure).toBe('');
      expect(readdirSync(join(top, 'own/pki'))).toEqual(expect.arrayContaining(['apiserver.csr', 'apiserver.key']));
      expect(statSync(join(top, 'own/pki/apiserver.key'))).toMatchObject({ uid: OTHER_USER, mode: 0o100600 });
      expect(readdirSync(join(top, 'own'))).toContain('admin.conf.csr');
    });

    it('renders files on a host with a container runtime in a directory of root', async () => {
      const directory = join(top, 'host/var/run/containerd');
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, 'containerd.sock'), '');
      chmodSync(directory, 0o700);
      const argv = ['config', 'render', '--rootfs', join(top, 'host'), '--node-name', 'n1', '--kubernetes-version', 'v1.36.2'];
      expect(await run(...argv)).toEqual({
        failure: '',
        stdout: expect.stringContaining('containerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock'),
      });
    });
  },
);
