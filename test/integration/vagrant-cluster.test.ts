import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const SOURCE = fileURLToPath(new URL('../../vagrant', import.meta.url));

/**
 * Simulates Vagrant: `up` creates the VMs of the Vagrantfile, each with a new address; `destroy` removes the
 * named VMs, or all VMs of the Vagrantfile.
 */
const VAGRANT = `#!/bin/sh
echo "WORKERS=\${WORKERS-} vagrant $*" >>"$LOG"
machines() { echo cp1; n=1; while [ $n -le "\${WORKERS:-2}" ]; do echo "worker$n"; n=$((n + 1)); done; }
case $1 in
  up) for m in $(machines); do
    d=.vagrant/machines/$m/libvirt
    if [ ! -e "$d/id" ]; then mkdir -p "$d"; echo 1 >>"$LOG.count"; wc -l <"$LOG.count" | tr -d ' ' >"$d/id"; fi
  done;;
  ssh-config) for m in $(machines); do
    printf 'Host %s\\n  HostName 192.0.2.%s\\n  User vagrant\\n  Port 22\\n  UserKnownHostsFile /dev/null\\n  StrictHostKeyChecking no\\n' $m "$(cat .vagrant/machines/$m/libvirt/id)"
    printf '  PasswordAuthentication no\\n  IdentityFile "%s/.vagrant/machines/%s/key"\\n  IdentitiesOnly yes\\n  LogLevel FATAL\\n\\n' "$PWD" $m
  done;;
  destroy) shift 2; [ $# -gt 0 ] || set -- $(machines); for m; do rm -rf ".vagrant/machines/$m/libvirt"; done;;
esac
`;
const KUBELETADM = `#!/bin/sh
echo "kubeletadm $*" >>"$LOG"
case $1 in apply) : >admin.conf; exit "\${APPLY_EXIT:-0}";; esac
`;
const SSH = '#!/bin/sh\necho "ssh $*" >>"$LOG"\n';

