import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { caDirectoriesIn } from '../../src/kubeadm/control-plane/model.ts';
import { compareInit } from '../support/compare-init.ts';
import { initInputs } from '../support/kubeadm-inputs.ts';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { kubeadmDryRun, kubeadmVersion, writeInput } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (kubeadm === null) return 'kubeadm not found next to kube-apiserver';
  const version = kubeadmVersion(kubeadm);
  return version.startsWith('v1.36.') ? null : `kubeadm is ${version}, not 1.36`;
}

const RUNS = Number(process.env.KUBELETADM_RUNS ?? 8);

describe.skipIf(requirement('generated configurations compared with kubeadm', whyNot()))('any configuration', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-inputs-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const root = join(directory, 'root');
  for (const path of caDirectoriesIn(existsSync)) mkdirSync(join(root, path), { recursive: true });

  it('gives the same files as with kubeadm, or is rejected by both', { timeout: 60_000 + RUNS * 10_000 }, async () => {
    let [compared, refused] = [0, 0];
    const property = fc.asyncProperty(initInputs, async (input) => {
      const config = writeInput(directory, input);
      const theirs = await kubeadmDryRun(kubeadm as string, config);
      const ours = await runCommand(['init', '--config', config, '--rootfs', root, '--dry-run', '-o', 'json']);
      expect(ours.code === 0, ours.stderr + theirs.log).toBe(theirs.exitCode === 0);
      if (ours.code !== 0) {
        expect(ours.code, ours.stderr).toBe(2);
        refused++;
        return;
      }
      const comparisons = compareInit(JSON.parse(ours.stdout), theirs.expected, '');
      for (const { what, ours: found, desired, equal } of comparisons) if (!equal) expect(found, what).toEqual(desired);
      compared += comparisons.length;
    });
    await fc.assert(property, { numRuns: RUNS, seed: 1362, endOnFailure: process.env.KUBELETADM_RUNS === undefined });
    const version = kubeadmVersion(kubeadm as string);
    console.log(`${RUNS} configurations, ${refused} refused by both; ${compared} comparisons with kubeadm ${version}, all equal`);
  });
});
