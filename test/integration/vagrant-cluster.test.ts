import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const SOURCE = fileURLToPath(new URL('../../vagrant', import.meta.url));

const KUBELETADM = `#!/bin/sh
echo "kubeletadm $*" >>"$LOG"
case $1 in
  version) exit "\${VERSION_EXIT:-0}";;
  apply) : >admin.conf; exit "\${APPLY_EXIT:-0}";;
esac
`;
/** A guest; with INITIALIZED, its control plane exists. */
const SSH = `#!/bin/sh
echo "ssh $*" >>"$LOG"
case $* in
  *'test -f'*) [ -n "\${INITIALIZED-}" ];;
  *'sh -s'*) sed -n '2s/^# /input: /p' >>"$LOG";;
  *'sudo sh') sed 's/^/input: /' >>"$LOG";;
  *--print-join-command*) echo 'kubeletadm join 192.168.56.10:6443 --token abcdef.0123456789abcdef';;
  *'cat /etc/kubernetes/admin.conf'*) echo 'kind: Config';;
esac
`;

describe('cluster.sh', () => {
  let home = '';
  let cwd = '';
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'ka cluster-'));
    cwd = join(home, 'vagrant');
    mkdirSync(cwd);
    for (const name of readdirSync(SOURCE)) if (!name.startsWith('.')) cpSync(join(SOURCE, name), join(cwd, name));
    rmSync(join(cwd, 'fleet.yaml'), { force: true });
    mkdirSync(join(home, 'bin'));
    for (const [name, text] of Object.entries({ kubeletadm: KUBELETADM, ssh: SSH })) {
      writeFileSync(join(home, 'bin', name), text);
      chmodSync(join(home, 'bin', name), 0o755);
    }
    for (const [i, name] of ['cp1', 'worker1', 'worker2'].entries()) connect(name, `192.0.2.${i + 1}`);
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  /** The connection of a machine, as the Vagrantfile saves it. */
  function connect(name: string, address: string): void {
    mkdirSync(join(cwd, '.vagrant/ssh'), { recursive: true });
    const lines = [`Host ${name}`, `  HostName ${address}`, '  User vagrant', '  Port 22', '  IdentitiesOnly yes'];
    writeFileSync(join(cwd, `.vagrant/ssh/${name}.conf`), `${lines.join('\n')}\n\n`);
  }

  function cluster(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const log = join(home, 'log');
    rmSync(log, { force: true });
    const path = `${join(home, 'bin')}:${process.env.PATH}`;
    const result = spawnSync('sh', [join(cwd, 'cluster.sh'), ...argv], {
      encoding: 'utf8',
      env: { PATH: path, LOG: log, KUBELETADM: 'kubeletadm', ...env },
    });
    const calls = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [];
    return { ...result, calls: calls.map((line) => line.replace('ssh -F .vagrant/ssh_config ', 'ssh ')) };
  }
  const configure = (env?: Readonly<Record<string, string>>) => {
    const result = cluster(['configure'], env);
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

  it('bootstraps a cluster on the VMs, and waits for Ready nodes', async () => {
    const { calls, stdout } = configure();
    expect(await hosts()).toEqual(['cp1 control-plane 192.0.2.1', 'worker1 worker 192.0.2.2', 'worker2 worker 192.0.2.3']);
    expect(calls).toEqual([
      'ssh cp1 sudo test -f /etc/kubernetes/manifests/kube-apiserver.yaml',
      'kubeletadm apply --yes --ssh-config .vagrant/ssh_config',
      'ssh cp1 sudo env KUBECONFIG=/etc/kubernetes/admin.conf kubectl wait --for=condition=Ready node --all --timeout=10m',
      'ssh cp1 sudo env KUBECONFIG=/etc/kubernetes/admin.conf kubectl get nodes -o wide',
    ]);
    expect(stdout).toContain('kubeletadm fleet status --ssh-config .vagrant/ssh_config');
  });

  it('waits for the API server of an existing cluster before it applies', () => {
    const { calls } = configure({ INITIALIZED: 'yes' });
    expect(calls.slice(0, 3).map((call) => call.replace(/.*(readyz|apply).*/, '$1'))).toEqual([
      'ssh cp1 sudo test -f /etc/kubernetes/manifests/kube-apiserver.yaml',
      'readyz',
      'apply',
    ]);
  });

  it.each(['flannel', 'calico', 'cilium'])('installs %s with the pod subnet of the cluster', async (cni) => {
    const { calls } = configure({ CNI: cni, SUBNET: '10.1.2' });
    const at = calls.findIndex((call) => call.startsWith(`ssh cp1 sudo sh -s -- ${cni} 10.1.2 10.244.0.0/16`));
    expect(calls[at - 1]).toBe('kubeletadm apply --yes --ssh-config .vagrant/ssh_config');
    expect(calls[at + 1]).toMatch(/^input: network-add-on\.sh /);
    expect(readFileSync(join(cwd, '.vagrant/cluster.yaml'), 'utf8')).toContain('podSubnet: 10.244.0.0/16');
    expect(await runCommand(['config', 'validate', join(cwd, '.vagrant/cluster.yaml')])).toMatchObject({ code: 0 });
    expect(await runCommand(['fleet', 'validate', '-f', join(cwd, 'fleet.yaml')])).toMatchObject({ code: 0 });
  });

  it('does not wait for Ready nodes without a pod network', () => {
    const { calls, stdout } = configure({ CNI: 'none' });
    expect(calls.join('\n')).not.toMatch(/condition=Ready|sh -s/);
    expect(stdout).toContain('the nodes are NotReady until you install a pod network for 10.244.0.0/16');
  });

  it('runs init and join in the guests with MODE=inside, the token on standard input only', () => {
    const { calls } = configure({ MODE: 'inside' });
    expect(calls.filter((call) => !call.includes('kubectl'))).toEqual([
      'ssh cp1 sudo test -f /etc/kubernetes/manifests/kube-apiserver.yaml',
      'ssh cp1 sudo kubeletadm init --apiserver-advertise-address 192.168.56.10 --node-ip 192.168.56.0/24  --skip-token-print',
      'ssh cp1 sudo kubeletadm token create --ttl 1h --print-join-command',
      ...['worker1', 'worker2'].flatMap((worker) => [
        `ssh ${worker} sudo sh`,
        'input: exec kubeletadm join 192.168.56.10:6443 --token abcdef.0123456789abcdef --node-ip 192.168.56.0/24',
      ]),
      'ssh cp1 sudo cat /etc/kubernetes/admin.conf',
    ]);
    expect(readFileSync(join(cwd, 'admin.conf'), 'utf8')).toBe('kind: Config\n');
    expect(existsSync(join(cwd, 'fleet.yaml'))).toBe(false);
  });

  it('keeps an edited fleet file, and uses it with new machines and addresses', async () => {
    configure();
    const file = join(cwd, 'fleet.yaml');
    writeFileSync(file, `${readFileSync(file, 'utf8')}  - name: worker2\n    kubeletConfiguration: {maxPods: 30}\n`);
    expect(cluster(['forget', 'cp1']).stdout).toContain('fleet.yaml was edited and is kept');
    for (const [i, name] of ['cp1', 'worker1', 'worker2', 'worker3'].entries()) connect(name, `192.0.2.${i + 4}`);
    configure();
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
    expect(configure().stderr).toContain(
      'fleet.yaml does not import .vagrant/ssh_config. Remove fleet.yaml, or keep its addresses up to date',
    );
  });

  it('removes the Node and the connection of a destroyed worker', async () => {
    configure();
    const { status, calls } = cluster(['forget', 'worker1']);
    expect(status).toBe(0);
    expect(calls).toEqual(['ssh cp1 sudo env KUBECONFIG=/etc/kubernetes/admin.conf kubectl delete node worker1 --ignore-not-found']);
    expect(await hosts()).toEqual(['cp1 control-plane 192.0.2.1', 'worker2 worker 192.0.2.3']);
  });

  it('removes all files of the cluster with the control plane', () => {
    configure();
    expect(cluster(['forget', 'cp1']).status).toBe(0);
    expect(cluster(['forget', 'worker1']).calls).toEqual([]);
    for (const name of ['fleet.yaml', 'admin.conf', '.vagrant/known_hosts', '.vagrant/ssh_config', '.vagrant/cluster.yaml'])
      expect(existsSync(join(cwd, name)), name).toBe(false);
  });

  it('connects to a guest with a time limit, and records its key on first use', () => {
    configure();
    const config = readFileSync(join(cwd, '.vagrant/ssh_config'), 'utf8');
    expect(config).toContain(`Host *\n  UserKnownHostsFile "${cwd}/.vagrant/known_hosts"\n  StrictHostKeyChecking accept-new\n`);
    expect(spawnSync('ssh', ['-F', join(cwd, '.vagrant/ssh_config'), '-G', 'cp1'], { encoding: 'utf8' }).stdout).toMatch(
      /^connecttimeout 20$/m,
    );
  });

  it('prints how to resume when apply fails', () => {
    const { status, stderr } = cluster(['configure'], { APPLY_EXIT: '4' });
    expect(status).toBe(4);
    expect(stderr).toContain(
      'cluster.sh: apply failed with exit code 4. Fix the cause and run vagrant up again; it resumes where it stopped.',
    );
  });

  it('checks before the VMs boot that kubeletadm can be run, unless it runs in the guests', () => {
    expect(cluster(['check'])).toMatchObject({ status: 0, calls: ['kubeletadm version'] });
    const failed = cluster(['check'], { VERSION_EXIT: '1' });
    expect(failed.status).toBe(2);
    expect(failed.stderr).toContain('cannot run kubeletadm. Run npm ci && npm run build in the parent directory, or set KUBELETADM');
    expect(cluster(['check'], { MODE: 'inside', VERSION_EXIT: '1' })).toMatchObject({ status: 0, calls: [] });
  });

  it('prints its usage without a command', () => {
    expect(cluster([])).toMatchObject({ status: 2, stderr: expect.stringContaining('configure    bootstrap the cluster') });
  });
});
