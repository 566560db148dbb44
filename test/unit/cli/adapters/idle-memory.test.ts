import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const MODULE = fileURLToPath(new URL('../../../../src/cli/adapters/idle-memory.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

/** In a process of its own: the settings are for the whole process. The timers of Node's test runner advance the time. */
const PROGRAM = `
import { mock } from 'node:test';
import { releaseMemoryWhenIdle } from ${JSON.stringify(MODULE)};
mock.timers.enable({ apis: ['setTimeout'] });
const release = releaseMemoryWhenIdle();
const garbage = new WeakRef(new Array(1000).fill(0).map(() => ({})));
release();
await null;
const result = [];
const step = (ms) => new Promise((resolve) => setImmediate(() => {
  mock.timers.tick(ms);
  setImmediate(() => resolve(result.push(garbage.deref() !== undefined)));
}));
await step(9_999);
await step(1);
console.log(JSON.stringify(result));
`;

it('collects garbage ten seconds after the last activity', () => {
  const printed = execFileSync(process.execPath, ['--import', TSX, '--input-type=module', '--eval', PROGRAM], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect(JSON.parse(printed)).toEqual([true, false]);
});

it('lets a process end that has nothing else to do', () => {
  const program = `import { releaseMemoryWhenIdle } from ${JSON.stringify(MODULE)};
releaseMemoryWhenIdle()();
console.log(JSON.stringify(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')));`;
  const printed = execFileSync(process.execPath, ['--import', TSX, '--input-type=module', '--eval', program], { encoding: 'utf8' });
  expect(JSON.parse(printed)).toEqual([]);
});
