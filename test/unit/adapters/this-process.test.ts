import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { thisProcess } from '../../../src/adapters/this-process.ts';

describe('thisProcess', () => {
  it('tells machines apart, and processes that run from those that ended', () => {
    const self = thisProcess();
    expect(self).toMatchObject({ id: process.pid, name: expect.stringMatching(/^.+@.+$/) });
    expect(self.machine).toMatch(process.platform === 'linux' ? /^[^/]+\/[0-9a-f-]{36}\/\d+$/ : new RegExp(`^${hostname()}`));
    expect(self.isRunning(process.pid)).toBe(true);
    const { pid } = spawnSync(process.execPath, ['-e', '0']);
    expect(self.isRunning(pid)).toBe(false);
  });
});
