import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startLab } from '../../../lab/lab.ts';

it('a lab is not started in a directory whose path is too long for its sockets', async () => {
  const directory = join(tmpdir(), 'd'.repeat(100));
  await expect(startLab({ directory, hosts: 3 })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/its path is \d+ characters too long for the sockets of the hosts/),
  });
  expect(existsSync(directory)).toBe(false);
});
