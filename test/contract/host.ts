import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../src/base/text/secret.ts';
import type { Host } from '../../src/host/access/host.ts';
import { type FileFact, MAX_FILE_BYTES } from '../../src/host/facts/query.ts';
import type { LargeFile } from '../../src/host/operation/large-file.ts';
import type { Operation } from '../../src/host/operation/operation.ts';

/** Pieces of a large file, as adapters return them. */
function inPieces(text: string, pieceBytes: number): LargeFile {
  const packed = gzipSync(text);
  return {
    sha256: createHash('sha256').update(text).digest('hex'),
    size: Buffer.byteLength(text),
    head: text.slice(0, 64),
    *pieces() {
      for (let at = 0; at < packed.length; at += pieceBytes) yield packed.subarray(at, at + pieceBytes).toString('base64');
    },
  };
}

/** A host without files that is writable; called once per test. */
export type HostFactory = () => Host;

/** The common behaviour of every Host implementation. */
export function describeHost(name: string, makeHost: HostFactory): void {
  const write = (path: string, content: string | SensitiveText = `${path}\n`, mode = 0o644): Operation => ({
    kind: 'write-file',
    path,
    content,
    mode,
    owner: 'root:root',
  });
  const read = async (host: Host, path: string): Promise<FileFact | null> => (await host.query({ it: { kind: 'file', path } })).it;
  const list = async (host: Host, path: string): Promise<readonly string[] | null> => (await host.query({ it: { kind: 'list', path } })).it;

  describe(name, () => {
    it('returns the written content', async () => {
      const host = makeHost();
      await host.perform([write('/etc/kubernetes/a', 'one\n', 0o600), write('/b', '')]);
      expect(await read(host, '/etc/kubernetes/a')).toMatchObject({ type: 'file', mode: 0o600, content: 'one\n' });
      expect(await read(host, '/b')).toMatchObject({ content: '' });
    });

    it('replaces content and mode', async () => {
      const host = makeHost();
      await host.perform([write('/a', 'one', 0o600)]);
      await host.perform([write('/a', 'two', 0o644)]);
      expect(await read(host, '/a')).toMatchObject({ mode: 0o644, content: 'two' });
    });

    it('writes the revealed secret', async () => {
      const host = makeHost();
      await host.perform([write('/a', new SensitiveText(['x', new Secret('y')]))]);
      expect((await read(host, '/a'))?.content).toBe('xy');
    });

    it('returns null for a missing path', async () => {
      const host = makeHost();
      expect([await read(host, '/none'), await list(host, '/none'), await read(host, '/none/below')]).toEqual([null, null, null]);
    });

    it('returns each fact under its own name', async () => {
      const host = makeHost();
      await host.perform([write('/d/a'), write('/d/b')]);
      const answers = await host.query({
        one: { kind: 'file', path: '/d/a' },
        names: { kind: 'list', path: '/d' },
        none: { kind: 'file', path: '/x' },
      });
      expect(answers).toMatchObject({ one: { content: '/d/a\n' }, names: ['a', 'b'], none: null });
    });

    it('installs a large file only when it is complete', async () => {
      const host = makeHost();
      const text = Array.from({ length: 20_000 }, (_, i) => `${(i * 2_654_435_761) % 4_294_967_296}\n`).join('');
      const content = inPieces(text, 50_000);
      const done: number[] = [];
      const put = { kind: 'put-file', path: '/opt/programs/one', mode: 0o755, owner: 'root:root', content } as const;
      await host.perform([write('/a'), put, write('/b')], { onDone: (index) => done.push(index) });
      expect([...content.pieces()].length).toBeGreaterThan(2);
      expect(done).toEqual([0, 1, 2]);
      expect(await read(host, '/opt/programs/one')).toMatchObject({ type: 'file', mode: 0o755, content: text });
      const damaged = { ...content, sha256: '0'.repeat(64) };
      await expect(host.perform([{ ...put, path: '/opt/programs/two', content: damaged }, write('/c')])).rejects.toMatchObject({
        code: 'HOST_OPERATION_FAILED',
        message: expect.stringContaining('cannot write /opt/programs/two: '),
      });
      expect(await list(host, '/opt/programs')).toEqual(['one']);
      expect(await read(host, '/c')).toBeNull();
    });

    it('removes a directory recursively, twice', async () => {
      const host = makeHost();
      const remove = { kind: 'remove-directory', path: '/d/e' } as const;
      await host.perform([write('/d/e/f/g'), write('/d/e/.h'), write('/d/i'), remove]);
      expect([await list(host, '/d/e'), await list(host, '/d')]).toEqual([null, ['i']]);
      await host.perform([remove]);
    });

    it('removes an empty directory, and keeps others', async () => {
      const host = makeHost();
      const remove = (path: string) => ({ kind: 'remove-empty-directory', path }) as const;
      await host.perform([write('/d/full/f'), write('/d/empty/f'), { kind: 'remove-file', path: '/d/empty/f' }]);
      await host.perform([remove('/d/full'), remove('/d/empty'), remove('/d/none')]);
      expect([await list(host, '/d'), await list(host, '/d/full')]).toEqual([['full'], ['f']]);
    });

    it('returns no content unless requested', async () => {
      const host = makeHost();
      await host.perform([write('/a', 'x', 0o640)]);
      const { it: fact } = await host.query({ it: { kind: 'file', path: '/a', content: false } });
      expect(fact).toMatchObject({ type: 'file', mode: 0o640 });
      expect(fact).not.toHaveProperty('content');
    });

    it('rejects a file beyond the size limit', async () => {
      const host = makeHost();
      await host.perform([write('/fits', 'x'.repeat(MAX_FILE_BYTES)), write('/large', 'x'.repeat(MAX_FILE_BYTES + 1))]);
      expect((await read(host, '/fits'))?.content).toHaveLength(MAX_FILE_BYTES);
      await expect(read(host, '/large')).rejects.toThrow(
        `/large: the file has ${MAX_FILE_BYTES + 1} bytes, but the limit is ${MAX_FILE_BYTES} bytes`,
      );
      await expect(host.query({ fits: { kind: 'file', path: '/fits' }, large: { kind: 'file', path: '/large' } })).rejects.toThrow(
        '/large',
      );
      expect((await host.query({ it: { kind: 'file', path: '/large', content: false } })).it).toMatchObject({ type: 'file' });
    });

    it('creates directories, and distinguishes them from files', async () => {
      const host = makeHost();
      await host.perform([{ kind: 'make-directory', path: '/d/e', mode: 0o700, owner: 'root:root' }, write('/d/f')]);
      expect(await read(host, '/d/e')).toMatchObject({ type: 'directory', mode: 0o700 });
      expect(await read(host, '/d')).toMatchObject({ type: 'directory', mode: 0o755 });
      expect(await list(host, '/d')).toEqual(['e', 'f']);
      expect([await list(host, '/d/e'), await list(host, '/d/f')]).toEqual([[], null]);
    });

    it('removes files, and ignores missing ones', async () => {
      const host = makeHost();
      await host.perform([write('/a'), { kind: 'remove-file', path: '/a' }, { kind: 'remove-file', path: '/never' }]);
      expect(await read(host, '/a')).toBeNull();
    });

    it('moves files, also over others and into new directories; ignores missing ones', async () => {
      const host = makeHost();
      await host.perform([
        write('/a', 'x', 0o600),
        write('/b/old', 'y'),
        { kind: 'move-file', path: '/a', to: '/b/c/a' },
        { kind: 'move-file', path: '/b/c/a', to: '/b/old' },
        { kind: 'move-file', path: '/never', to: '/b/never' },
      ]);
      expect(await read(host, '/a')).toBeNull();
      expect(await read(host, '/b/never')).toBeNull();
      expect(await read(host, '/b/old')).toMatchObject({ content: 'x', mode: 0o600 });
    });

    it('empties directories and keeps them', async () => {
      const host = makeHost();
      await host.perform([
        write('/d/a/b'),
        write('/d/.c'),
        write('/other'),
        { kind: 'empty-directory', path: '/d' },
        { kind: 'empty-directory', path: '/none' },
      ]);
      expect([await list(host, '/d'), (await read(host, '/other'))?.type]).toEqual([[], 'file']);
    });

    it('stops after a failed operation, and reports the completed ones in order', async () => {
      const host = makeHost();
      const done: number[] = [];
      const operations = [
        write('/1'),
        { kind: 'make-directory', path: '/d', mode: 0o755, owner: 'root:root' } as const,
        write('/d'),
        write('/4'),
      ];
      await expect(host.perform(operations, { onDone: (index) => done.push(index) })).rejects.toMatchObject({
        code: 'HOST_OPERATION_FAILED',
        exitCode: 1,
        message: expect.stringContaining(`${host.name}: cannot write /d: `),
      });
      expect(done).toEqual([0, 1]);
      expect([(await read(host, '/1'))?.type, await read(host, '/4')]).toEqual(['file', null]);
    });

    it('does nothing without queries and operations', async () => {
      const host = makeHost();
      expect(await host.query({})).toEqual({});
      await expect(host.perform([])).resolves.toBeUndefined();
      await expect(host.close()).resolves.toBeUndefined();
    });

    it('respects a signal aborted before', async () => {
      const host = makeHost();
      const signal = AbortSignal.abort(new Error('stopped by the user'));
      await expect(host.perform([write('/a')], { signal })).rejects.toThrow('stopped by the user');
      await expect(host.query({ it: { kind: 'file', path: '/a' } }, { signal })).rejects.toThrow('stopped by the user');
      expect(await read(host, '/a')).toBeNull();
    });
  });
}
