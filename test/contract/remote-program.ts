import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../src/base/text/secret.ts';
import type { Host } from '../../src/host/access/host.ts';
import type { FactQuery, FileFact } from '../../src/host/facts/query.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Operation } from '../../src/host/operation/operation.ts';
import { renderOperations, shellLoader } from '../../src/host/remote-program.ts';
import { requirement } from '../support/requirement.ts';
import { type ShellOptions, shellTransport } from '../support/shell-transport.ts';
import { OTHER_SHELLS, onlyPrograms, type Shell } from '../support/shells.ts';

const isRoot = process.getuid?.() === 0;
const nonce = (): string => randomBytes(8).toString('hex');
const write = (path: string, content: string | SensitiveText = 'x\n', mode = 0o644): Operation => ({
  kind: 'write-file',
  path,
  content,
  mode,
  owner: 'root:root',
});
const putFile = (path: string, content: string): Operation => ({
  kind: 'put-file',
  path,
  mode: 0o755,
  owner: 'root:root',
  content: {
    sha256: createHash('sha256').update(content).digest('hex'),
    size: content.length,
    head: content,
    pieces: () => [gzipSync(content).toString('base64')],
  },
});
const run = (...argv: string[]): Operation => ({ kind: 'run', argv });

/**
 * The actions of a container with its own directory: it swaps a directory with a link for at most a minute,
 * and continues with the next directory when that exists.
 */
const SWAP = `
const { existsSync, renameSync, symlinkSync, unlinkSync } = require('node:fs');
const [root, target] = process.argv.slice(1);
const end = Date.now() + 60000;
const wait = () => { for (const until = process.hrtime.bigint() + BigInt(Math.floor(Math.random() * 2e6)); process.hrtime.bigint() < until; ); };
process.stdout.write('ready');
for (let k = 0; Date.now() < end; ) {
  if (existsSync(root + '/swap-' + (k + 1))) k++;
  const volume = root + '/swap-' + k + '/pods/volume';
  try {
    renameSync(volume, volume + '.aside');
    symlinkSync(target, volume);
    wait();
  } catch {}
  try {
    unlinkSync(volume);
    renameSync(volume + '.aside', volume);
    wait();
  } catch {}
}
`;
const SWAP_ATTEMPTS = OTHER_SHELLS ? 8 : 2;

