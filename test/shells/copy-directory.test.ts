import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copyDirectory, swapDirectory } from '../../src/host/copy-directory.ts';
import { findProgram, ofThisProject } from '../support/shells.ts';

const SHELLS = ['dash', 'bash', 'busybox'].filter((name) => findProgram(name) !== null);

describe.each(ofThisProject(SHELLS))('directories in %s', (shell) => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-copy-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const at = (name: string): string => join(directory, name);
  const put = (name: string, text: string): void => {
    mkdirSync(at(name));
    writeFileSync(join(at(name), 'db'), text);
  };
  const text = (name: string): string => readFileSync(join(at(name), 'db'), 'utf8');

  async function run([, ...args]: readonly [string, ...string[]], env: Readonly<Record<string, string>> = {}) {
    const rest = shell === 'busybox' ? ['sh', ...args] : args;
    const { exitCode, stderr } = await execa(findProgram(shell) as string, rest, { reject: false, stdin: 'ignore', env });
    return { exitCode, stderr };
  }

  it('are copied below new parents', async () => {
    put('member', 'data');
    expect(await run(copyDirectory(at('member'), at('backup/etcd')))).toMatchObject({ exitCode: 0 });
    expect(text('backup/etcd')).toBe('data');
    expect(readdirSync(at('backup'))).toEqual(['etcd']);
  });

  it.runIf(shell !== 'busybox')('are copied with a name that is on disk', async () => {
    put('member', 'data');
    mkdirSync(at('bin'));
    writeFileSync(at('bin/sync'), `#!/bin/sh\nls ${at('backup')} >> ${at('synced')}\n`, { mode: 0o755 });
    await run(copyDirectory(at('member'), at('backup/etcd')), { PATH: `${at('bin')}:${process.env.PATH}` });
    expect(readFileSync(at('synced'), 'utf8')).toBe('etcd.partial\netcd\n');
  });

  it('are copied and swapped below the directory that stands for the host', async () => {
    put('member', 'data');
    const env = { KUBELETADM_ROOT: directory };
    expect(await run(copyDirectory('/member', '/backup/etcd'), env)).toMatchObject({ exitCode: 0 });
    expect(await run(swapDirectory({ path: '/member', by: '/backup/etcd', kept: '/kept' }), env)).toMatchObject({ exitCode: 0 });
    expect([text('member'), text('kept')]).toEqual(['data', 'data']);
  });

  it('are not copied to an existing directory, nor without a source', async () => {
    put('member', 'data');
    put('other', 'kept');
    expect(await run(copyDirectory(at('member'), at('other')))).toEqual({ exitCode: 1, stderr: `${at('other')} exists` });
    expect([text('other'), readdirSync(at('other'))]).toEqual(['kept', ['db']]);
    expect(await run(copyDirectory(at('gone'), at('new')))).toMatchObject({ exitCode: 1 });
    expect(readdirSync(directory).sort()).toEqual(['member', 'other']);
  });

  it('are swapped, and the replaced one is kept', async () => {
    put('member', 'damaged');
    put('fresh', 'data');
    const swap = swapDirectory({ path: at('member'), by: at('fresh'), kept: at('kept') });
    expect(await run(swap)).toMatchObject({ exitCode: 0 });
    expect([text('member'), text('kept'), existsSync(at('fresh'))]).toEqual(['data', 'damaged', false]);
    expect(await run(swap)).toEqual({ exitCode: 1, stderr: `${at('fresh')} does not exist` });
    expect(text('member')).toBe('data');
  });

  it('are not swapped when the name for the replaced one is in use', async () => {
    put('member', 'damaged');
    put('fresh', 'data');
    put('kept', 'older');
    const swap = swapDirectory({ path: at('member'), by: at('fresh'), kept: at('kept') });
    expect(await run(swap)).toEqual({ exitCode: 1, stderr: `${at('kept')} exists` });
    expect([text('member'), text('fresh'), text('kept')]).toEqual(['damaged', 'data', 'older']);
  });

  it('are put in place when the replaced one does not exist', async () => {
    put('fresh', 'data');
    expect(await run(swapDirectory({ path: at('member'), by: at('fresh'), kept: at('kept') }))).toMatchObject({ exitCode: 0 });
    expect(text('member')).toBe('data');
  });
});
