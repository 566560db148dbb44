import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readInventories, readVerdicts, VERDICTS } from '../support/inventories.ts';
import { requirement } from '../support/requirement.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-verdicts-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const missing = spawnSync('ansible-inventory', ['--version']).status === 0 ? null : 'ansible-inventory is not installed';

describe.skipIf(requirement('the recorded verdicts of ansible-inventory', missing))('ansible-inventory', () => {
  it('prints the recorded lists and warnings', () => {
    const verdicts = readInventories().map(({ name, text, ext = 'ini' }) => {
      const file = join(directory, `hosts.${ext}`);
      writeFileSync(file, text);
      const env = { ...process.env, LC_ALL: 'C.UTF-8' };
      const { stdout, stderr } = spawnSync('ansible-inventory', ['-i', file, '--list'], { encoding: 'utf8', env });
      // The order of warnings is that of a set in Python.
      const warnings = stderr.split(/^(?=\[)/m).toSorted();
      return { name, list: JSON.parse(stdout) as unknown, stderr: warnings.join('') };
    });
    if (process.env.RECORD_GOLDEN) writeFileSync(VERDICTS, verdicts.map((one) => `${JSON.stringify(one)}\n`).join(''));
    else expect(verdicts).toEqual(readVerdicts());
  }, 300_000);
});
