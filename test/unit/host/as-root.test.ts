import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/text/secret.ts';
import { asRoot } from '../../../src/host/as-root.ts';
import { hostCommandNotFound, hostUnreachable } from '../../../src/host/host-problems.ts';
import type { RunOptions, Transport } from '../../../src/host/transport.ts';
import { requirement } from '../../support/requirement.ts';
import { shellTransport } from '../../support/shell-transport.ts';
import { SHELLS } from '../../support/shells.ts';

interface Answer {
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

/** `first auto COMMAND` or `first sudo COMMAND` for the first command of a transport; null for later ones. */
function firstCommand(argv: readonly string[]): string | null {
  const [, become, words] =
    /^set -- (\w+) '.*?kubeletadm: sudo started the command.*?exec "\$@"' (.*?);case .*kubeletadm way:/s.exec(argv[2] ?? '') ?? [];
  return words === undefined ? null : `first ${become} ${words.replaceAll("'", '')}`;
}

/** The command line without the scripts, which only a shell can interpret: the tests below run them in real shells. */
function lineOf(argv: readonly string[]): string {
  return firstCommand(argv) ?? argv.map((word) => (word.includes('kubeletadm: sudo started') ? 'SCRIPT' : word)).join(' ');
}

/** Answers by the prefix of the command line and records it. An unexpected command fails the test. */
function fakeTransport(
  answers: Readonly<Record<string, Answer | Error>>,
): Transport & { readonly ran: { line: string; stdin: string | undefined }[] } {
  const ran: { line: string; stdin: string | undefined }[] = [];
  return {
    name: 'n1',
    ran,
    run: async (argv: readonly string[], options: RunOptions = {}) => {
      const line = lineOf(argv);
      ran.push({ line, stdin: options.stdin });
      const key = Object.keys(answers).find((each) => line.startsWith(each));
      const answer = key === undefined ? new Error(`unexpected command: ${line}`) : answers[key];
      if (answer instanceof Error) throw answer;
      const { exitCode = 0, stdout = '', stderr = '' } = answer ?? {};
      return { exitCode, signal: null, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
    },
    close: async () => undefined,
  };
}

const STARTED = 'kubeletadm: sudo started the command\n';
const SUDO: Answer = { stderr: `kubeletadm way: sudo\n${STARTED}` };
const STARTS: Answer = { stderr: STARTED };
const REFUSED: Answer = { exitCode: 1, stderr: 'kubeletadm way: sudo\nsudo: il est nécessaire de saisir un mot de passe\n' };
const NEEDS_PASSWORD: Answer = { exitCode: 1, stderr: 'sudo: a password is required\n' };
const NEEDS_AUTHENTICATION: Answer = { exitCode: 1, stderr: 'sudo-rs: interactive authentication is required\n' };
const linesOf = (transport: { readonly ran: readonly { line: string }[] }): string[] => transport.ran.map(({ line }) => line);
const password = new Secret('s3cret');

describe('asRoot', () => {
  it('detects the escalation method once, with the first command', async () => {
    const transport = fakeTransport({
      'first auto': { stdout: 'hi', stderr: 'kubeletadm way: directly\nwarning\n' },
      echo: { stdout: 'hi' },
    });
    const root = asRoot(transport, { become: 'auto' });
    const [first] = await Promise.all([root.run(['echo', '1'], { stdin: 'in' }), root.run(['echo', '2'], { stdin: 'in' })]);
    expect([first.stdout, first.stderr].map(String)).toEqual(['hi', 'warning\n']);
    expect(transport.ran).toEqual([
      { line: 'first auto echo 1', stdin: 'in' },
      { line: 'echo 2', stdin: 'in' },
    ]);
  });

  it('prefixes commands of other users with sudo -n', async () => {
    const transport = fakeTransport({ 'first auto': SUDO, 'sudo -n -- /bin/sh': { stdout: 'hi', stderr: `lecture\n${STARTED}warning\n` } });
    const root = asRoot(transport, { become: 'auto' });
    await root.run(['echo', '1']);
    const result = await root.run(['echo', '-n'], { stdin: 'in', timeoutMs: 5 });
    expect([result.stdout, result.stderr].map(String)).toEqual(['hi', 'warning\n']);
    expect(transport.ran.at(-1)).toEqual({ line: 'sudo -n -- /bin/sh -c SCRIPT sh echo -n', stdin: 'in' });
  });

  it.each<['auto' | 'sudo' | 'none', string[]]>([
    ['none', ['echo', 'echo']],
    ['sudo', ['first sudo echo', 'sudo -n -- /bin/sh -c SCRIPT sh echo']],
  ])('become %s does not query the remote user', async (become, expected) => {
    const transport = fakeTransport({ echo: {}, 'first sudo': SUDO, 'sudo -n -- ': STARTS });
    const root = asRoot(transport, { become });
    await root.run(['echo']);
    await root.run(['echo']);
    expect(linesOf(transport)).toEqual(expected);
  });

  it.each([
    ['sudo', NEEDS_PASSWORD],
    ['sudo-rs', NEEDS_AUTHENTICATION],
    ['an unknown implementation', { exitCode: 2, stderr: 'sudo: Authentifizierung notwendig\n' }],
    ['a sudo without messages', { exitCode: 1 }],
  ])('writes the password to stdin, before the input of the command: %s', async (_, answer) => {
    const transport = fakeTransport({
      'first auto': REFUSED,
      'env LC_ALL=C sudo -n -- /bin/sh': answer,
      'env LC_ALL=C sudo -S -k -p  -- /bin/sh': {},
      'sudo -S -k -p  -- /bin/sh': STARTS,
    });
    await asRoot(transport, { become: 'auto', sudoPassword: password }).run(['tee', 'f'], { stdin: 'content' });
    expect(transport.ran.map(({ stdin }) => stdin)).toEqual([
      'content',
      undefined,
      's3cret\n',
      `s3cret\n${'.'.repeat(8192)}\nkubeletadm: standard input begins\ncontent`,
    ]);
    expect(linesOf(transport).join()).not.toContain('s3cret');
  });

  it('never passes the password in a command line', async () => {
    const shown: string[] = [];
    const transport = fakeTransport({
      'first sudo': REFUSED,
      'sudo -n': NEEDS_PASSWORD,
      'env LC_ALL=C sudo -n': NEEDS_PASSWORD,
      env: {},
      sudo: STARTS,
    });
    const recording: Transport = {
      ...transport,
      run: (argv, options = {}) => {
        shown.push(argv.join(' '));
        return transport.run(argv, options);
      },
    };
    const root = asRoot(recording, { become: 'sudo', sudoPassword: password });
    for (let i = 0; i < 2; i++) await root.run(['cat'], { stdin: 'question\n' });
    expect(transport.ran.at(-1)?.stdin).toContain('s3cret');
    expect(shown.join('')).not.toContain('s3cret');
  });

  it('does not send a password when sudo requires none', async () => {
    const transport = fakeTransport({ 'first sudo': SUDO });
    await asRoot(transport, { become: 'sudo', sudoPassword: password }).run(['echo']);
    expect(transport.ran.map(({ stdin }) => stdin)).toEqual([undefined]);
  });

  const refused = (stderr: string): Answer => ({ exitCode: 1, stderr });
  it.each<[string, Answer | Error, string, string]>([
    ['no password', NEEDS_PASSWORD, 'HOST_SUDO_PASSWORD', 'sudo requires a password'],
    ['no password for sudo-rs', NEEDS_AUTHENTICATION, 'HOST_SUDO_PASSWORD', 'sudo requires a password'],
    [
      'no rights in sudo-rs',
      refused("sudo-rs: I'm sorry dev. I'm afraid I can't do that\n"),
      'HOST_NO_SUDO',
      "dev. I'm afraid I can't do that",
    ],
    ['an unknown text', refused('sudo: nein\n'), 'HOST_NO_SUDO', 'sudo failed: nein'],
    ['not a sudoer', refused('sudo: dev is not in the sudoers file.\n'), 'HOST_NO_SUDO', 'dev is not in the sudoers file'],
    [
      'not allowed',
      refused('Sorry, user dev is not allowed to execute /usr/bin/true as root on n1.\n'),
      'HOST_NO_SUDO',
      'not allowed to execute',
    ],
    ['a terminal wanted', refused('sudo: sorry, you must have a tty to run sudo\n'), 'HOST_NO_SUDO', 'sudo requires a terminal'],
    ['no sudo', { exitCode: 127, stderr: "env: 'sudo': No such file or directory\n" }, 'HOST_NO_SUDO', 'sudo is not installed'],
    ['no env', hostCommandNotFound({ host: 'n1', command: 'env' }), 'HOST_NO_SUDO', 'sudo is not installed'],
    [
      'a broken sudo',
      refused('sudo: /etc/sudoers is world writable\nsudo: unable to initialize policy plugin\n'),
      'HOST_NO_SUDO',
      'unable to initialize',
    ],
  ])('%s', async (_, answer, code, text) => {
    const root = asRoot(fakeTransport({ first: REFUSED, 'env LC_ALL=C sudo -n -- /bin/sh': answer }), { become: 'sudo' });
    await expect(root.run(['echo'])).rejects.toSatisfy((error) => isAppError(error, code) && error.message.includes(text));
  });

  it.each<[string, string, string, string]>([
    [
      'a wrong password for sudo',
      '\nSorry, try again.\n\nsudo: no password was provided\nsudo: 1 incorrect password attempt\n',
      'HOST_SUDO_PASSWORD',
      'sudo rejected the password',
    ],
    [
      'a wrong password for sudo-rs',
      '\nsudo: Authentication failed, try again.\n\nsudo-rs: Maximum 3 incorrect authentication attempts\n',
      'HOST_SUDO_PASSWORD',
      'sudo rejected the password',
    ],
    [
      'sudo for two commands',
      "\nSorry, user dev is not allowed to execute '/bin/sh -c :' as root on n1.\n",
      'HOST_NO_SUDO',
      'sudo does not allow this user to run all commands',
    ],
    ['an unknown text', 'sudo: Kennwort falsch\n', 'HOST_SUDO_PASSWORD', 'sudo failed with the given password: Kennwort falsch'],
    ['no text', '', 'HOST_SUDO_PASSWORD', 'sudo failed with the given password'],
  ])('sends the password only once after a refusal: %s', async (_, stderr, code, text) => {
    const transport = fakeTransport({ first: REFUSED, 'env LC_ALL=C sudo -n': NEEDS_PASSWORD, 'env LC_ALL=C sudo -S': refused(stderr) });
    const root = asRoot(transport, { become: 'sudo', sudoPassword: password });
    for (let i = 0; i < 2; i++)
      await expect(root.run(['echo'])).rejects.toSatisfy((error) => isAppError(error, code) && error.message.includes(text));
    expect(transport.ran).toHaveLength(3);
  });

  it('retries the detection after the host was unreachable', async () => {
    const transport = fakeTransport({ first: hostUnreachable({ host: 'n1', address: 'n1:22', why: 'connection refused' }) });
    const root = asRoot(transport, { become: 'auto' });
    await expect(root.run(['echo'])).rejects.toThrow('connection refused');
    await expect(root.run(['echo'])).rejects.toThrow('connection refused');
    expect(transport.ran).toHaveLength(2);
  });

  it.each<[string, Answer, string | null]>([
    ['a missing command', { exitCode: 127, stderr: 'lecture\nkubeletadm: sudo started the command missing\n' }, 'HOST_COMMAND_NOT_FOUND'],
    ['sudo requires a password for this command', NEEDS_PASSWORD, 'HOST_SUDO_PASSWORD'],
    ['sudo refuses in another language', { exitCode: 1, stderr: 'sudo: パスワードが必要です\n' }, 'HOST_NO_SUDO'],
    ["a command that prints sudo's message", { exitCode: 1, stderr: `${STARTED}sudo: a password is required\n` }, null],
    ['a command that fails', { exitCode: 1, stderr: `Password: ${STARTED}` }, null],
  ])('classifies a failure: %s', async (_, answer, code) => {
    const root = asRoot(fakeTransport({ first: SUDO, 'sudo -n -- /bin/sh': answer }), { become: 'sudo' });
    await root.run(['true']);
    const outcome = await root.run(['kubelet']).then(
      () => null,
      (error: unknown) => (isAppError(error) ? error.code : String(error)),
    );
    expect(outcome).toBe(code);
  });

  it('fails when the remote user is unknown', async () => {
    const unknown: Answer = { exitCode: 127, stderr: 'kubeletadm way: unknown no\u001b[2J user\n' };
    const root = asRoot(fakeTransport({ first: unknown }), { become: 'auto' });
    await expect(root.run(['echo'])).rejects.toThrow('cannot determine the remote user: id -u printed "no [2J user"');
  });

  it('stops waiting when the caller aborts', async () => {
    const transport: Transport = { name: 'n1', run: () => new Promise(() => undefined), close: async () => undefined };
    await expect(asRoot(transport, { become: 'auto' }).run(['echo'], { signal: AbortSignal.abort('enough') })).rejects.toBe('enough');
  });

  it('completes for other callers when the first caller aborts', async () => {
    const transport = fakeTransport({});
    const aborting = new AbortController();
    const runs: string[] = [];
    const slow: Transport = {
      ...transport,
      run: (argv, options) => {
        runs.push(lineOf(argv));
        if (runs.length > 1)
          return Promise.resolve({ exitCode: 0, signal: null, stdout: Buffer.alloc(0), stderr: Buffer.from('kubeletadm way: directly\n') });
        return new Promise((_, reject) => options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)));
      },
    };
    const root = asRoot(slow, { become: 'auto' });
    const first = root.run(['one'], { signal: aborting.signal }).catch((error: unknown) => error);
    const second = root.run(['two']);
    aborting.abort('enough');
    expect(await first).toBe('enough');
    expect((await second).exitCode).toBe(0);
    expect(runs).toEqual(['first auto one', 'first auto two']);
  });
});

