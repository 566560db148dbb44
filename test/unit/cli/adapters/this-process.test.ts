import { spawn, spawnSync } from 'node:child_process';
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
    const parent = spawn('/bin/sh', ['-c', 'sleep 0 & echo $!; exec sleep 60']);
    const pid = await new Promise<number>((resolve) => parent.stdout.once('data', (chunk) => resolve(Number(chunk))));
    await untilTrue(() => !thisProcess().isRunning(pid));
    expect(() => process.kill(pid, 0)).not.toThrow();
    parent.kill('SIGKILL');
  });
});
