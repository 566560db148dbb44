// npm test: style, types, bundle, and the fast tests (two minutes and a half in all).
// npm run test:hosts: whole runs over SSH, test/shells in the other shells, the slow tests, and those on hosts with systemd and sshd.
// Arguments replace the selection of tests and are passed to vitest. At the end, the skipped tests are listed with reasons,
// and the failed ones with the first line of their error.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { leftProcesses } from './left-processes.mjs';
import { makeRunDirectory } from './run-directory.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { directory, env, end } = makeRunDirectory();
const since = Date.now();

const VITEST = 'node_modules/vitest/vitest.mjs';
const given = process.argv.slice(2);
/** For .ci/run, which has run the tests over SSH as another user. */
const WITHOUT_SSH = '--without-over-ssh';
const style = ['style', () => run('node_modules/@biomejs/biome/bin/biome', ['check', '.'])];
const types = ['types', () => run('node_modules/typescript/bin/tsc', ['--noEmit'])];
const bundle = ['bundle', () => run('scripts/build.mjs', [])];
const tests = (start) => ['tests', start];
const steps =
  given[0] === '--hosts'
    ? [bundle, tests(() => (given.length > 1 && !given.includes(WITHOUT_SSH) ? vitest(given.slice(1)) : runSlowTests()))]
    : [style, types, bundle, tests(() => vitest(given.length > 0 ? given : ['--project', 'unit', '--project', 'integration']))];
let failed = null;
/** Files with the results of each run of vitest, as its JSON reporter writes them. */
const results = [];
for (const [name, step] of steps) {
  const started = performance.now();
  console.log(`\n> ${name}`);
  const passed = await step();
  console.log(`${name}: ${Math.round((performance.now() - started) / 1000)} s`);
  if (!passed) {
    failed = name;
    break;
  }
}
const left = await leftProcesses(directory, since);
if (left.length > 0) {
  console.log(`\nprocesses that the tests left behind:\n${left.map((line) => `  ${line}`).join('\n')}`);
  failed ??= 'left processes';
}
const failures = results.flatMap(failedTests);
end();
if (failures.length > 0) console.log(`\nfailed tests:\n${failures.map((line) => `  ${line}`).join('\n')}`);
console.log(failed === null ? 'all green' : `${failed}: failed`);
process.exitCode = failed === null ? 0 : 1;

/** Runs a Node.js script; true when it exits with 0. */
function run(script, args, output = 'inherit') {
  const child = spawn(process.execPath, [join(root, script), ...args], { cwd: root, stdio: ['inherit', output, output], env });
  return new Promise((resolve) => child.on('close', (status) => resolve(status === 0)));
}

function vitest(args, output) {
  const result = join(directory, `results-${results.length}.json`);
  results.push(result);
  return run(VITEST, ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${result}`, ...args], output);
}

/** One line for each failed test of a result file, and for each file that failed as a whole. */
function failedTests(path) {
  if (!existsSync(path)) return [`no results in ${path}: vitest did not end by itself`];
  return JSON.parse(readFileSync(path, 'utf8')).testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const tests = assertionResults.filter((test) => test.status === 'failed');
    if (tests.length === 0) return status === 'failed' ? [`${file}: ${firstLine(message)}`] : [];
    return tests.map((test) => `${file}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  });
}

function firstLine(text = '') {
  return stripVTControlCharacters(text).split('\n', 1)[0].slice(0, 200);
}

/**
 * Tests on real hosts mostly wait: they run in parallel to the slow tests, and their output follows at the end. Both run
 * one file at a time: with more, real hosts exceed their time limits on two processors. The tests over SSH run before them.
 */
async function runSlowTests() {
  const overSsh = await vitest([...(given.includes(WITHOUT_SSH) ? [] : ['--project', 'over-ssh']), '--project', 'shells']);
  const path = join(directory, 'e2e');
  const output = openSync(path, 'w');
  const passed = await Promise.all([
    vitest(['--project', 'slow', '--no-file-parallelism']),
    vitest(['--project', 'e2e', '--no-file-parallelism'], output),
  ]);
  closeSync(output);
  process.stdout.write(readFileSync(path));
  return overSsh && passed.every(Boolean);
}
