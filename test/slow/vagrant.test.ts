import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { requirement } from '../support/requirement.ts';

const SOURCE = fileURLToPath(new URL('../../vagrant', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'ka-vagrant-'));
const cwd = join(home, 'vagrant');
mkdirSync(cwd);
for (const name of readdirSync(SOURCE)) if (!name.startsWith('.')) cpSync(join(SOURCE, name), join(cwd, name));
mkdirSync(join(cwd, '.vagrant'));
writeFileSync(join(cwd, '.vagrant/kubeletadm.tgz'), '');
afterAll(() => rmSync(home, { recursive: true, force: true }));

const LIBVIRT = { VAGRANT_DEFAULT_PROVIDER: 'libvirt' };

function vagrant(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr, error } = spawnSync('vagrant', args, {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env.PATH ?? '', HOME: home, VAGRANT_HOME: join(home, '.vagrant.d'), VAGRANT_CHECKPOINT_DISABLE: '1', ...env },
  });
  return { status: error === undefined ? status : -1, stdout, stderr };
}

function whyNoVagrant(): string | null {
  return vagrant(['--version']).status === 0 ? null : 'vagrant is not installed';
}

function whyNoLibvirt(): string | null {
  return whyNoVagrant() ?? (vagrant(['status'], LIBVIRT).status === 0 ? null : 'vagrant has no libvirt');
}

describe('the Vagrant scripts', () => {
  it.each(readdirSync(SOURCE).filter((name) => name.endsWith('.sh')))('%s is valid shell', (name) => {
    expect(spawnSync('sh', ['-n', join(SOURCE, name)], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });
});

const noShellcheck = spawnSync('shellcheck', ['--version']).status === 0 ? null : 'shellcheck is not installed';

describe.skipIf(requirement('shellcheck of the Vagrant scripts', noShellcheck))('the Vagrant scripts', () => {
  it('pass shellcheck', () => {
    const scripts = readdirSync(SOURCE).filter((name) => name.endsWith('.sh'));
    expect(spawnSync('shellcheck', scripts, { cwd: SOURCE, encoding: 'utf8' })).toMatchObject({ status: 0, stdout: '' });
  });
});

describe.skipIf(requirement('the Vagrantfile', whyNoVagrant()))('the Vagrantfile', { timeout: 60_000 }, () => {
  it.each([{}, { WORKERS: '0' }, { MODE: 'inside', KUBERNETES_VERSION: '1.34', BOX: 'bento/ubuntu-24.04' }])('is valid with %j', (env) => {
    expect(vagrant(['validate', '--ignore-provider'], env)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Vagrantfile validated successfully.'),
    });
  });

  it.each([
    [{ WORKERS: 'many' }, 'WORKERS=many: must be an integer from 0 to 90'],
    [{ CP_MEMORY: '512' }, 'CP_MEMORY=512: must be an integer from 1700 to 262144'],
    [{ SUBNET: '192.168.56.0/24' }, 'SUBNET=192.168.56.0/24: must be like 192.168.56'],
    [{ MODE: 'both' }, 'MODE=both: must be like host or inside'],
  ])('rejects %j', (env, message) => {
    const { status, stderr } = vagrant(['validate', '--ignore-provider'], env);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });

  it.skipIf(requirement('the Vagrantfile with libvirt', whyNoLibvirt()))('has one control plane and the requested workers', () => {
    expect(vagrant(['validate'], LIBVIRT)).toMatchObject({ status: 0 });
    const { stdout } = vagrant(['status', '--machine-readable'], { ...LIBVIRT, WORKERS: '3' });
    const names = stdout.split('\n').flatMap((line) => /^[0-9]+,([^,]+),state,/.exec(line)?.[1] ?? []);
    expect(names).toEqual(['cp1', 'worker1', 'worker2', 'worker3']);
  });
});
