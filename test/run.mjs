// npm test: everything that can run on this machine, and at the end what was left out and why.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { leftProcesses } from './left-processes.mjs';
import { makeRunDirectory } from './run-directory.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { directory, env, end } = makeRunDirectory();
const since = Date.now();

const VITEST = 'node_modules/vitest/vitest.mjs';
const given = process.argv.slice(2);
const steps = [
  ['style', () => run('node_modules/@biomejs/biome/bin/biome', ['check', '.'])],
  ['types', () => run('node_modules/typescript/bin/tsc', ['--noEmit'])],
  ['bundle', () => run('scripts/build.mjs', [])],
  ['tests', () => (given.length > 0 ? run(VITEST, ['run', ...given]) : runAllTests())],
];
let failed = null;
for (const [name, step] of steps) {
  console.log(`\n> ${name}`);
  if (!(await step())) {
    failed = name;
    break;
  }
}
const left = await leftProcesses(directory, since);
if (left.length > 0) {
  console.log(`\nprocesses that the tests left behind:\n${left.map((line) => `  ${line}`).join('\n')}`);
  failed ??= 'left processes';
}
end();
console.log(failed === null ? 'all green' : `${failed}: failed`);
process.exitCode = failed === null ? 0 : 1;

/** Runs a script of Node.js to its end; true when it went well. */
function run(script, args, output = 'inherit') {
  const child = spawn(process.execPath, [join(root, script), ...args], { cwd: root, stdio: ['inherit', output, output], env });
  return new Promise((resolve) => child.on('close', (status) => resolve(status === 0)));
}

/** Tests on real hosts mostly wait: they run one after the other, beside all others, and tell at the end. */
async function runAllTests() {
  const path = join(directory, 'e2e');
  const output = openSync(path, 'w');
  const results = await Promise.all([
    run(VITEST, ['run', '--project=!e2e']),
    run(VITEST, ['run', '--project', 'e2e', '--no-file-parallelism'], output),
  ]);
  closeSync(output);
  process.stdout.write(readFileSync(path));
  return results.every(Boolean);
}
