import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const noBash = spawnSync('bash', ['-c', 'type compgen']).status === 0 ? null : 'completion needs bash';
const { stdout: script } = await runCommand(['completion', 'bash']);

/** The completions that bash offers for the last word. */
function complete(...words: readonly string[]): readonly string[] {
  const program = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _kubeletadm; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['--norc', '-c', program, 'bash', 'kubeletadm', ...words], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

describe.skipIf(requirement('bash', noBash))('completion in bash', () => {
  it.each<[readonly string[], readonly string[]]>([
    [['jo'], ['join']],
    [['join', '--discovery-f'], ['--discovery-file']],
    [['init', 'phase', '--dry'], ['--dry-run']],
    [['--v', '2', 'init', '-o', 'j'], ['json']],
    [['init', '--config', 'x'], ['']],
    [['config', 'print', 'join'], ['join-defaults']],
    [['init', 'join'], ['']],
  ])('%j: offers %j', (words, offered) => {
    expect(complete(...words)).toEqual(offered);
  });
});

describe('completion scripts', () => {
  it.each(['bash', 'zsh', 'fish'])('know every command and option in %s', async (shell) => {
    const { code, stdout } = await runCommand(['completion', shell]);
    expect(code).toBe(0);
    for (const word of ['kubeletadm init phase', 'kubeletadm reset', 'accept-new', 'text json yaml']) expect(stdout).toContain(word);
  });

  it('exist for no other shell', async () => {
    expect(await runCommand(['completion', 'tcsh'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'completion: unsupported shell tcsh. Supported shells: bash, zsh, fish. [USAGE]\n',
    });
  });
});
