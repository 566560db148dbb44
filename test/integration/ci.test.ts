import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';

const SOURCE = fileURLToPath(new URL('../../.ci/run', import.meta.url));
const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** The commands that `.ci/run` gives a machine, as a user with this id. The programs are stand-ins that note how they were called. */
function runCi(uid: number): readonly string[] {
  const home = mkdtempSync(join(tmpdir(), 'ka-ci-'));
  directories.push(home);
  const [bin, log, tree] = [join(home, 'bin'), join(home, 'log'), join(home, 'tree')];
  mkdirSync(bin);
  mkdirSync(join(tree, '.ci'), { recursive: true });
  cpSync(SOURCE, join(tree, '.ci/run'));
  const note = `echo "\${0##*/} $*" >>"${log}"`;
  const programs = {
    id: `case $1 in -u) echo ${uid};; *) exit 1;; esac`,
    sudo: `[ "$1" = -n ] && shift; echo "sudo $*" >>"${log}"; exec "$@"`,
    mktemp: `mkdir -p "${home}/copy"; echo "${home}/copy"`,
    ...Object.fromEntries(['apt-get', 'node', 'npm', 'useradd', 'runuser', 'chown'].map((name) => [name, note])),
  };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const result = spawnSync('sh', [join(tree, '.ci/run')], { encoding: 'utf8', env: { PATH: `${bin}:${process.env.PATH}` } });
  expect(result.status, result.stderr).toBe(0);
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => /^(npm (test|--prefix)|sudo (env|npm)|runuser|useradd|chown)/.test(line))
    .map((line) => line.replaceAll(home, 'HOME').replace(/PATH=\S+/, 'PATH=…'));
}

it('runs all tests as root, and without the hosts of the lab as a user without rights', () => {
  expect(runCi(0)).toEqual([
    'npm test',
    'useradd --create-home kubeletadm-ci',
    'chown -R kubeletadm-ci: HOME/copy',
    'runuser -u kubeletadm-ci -- env HOME=/home/kubeletadm-ci npm --prefix HOME/copy/tree test -- --project=!e2e',
  ]);
});

it('runs all tests as a user without rights, and as root by sudo', () => {
  expect(runCi(1000)).toEqual(['npm test', 'sudo env PATH=… npm test', 'npm test']);
});
