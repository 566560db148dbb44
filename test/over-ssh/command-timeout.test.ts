import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

describe.skipIf(requirement('a slow host over real OpenSSH', sshdMissing))('timeout of a command on a slow host', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-slow-'));
  let sshd: Sshd;
  beforeAll(async () => {
    // Every command takes three seconds longer than usual.
    sshd = await startSshd({ config: ['ForceCommand sleep 3; eval "$SSH_ORIGINAL_COMMAND"'] });
  });
  afterAll(async () => {
    await sshd.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function query(commandTimeout: string | null, ...options: readonly string[]): Promise<CliResult> {
    const { port, user, identityFile } = sshd;
    const more = commandTimeout === null ? '' : `, commandTimeout: ${commandTimeout}`;
    const ssh = `{port: ${port}, user: ${user}, become: none, identityFiles: [${identityFile}], hostKeys: [${sshd.hostKey('ed25519')}]${more}}`;
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n  - {name: slow, address: 127.0.0.1, ssh: ${ssh}}\n`);
    return runCommand(['fleet', 'confirm', 'slow', '-f', file, '--ssh-config', 'none', ...options]);
  }
  const ANSWERED = { code: 0, stdout: 'slow: no pending change\n', stderr: '' };
  const TOO_SLOW = /^slow: .* within 1s\. .*--command-timeout \(in a fleet file: ssh\.commandTimeout\).*\[HOST_TIMEOUT\]\n$/;

  it('is one minute by default', async () => {
    expect(await query(null)).toEqual(ANSWERED);
  });

  it('is read from the fleet file', async () => {
    expect((await query('1s')).stderr).toMatch(TOO_SLOW);
    expect(await query('2m')).toEqual(ANSWERED);
  });

  it('is read from the command line before the fleet file', async () => {
    expect((await query('2m', '--command-timeout', '1s')).stderr).toMatch(TOO_SLOW);
    expect(await query('1s', '--command-timeout', '2m')).toEqual(ANSWERED);
  });

  it.each(['0s', '-1s', '10', 'soon', '1000h'])('is rejected with the value %s', async (text) => {
    const { code, stderr } = await query(null, '--command-timeout', text);
    expect(code).toBe(2);
    expect(stderr).toContain(`--command-timeout ${text} is not a duration from 1s to 24h. Use a duration such as 90s or 5m. [USAGE]`);
    expect((await query(text)).code).toBe(2);
  });
});
