import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import { compareInit, comparisonTable } from '../support/compare-init.ts';
import { DEBIAN_CA_DIRECTORIES } from '../support/control-plane-node.ts';
import { initRecordings } from '../support/kubeadm-recordings.ts';
import { runCommand } from '../support/run-cli.ts';

const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-golden-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

describe('init of a bare host writes the same files as kubeadm 1.36.2', () => {
  it.each(initRecordings())('$name', { timeout: 60_000 }, async ({ name, input, expected }) => {
    const plan = await dryRun(name, input);
    const comparisons = compareInit(plan, expected, input);
    console.log(`${name}\n${comparisonTable(comparisons)}`);
    for (const { what, ours, desired } of comparisons) expect.soft(ours, what).toEqual(desired);
    expect(comparisons.length).toBeGreaterThan(5);
    if (/^rotateCertificates: false$/m.test(input)) expect(plan.warnings.map(({ field }) => field)).toContain('rotateCertificates');
  });
});

/** On a host like that of the recordings: Debian, without kubelet and runtime. */
async function dryRun(name: string, input: string): Promise<PlanDocument> {
  const config = join(temporary, `${name}.yaml`);
  writeFileSync(config, input);
  const root = join(temporary, name);
  for (const directory of DEBIAN_CA_DIRECTORIES) mkdirSync(join(root, directory), { recursive: true });
  const { code, stdout, stderr } = await runCommand(['init', '--config', config, '--rootfs', root, '--dry-run', '-o', 'json']);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as PlanDocument;
}
