import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { programKind } from '../../src/core/dynamic/agent/agent-program.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0';

function whyNoExecutable(): string | null {
  if (process.platform !== 'linux') return 'executables are made on Linux';
  return readFileSync(process.execPath).includes(FUSE) ? null : 'this Node.js takes no program (it is a small one beside a library)';
}

const elsewhere = mkdtempSync(join(tmpdir(), 'kubeletadm-build-'));
afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

describe('npm run build:package', () => {
  it('makes a package that is installed without any other', () => {
    const npm = (...argv: readonly string[]) =>
      execFileSync('npm', argv, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    npm('run', 'build:package');
    const tarball = join(ROOT, `dist/kubeletadm-${version}.tgz`);
    const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
    expect(files.filter((file) => !file.startsWith('package/docs/')).toSorted()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist/THIRD-PARTY-NOTICES.txt', 'dist/kubeletadm.mjs', 'package.json'].map(
        (file) => `package/${file}`,
      ),
    );
    npm('install', '--offline', '--global', '--prefix', elsewhere, tarball);
    const program = join(elsewhere, 'bin/kubeletadm');
    expect(execFileSync(program, ['--version'], { cwd: elsewhere, encoding: 'utf8' })).toBe(`${version}\n`);
    // Templates and knowledge of the kubelets come along.
    const staged = ['init', 'phase', 'kubelet-start', '--node-name', 'node1', '--rootfs', join(elsewhere, 'image')];
    expect(spawnSync(program, staged, { cwd: elsewhere, encoding: 'utf8' })).toMatchObject({ status: 0 });
    expect(readFileSync(join(elsewhere, 'image/var/lib/kubelet/config.yaml'), 'utf8')).toContain('kind: KubeletConfiguration');
  }, 120_000);
});

describe.skipIf(requirement('executables with Node.js in them', whyNoExecutable()))('npm run build:sea', () => {
  it('makes an executable that needs no Node.js', () => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/build-sea.mjs')], { stdio: 'pipe' });
    const built = join(ROOT, `dist/kubeletadm-linux-${process.arch}`);
    expect(programKind({ head: readFileSync(built).subarray(0, 64).toString('latin1') }).kind).toBe('executable');
    writeFileSync(join(elsewhere, 'program'), readFileSync(built), { mode: 0o755 });
    writeFileSync(join(elsewhere, 'kubelet.yaml'), 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPod: 1\n');
    const run = (...argv: readonly string[]) => spawnSync('./program', argv, { cwd: elsewhere, env: {}, encoding: 'utf8' });
    expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
    expect(run('agent', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--token-file'), stderr: '' });
    // What is packed most tightly: the knowledge of the kubelets.
    expect(run('config', 'validate', 'kubelet.yaml', '--kubernetes-version', '1.34')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Did you mean maxPods?'),
    });
    // It is what it would send to a host.
    expect(run('dynamic', 'enable', 'localhost', '--kubeconfig', '/nonexistent').stderr).toContain('/nonexistent');
  }, 120_000);
});
