// npm test: style, types, bundle, and the fast tests (two minutes and a half in all).
// npm run test:hosts: whole runs over SSH, test/shells in the other shells, the slow tests, and those on hosts with systemd and sshd.
// Arguments replace the selection of tests and are passed to vitest. At the end, the skipped tests are listed with reasons,
// and the failed ones with the first line of their error. With --again, files with failures run once more, alone: those that
// pass then are listed as unsteady and do not fail the run.
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
/** For machines with other work, as those of CI often are: a test that fails twice, the second time alone, is no accident. */
const AGAIN = '--again';
/** With more files than this, something is broken. */
const MOST_FILES_AGAIN = 5;
const given = process.argv.slice(2).filter((argument) => argument !== AGAIN);
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
const unsteady = [];
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
if (unsteady.length > 0) console.log(`\npassed only when they ran alone:\n${unsteady.map((line) => `  ${line}`).join('\n')}`);
if (failures.length > 0) console.log(`\nfailed tests:\n${failures.map((line) => `  ${line}`).join('\n')}`);
console.log(failed === null ? 'all green' : `${failed}: failed`);
process.exitCode = failed === null ? 0 : 1;

/** Runs a Node.js script; true when it exits with 0. */
function run(script, args, output = 'inherit') {
  const child = spawn(process.execPath, [join(root, script), ...args], { cwd: root, stdio: ['inherit', output, output], env });
  return new Promise((resolve) => child.on('close', (status) => resolve(status === 0)));
}

async function vitest(args, output) {
  const result = join(directory, `results-${results.length}.json`);
  const at = results.push(result) - 1;
  const once = (path, more) =>
    run(VITEST, ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${path}`, ...args, ...more], output);
  if (await once(result, [])) return true;
  const files = failedFiles(result);
  if (!process.argv.includes(AGAIN) || files.length === 0 || files.length > MOST_FILES_AGAIN) return false;
  const second = `${result}.again`;
  const passed = await once(second, ['--no-file-parallelism', ...files]);
  if (passed) unsteady.push(...failedTests(result));
  results[at] = second;
  return passed;
}

/** The test files of a result file with failures, relative to the repository; none when vitest did not end by itself. */
function failedFiles(path) {
  if (!existsSync(path)) return [];
  const { testResults } = JSON.parse(readFileSync(path, 'utf8'));
  return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(root, name));
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
