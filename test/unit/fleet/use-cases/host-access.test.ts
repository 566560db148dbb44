import { describe, expect, it } from 'vitest';
import { formatProblem, isAppError } from '../../../../src/base/errors.ts';
import type { LocalFiles } from '../../../../src/base/local-files.ts';
import { type ConnectionRequest, readSshOptions } from '../../../../src/fleet/use-cases/host-access.ts';

/** A terminal that answers with these texts in order; null: no terminal. */
function localFiles(answers: readonly string[] | null): { readonly services: LocalFiles; readonly prompts: readonly string[] } {
  const prompts: string[] = [];
  const refuse = (): never => {
    throw new Error('no file is read');
  };
  const input = {
    readText: refuse,
    readTree: refuse,
    exists: async () => false,
    isDirectory: async () => false,
    askSecret: async (prompt: string) => {
      prompts.push(prompt);
      return answers === null ? null : (answers[prompts.length - 1] ?? '');
    },
  };
  const env = { KUBELETADM_SUDO_PASSWORD: 'of the environment' };
  return {
    services: { env, homeDirectory: '/', input, absolutePath: (path) => path, writeLocalFile: refuse, requireWritable: refuse },
    prompts,
  };
}

const connection = (changes: Partial<ConnectionRequest>): ConnectionRequest => ({
  identityFiles: [],
  password: 'environment',
  sudoPassword: 'environment',
  ...changes,
});

describe('passwords typed on the terminal', () => {
  it('are asked once per run, also for concurrent connections', async () => {
    const { services, prompts } = localFiles(['one', 'two']);
    const request = connection({ password: 'terminal', sudoPassword: 'terminal' });
    const [first, second] = await Promise.all([readSshOptions(services, request), readSshOptions(services, request)]);
    expect(prompts).toEqual(['SSH password: ', 'sudo password (default: the SSH password): ']);
    expect([first, second].map(({ password, sudoPassword }) => [password?.reveal(), sudoPassword?.reveal()])).toEqual([
      ['one', 'two'],
      ['one', 'two'],
    ]);
    expect(JSON.stringify(first)).not.toContain('one');
  });

  it('the sudo password defaults to the SSH password', async () => {
    const { services } = localFiles(['one', '']);
    const { sudoPassword } = await readSshOptions(services, connection({ password: 'terminal', sudoPassword: 'terminal' }));
    expect(sudoPassword?.reveal()).toBe('one');
  });

  it('reads the other password from the environment', async () => {
    const { services, prompts } = localFiles(['one']);
    const { sudoPassword } = await readSshOptions(services, connection({ password: 'terminal' }));
    expect(sudoPassword?.reveal()).toBe('of the environment');
    expect(prompts).toEqual(['SSH password: ']);
  });

  it.each<[Partial<ConnectionRequest>, readonly string[] | null, string]>([
    [
      { password: 'terminal' },
      null,
      '--ask-pass: cannot ask for the password: standard input or standard error is not a terminal. Use --ssh-password-stdin or the environment variable KUBELETADM_SSH_PASSWORD. [USAGE]',
    ],
    [
      { sudoPassword: 'terminal' },
      null,
      '--ask-become-pass: cannot ask for the password: standard input or standard error is not a terminal. Use --sudo-password-stdin or the environment variable KUBELETADM_SUDO_PASSWORD. [USAGE]',
    ],
    [{ sudoPassword: 'terminal' }, [''], '--ask-become-pass: the password is empty. Run the command again and type the password. [USAGE]'],
  ])('are refused: %o', async (request, answers, line) => {
    const { services } = localFiles(answers);
    const error: unknown = await readSshOptions(services, connection(request)).catch((thrown: unknown) => thrown);
    expect(isAppError(error) && error.exitCode === 2 ? error.problems.map(formatProblem) : error).toEqual([line]);
  });
});
