import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localInput } from '../../src/cli/adapters/input-local.ts';
import { validateInThreads } from '../../src/cli/adapters/validation-threads.ts';
import { validateFiles } from '../../src/cli/validate-files.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { builtProgram } from '../support/run-bundle.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-threads-'));
const files = Array.from({ length: 620 }, (_, i) => join(directory, `${i}.yaml`));
const rules = { chosen: 34, lenient: true, allowDeprecated: false, asKubeadm: false };
const program = builtProgram();

beforeAll(() => {
  for (const [i, file] of files.entries()) {
    if (i === 55) continue;
    const port = i % 7 === 0 ? 70_000 + i : 10_248;
    writeFileSync(file, `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nhealthzPort: ${port}\nfield${i}: 1\n`);
  }
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('validation in threads', () => {
  it.skipIf(availableParallelism() < 2)('gives the verdicts of one thread, in the order of the files', async () => {
    const catalogue = await loadCatalogue();
    const expected = await validateFiles(localInput(process.stdin, process.stderr), files, { ...rules, catalogue, kubelets: null });
    expect(expected[55]?.problems).toMatchObject([{ code: 'INPUT_UNREADABLE' }]);
    expect(await validateInThreads(program, files, rules)).toEqual(expected);
  });

  it('is not used for few files, for standard input and by a single executable', async () => {
    expect(await validateInThreads(program, files.slice(0, 100), rules)).toBeNull();
    expect(await validateInThreads(program, [...files, '-'], rules)).toBeNull();
    expect(await validateInThreads(process.execPath, files, rules)).toBeNull();
  });

  it('prints the same for many files as for a few', () => {
    const run = (some: readonly string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'config', 'validate', '--lenient', ...some], {
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    };
    const parts = [files.slice(0, 310), files.slice(310)].map(run);
    expect(run(files)).toEqual({
      status: 2,
      stdout: parts.map(({ stdout }) => stdout).join(''),
      stderr: parts.map(({ stderr }) => stderr).join(''),
    });
  });
});
