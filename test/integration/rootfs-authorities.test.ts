import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import { caDirectoriesIn } from '../../src/kubeadm/control-plane/model.ts';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-rootfs-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const ALWAYS = ['/etc/kubernetes/pki', '/etc/ssl/certs'];

/** The CAs that are used for the API server of a host whose files are written to a directory. */
async function mountsFor(name: string, files: readonly string[] = []): Promise<readonly string[]> {
  const root = join(directory, name);
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), file.endsWith('os-release') ? 'PRETTY_NAME=Some Linux\n' : '');
  }
  const args = ['--apiserver-advertise-address', '192.0.2.10', '--node-name', 'cp-1', '--rootfs', root, '--dry-run', '-o', 'json'];
  const { code, stdout, stderr } = await runCommand(['init', ...args]);
  expect(code, stderr).toBe(0);
  const changes = (JSON.parse(stdout) as PlanDocument).hosts[0]?.changes ?? [];
  const pod = parse(String(changes.find(({ path }) => String(path).endsWith('/kube-apiserver.yaml'))?.content));
  return pod.spec.volumes.map((volume: { readonly hostPath: { readonly path: string } }) => volume.hostPath.path).sort();
}

describe('the dry run of init', () => {
  it('has at most 45 lines for a control plane, and the contents with --diff', async () => {
    const args = [
      'init',
      '--apiserver-advertise-address',
      '192.0.2.10',
      '--node-name',
      'cp-1',
      '--rootfs',
      join(directory, 'short'),
      '--dry-run',
    ];
    const [short, long] = [await runCommand(args), await runCommand([...args, '--diff'])];
    expect([short.code, long.code], short.stderr).toEqual([0, 0]);
    expect(short.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(45);
    expect(short.stdout).toContain('  + /etc/kubernetes/pki/ca.key, ca.crt\n');
    expect(short.stdout).toContain('  + ConfigMap kube-system/kubeadm-config, kube-system/kubelet-config, ');
    expect(long.stdout.split('\n').length).toBeGreaterThan(1_000);
  });
});

describe('the CAs of a host whose files are written to a directory', () => {
  it('are those of the local host when the directory contains no system', async () => {
    expect(await mountsFor('empty')).toEqual([...ALWAYS, ...caDirectoriesIn(existsSync)].sort());
  });

  it('are those of the system in the directory', async () => {
    expect(await mountsFor('bare', ['etc/os-release'])).toEqual(ALWAYS);
    expect(await mountsFor('fedora', ['etc/os-release', 'etc/pki/ca-trust/README'])).toEqual([...ALWAYS, '/etc/pki/ca-trust'].sort());
  });
});
