import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { programPrefix } from '../../../../src/cli/adapters/program-prefix.ts';

const directory = mkdtempSync(join(tmpdir(), 'program-prefix-'));
const at = (path: string): string => join(directory, path);
beforeAll(() => {
  for (const folder of ['bin', 'dist', 'src', 'other', 'a b']) mkdirSync(at(folder));
  for (const file of ['dist/kubeletadm.mjs', 'a b/kubeletadm.mjs', 'src/bin.ts', 'dist/kubeletadm-linux-x64', 'other/kubeletadm'])
    writeFileSync(at(file), '');
  symlinkSync('../dist/kubeletadm.mjs', at('bin/kubeletadm'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it.each([
  ['the sources', 'src/bin.ts', 'other', '', 'npx tsx src/bin.ts'],
  ['the sources of another directory', 'src/bin.ts', 'other', 'other', `npx --prefix ${directory} tsx ${at('src/bin.ts')}`],
  ['a bundle', 'dist/kubeletadm.mjs', '', '', 'node dist/kubeletadm.mjs'],
  ['an npm installation', 'bin/kubeletadm', 'bin', '', 'kubeletadm'],
  ['an npm installation that is not on the PATH', 'bin/kubeletadm', 'other', '', 'node dist/kubeletadm.mjs'],
  ['an executable', undefined, 'other', '', 'dist/kubeletadm-linux-x64'],
  ['a path with a space', 'a b/kubeletadm.mjs', 'other', '', "node 'a b/kubeletadm.mjs'"],
  ['an executable in the working directory', undefined, 'other', 'dist', './kubeletadm-linux-x64'],
])('is that of %s', (_, script, path, working, expected) => {
  const executable = script === undefined ? at('dist/kubeletadm-linux-x64') : process.execPath;
  const started = { executable, script: script && at(script), path: at(path), directory: at(working) };
  expect(programPrefix(started)).toBe(expected);
});
