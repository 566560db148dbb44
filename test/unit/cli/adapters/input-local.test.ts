import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requireWritable, writeLocalFile } from '../../../../src/cli/adapters/input-local.ts';
import { requirement } from '../../../support/requirement.ts';

const isRoot = process.getuid?.() === 0;
const OTHER_USER = 65534;

describe('writeLocalFile', () => {
  let top = '';
  const at = (name: string): string => join(top, name);
  const modeOf = (name: string): number => lstatSync(at(name)).mode & 0o7777;
  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'write-local-'));
  });
  afterEach(() => rmSync(top, { recursive: true, force: true }));

  it('creates a file readable only by its owner, and leaves no temporary file', async () => {
    await writeLocalFile(at('f'), 'one\n');
    expect([readFileSync(at('f'), 'utf8'), modeOf('f'), readdirSync(top)]).toEqual(['one\n', 0o600, ['f']]);
  });

  it('replaces a file of the user and keeps its mode', async () => {
    writeFileSync(at('f'), 'old\n');
    chmodSync(at('f'), 0o640);
    const before = statSync(at('f')).ino;
    await writeLocalFile(at('f'), 'new\n');
    expect([readFileSync(at('f'), 'utf8'), modeOf('f'), readdirSync(top)]).toEqual(['new\n', 0o640, ['f']]);
    expect(statSync(at('f')).ino).not.toBe(before);
  });

  it('writes nothing through a link that another user created under a predictable name', async () => {
    chmodSync(top, 0o1777);
    writeFileSync(at('victim'), 'theirs\n');
    const planted = at(`.f.kubeletadm.${process.pid}`);
    symlinkSync(at('victim'), planted);
    if (isRoot) lchownSync(planted, OTHER_USER, OTHER_USER);
    await writeLocalFile(at('f'), 'secret\n');
    expect(readFileSync(at('victim'), 'utf8')).toBe('theirs\n');
    expect([readFileSync(at('f'), 'utf8'), modeOf('f')]).toEqual(['secret\n', 0o600]);
  });

  it('does not copy the mode of the target of a link', async () => {
    writeFileSync(at('target'), 'theirs\n');
    chmodSync(at('target'), 0o666);
    symlinkSync(at('target'), at('f'));
    await writeLocalFile(at('f'), 'secret\n');
    expect([readFileSync(at('f'), 'utf8'), modeOf('f'), readFileSync(at('target'), 'utf8')]).toEqual(['secret\n', 0o600, 'theirs\n']);
  });

  it.skipIf(requirement('a file of another user', isRoot ? null : 'requires root'))(
    'does not copy the mode of a file of another user',
    async () => {
      writeFileSync(at('f'), 'theirs\n');
      chmodSync(at('f'), 0o666);
      chownSync(at('f'), OTHER_USER, OTHER_USER);
      await writeLocalFile(at('f'), 'secret\n');
      expect([readFileSync(at('f'), 'utf8'), modeOf('f'), lstatSync(at('f')).uid]).toEqual(['secret\n', 0o600, 0]);
    },
  );

  it('replaces the target of a link that the user edits, and keeps its mode', async () => {
    writeFileSync(at('target'), 'old\n');
    chmodSync(at('target'), 0o664);
    symlinkSync('target', at('f'));
    await requireWritable(at('f'), { isEdited: true });
    await writeLocalFile(at('f'), 'new\n', { isEdited: true });
    expect([lstatSync(at('f')).isSymbolicLink(), readFileSync(at('target'), 'utf8'), modeOf('target')]).toEqual([true, 'new\n', 0o664]);
    expect(readdirSync(top).toSorted()).toEqual(['f', 'target']);
  });

  it.skipIf(requirement('a file of another user', isRoot ? null : 'requires root'))('keeps the owner of an edited file', async () => {
    writeFileSync(at('f'), 'old\n');
    chmodSync(at('f'), 0o660);
    chownSync(at('f'), OTHER_USER, OTHER_USER);
    await writeLocalFile(at('f'), 'new\n', { isEdited: true });
    const { uid, gid } = statSync(at('f'));
    expect([readFileSync(at('f'), 'utf8'), uid, gid, modeOf('f')]).toEqual(['new\n', OTHER_USER, OTHER_USER, 0o660]);
  });

  it.each(['a directory', 'a link to a device'])('refuses to replace %s', async (what) => {
    if (what === 'a directory') mkdirSync(at('f'));
    if (what === 'a link to a device') symlinkSync('/dev/null', at('f'));
    const path = what === 'a device' ? '/dev/null' : at('f');
    await expect(writeLocalFile(path, 'x\n')).rejects.toMatchObject({
      code: 'INPUT_UNWRITABLE',
      exitCode: 2,
      message: expect.stringContaining(`cannot write ${path}: not a regular file`),
    });
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(readdirSync(top)).toEqual(what === 'a device' ? [] : ['f']);
  });

  it('names the file it cannot write, and leaves no temporary file', async () => {
    await expect(writeLocalFile(at('no/such/f'), 'x\n')).rejects.toMatchObject({
      code: 'INPUT_UNWRITABLE',
      message: expect.stringContaining(`cannot write ${at('no/such/f')}: `),
    });
    expect(readdirSync(top)).toEqual([]);
  });

  it('can be tried before, without a change of the file', async () => {
    await requireWritable(at('new'));
    expect(readdirSync(top)).toEqual([]);
    writeFileSync(at('f'), 'old\n');
    await requireWritable(at('f'));
    expect([readFileSync(at('f'), 'utf8'), readdirSync(top)]).toEqual(['old\n', ['f']]);
    mkdirSync(at('d'));
    for (const path of [at('no/such/f'), at('d')])
      await expect(requireWritable(path)).rejects.toMatchObject({
        code: 'INPUT_UNWRITABLE',
        exitCode: 2,
        message: expect.stringContaining(`cannot write ${path}: `),
      });
    expect(readdirSync(top)).toEqual(['d', 'f']);
  });

  it('refuses a path that names no file before a command runs', async () => {
    await expect(requireWritable('')).rejects.toMatchObject({
      exitCode: 2,
      message: 'cannot write to an empty path: not a regular file. Pass another file [INPUT_UNWRITABLE]',
    });
    await expect(requireWritable(`${at('new')}/`)).rejects.toMatchObject({ code: 'INPUT_UNWRITABLE', exitCode: 2 });
  });
});
