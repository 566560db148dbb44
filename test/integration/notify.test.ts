import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import type { CommandServices } from '../../src/cli/command.ts';
import { withNotification } from '../../src/cli/notify.ts';
import { createServices } from '../../src/wiring.ts';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-notify-'));
const file = join(directory, 'summary.json');
const read = (): unknown => JSON.parse(readFileSync(file, 'utf8'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const APPLY = ['apply', '--yes', '-f', join(directory, 'none.yaml')];

describe('--notify', () => {
  it('runs a shell command with a summary of a failed run', async () => {
    const { code, stderr } = await runCommand([...APPLY, '--notify', `cat > '${file}'; echo sent`]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('[INPUT_UNREADABLE]')]);
    expect(stderr).toContain('sent\n');
    expect(read()).toEqual({
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'RunSummary',
      command: 'apply',
      localHost: expect.any(String),
      exitCode: 2,
      startedAt: expect.stringMatching(/Z$/),
      endedAt: expect.stringMatching(/Z$/),
      seconds: expect.any(Number),
      hosts: null,
      problems: [expect.stringContaining('none.yaml')],
    });
  });

  it('does not change the exit code when the shell command fails', async () => {
    const { code, stderr } = await runCommand([...APPLY, '--notify', 'echo broken >&2; exit 3']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^warning: the command of --notify failed: exited with code 3: broken\. .* \[NOTIFICATION_FAILED\]$/m),
    ]);
  });

  it('also runs after an interruption, and counts the hosts of the run', async () => {
    rmSync(file, { force: true });
    const stop = new AbortController();
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const env = { PATH: process.env.PATH ?? '' };
    const services = createServices({ env, stdin: Readable.from([]), stdout: nowhere, stderr: nowhere, signal: stop.signal });
    const notify = { notify: `cat > '${file}'`, command: 'apply' };
    const code = await withNotification(
      { ...services, runCommand: async () => 0 } satisfies CommandServices,
      notify,
      async ({ runEnded }) => {
        expect(existsSync(file)).toBe(false);
        runEnded?.({ changed: 2, interrupted: 1 });
        stop.abort();
        return 130;
      },
    );
    expect([code, read()]).toEqual([130, expect.objectContaining({ exitCode: 130, hosts: { changed: 2, interrupted: 1 }, problems: [] })]);
  });
});
