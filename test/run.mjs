// npm test: everything that can run on this machine, and at the end what was left out and why.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-test-'));
const skips = join(directory, 'skips');
writeFileSync(skips, '');

const steps = [
  ['style', 'node_modules/@biomejs/biome/bin/biome', ['check', '.']],
  ['types', 'node_modules/typescript/bin/tsc', ['--noEmit']],
  ['bundle', 'scripts/build.mjs', []],
  ['tests', 'node_modules/vitest/vitest.mjs', ['run', ...process.argv.slice(2)]],
];
let failed = null;
for (const [name, script, args] of steps) {
  console.log(`\n> ${name}`);
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, KUBELETADM_TEST_SKIPS: skips },
  });
  if (status !== 0) {
    failed = name;
    break;
  }
}
const lines = [...new Set(readFileSync(skips, 'utf8').split('\n').filter(Boolean))];
rmSync(directory, { recursive: true, force: true });
console.log(lines.length === 0 ? '\nnothing was skipped' : `\n${lines.join('\n')}`);
console.log(failed === null ? 'all green' : `${failed}: failed`);
process.exitCode = failed === null ? 0 : 1;
