import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ARM_FUNCTIONS, COMMIT_FUNCTIONS, LOCK_FUNCTIONS } from '../../../../src/host/commit/commit-program.ts';
import { REVERT_SCRIPT, revertUnits } from '../../../../src/host/commit/revert-script.ts';
import type { Operation } from '../../../../src/host/operation/operation.ts';
import { renderOperations } from '../../../../src/host/remote-program.ts';
import { requirement } from '../../../support/requirement.ts';
import { findProgram, SHELLS } from '../../../support/shells.ts';

const ARM: Operation = {
  kind: 'arm-revert',
  revert: {
    id: '0123456789abcdef',
    timeoutSeconds: 300,
    owner: "Al'ice@laptop\u001b[31m",
    paths: ['/var/lib/kubelet/config.yaml', "/etc/kubernetes/it's.conf"],
    units: ['kubelet'],
    reload: true,
  },
};

const scratch = mkdtempSync(join(tmpdir(), 'revert-script-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('the revert of an unconfirmed change', () => {
  it('runs this script', async () => {
    await expect(REVERT_SCRIPT).toMatchFileSnapshot('golden/revert.sh');
  });

  it('is started by these units', async () => {
    const units = revertUnits(300, ['/var/lib/kubelet/config.yaml', '/srv/with blanks/100%.yaml', '/top']);
    const text = Object.entries(units).map(([name, unit]) => `# ${name}\n${unit}`);
    await expect(text.join('\n')).toMatchFileSnapshot('golden/units.txt');
    expect(Object.keys(units)[0]).toBe('kubeletadm-revert-boot.service');
  });

  it('quotes its arguments and removes terminal control characters', () => {
    const program = renderOperations([ARM, { kind: 'revert-commit', id: 'x', why: 'a\nb $(reboot)' }], {
      nonce: 'n',
      temporaryId: 't',
      rootDir: null,
    });
    expect(program).toContain(
      "commit_arm 0123456789abcdef 300 'Al'\\''ice@laptop [31m' 1 /var/lib/kubelet/config.yaml '/etc/kubernetes/it'\\''s.conf' -- kubelet\n",
    );
    expect(program).toContain("commit_revert x 'a b $(reboot)'\n");
  });

  it('is only included in programs that need it', () => {
    const plain = renderOperations([{ kind: 'remove-file', path: '/x' }], { nonce: 'n', temporaryId: 't', rootDir: null });
    expect(plain).not.toContain('commit_arm');
  });

  describe.each(SHELLS)('in $name', (shell) => {
    it.skipIf(requirement(`the revert script in ${shell.name}`, shell.missing))('has no syntax errors', () => {
      const [program, ...first] = shell.options(scratch).shell;
      for (const script of [
        REVERT_SCRIPT,
        LOCK_FUNCTIONS + COMMIT_FUNCTIONS + ARM_FUNCTIONS,
        renderOperations([ARM], { nonce: 'n', temporaryId: 't', rootDir: null }),
      ])
        execFileSync(program, [...first, '-n'], { input: script });
    });
  });

  const shellcheck = findProgram('shellcheck');
  it.skipIf(requirement('shellcheck of the revert script', shellcheck === null ? 'shellcheck is not installed' : null))(
    'passes shellcheck as POSIX sh',
    () => {
      // SC2015: the last step of such a chain handles the failure of any step before it. The other codes:
      // $p and $R are set by the functions at the start of every program.
      const check = (script: string, exclude: string): string =>
        execFileSync(shellcheck as string, ['--shell=sh', '--severity=info', `--exclude=${exclude}`, '-'], {
          input: script,
          encoding: 'utf8',
        });
      expect(check(REVERT_SCRIPT, 'SC2015')).toBe('');
      expect(check(LOCK_FUNCTIONS + COMMIT_FUNCTIONS + ARM_FUNCTIONS, 'SC2015,SC2154,SC2034,SC2030,SC2031')).toBe('');
    },
  );
});
