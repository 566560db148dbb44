import { describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/errors.ts';
import { hostCommandNotFound, hostUnreachable } from '../../../src/core/problems/host.ts';
import { Secret } from '../../../src/core/text/secret.ts';
import { asRoot, type Become } from '../../../src/engine/as-root.ts';
import type { RunOptions, Transport } from '../../../src/ports/transport.ts';

interface Answer {
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

/** Answers by what the command line begins with, and keeps account. A command nobody expects fails the test. */
function fakeTransport(
  answers: Readonly<Record<string, Answer | Error>>,
): Transport & { readonly ran: { line: string; stdin: string | undefined }[] } {
  const ran: { line: string; stdin: string | undefined }[] = [];
  return {
    name: 'n1',
    ran,
    run: async (argv: readonly string[], options: RunOptions = {}) => {
      const line = argv.join(' ');
      ran.push({ line, stdin: options.stdin });
      const key = Object.keys(answers).find((each) => line.startsWith(each));
      const answer = key === undefined ? new Error(`nobody expects ${line}`) : answers[key];
      if (answer instanceof Error) throw answer;
      const { exitCode = 0, stdout = '', stderr = '' } = answer ?? {};
      return { exitCode, signal: null, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
    },
    close: async () => undefined,
  };
}

const NEEDS_PASSWORD: Answer = { exitCode: 1, stderr: 'sudo: a password is required\n' };
const linesOf = (transport: { readonly ran: readonly { line: string }[] }): string[] => transport.ran.map(({ line }) => line);
const password = new Secret('s3cret');

describe('asRoot', () => {
  it('changes nothing for root, and asks once', async () => {
    const transport = fakeTransport({ 'id -u': { stdout: '0\n' }, echo: { stdout: 'hi' } });
    const root = asRoot(transport, { become: 'auto' });
    await Promise.all([root.run(['echo', '1']), root.run(['echo', '2'], { stdin: 'in' })]);
    expect(linesOf(transport)).toEqual(['id -u', 'echo 1', 'echo 2']);
    expect(transport.ran.at(-1)?.stdin).toBe('in');
  });

  it('puts sudo -n in front for others', async () => {
    const transport = fakeTransport({
      'id -u': { stdout: '1000\n' },
      'env LC_ALL=C sudo -n -- true': {},
      'sudo -n -- echo': { stdout: 'hi' },
    });
    const result = await asRoot(transport, { become: 'auto' }).run(['echo', '-n'], { stdin: 'in', timeoutMs: 5 });
    expect(Buffer.from(result.stdout).toString()).toBe('hi');
    expect(transport.ran.at(-1)).toEqual({ line: 'sudo -n -- echo -n', stdin: 'in' });
  });

  it.each<[Become, string[]]>([
    ['none', ['echo']],
    ['sudo', ['env LC_ALL=C sudo -n -- true', 'sudo -n -- echo']],
  ])('become %s does not ask who we are', async (become, expected) => {
    const transport = fakeTransport({ echo: {}, 'env LC_ALL=C sudo -n -- true': {}, 'sudo -n -- echo': {} });
    await asRoot(transport, { become }).run(['echo']);
    expect(linesOf(transport)).toEqual(expected);
  });

  it('gives the password on stdin, before what belongs to the command', async () => {
    const transport = fakeTransport({
      'id -u': { stdout: '1000\n' },
      'env LC_ALL=C sudo -n -- true': NEEDS_PASSWORD,
      'env LC_ALL=C sudo -S -k -p  -- true': {},
      'sudo -S -k -p  -- /bin/sh': {},
    });
    await asRoot(transport, { become: 'auto', sudoPassword: password }).run(['tee', 'f'], { stdin: 'content' });
    expect(transport.ran.map(({ stdin }) => stdin)).toEqual([
      undefined,
      undefined,
      's3cret\n',
      's3cret\nkubeletadm: standard input begins\ncontent',
    ]);
    expect(linesOf(transport).join()).not.toContain('s3cret');
  });

  it('does not use a password where sudo asks for none', async () => {
    const transport = fakeTransport({ 'env LC_ALL=C sudo -n -- true': {}, 'sudo -n -- echo': {} });
    await asRoot(transport, { become: 'sudo', sudoPassword: password }).run(['echo']);
    expect(transport.ran.map(({ stdin }) => stdin)).toEqual([undefined, undefined]);
  });

  const refused = (stderr: string): Answer => ({ exitCode: 1, stderr });
  it.each<[string, Answer | Error, string, string]>([
    ['no password', NEEDS_PASSWORD, 'HOST_SUDO_PASSWORD', 'sudo asks for a password'],
    ['not a sudoer', refused('sudo: dev is not in the sudoers file.\n'), 'HOST_NO_SUDO', 'dev is not in the sudoers file'],
    [
      'not allowed',
      refused('Sorry, user dev is not allowed to execute /usr/bin/true as root on n1.\n'),
      'HOST_NO_SUDO',
      'not allowed to execute',
    ],
    ['a terminal wanted', refused('sudo: sorry, you must have a tty to run sudo\n'), 'HOST_NO_SUDO', 'sudo wants a terminal'],
    ['no sudo', { exitCode: 127, stderr: "env: 'sudo': No such file or directory\n" }, 'HOST_NO_SUDO', 'there is no sudo'],
    ['no env', hostCommandNotFound({ host: 'n1', command: 'env' }), 'HOST_NO_SUDO', 'there is no sudo'],
    [
      'a broken sudo',
      refused('sudo: /etc/sudoers is world writable\nsudo: unable to initialize policy plugin\n'),
      'HOST_NO_SUDO',
      'unable to initialize',
    ],
  ])('%s', async (_, answer, code, text) => {
    const root = asRoot(fakeTransport({ 'env LC_ALL=C sudo -n -- true': answer }), { become: 'sudo' });
    await expect(root.run(['echo'])).rejects.toSatisfy((error) => isAppError(error, code) && error.message.includes(text));
  });

  it('tries a wrong password once only', async () => {
    const transport = fakeTransport({
      'env LC_ALL=C sudo -n': NEEDS_PASSWORD,
      'env LC_ALL=C sudo -S': refused('\nSorry, try again.\n\nsudo: no password was provided\nsudo: 1 incorrect password attempt\n'),
    });
    const root = asRoot(transport, { become: 'sudo', sudoPassword: password });
    await expect(root.run(['echo'])).rejects.toThrow('sudo does not accept the password');
    await expect(root.run(['echo'])).rejects.toThrow('sudo does not accept the password');
    expect(transport.ran).toHaveLength(2);
  });

  it('asks again after the host could not be reached', async () => {
    const transport = fakeTransport({ 'id -u': hostUnreachable({ host: 'n1', address: 'n1:22', why: 'connection refused' }) });
    const root = asRoot(transport, { become: 'auto' });
    await expect(root.run(['echo'])).rejects.toThrow('connection refused');
    await expect(root.run(['echo'])).rejects.toThrow('connection refused');
    expect(transport.ran).toHaveLength(2);
  });

  it.each<[string, Answer, string | null]>([
    ['a missing command', refused('sudo: kubelet: command not found\n'), 'HOST_COMMAND_NOT_FOUND'],
    ['a command that says so of another', refused('sudo: other: command not found\n'), null],
    ['a rule for this command', NEEDS_PASSWORD, 'HOST_SUDO_PASSWORD'],
    ['output before it failed', { ...NEEDS_PASSWORD, stdout: 'x' }, null],
    ['another exit code', { ...NEEDS_PASSWORD, exitCode: 2 }, null],
  ])('reads a failure: %s', async (_, answer, code) => {
    const root = asRoot(fakeTransport({ 'env LC_ALL=C sudo -n -- true': {}, 'sudo -n -- kubelet': answer }), { become: 'sudo' });
    const outcome = await root.run(['kubelet']).then(
      () => null,
      (error: unknown) => (isAppError(error) ? error.code : String(error)),
    );
    expect(outcome).toBe(code);
  });

  it('does not guess who we are', async () => {
    const root = asRoot(fakeTransport({ 'id -u': { stdout: 'nobody knows' } }), { become: 'auto' });
    await expect(root.run(['echo'])).rejects.toThrow('id -u did not say who we are');
  });

  it('ends the wait of who aborts', async () => {
    const transport: Transport = { name: 'n1', run: () => new Promise(() => undefined), close: async () => undefined };
    await expect(asRoot(transport, { become: 'auto' }).run(['echo'], { signal: AbortSignal.abort('enough') })).rejects.toBe('enough');
  });
});
