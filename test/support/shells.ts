import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ShellOptions } from './shell-transport.ts';

/** A POSIX shell of the local host; `missing` is the reason why it cannot be tested. */
export interface Shell {
  readonly name: string;
  readonly missing: string | null;
  /** @param directory a directory for files of the shell */
  options(directory: string): ShellOptions;
}

/**
 * Shells that hosts have as `/bin/sh`: dash (Debian), bash (RHEL), mksh (no builtin printf), busybox with
 * only its own tools (Alpine, small images).
 */
export const SHELLS: readonly Shell[] = [
  { name: 'dash', missing: missing('/bin/dash'), options: () => ({ shell: ['/bin/dash'] }) },
  { name: 'bash as sh', missing: missing('/bin/bash'), options: () => ({ shell: ['/bin/bash'], argv0: 'sh' }) },
  { name: 'mksh', missing: missing('/bin/mksh'), options: () => ({ shell: ['/bin/mksh'] }) },
  {
    name: 'busybox',
    missing: missing(busyboxPath()),
    options: (directory) => {
      const path = join(directory, 'busybox');
      if (!existsSync(path)) {
        mkdirSync(path);
        execFileSync(busyboxPath(), ['--install', '-s', path]);
      }
      return { shell: [busyboxPath(), 'sh'], env: { PATH: path } };
    },
  },
];

/** True in the project `shells` of vitest.config.ts, which `npm run test:hosts` runs. */
export const OTHER_SHELLS = process.env.KUBELETADM_TEST_OTHER_SHELLS === '1';

/** The shells that the tests of test/shells use: the first for `npm test`, the others for `npm run test:hosts`. */
export function ofThisProject<T>(shells: readonly T[]): readonly T[] {
  return OTHER_SHELLS ? shells.slice(1) : shells.slice(0, 1);
}

/**
 * The reason why stand-ins in PATH do not see the programs that a shell runs; null when they do. Some
 * packages of busybox run their own applets, regardless of PATH.
 */
export function whyNotWatched(shell: Shell): string | null {
  if (shell.missing !== null) return shell.missing;
  const directory = mkdtempSync(join(tmpdir(), 'ka-shell-'));
  try {
    writeFileSync(join(directory, 'sync'), '#!/bin/sh\necho watched\n', { mode: 0o755 });
    const [program, ...argv] = shell.options(directory).shell;
    const { stdout } = spawnSync(program, [...argv, '-c', 'sync'], { encoding: 'utf8', env: { PATH: directory } });
    return stdout === 'watched\n' ? null : `${program} runs programs of its own in place of those in PATH`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function busyboxPath(): string {
  return ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path)) ?? '/bin/busybox';
}

function missing(path: string): string | null {
  return existsSync(path) ? null : `${path} does not exist`;
}

/** A directory for PATH with these local programs and no others; missing programs are skipped. */
export function onlyPrograms(directory: string, names: readonly string[]): string {
  mkdirSync(directory, { recursive: true });
  for (const name of names) {
    const path = findProgram(name);
    if (path !== null) symlinkSync(path, join(directory, name));
  }
  return directory;
}

/** The path of a program; null when the local host lacks it. */
export function findProgram(name: string): string | null {
  const found = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].map((folder) => join(folder, name));
  return found.find((path) => existsSync(path)) ?? null;
}
