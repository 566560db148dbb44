import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import { runCommand } from '../support/run-cli.ts';

const root = mkdtempSync(join(tmpdir(), 'kubeletadm-phases-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function phasesOf(...words: readonly string[]): Promise<readonly unknown[]> {
  const args = ['--apiserver-advertise-address', '192.0.2.10', '--node-name', 'cp-1', '--rootfs', root, '--dry-run', '-o', 'json'];
  const { code, stdout, stderr } = await runCommand(['init', 'phase', ...words, ...args]);
  expect(code, stderr).toBe(0);
  const { hosts, cluster } = JSON.parse(stdout) as PlanDocument;
  return [...new Set([...(hosts[0]?.changes ?? []), ...cluster.changes].map(({ phase }) => phase))];
}

describe('a group of phases', () => {
  it.each([
    ['control-plane', ['control-plane/apiserver', 'control-plane/controller-manager', 'control-plane/scheduler']],
    ['addon', ['addon/coredns', 'addon/kube-proxy']],
  ])('%s runs by its name, and with the subphase all like kubeadm', async (group, phases) => {
    expect(await phasesOf(group, 'all')).toEqual(phases);
    expect(await phasesOf(group)).toEqual(phases);
  });

  it('all alone is not a phase', async () => {
    const { code, stderr } = await runCommand(['init', 'phase', 'all', '--rootfs', root, '--dry-run']);
    expect(code).toBe(2);
    expect(stderr).toContain('init has no phase all.');
  });
});