describe.each(SHELLS)('the first command in $name', ({ name, missing, options }) => {
  const skipped = requirement(`asRoot in ${name}`, missing);
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-as-root-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** A transport to a shell whose PATH begins with these programs. */
  function shellWith(programs: Readonly<Record<string, string>>): Transport {
    const bin = mkdtempSync(join(directory, 'bin-'));
    for (const [program, script] of Object.entries(programs)) writeFileSync(join(bin, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    for (const path of [directory, bin]) chmodSync(path, 0o755);
    const shell = options(directory);
    // As root, run the shell as another user: asRoot detects real root without calling id.
    const user = programs.id === OTHER && process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    return shellTransport({ ...shell, ...user, env: { ...shell.env, PATH: `${bin}:${shell.env?.PATH ?? process.env.PATH}` } });
  }
  const inShell = (transport: Transport): Transport => ({
    ...transport,
    run: (argv, more) => transport.run(argv[0] === '/bin/sh' ? argv : ['/bin/sh', '-c', 'exec "$@"', 'sh', ...argv], more),
  });
  const ROOT = 'echo 0';
  const OTHER = 'echo 1000';
  const SUDO = '[ "$1 $2" = "-n --" ]||exit 9;shift 2;BECAME=root exec "$@"';
  const REPORT = ['/bin/sh', '-c', 'echo "${BECAME-unchanged} $*";cat;echo problem >&2;exit 3', 'sh', 'a  b', "it's\nnew"];

  it.skipIf(skipped).each<[string, Record<string, string>, 'auto' | 'sudo', string]>([
    ['root', { id: ROOT, sudo: 'exit 1' }, 'auto', 'unchanged'],
    ['another user with sudo rights', { id: OTHER, sudo: SUDO }, 'auto', 'root'],
    ['root with become: sudo', { id: ROOT, sudo: SUDO }, 'sudo', 'root'],
  ])('runs as %s, with its arguments, its stdin and its output streams', async (_, programs, become, user) => {
    const root = asRoot(shellWith(programs), { become });
    const { exitCode, stdout, stderr } = await root.run(REPORT, { stdin: 'in\n' });
    expect([exitCode, String(stdout), String(stderr)]).toEqual([3, `${user} a  b it's\nnew\nin\n`, 'problem\n']);
  });

  it.skipIf(skipped).each([
    ['a program', 'nosuchprogram'],
    ['a path', '/nonexistent/program'],
    ['a directory', '/etc'],
  ])('reports a program that does not exist: %s', async (_, program) => {
    await expect(asRoot(shellWith({ id: ROOT }), { become: 'auto' }).run([program])).rejects.toSatisfy((error) =>
      isAppError(error, 'HOST_COMMAND_NOT_FOUND'),
    );
  });

  /** sudo-rs 0.2.5: reads the password through a buffer of 8 KiB. */
  const BUFFERED =
    '[ "$1" = -n ]&&{ echo "sudo-rs: interactive authentication is required" >&2;exit 1;};shift 5;dd bs=8192 count=1 >/dev/null 2>&1;exec "$@"';
  it.skipIf(skipped).each([
    ['reads the line of the password', '[ "$1" = -n ]&&exit 1;shift 5;read -r l;[ "$l" = s3cret ]||exit 9;exec "$@"'],
    ['reads more than the line of the password', BUFFERED],
    ['requires no password for this command', '[ "$1" = -n ]&&exit 1;shift 5;exec "$@"'],
  ])('passes the input to the command when sudo %s', async (_, sudo) => {
    const transport = shellWith({ id: OTHER, sudo });
    const root = asRoot(inShell(transport), { become: 'auto', sudoPassword: password });
    for (let i = 0; i < 2; i++) {
      const { stdout } = await root.run(['/bin/sh', '-c', 'cat'], { stdin: 'first line\nsecond' });
      expect(String(stdout)).toBe('first line\nsecond');
    }
  });

  it.skipIf(skipped)('runs nothing when sudo refuses', async () => {
    const ran = join(directory, 'ran');
    const transport = shellWith({ id: OTHER, sudo: 'echo "sudo: a password is required" >&2;exit 1' });
    await expect(asRoot(inShell(transport), { become: 'auto' }).run(['/bin/sh', '-c', `touch ${ran}`])).rejects.toThrow(
      'sudo requires a password',
    );
    expect(existsSync(ran)).toBe(false);
  });
});
