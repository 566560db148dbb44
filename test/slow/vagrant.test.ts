import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
mkdirSync(join(home, 'dist'));
writeFileSync(join(home, `dist/kubeletadm_0.0.0_${architecture}.deb`), '');
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** A Vagrant provider whose machines are files only. */
const STAND_IN_PROVIDER = `
class StandInProvider < Vagrant.plugin('2', :provider)
  def initialize(machine) = @machine = machine
  def state = Vagrant::MachineState.new(@machine.id ? :running : :not_created, '', '')
  def ssh_info = { host: '192.0.2.1', port: 2222, username: 'vagrant', private_key_path: ["/keys/#{@machine.name}"] }
  def action(name) = Vagrant::Action::Builder.new.tap { |b| b.use(->(env) { env[:machine].id = { up: env[:machine].name.to_s, destroy: nil }.fetch(name) }) }
end
class StandInPlugin < Vagrant.plugin('2')
  name 'stand_in'
  provider('stand_in', box_optional: true, parallel: ENV['STAND_IN_PARALLEL'] == 'yes') { StandInProvider }
end
`;

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

describe.skipIf(requirement('the Vagrantfile', whyNoVagrant()))('the Vagrantfile', { timeout: 180_000 }, () => {
  it.each([
    {},
    { WORKERS: '0' },
    { CNI: 'cilium', CONTAINERD_VERSION: '2.1.9', CONTAINERD_SHA256: '0'.repeat(64) },
    { MODE: 'inside', KUBERNETES_VERSION: '1.34', BOX: 'bento/ubuntu-24.04' },
  ])('is valid with %j', (env) => {
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
    [{ CNI: 'weave' }, 'CNI=weave: must be like routes, flannel, calico, cilium or none'],
    [{ RUNC_VERSION: '1.4.3' }, 'RUNC_VERSION and RUNC_SHA256 must be set together'],
    [{ CONTAINERD_VERSION: '2', CONTAINERD_SHA256: '0'.repeat(64) }, 'CONTAINERD_VERSION=2: must be like 2.3.4'],
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

  describe('with a provider without machines', () => {
    // Vagrant reads this file first. The provider only records which machines exist.
    mkdirSync(join(home, '.vagrant.d'), { recursive: true });
    writeFileSync(join(home, '.vagrant.d/Vagrantfile'), STAND_IN_PROVIDER);
    writeFileSync(join(cwd, 'cluster.sh'), 'echo "$* SUBNET=$SUBNET MODE=$MODE CNI=$CNI" >>"$CALLS"; exit "${CLUSTER_EXIT:-0}"\n');
    const calls = join(home, 'calls');
    const STAND_IN = { VAGRANT_DEFAULT_PROVIDER: 'stand_in', CALLS: calls };
    const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      writeFileSync(calls, '');
      const result = vagrant(args, { ...STAND_IN, ...env });
      return { ...result, calls: readFileSync(calls, 'utf8').split('\n').slice(0, -1) };
    };
    const check = 'check SUBNET=192.168.56 MODE=host CNI=routes';
    const configure = 'configure SUBNET=192.168.56 MODE=host CNI=routes';

    it.each(['no', 'yes'])('vagrant up configures the cluster once, after the last machine (parallel: %s)', (parallel) => {
      const up = run(['up'], { STAND_IN_PARALLEL: parallel });
      expect(up.status, up.stderr).toBe(0);
      expect(up.calls).toEqual([check, check, check, configure]);
      expect(readFileSync(join(cwd, '.vagrant/ssh/worker2.conf'), 'utf8')).toBe(
        'Host worker2\n  HostName 192.0.2.1\n  User vagrant\n  Port 2222\n  IdentitiesOnly yes\n  IdentityFile "/keys/worker2"\n\n',
      );
      // Later runs repeat it, for example after a change of fleet.yaml.
      expect(run(['up']).calls.at(-1)).toBe(configure);
      expect(run(['destroy', '-f']).calls).toEqual(
        ['worker2', 'worker1', 'cp1'].map((name) => `forget ${name} SUBNET=192.168.56 MODE=host CNI=routes`),
      );
    });

    it('configures nothing before all machines are up, and keeps the existing workers', () => {
      expect(run(['up', 'cp1', 'worker1']).calls).toEqual([check, check]);
      expect(run(['up']).calls).toEqual([check, check, check, configure]);
      expect(run(['up'], { WORKERS: '3', CNI: 'flannel', SUBNET: '10.1.2' }).calls.at(-1)).toBe(
        'configure SUBNET=10.1.2 MODE=host CNI=flannel',
      );
      const { stdout } = run(['status', '--machine-readable'], { WORKERS: '1' });
      expect(stdout.split('\n').flatMap((line) => /^[0-9]+,([^,]+),state,running/.exec(line)?.[1] ?? [])).toEqual([
        'cp1',
        'worker1',
        'worker2',
        'worker3',
      ]);
      expect(run(['destroy', '-f', 'worker3']).calls).toEqual(['forget worker3 SUBNET=192.168.56 MODE=host CNI=routes']);
      expect(run(['up']).calls).toEqual([check, check, check, configure]);
      // The number of the last run, also when cp1 alone exists.
      expect(run(['destroy', '-f']).calls).toHaveLength(3);
      run(['up', 'cp1'], { WORKERS: '1' });
      expect(run(['up']).calls).toEqual([check, check, configure]);
      run(['destroy', '-f']);
      expect(run(['up', 'cp1']).status).toBe(0);
      expect(run(['up']).calls).toEqual([check, check, check, configure]);
      run(['destroy', '-f']);
    });

    it('boots nothing if kubeletadm cannot be run', () => {
      const failed = run(['up'], { CLUSTER_EXIT: '2' });
      expect(failed.status).toBe(1);
      expect(failed.calls).toEqual([check]);
      expect(existsSync(join(cwd, '.vagrant/machines/cp1/stand_in/id'))).toBe(false);
    });
  });
});