/** The behaviour of the remote program in a shell, on the local host below a temporary root directory. */
export function remoteProgramContract(shell: Shell): void {
  describe.skipIf(requirement(`the remote program in ${shell.name}`, shell.missing))(`the remote program in ${shell.name}`, () => {
    let top = '';
    let root = '';
    let options: ShellOptions;
    let host: Host;

    beforeAll(() => {
      top = mkdtempSync(join(tmpdir(), 'remote-program-'));
      chmodSync(top, 0o755);
      options = shell.options(top);
    });
    afterAll(() => rmSync(top, { recursive: true, force: true }));
    beforeEach(() => {
      root = mkdtempSync(join(top, 'root-'));
      chmodSync(root, 0o755);
      host = hostOverTransport(shellTransport(options), { rootDir: root, nonce });
    });

    const at = (path: string): string => join(root, path);
    const put = (path: string, content: string | Uint8Array = 'x\n', mode = 0o644): void => {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), content);
      chmodSync(at(path), mode);
    };
    const link = (path: string, target: string): void => {
      mkdirSync(dirname(at(path)), { recursive: true });
      symlinkSync(target, at(path));
    };
    /** The same host as an unprivileged user, and as the system itself rather than a directory of it. */
    const asNobody = (): Host =>
      hostOverTransport(shellTransport({ ...options, ...(isRoot ? { uid: 65534, gid: 65534 } : {}) }), { rootDir: root, nonce });
    const onSystem = (): Host => hostOverTransport(shellTransport(options), { nonce });
    const query = async (path: string, question: Partial<Extract<FactQuery, { kind: 'file' }>> = {}): Promise<FileFact | null> =>
      (await host.query({ it: { kind: 'file', path, ...question } })).it;

    describe('files', () => {
      it('distinguishes every kind of file, in one round trip', async () => {
        put('/etc/plain', 'one\ntwo\n', 0o640);
        put('/etc/unfinished', 'no newline');
        put('/etc/empty', '');
        put('/etc/blank-lines', '\n\n\n');
        put('/etc/crlf', 'a\r\nb\r\n');
        put('/etc/setuid', 'x', 0o4755);
        mkdirSync(at('/etc/dir'), { mode: 0o700 });
        execFileSync('mkfifo', [at('/etc/fifo')]);
        link('/etc/relative', 'plain');
        link('/etc/absolute', '/etc/plain');
        link('/etc/chain', 'absolute');
        link('/etc/dangling', 'nowhere');
        link('/etc/loop', 'loop');
        link('/etc/masked', '/dev/null');
        link('/etc/to-dir', 'dir');
        const server = createServer().listen(at('/etc/socket'));
        await new Promise((resolve) => server.once('listening', resolve));
        const names = readdirSync(at('/etc')).filter((name) => name !== 'loop');
        const answers = await host.query(
          Object.fromEntries(
            [...names, 'missing', 'plain/below', 'no/such'].map((name) => [name, { kind: 'file', path: `/etc/${name}` } as const]),
          ),
        );
        server.close();
        const owner = isRoot ? 'root:root' : expect.any(String);
        const modifiedAt = expect.any(Number);
        const plain = { type: 'file', mode: 0o640, owner, content: 'one\ntwo\n', modifiedAt };
        expect(answers).toEqual({
          plain,
          unfinished: { type: 'file', mode: 0o644, owner, content: 'no newline', modifiedAt },
          empty: { type: 'file', mode: 0o644, owner, content: '', modifiedAt },
          'blank-lines': { type: 'file', mode: 0o644, owner, content: '\n\n\n', modifiedAt },
          crlf: { type: 'file', mode: 0o644, owner, content: 'a\r\nb\r\n', modifiedAt },
          setuid: { type: 'file', mode: 0o4755, owner, content: 'x', modifiedAt },
          dir: { type: 'directory', mode: 0o700, owner },
          fifo: { type: 'other', mode: expect.any(Number), owner },
          socket: { type: 'socket', mode: expect.any(Number), owner },
          relative: { ...plain, target: '/etc/plain' },
          absolute: { ...plain, target: '/etc/plain' },
          chain: { ...plain, target: '/etc/plain' },
          dangling: null,
          masked: { type: 'other', mode: 0o666, owner: 'root:root', target: '/dev/null' },
          'to-dir': { type: 'directory', mode: 0o700, owner, target: '/etc/dir' },
          missing: null,
          'plain/below': null,
          'no/such': null,
        });
      });

      it('reports the modification time in seconds', async () => {
        put('/f');
        utimesSync(at('/f'), 1_700_000_000, 1_700_000_000.9);
        link('/to-f', 'f');
        expect([(await query('/f'))?.modifiedAt, (await query('/to-f'))?.modifiedAt]).toEqual([1_700_000_000, 1_700_000_000]);
      });

      it('reports circular links', async () => {
        link('/a', 'b');
        link('/b', 'a');
        await expect(query('/a')).rejects.toMatchObject({
          code: 'HOST_OPERATION_FAILED',
          message: expect.stringContaining('symbolic links'),
        });
      });

      it('follows links as a host with that root would, never outside the root', async () => {
        put('/data/kubelet/config.yaml', 'inside\n');
        link('/var/lib/kubelet', '/data/kubelet');
        link('/etc/up', '../../../../../../../../etc/hostname');
        link('/etc/passwd-link', '/etc/passwd');
        expect(await query('/var/lib/kubelet/config.yaml')).toMatchObject({ content: 'inside\n' });
        expect(await query('/var/lib/../lib/kubelet/./config.yaml')).toMatchObject({ content: 'inside\n' });
        expect(await query('/etc/up')).toBeNull();
        expect(await query('/etc/passwd-link')).toBeNull();
      });

      it('reads files with any name', async () => {
        const names = [
          'a b',
          ' lead',
          "it's",
          'q"q',
          '-n',
          '--help',
          'new\nline',
          '$(id)',
          '`id`',
          '*',
          '[a]',
          'back\\slash',
          'über 日本',
          '\t',
          ';x',
          '#x',
          '!x',
          '~',
          'a&b',
        ];
        for (const name of names) put(`/n/${name}`, `${name} content`);
        const answers = await host.query(Object.fromEntries(names.map((name) => [name, { kind: 'file', path: `/n/${name}` } as const])));
        expect(Object.fromEntries(Object.entries(answers).map(([name, fact]) => [name, fact?.content]))).toEqual(
          Object.fromEntries(names.map((name) => [name, `${name} content`])),
        );
      });

      /** A host that finds these scripts before the programs of the same name. */
      const withScripts = (scripts: Readonly<Record<string, string>>): Host => {
        const bin = mkdtempSync(join(top, 'bin-'));
        for (const [name, script] of Object.entries(scripts)) writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
        const env = { ...options.env, PATH: `${bin}:${options.env?.PATH ?? process.env.PATH}` };
        return hostOverTransport(shellTransport({ ...options, env }), { rootDir: root, nonce });
      };
      const files = (...paths: string[]) => Object.fromEntries(paths.map((path) => [path, { kind: 'file', path } as const]));

      // Busybox may run its own stat instead of the one in PATH.
      it.skipIf(shell.name === 'busybox')('reports a file that disappears while it is read as missing', async () => {
        for (const name of ['a', 'b', 'c']) put(`/etc/${name}`, `${name}\n`);
        const stat = `for word; do case $word in */etc/b) rm -f "$word";; esac; done; exec /bin/stat "$@"`;
        const answers = await withScripts({ stat }).query(files('/etc/a', '/etc/b', '/etc/c'));
        expect([answers['/etc/a']?.content, answers['/etc/b'], answers['/etc/c']?.content]).toEqual(['a\n', null, 'c\n']);
      });

      it('reads files without a size next to files with one', async () => {
        put('/etc/one', '1\n');
        const paths = ['/proc/sys/kernel/ostype', '/sys/kernel/mm/transparent_hugepage/enabled', '/proc/sys/fs/file-max'];
        const answers = await onSystem().query(files(at('/etc/one'), ...paths, at('/etc/one')));
        for (const path of paths.filter((each) => existsSync(each))) expect(answers[path]?.content).toBe(readFileSync(path, 'utf8'));
        expect(answers[at('/etc/one')]?.content).toBe('1\n');
      });

      it('reads 256 KiB, and bytes that are not text', async () => {
        const big = `${'0123456789abcdef'.repeat(16_383)}\nthat is the end`;
        put('/big', big);
        put(
          '/binary',
          Uint8Array.from({ length: 256 }, (_, i) => i),
        );
        const { large, binary } = await host.query({ large: { kind: 'file', path: '/big' }, binary: { kind: 'file', path: '/binary' } });
        expect(large?.content === big).toBe(true);
        expect(binary?.content).toMatch(/^\0\u0001/);
        expect(binary?.content).toContain('\ufffd');
      });

      it('rejects a file that is one byte larger than 256 KiB', async () => {
        put('/big', 'x'.repeat(262_145));
        await expect(query('/big')).rejects.toThrow(/\/big: the file has 262145 bytes, but the limit is 262144 bytes/);
      });

      it('reads no content that was not requested', async () => {
        put('/f', 'secret');
        expect(await query('/f', { content: false })).not.toHaveProperty('content');
      });

      it('returns numbers for owners without a name', async (context) => {
        if (!isRoot) context.skip('only root may change owners');
        put('/f');
        execFileSync('chown', ['54321:54322', at('/f')]);
        expect((await query('/f'))?.owner).toBe('54321:54322');
        execFileSync('chown', ['0:54322', at('/f')]);
        expect((await query('/f'))?.owner).toBe('root:54322');
      });

      it('reports an unreadable file as such and not as missing', async () => {
        put('/closed/f');
        put('/f', 'x', 0o000);
        chmodSync(at('/closed'), isRoot ? 0o700 : 0o000);
        const nodes = asNobody();
        for (const path of ['/f', '/closed/f', '/closed/missing']) {
          await expect(nodes.query({ it: { kind: 'file', path } }), path).rejects.toMatchObject({
            code: 'HOST_PERMISSION_DENIED',
            message: expect.stringMatching(`^local: cannot read ${path}: .*ermission denied`),
          });
        }
        await expect(nodes.query({ it: { kind: 'list', path: '/closed' } })).rejects.toMatchObject({ code: 'HOST_PERMISSION_DENIED' });
        expect((await nodes.query({ it: { kind: 'file', path: '/f', content: false } })).it?.mode).toBe(0);
        const absent = (path: string) => nodes.query({ it: { kind: 'file', path, denied: 'absent' } });
        expect((await absent('/closed/deep/missing')).it).toBeNull();
        await expect(absent('/f')).rejects.toMatchObject({ code: 'HOST_PERMISSION_DENIED' });
        chmodSync(at('/closed'), 0o700);
      });
    });

    it('lists directories', async () => {
      for (const name of ['b', 'a c', '.hidden']) put(`/d/${name}`);
      mkdirSync(at('/empty'));
      link('/to-d', 'd');
      const path = (name: string) => ({ kind: 'list', path: name }) as const;
      const { d, empty, linked, file, missing } = await host.query({
        d: path('/d'),
        empty: path('/empty'),
        linked: path('/to-d'),
        file: path('/d/b'),
        missing: path('/x'),
      });
      expect(d).toEqual(['.hidden', 'a c', 'b']);
      expect(linked).toEqual(d);
      expect([empty, file, missing]).toEqual([[], null, null]);
      const [own, here] = [await onSystem().query({ it: path('/') }), await host.query({ it: path('/') })];
      expect(own.it).toContain('etc');
      expect(here.it).not.toContain('etc');
    });

    it('reads /proc of the running system, where links differ per process', async () => {
      const file = (path: string) => ({ kind: 'file', path }) as const;
      const { mounts, tcp } = await onSystem().query({ mounts: file('/proc/self/mounts'), tcp: file('/proc/net/tcp') });
      expect(mounts?.content).toMatch(/ \/proc proc /);
      expect(tcp?.content).toMatch(/^ +sl +local_address/);
    });

    it('runs commands on the system itself, each isolated from the others', async () => {
      const sh = (script: string) => ({ kind: 'command', argv: ['sh', '-c', script] }) as const;
      const answers = await onSystem().query({
        both: sh('echo out; echo err >&2; exit 3'),
        unfinished: sh('printf a; printf b >&2'),
        missing: { kind: 'command', argv: ['no-such-program', '--x'] },
        stdin: { kind: 'command', argv: ['cat'] },
        killed: sh('kill -9 $$'),
        words: { kind: 'command', argv: ['printf', '[%s]', '', 'a b', "it's", '$HOME', '*', 'new\nline', '\\', '-n'] },
        directory: sh('cd /; R=lost B=lost; exit 0'),
        after: sh('echo still here'),
      });
      expect(answers.both).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
      expect(answers.unfinished).toEqual({ exitCode: 0, stdout: 'a', stderr: 'b' });
      expect(answers.missing).toMatchObject({ exitCode: 127, stdout: '', stderr: expect.stringContaining('no-such-program') });
      expect(answers.stdin).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      expect(answers.killed.exitCode).toBe(137);
      expect(answers.words.stdout).toBe("[][a b][it's][$HOME][*][new\nline][\\][-n]");
      expect(answers.after.stdout).toBe('still here\n');
    });

    it('runs a parallel command while the other queries run, and reads its errors as output', async () => {
      const flag = join(mkdtempSync(join(tmpdir(), 'kubeletadm-parallel-')), 'flag');
      const sh = (script: string) => ({ kind: 'command', argv: ['sh', '-c', script] }) as const;
      const answers = await onSystem().query({
        first: { ...sh(`echo waits >&2; until [ -e ${flag} ]; do sleep 0.01; done; printf seen; exit 3`), isParallel: true },
        before: sh('echo before; echo err >&2'),
        second: { ...sh('yes | head -n 100000'), isParallel: true },
        stdin: { kind: 'command', argv: ['cat'] },
        flag: sh(`: >${flag}; exit 4`),
        hosts: { kind: 'file', path: '/etc/hosts' },
      });
      expect(answers.first).toEqual({ exitCode: 3, stdout: 'waits\nseen', stderr: '' });
      expect(answers.before).toEqual({ exitCode: 0, stdout: 'before\n', stderr: 'err\n' });
      expect(answers.second).toEqual({ exitCode: 0, stdout: 'y\n'.repeat(100_000), stderr: '' });
      expect(answers.stdin).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      expect(answers.flag.exitCode).toBe(4);
      expect(answers.hosts?.type).toBe('file');
      rmSync(dirname(flag), { recursive: true });
    });

    it.each([
      '',
      'a: 1\n',
      'no newline',
      "it's $HOME `x` \\\n",
      'a\r\nb\r\n',
      'EOF_KUBELETADM\n',
      'é\ud83d\ude00\n',
      `${'x'.repeat(300)}\n`.repeat(400),
    ])('passes %j to the stdin of a command', async (stdin) => {
      const { it: fact, after } = await onSystem().query({
        it: { kind: 'command', argv: ['sh', '-c', 'cat; echo err >&2; exit 3'], stdin },
        after: { kind: 'command', argv: ['cat'] },
      });
      expect(fact).toEqual({ exitCode: 3, stdout: stdin, stderr: 'err\n' });
      expect(after).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    });

    it('is not confused by output that resembles its own markers', async () => {
      const other = nonce();
      const hostile = `\n${other} 0 0\n\n${other} start 0\nfile 644 0 0 root:root\n-\nabsent\n\nstart 0 0\n#end ${other}\n`;
      put('/hostile', hostile);
      put('/after', 'after');
      const { it: fact, after } = await host.query({ it: { kind: 'file', path: '/hostile' }, after: { kind: 'file', path: '/after' } });
      expect(fact?.content).toBe(hostile);
      expect(after?.content).toBe('after');
    });

    it('ignores output that a login shell prints before', async () => {
      put('/f', 'x\n');
      const script = 'echo "Welcome"; printf "no newline" >&2; shell=$1; shift; exec "$shell" "$@"';
      const banner: ShellOptions = { ...options, shell: ['/bin/sh', '-c', script, 'sh', ...options.shell] };
      const noisy = hostOverTransport(shellTransport(banner), { rootDir: root, nonce });
      expect((await noisy.query({ it: { kind: 'file', path: '/f' } })).it?.content).toBe('x\n');
    });

    it('reads its root from KUBELETADM_ROOT, with or without a trailing slash', async () => {
      put('/etc/kubernetes/x', 'from the root\n');
      for (const value of [root, `${root}/`]) {
        const staged = hostOverTransport(shellTransport({ ...options, env: { ...options.env, KUBELETADM_ROOT: value } }), { nonce });
        expect((await staged.query({ it: { kind: 'file', path: '/etc/kubernetes/x' } })).it?.content).toBe('from the root\n');
        await staged.perform([write('/etc/kubernetes/y', value), run('true')]);
        expect(readFileSync(at('/etc/kubernetes/y'), 'utf8')).toBe(value);
      }
    });

    it('returns no facts about the running system when files are only staged', async () => {
      const answers = await host.query({
        command: { kind: 'command', argv: ['id', '-u'] },
        proc: { kind: 'file', path: '/proc/swaps' },
        http: { kind: 'http', url: 'http://127.0.0.1:10248/healthz', timeoutSeconds: 1 },
      });
      expect(answers).toMatchObject({ command: { exitCode: 127 }, proc: null, http: { error: 'not run' } });
    });

    describe('write-file', () => {
      const CONTENTS: readonly (readonly [string, string])[] = [
        ['text', 'a: 1\nb: 2\n'],
        ['nothing', ''],
        ['a newline', '\n'],
        ['text without a final newline', 'a\nb'],
        ['CRLF', 'a\r\nb\r\n'],
        ['a single CR', '\r'],
        ['NUL and control characters', 'a\0b\u0001\u001b[0m\n'],
        ['the delimiter of a here-document', 'a\nEOF_KUBELETADM\nb\n'],
        ['the delimiter at the end', 'a\nEOF_KUBELETADM'],
        ['the delimiter in a line', 'x EOF_KUBELETADM\nEOF_KUBELETADM \n'],
        ['shell syntax', '$(touch /tmp/no) `id` "$HOME" \\ \'quoted\' ${R}\n#end\n'],
        ['backslashes at line ends', 'a\\\nb\\\\\n\\\n'],
        ['Unicode', 'zoë 日本 😀 \u2028\n'],
        ['a byte order mark', '\ufeffa\n'],
        ['tabs and spaces at line ends', '\t a \n \t\n'],
        ['256 KiB', `${'0123456789abcde\n'.repeat(16_384)}`],
        ['256 KiB in one line without an end', '0123456789abcdef'.repeat(16_384)],
      ];

      it('writes any content, and reads it back', async () => {
        await host.perform(CONTENTS.map(([, content], i) => write(`/w/${i}`, content)));
        for (const [i, [name, content]] of CONTENTS.entries()) {
          expect(readFileSync(at(`/w/${i}`), 'utf8') === content, name).toBe(true);
          expect((await query(`/w/${i}`))?.content === content, name).toBe(true);
        }
        expect(existsSync('/tmp/no')).toBe(false);
      });

      it('replaces atomically: new inode, no temporary files, the given mode', async () => {
        put('/etc/kubernetes/kubelet.conf', 'old\n', 0o600);
        writeFileSync(at('/etc/kubernetes/.kubelet.conf.kubeletadm.999'), 'left by a run that was killed');
        const before = statSync(at('/etc/kubernetes/kubelet.conf')).ino;
        await host.perform([write('/etc/kubernetes/kubelet.conf', 'new\n', 0o640)]);
        const after = statSync(at('/etc/kubernetes/kubelet.conf'));
        expect(after.ino).not.toBe(before);
        expect(after.mode & 0o7777).toBe(0o640);
        expect(readFileSync(at('/etc/kubernetes/kubelet.conf'), 'utf8')).toBe('new\n');
        expect(readdirSync(at('/etc/kubernetes'))).toEqual(['kubelet.conf']);
      });

      describe('in a directory that others may write to', () => {
        /** Links to a file of the host under names with the given suffixes, created by another user. */
        const plant = (names: readonly string[]): void => {
          put('/victim', 'theirs\n');
          mkdirSync(at('/shared'));
          chmodSync(at('/shared'), 0o1777);
          for (const name of names) {
            symlinkSync(at('/victim'), at(`/shared/${name}`));
            if (isRoot) lchownSync(at(`/shared/${name}`), 65534, 65534);
          }
        };
        /** The process ids of the next processes. */
        const nextProcesses = (): readonly number[] => {
          const last = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
          return Array.from({ length: 1_000 }, (_, i) => last + i);
        };
        const secret = new SensitiveText([new Secret('hush'), '\n']);

        it('writes nothing through links with predictable names', async () => {
          plant(nextProcesses().flatMap((id) => [`.f.kubeletadm.${id}.0`, `.f.kubeletadm.${id}.1`]));
          await host.perform([{ ...write('/shared/f', '', 0o600), content: secret } as Operation, write('/shared/f', 'x', 0o600)]);
          expect(readFileSync(at('/victim'), 'utf8')).toBe('theirs\n');
          expect(readFileSync(at('/shared/f'), 'utf8')).toBe('x');
          expect(lstatSync(at('/shared/f'))).toMatchObject({ mode: 0o100600 });
          expect(readdirSync(at('/shared'))).toEqual(['f']);
        });

        it.each([
          ['text', () => write('/shared/f', 'hush\n', 0o600)],
          ['binary content', () => write('/shared/f', 'hush\0', 0o600)],
          ['a large file', () => putFile('/shared/f', 'hush')],
        ] as const)('writes nothing under an existing name: %s', async (_, operation) => {
          plant(['.f.kubeletadm.f00d.0', '.f.kubeletadm.f00d', '.f.kubeletadm.f00d.x']);
          const foretold = hostOverTransport(shellTransport(options), { rootDir: root, nonce: () => 'f00d' });
          await expect(foretold.perform([operation()])).rejects.toMatchObject({
            message: expect.stringMatching(/^local: cannot write \/shared\/f: .*(File exists|existing file|cannot create)/),
          });
          expect(readFileSync(at('/victim'), 'utf8')).toBe('theirs\n');
          expect(existsSync(at('/shared/f'))).toBe(false);
        });
      });

      it('writes the same path twice, the last content wins', async () => {
        await host.perform([write('/f', 'one\n'), write('/g'), write('/f', 'two\n', 0o600)]);
        expect([readFileSync(at('/f'), 'utf8'), statSync(at('/f')).mode & 0o777]).toEqual(['two\n', 0o600]);
        expect(readdirSync(root).sort()).toEqual(['f', 'g']);
      });

      it.each([0o644, 0o640, 0o600, 0o400, 0o755, 0o666, 0o000])('sets mode %o', async (mode) => {
        await host.perform([write('/f', 'x\n', mode)]);
        expect(statSync(at('/f')).mode & 0o7777).toBe(mode);
      });

      it('creates missing parents that are searchable for all', async () => {
        await host.perform([write('/a/b/c/f', 'x', 0o600)]);
        expect(['/a', '/a/b', '/a/b/c'].map((path) => statSync(at(path)).mode & 0o777)).toEqual([0o755, 0o755, 0o755]);
        expect(statSync(at('/a/b/c/f')).mode & 0o777).toBe(0o600);
      });

      it('follows links within the root, and keeps the links', async () => {
        put('/data/real', 'old');
        link('/etc/link', '/data/real');
        link('/var/lib/kubelet', '/data/kubelet');
        link('/etc/dangling', '../data/new');
        const outside = mkdtempSync(join(top, 'outside-'));
        link('/etc/outside', `${outside}/f`);
        await host.perform([write('/etc/link'), write('/var/lib/kubelet/config.yaml'), write('/etc/dangling'), write('/etc/outside')]);
        expect(
          ['/etc/link', '/etc/dangling', '/etc/outside', '/var/lib/kubelet'].map((path) => lstatSync(at(path)).isSymbolicLink()),
        ).toEqual([true, true, true, true]);
        expect(['/data/real', '/data/kubelet/config.yaml', '/data/new'].map((path) => readFileSync(at(path), 'utf8'))).toEqual([
          'x\n',
          'x\n',
          'x\n',
        ]);
        expect(readdirSync(outside)).toEqual([]);
        expect(readlinkSync(at('/etc/link'))).toBe('/data/real');
      });

      it('writes files with any name', async () => {
        const names = ['a b', "it's", '-rf', 'new\nline', '$(id)', '*', 'back\\slash', '日本'];
        await host.perform(names.map((name) => write(`/n n/${name}`, name)));
        expect(readdirSync(at('/n n')).sort()).toEqual([...names].sort());
      });

      it('writes the revealed value of a secret', async () => {
        await host.perform([write('/s', new SensitiveText(['token: ', new Secret('hush'), '\n']), 0o600)]);
        expect(readFileSync(at('/s'), 'utf8')).toBe('token: hush\n');
      });

      it('sets the owner as root, and keeps it as another user', async () => {
        await host.perform([{ ...write('/f'), owner: isRoot ? '1234:4321' : '0:0' } as Operation]);
        const { uid, gid } = statSync(at('/f'));
        expect([uid, gid]).toEqual(isRoot ? [1234, 4321] : [process.getuid?.(), process.getgid?.()]);
      });

      it.each([
        ['a directory', (path: string) => mkdirSync(path)],
        ['a fifo', (path: string) => execFileSync('mkfifo', [path])],
      ])('never replaces %s by a file', async (_, make) => {
        make(at('/thing'));
        await expect(host.perform([write('/thing')])).rejects.toMatchObject({
          code: 'HOST_OPERATION_FAILED',
          message: expect.stringContaining('cannot write /thing: '),
        });
        expect(lstatSync(at('/thing')).isFile()).toBe(false);
      });

      it('never changes /dev/null of the system, though a link leads to it', async () => {
        const unit = join(root, 'masked.service');
        symlinkSync('/dev/null', unit);
        await expect(onSystem().perform([write(unit)])).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
        expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
      });
    });

    describe('other operations', () => {
      it('creates directories, corrects their mode, removes files and empties directories', async () => {
        put('/gone');
        put('/full/a/b');
        put('/full/.c');
        link('/full/link', '/gone-too');
        put('/gone-too');
        link('/dead', 'nowhere');
        mkdirSync(at('/loose'), { mode: 0o777 });
        await host.perform([
          { kind: 'make-directory', path: '/new/deep', mode: 0o700, owner: 'root:root' },
          { kind: 'make-directory', path: '/loose', mode: 0o755, owner: 'root:root' },
          { kind: 'remove-file', path: '/gone' },
          { kind: 'remove-file', path: '/dead' },
          { kind: 'remove-file', path: '/never/was' },
          { kind: 'empty-directory', path: '/full' },
          { kind: 'empty-directory', path: '/no-such' },
          { kind: 'unmount-below', path: '/no-such', flags: [] },
        ]);
        expect(statSync(at('/new/deep')).mode & 0o777).toBe(0o700);
        expect(statSync(at('/loose')).mode & 0o777).toBe(0o755);
        expect(readdirSync(root).sort()).toEqual(['full', 'gone-too', 'loose', 'new']);
        expect(readdirSync(at('/full'))).toEqual([]);
      });

      it('moves a link itself and keeps its target', async () => {
        put('/pki/client-1.pem');
        link('/pki/current.pem', '/pki/client-1.pem');
        await host.perform([{ kind: 'move-file', path: '/pki/current.pem', to: '/tmp/aside/current.pem' }]);
        expect(readdirSync(at('/pki'))).toEqual(['client-1.pem']);
        expect(lstatSync(at('/tmp/aside/current.pem')).isSymbolicLink()).toBe(true);
      });

      it('empties the target of a link, within the root', async () => {
        put('/data/kubelet/x');
        link('/var/lib/kubelet', '/data/kubelet');
        await host.perform([{ kind: 'empty-directory', path: '/var/lib/kubelet' }]);
        expect(readdirSync(at('/data/kubelet'))).toEqual([]);
        expect(lstatSync(at('/var/lib/kubelet')).isSymbolicLink()).toBe(true);
      });

      /**
       * Hosts whose find(1) deletes by directory handles, and those without it, where the shell itself
       * deletes.
       */
      const FINDS = [
        ['with the find of the host', (): Host => host],
        [
          'without find',
          (): Host => {
            const { PATH } = options.env ?? {};
            const path = join(top, 'no-find');
            if (!existsSync(path)) {
              if (PATH === undefined) onlyPrograms(path, ['cat', 'id', 'ls', 'printf', 'readlink', 'rm', 'rmdir', 'sed', 'sync']);
              else {
                cpSync(PATH, path, { recursive: true, verbatimSymlinks: true });
                rmSync(join(path, 'find'));
              }
            }
            return hostOverTransport(shellTransport({ ...options, env: { ...options.env, PATH: path } }), { rootDir: root, nonce });
          },
        ],
      ] as const;

      describe.each(FINDS)('empties a directory %s:', (find, emptyingHost) => {
        const empty = (path: string) => emptyingHost().perform([{ kind: 'empty-directory', path }]);

        it('removes files with any names, but no target of a link', async () => {
          put('/victim/f');
          for (const name of ['plain', '.hidden', '..two', '-rf', 'a b', 'new\nline', 'end\n', '*', "it's", '\\', '"', '\u{1f600}']) {
            put(`/d/${name}/sub/${name}`);
            put(`/d/${name}/${name}.txt`);
          }
          link('/d/to-directory', at('/victim'));
          link('/d/plain/to-directory', '../../victim');
          link('/d/dangling', 'nowhere');
          execFileSync('mkfifo', [at('/d/plain/fifo')]);
          // Only root can read this directory.
          if (isRoot) mkdirSync(at('/d/no-entry'), { mode: 0 });
          for (let i = 0; i < 500; i++) put(`/d/many/${i}`);
          await empty('/d');
          expect(readdirSync(at('/d'))).toEqual([]);
          expect(readdirSync(at('/victim'))).toEqual(['f']);
        });

        // GNU find behaves the same in every shell; busybox's find is not used.
        const isTried = find === 'without find' ? shell.name !== 'busybox' : ['dash', 'busybox'].includes(shell.name);
        it.runIf(isTried)('never leaves the directory while another process swaps a directory in it for a link', async () => {
          for (let i = 0; i < 100; i++) put(`/target/f${i}`);
          const swapper = spawn(process.execPath, ['-e', SWAP, root, at('/target')], { stdio: ['ignore', 'pipe', 'inherit'] });
          const ended = new Promise((resolve) => swapper.once('exit', resolve));
          try {
            await new Promise((resolve) => swapper.stdout.once('data', resolve));
            for (let attempt = 0; attempt < SWAP_ATTEMPTS; attempt++) {
              for (let i = 0; i < 100; i++) put(`/new/pods/volume/f${i}`);
              for (let i = 0; i < 20; i++) put(`/new/pods/other-${i}/f`);
              renameSync(at('/new'), at(`/swap-${attempt}`));
              // The command may fail: the directory changes continuously.
              await empty(`/swap-${attempt}`).catch(() => undefined);
              expect(readdirSync(at('/target')), `attempt ${attempt + 1}`).toHaveLength(100);
            }
          } finally {
            swapper.kill('SIGKILL');
            await ended;
          }
        });

        it('rejects a directory with a mount below it, also from the same file system', async (context) => {
          if (!isRoot) context.skip('only root may mount');
          put('/data/precious');
          put('/d/pods/file');
          mkdirSync(at('/d/pods/a b'));
          execFileSync('mount', ['--bind', at('/data'), at('/d/pods/a b')]);
          try {
            await expect(empty('/d')).rejects.toMatchObject({
              message: expect.stringMatching(/^local: cannot empty \/d: .*\/d\/pods\/a b is a mount point/),
            });
            expect(readdirSync(at('/data'))).toEqual(['precious']);
            expect(existsSync(at('/d/pods/file'))).toBe(true);
          } finally {
            execFileSync('umount', [at('/d/pods/a b')]);
          }
          await empty('/d');
          expect([readdirSync(at('/d')), readdirSync(at('/data'))]).toEqual([[], ['precious']]);
        });
      });

      it('unmounts all mounts below a directory, the innermost first', async (context) => {
        if (!isRoot) context.skip('only root may mount');
        const mounts = [
          '/var/lib/kubelet/pods/a b',
          '/var/lib/kubelet/pods/a b/inner',
          '/var/lib/kubelet/pods/back\\slash',
          '/var/lib/kubelet-other',
        ];
        for (const path of mounts) {
          mkdirSync(at(path), { recursive: true });
          execFileSync('mount', ['-t', 'tmpfs', 'none', at(path)]);
          if (path.endsWith('a b')) mkdirSync(at(`${path}/inner`));
        }
        try {
          await host.perform([{ kind: 'unmount-below', path: '/var/lib/kubelet', flags: [] }]);
          const left = readFileSync('/proc/self/mounts', 'utf8')
            .split('\n')
            .filter((line) => line.includes(root));
          expect(left).toEqual([expect.stringContaining('kubelet-other')]);
        } finally {
          for (const path of mounts.toReversed()) {
            try {
              execFileSync('umount', [at(path)], { stdio: 'ignore' });
            } catch {
              // The directory is already unmounted.
            }
          }
        }
      });

      it('runs commands and accepts their allowed exit codes', async () => {
        await expect(onSystem().perform([{ kind: 'run', argv: ['sh', '-c', 'exit 3'], okExit: [0, 3] }])).resolves.toBeUndefined();
        await expect(onSystem().perform([run('sh', '-c', 'echo "the reason" >&2; exit 3')])).rejects.toMatchObject({
          code: 'HOST_OPERATION_FAILED',
          message: expect.stringMatching(/^local: sh -c .* failed: the reason\. .*\[HOST_OPERATION_FAILED\]$/),
          detail: 'the reason\n',
        });
        await expect(onSystem().perform([{ ...run('sh', '-c', 'exit 4'), what: 'the task' } as Operation])).rejects.toMatchObject({
          message: expect.stringContaining('local: the task failed: the program printed no error message'),
        });
      });
    });

    describe('after a failure', () => {
      it('runs no further operation, and reports the finished ones in order', async () => {
        put('/file');
        const done: number[] = [];
        const operations = [write('/1'), { kind: 'remove-file', path: '/2' } as const, write('/file/below'), write('/4')];
        await expect(host.perform(operations, { onDone: (index) => done.push(index) })).rejects.toMatchObject({
          code: 'HOST_OPERATION_FAILED',
          message: expect.stringMatching(/^local: cannot write \/file\/below: .*(File exists|Not a directory)/),
        });
        expect(done).toEqual([0, 1]);
        expect(readdirSync(root).sort()).toEqual(['1', 'file']);
      });

      it('writes no file of a group when one cannot be written', async () => {
        put('/file');
        put('/old', 'old\n');
        const done: number[] = [];
        const operations = [write('/old', 'new\n'), write('/1'), write('/file/below'), write('/4')];
        await expect(host.perform(operations, { onDone: (index) => done.push(index) })).rejects.toMatchObject({
          message: expect.stringMatching(/^local: cannot write \/file\/below: .*(File exists|Not a directory)/),
        });
        expect(done).toEqual([]);
        expect(readdirSync(root).sort()).toEqual(['file', 'old']);
        expect(readFileSync(at('/old'), 'utf8')).toBe('old\n');
      });

      it('reports which files of a group were renamed before the failure', async (context) => {
        if (!isRoot) context.skip('only root may mount');
        put('/mounted');
        execFileSync('mount', ['--bind', at('/mounted'), at('/mounted')]);
        try {
          const done: number[] = [];
          await expect(
            host.perform([write('/1'), write('/mounted'), write('/3')], { onDone: (index) => done.push(index) }),
          ).rejects.toMatchObject({ message: expect.stringContaining('cannot write /mounted: ') });
          expect(done).toEqual([0]);
          expect(readdirSync(root).sort()).toEqual(['1', 'mounted']);
        } finally {
          execFileSync('umount', [at('/mounted')]);
        }
      });

      it('reports each operation once when all succeed', async () => {
        const done: number[] = [];
        await host.perform([write('/1', 'x'.repeat(100_000)), write('/2'), write('/3')], { onDone: (index) => done.push(index) });
        expect(done).toEqual([0, 1, 2]);
      });

      it('keeps the old file and leaves no temporary file without write permission', async () => {
        put('/ro/f', 'old\n');
        chmodSync(at('/ro'), 0o555);
        await expect(asNobody().perform([write('/ro/f', 'new\n')])).rejects.toMatchObject({ code: 'HOST_PERMISSION_DENIED' });
        await expect(asNobody().perform([write('/ro/sub/f', 'new\n')])).rejects.toMatchObject({ code: 'HOST_PERMISSION_DENIED' });
        await expect(asNobody().perform([{ kind: 'remove-file', path: '/ro/f' }])).rejects.toMatchObject({
          code: 'HOST_PERMISSION_DENIED',
        });
        expect(readFileSync(at('/ro/f'), 'utf8')).toBe('old\n');
        expect(readdirSync(at('/ro'))).toEqual(['f']);
        chmodSync(at('/ro'), 0o755);
      });

      it('keeps the old file and leaves no temporary file when the disk is full or read-only', async (context) => {
        if (!isRoot) context.skip('only root may mount');
        mkdirSync(at('/disk'));
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', at('/disk')]);
        try {
          put('/disk/f', 'old\n');
          await expect(host.perform([write('/disk/f', 'x'.repeat(200_000))])).rejects.toMatchObject({
            code: 'HOST_NO_SPACE',
            message: expect.stringContaining('local: cannot write /disk/f: '),
          });
          expect(readdirSync(at('/disk'))).toEqual(['f']);
          execFileSync('mount', ['-o', 'remount,ro', at('/disk')]);
          await expect(host.perform([write('/disk/f', 'new\n')])).rejects.toMatchObject({ code: 'HOST_READ_ONLY' });
          expect(readFileSync(at('/disk/f'), 'utf8')).toBe('old\n');
        } finally {
          execFileSync('umount', [at('/disk')]);
        }
      });

      it('passes no part of the program to its child processes, with any exported variables', async () => {
        const exporting = hostOverTransport(shellTransport({ ...options, env: { ...options.env, p: '1' } }), {
          rootDir: root,
          nonce,
        });
        await exporting.perform([write('/1', 'x'.repeat(200_000)), { kind: 'run', argv: ['sh', '-c', '[ "${p-none}" = none ]'] }]);
        expect(readFileSync(at('/1'), 'utf8')).toHaveLength(200_000);
      });

      it('runs no part of a program that arrived incompletely', async () => {
        const own = nonce();
        const program = renderOperations([write('/1', 'a\n'), write('/2', 'b\n')], { nonce: own, temporaryId: 'a1', rootDir: root });
        const cuts = Array.from({ length: Math.ceil(program.length / 97) }, (_, i) => i * 97).filter((length) => length < program.length);
        for (const cutStdinAt of [...cuts, program.length - 1]) {
          const { exitCode, stdout } = await shellTransport({ ...options, cutStdinAt }).run(shellLoader(own), { stdin: program });
          expect([cutStdinAt, exitCode, stdout.length, readdirSync(root)]).toEqual([cutStdinAt, 97, 0, []]);
        }
        for (const length of cuts.slice(1)) {
          const { exitCode, stdout } = await shellTransport(options).run(shellLoader(own), { stdin: program.slice(length) });
          expect([length, exitCode, stdout.length, readdirSync(root)]).toEqual([length, 97, 0, []]);
        }
        const broken = hostOverTransport(shellTransport({ ...options, cutStdinAt: 500 }), { rootDir: root, nonce });
        await expect(broken.perform([write('/1')])).rejects.toMatchObject({
          code: 'HOST_PROGRAM_BROKEN',
          message: expect.stringContaining('the program arrived incomplete'),
        });
        await expect(broken.query({ it: { kind: 'file', path: '/1' } })).rejects.toMatchObject({ code: 'HOST_PROGRAM_BROKEN' });
      });

      it.each([
        ['exits immediately', 'exit 9', 'exited with code 9'],
        ['exits with a message', 'echo "no memory" >&2; exit 9', 'no memory'],
        ['truncates the output', 'shell=$1; shift; "$shell" "$@" | head -c 60', 'exited with code 0'],
      ])('reports a shell that %s', async (_, script, reason) => {
        const dying = hostOverTransport(shellTransport({ ...options, shell: ['/bin/sh', '-c', script, 'sh', ...options.shell] }), {
          rootDir: root,
          nonce,
        });
        const message = expect.stringContaining(`local: the program that kubeletadm runs on the host was aborted: ${reason}`);
        await expect(dying.perform([write('/1'), write('/2'), write('/3'), write('/4'), write('/5')])).rejects.toMatchObject({
          code: 'HOST_PROGRAM_BROKEN',
          message,
        });
      });
    });

    it('needs no extra round trip for empty lists of facts and operations', async () => {
      expect(await host.query({})).toEqual({});
      await expect(host.perform([])).resolves.toBeUndefined();
    });
  });
}
