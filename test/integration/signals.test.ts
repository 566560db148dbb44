import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { bundle } from '../support/bundle.ts';

/** Reports the interruption, as commands do, and is still in the listener of the first signal when the second one arrives. */
const PROGRAM = `
  const { runProcess } = require(process.argv[1]);
  runProcess((_, { signal, onForcedExit }) => new Promise((resolve) => {
    setTimeout(resolve, 60_000, 0);
    onForcedExit(() => console.log('the run stopped immediately'));
    signal.addEventListener('abort', () => {
      console.log('interrupted');
      for (const end = Date.now() + 500; Date.now() < end; );
    });
    console.log('started');
  }));
`;

it('a second Ctrl-C reports the forced exit even if the first one is still processed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-signals-'));
  const program = await bundle(fileURLToPath(new URL('../../src/run-process.ts', import.meta.url)), directory);
  const child = spawn(process.execPath, ['-e', PROGRAM, program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'close');
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    if (/(?:started|interrupted)\n$/.test(text)) child.kill('SIGINT');
  });
  const [code, signal] = await exit;
  rmSync(directory, { recursive: true });
  expect([code, signal, text]).toEqual([130, null, 'started\ninterrupted\nthe run stopped immediately\n']);
});
