import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { programKind } from '../../src/core/dynamic/agent/agent-program.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0';

function whyNoExecutable(): string | null {
  if (process.platform !== 'linux') return 'executables are made on Linux';
  return readFileSync(process.execPath).includes(FUSE) ? null : 'this Node.js takes no program (it is a small one beside a library)';
}

describe.skipIf(requirement('executables with Node.js in them', whyNoExecutable()))('npm run build:sea', () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'kubeletadm-sea-'));
  afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

  it('makes an executable that needs no Node.js', () => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/build-sea.mjs')], { stdio: 'pipe' });
    const built = join(ROOT, `dist/kubeletadm-linux-${process.arch}`);
    expect(programKind({ head: readFileSync(built).subarray(0, 64).toString('latin1') }).kind).toBe('executable');
    writeFileSync(join(elsewhere, 'program'), readFileSync(built), { mode: 0o755 });
    writeFileSync(join(elsewhere, 'kubelet.yaml'), 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPod: 1\n');
    const run = (...argv: readonly string[]) => spawnSync('./program', argv, { cwd: elsewhere, env: {}, encoding: 'utf8' });
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
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
