import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Host } from '../../src/host/access/host.ts';
import { REVERT_SCRIPT } from '../../src/host/commit/revert-script.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Transport } from '../../src/host/transport.ts';
import { requirement } from '../support/requirement.ts';
import { shellTransport } from '../support/shell-transport.ts';
import { ofThisProject, SHELLS, whyNotWatched } from '../support/shells.ts';

describe.each(ofThisProject(SHELLS))('the mutex of a host in $name', (shell) => {
  describe.skipIf(requirement(`the mutex of a host in ${shell.name}`, whyNotWatched(shell)))('here', () => {
    let top = '';
    let root = '';
    let transport: Transport;
    let host: Host;
    let holder: ChildProcess | null = null;
    const file = (path: string): string => join(root, path);

    beforeAll(() => {
      top = mkdtempSync(join(tmpdir(), 'host-mutex-'));
      mkdirSync(join(top, 'bin'));
      const program = (name: string, script: string): void => {
        writeFileSync(join(top, 'bin', name), `#!/bin/dash\n${script}\n`);
        chmodSync(join(top, 'bin', name), 0o755);
      };
      program('systemctl', ':');
      // Some packages of busybox have no flock.
      program('flock', 'exec /usr/bin/flock "$@"');
      program('sleep', 'echo >>"$KUBELETADM_ROOT/waits"');
    });
    afterAll(() => rmSync(top, { recursive: true, force: true }));
    beforeEach(() => {
      root = mkdtempSync(join(top, 'root-'));
      const options = shell.options(top);
      const env = { ...options.env, KUBELETADM_ROOT: root, PATH: `${join(top, 'bin')}:${options.env?.PATH ?? process.env.PATH}` };
      transport = shellTransport({ ...options, env });
      host = hostOverTransport(transport, { nonce: () => 'nonce0123' });
      mkdirSync(file('var/lib/kubeletadm/commit/files'), { recursive: true });
      mkdirSync(file('etc/systemd/system'), { recursive: true });
      writeFileSync(file('var/lib/kubeletadm/commit/record'), 'id abc\ntimeout 300\n');
      writeFileSync(file('var/lib/kubeletadm/commit/files/0'), 'old\n');
      writeFileSync(file('var/lib/kubeletadm/commit/manifest'), 'f|0||/config.yaml\n');
      writeFileSync(file('config.yaml'), 'new\n');
    });
    afterEach(() => {
      holder?.kill();
      holder = null;
    });

    const waits = (): number => (existsSync(file('waits')) ? readFileSync(file('waits'), 'utf8').length : 0);
    const write = (): Promise<void> =>
      host.perform([
        { kind: 'check-commit', id: 'abc' },
        { kind: 'write-file', path: '/written', mode: 0o644, owner: 'root:root', content: 'x\n' },
      ]);
    const revert = (): Promise<unknown> => transport.run(['/bin/sh', '-c', REVERT_SCRIPT, 'revert', 'timer'], { timeoutMs: 120_000 });

    /** Locks a file as another process does, and resolves when it has the lock. */
    async function lock(path: string): Promise<void> {
      const child = spawn('flock', ['-x', '--no-fork', file(path), 'sh', '-c', 'echo locked; exec cat'], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      holder = child;
      await new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        child.once('close', () => reject(new Error(`cannot lock ${path}`)));
      });
    }

    it('is a file that only root can open', async () => {
      await write();
      expect(statSync(file('run/kubeletadm.mutex')).mode & 0o777).toBe(0o600);
      expect(statSync(file('run')).mode & 0o777).toBe(0o755);
    });

    it('is not affected by a lock on a directory that every user can open', async () => {
      await lock('var/lib');
      await write();
      await revert();
      expect([waits(), readFileSync(file('config.yaml'), 'utf8')]).toEqual([0, 'old\n']);
    });

    it('stops a change when another process holds it for a minute', async () => {
      await write();
      rmSync(file('written'));
      await lock('run/kubeletadm.mutex');
      await expect(write()).rejects.toThrow('another kubeletadm process has locked');
      expect([waits(), existsSync(file('written'))]).toEqual([59, false]);
    });

    it('does not stop a revert', async () => {
      await write();
      await lock('run/kubeletadm.mutex');
      await revert();
      expect([waits(), readFileSync(file('config.yaml'), 'utf8')]).toEqual([59, 'old\n']);
    });
  });
});
