import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { thisProcess } from '../../../../src/cli/adapters/this-process.ts';
import { untilTrue } from '../../../support/until-true.ts';

describe('thisProcess', () => {
  it('distinguishes hosts, and running processes from exited ones', () => {
    const self = thisProcess();
    expect(self).toMatchObject({ id: process.pid, name: expect.stringMatching(/^.+@.+$/) });
    expect(self.machine).toMatch(process.platform === 'linux' ? /^[^/]+\/[0-9a-f-]{36}\/\d+$/ : new RegExp(`^${hostname()}`));
    expect(self.isRunning(process.pid)).toBe(true);
    const { pid } = spawnSync(process.execPath, ['-e', '0']);
    expect(self.isRunning(pid)).toBe(false);
  });

  it.skipIf(process.platform !== 'linux')('a zombie process does not run', async () => {
    // The child exits when its input ends; the shell is replaced before, so that nothing reaps the child.
    const parent = spawn('/bin/sh', ['-c', 'exec 3<&0; cat <&3 & echo $!; exec sleep 60 3<&- </dev/null']);
    const pid = await new Promise<number>((resolve) => parent.stdout.once('data', (chunk) => resolve(Number(chunk))));
    await untilTrue(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8') === 'sleep\n');
    parent.stdin.end();
    await untilTrue(() => !thisProcess().isRunning(pid));
    expect(() => process.kill(pid, 0)).not.toThrow();
    parent.kill('SIGKILL');
  });
});