describe('cluster.sh', () => {
  let home = '';
  let cwd = '';
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'ka cluster-'));
    cwd = join(home, 'vagrant');
    mkdirSync(cwd);
    for (const name of readdirSync(SOURCE)) if (!name.startsWith('.')) cpSync(join(SOURCE, name), join(cwd, name));
    for (const [name, text] of Object.entries({ vagrant: VAGRANT, kubeletadm: KUBELETADM, ssh: SSH })) {
      const path = join(home, 'bin', name);
      mkdirSync(join(home, 'bin'), { recursive: true });
      writeFileSync(path, text);
      chmodSync(path, 0o755);
    }
    mkdirSync(join(home, 'dist/chunks'), { recursive: true });
    writeFileSync(join(home, 'dist/kubeletadm.mjs'), '');
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  function cluster(command: string, env: Readonly<Record<string, string>> = {}) {
    const log = join(home, 'log');
    rmSync(log, { force: true });
    const path = `${join(home, 'bin')}:${process.env.PATH}`;
    const result = spawnSync('sh', [join(cwd, 'cluster.sh'), command], {
      encoding: 'utf8',
      env: { PATH: path, LOG: log, KUBELETADM: 'kubeletadm', ...env },
    });
    return { ...result, calls: existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [] };
  }
  const up = (env?: Readonly<Record<string, string>>) => {
    const result = cluster('up', env);
    expect(result.status, result.stderr).toBe(0);
    return result;
  };

  /** The hosts that kubeletadm uses with the current fleet file: name, role and connection address. */
  async function hosts(): Promise<readonly string[]> {
    const { code, stdout, stderr } = await runCommand(['fleet', 'inventory', '-f', join(cwd, 'fleet.yaml'), '-o', 'json']);
    expect(code, stderr).toBe(0);
    const config = readFileSync(join(cwd, '.vagrant/ssh_config'), 'utf8');
    const inventory = JSON.parse(stdout) as { hosts: readonly { name: string; role: string; ssh: { address: string } }[] };
    return inventory.hosts.map(({ name, role, ssh: { address } }) => {
      const own = config.split(/^Host /m).find((block) => block.startsWith(`${address}\n`));
      return `${name} ${role} ${/HostName (\S+)/.exec(own ?? '')?.[1] ?? address}`;
    });
  }

  it('bootstraps a cluster on the VMs that Vagrant has booted', async () => {
    const { calls, stdout } = up();
    expect(await hosts()).toEqual(['cp1 control-plane 192.0.2.1', 'worker1 worker 192.0.2.2', 'worker2 worker 192.0.2.3']);
    expect(calls.at(-1)).toBe('kubeletadm apply --yes --ssh-config .vagrant/ssh_config');
    expect(stdout).toContain('kubeletadm fleet status --ssh-config .vagrant/ssh_config');
  });

  it('uses the new addresses after the next up', async () => {
    up();
    expect(cluster('down').status).toBe(0);
    up();
    expect(await hosts()).toEqual(['cp1 control-plane 192.0.2.4', 'worker1 worker 192.0.2.5', 'worker2 worker 192.0.2.6']);
  });

  it('keeps an edited fleet file, and uses it with the new VMs', async () => {
    up();
    const file = join(cwd, 'fleet.yaml');
    writeFileSync(file, `${readFileSync(file, 'utf8')}  - name: worker2\n    kubeletConfiguration: {maxPods: 30}\n`);
    expect(cluster('down').stdout).toContain('fleet.yaml was edited and is kept');
    up({ WORKERS: '3' });
    expect(readFileSync(file, 'utf8')).toContain('maxPods: 30');
    expect((await hosts()).toSorted()).toEqual([
      'cp1 control-plane 192.0.2.4',
      'worker1 worker 192.0.2.5',
      'worker2 worker 192.0.2.6',
      'worker3 worker 192.0.2.7',
    ]);
  });

  it('honours a fleet file with its own addresses, with a warning', () => {
    writeFileSync(join(cwd, 'fleet.yaml'), 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts: [{name: cp1, address: 192.0.2.9}]\n');
    expect(up().stderr).toContain('fleet.yaml does not import .vagrant/ssh_config. Remove fleet.yaml, or keep its addresses up to date');
  });

  it('adds the workers of a changed WORKERS, and keeps them when WORKERS is not set', async () => {
    up({ WORKERS: '1' });
    expect(await hosts()).toHaveLength(2);
    up({ WORKERS: '4' });
    expect(await hosts()).toHaveLength(5);
    const { calls } = up();
    expect(calls[0]).toBe('WORKERS=4 vagrant up');
    expect(await hosts()).toHaveLength(5);
    up({ WORKERS: '0' });
    expect(up().calls[0]).toBe('WORKERS=0 vagrant up');
  });

  it('removes the workers beyond a smaller WORKERS, with their Nodes', async () => {
    up({ WORKERS: '3' });
    const { calls } = up({ WORKERS: '1' });
    expect(calls.slice(0, 6)).toEqual([
      'WORKERS=3 vagrant ssh-config',
      'kubeletadm reset --force --delete-node --kubeconfig admin.conf --ssh-config .vagrant/ssh_config --host worker2',
      'WORKERS=3 vagrant destroy -f worker2',
      'kubeletadm reset --force --delete-node --kubeconfig admin.conf --ssh-config .vagrant/ssh_config --host worker3',
      'WORKERS=3 vagrant destroy -f worker3',
      'WORKERS=1 vagrant up',
    ]);
    expect(await hosts()).toEqual(['cp1 control-plane 192.0.2.1', 'worker1 worker 192.0.2.2']);
  });

  it('destroys all existing VMs, with any WORKERS', () => {
    up({ WORKERS: '4' });
    expect(cluster('down').calls).toEqual(['WORKERS=4 vagrant destroy -f']);
    expect(
      readdirSync(join(cwd, '.vagrant/machines')).filter((name) => existsSync(join(cwd, '.vagrant/machines', name, 'libvirt'))),
    ).toEqual([]);
    for (const name of ['fleet.yaml', 'admin.conf', '.vagrant/known_hosts', '.vagrant/ssh_config'])
      expect(existsSync(join(cwd, name)), name).toBe(false);
  });

  it('connects to a guest with a time limit, and records its key on first use', () => {
    up({ MODE: 'inside' });
    const config = readFileSync(join(cwd, '.vagrant/ssh_config'), 'utf8');
    expect(config).toContain(`Host *\n  UserKnownHostsFile "${cwd}/.vagrant/known_hosts"\n  StrictHostKeyChecking accept-new\n`);
    expect(config).toMatch(/^ {2}ConnectTimeout 20$/m);
    expect(config).not.toMatch(/\/dev\/null|StrictHostKeyChecking no/);
    expect(spawnSync('ssh', ['-F', join(cwd, '.vagrant/ssh_config'), '-G', 'cp1'], { encoding: 'utf8' }).stdout).toMatch(
      /^connecttimeout 20$/m,
    );
  });

  it('prints how to resume when apply fails', () => {
    const { status, stderr } = cluster('up', { APPLY_EXIT: '4', WORKERS: '3' });
    expect(status).toBe(4);
    expect(stderr).toContain(
      'cluster.sh: apply failed with exit code 4. Fix the cause and run cluster.sh again; it resumes where it stopped.',
    );
  });
});
