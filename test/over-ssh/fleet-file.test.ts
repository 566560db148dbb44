import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { AppError } from '../../src/base/errors.ts';
import type { HostTarget } from '../../src/fleet/host-target.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { type SshServer, startSshServer } from '../support/ssh-server.ts';
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-fleet-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const HEADER = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n';
let files = 0;

/** Writes files below a new directory. */
function write(texts: Readonly<Record<string, string>>): string {
  const root = join(directory, String(files++));
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

type HostVariables = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The output of `ansible-inventory --list`. */
const listOf = (hostvars: HostVariables, groups: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({ _meta: { hostvars }, all: { children: ['ungrouped'] }, ...groups });

/** As for kubespray's sample inventory, with a bastion and an etcd of its own. @param more variables of both nodes, and of each */
function kubespray(more: Readonly<Record<'both' | 'node1' | 'node2', Readonly<Record<string, unknown>>>>): string {
  const cluster = {
    ansible_user: 'ubuntu',
    ansible_ssh_common_args: '-o ProxyCommand="ssh -W %h:%p -q ubuntu@1.2.3.4"',
    ...more.both,
  };
  return listOf(
    {
      bastion: { ansible_host: '1.2.3.4', ansible_user: 'ubuntu' },
      etcd1: { ansible_host: '10.0.0.9' },
      node1: { ansible_host: '10.0.0.1', ip: '10.3.0.1', ...cluster, ...more.node1 },
      node2: { ansible_host: '10.0.0.2', ip: '10.3.0.2', ...cluster, ...more.node2 },
    },
    {
      all: { children: ['bastion', 'etcd', 'k8s_cluster', 'ungrouped'] },
      bastion: { hosts: ['bastion'] },
      etcd: { hosts: ['etcd1'] },
      k8s_cluster: { children: ['kube_control_plane', 'kube_node'] },
      kube_control_plane: { hosts: ['node1'] },
      kube_node: { hosts: ['node2'] },
    },
  );
}
const NO_MORE = { both: {}, node1: {}, node2: {} };

describe('fleet init', () => {
  it('writes a valid file, and never overwrites an existing one', async () => {
    const file = join(write({}), 'fleet.yaml');
    mkdirSync(dirname(file), { recursive: true });
    expect(await runCommand(['fleet', 'init', '-f', file])).toMatchObject({ code: 0, stderr: '' });
    const text = readFileSync(file, 'utf8');
    expect(await runCommand(['fleet', 'init', '-f', file])).toEqual({
      code: 2,
      stdout: '',
      stderr: `${file} already exists. Pass another file with -f, or remove the existing file. [FLEET_FILE_EXISTS]\n`,
    });
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect(await runCommand(['fleet', 'validate', '-f', file])).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', file]);
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      'NAME      ADDRESS      BASTION  ROLE    GROUPS',
      'edge-01   192.0.2.1    -        worker  edge',
    ]);
  });

  it('imports an inventory and ssh_config by paths relative to the fleet file', async () => {
    const root = write({
      'inv/hosts.json': listOf({ w1: { ansible_host: '10.0.0.1' }, w2: { ansible_host: '10.0.0.1' } }, { web: { hosts: ['w1', 'w2'] } }),
      'ssh/config': 'Host a b\n  HostName 10.9.9.9\nInclude more\nHost *\n',
      'fleet/x': '',
    });
    const argv = [
      'fleet',
      'init',
      '-f',
      join(root, 'fleet/fleet.yaml'),
      '--from-ansible',
      join(root, 'inv/hosts.json'),
      '--from-ssh-config',
      join(root, 'ssh/config'),
    ];
    const refused = {
      code: 2,
      stderr: expect.stringMatching(/hosts "w2" and "w1" \(.*hosts\.json:1:1\) have the same address 10\.0\.0\.1/),
    };
    expect(await runCommand(argv)).toEqual({ ...refused, stdout: '' });
    expect(readdirSync(join(root, 'fleet'))).toEqual(['x']);
    const hostvars = { w1: { ansible_host: '10.0.0.1' }, w2: { ansible_host: '10.0.0.2' } };
    writeFileSync(join(root, 'inv/hosts.json'), listOf(hostvars, { web: { hosts: ['w1', 'w2'] } }));
    expect((await runCommand(argv)).code).toBe(0);
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', join(root, 'fleet/fleet.yaml'), '-o', 'json']);
    const hosts = (JSON.parse(stdout) as { hosts: readonly { name: string; ssh: { address: string } }[] }).hosts;
    expect(hosts.map(({ name, ssh }) => [name, ssh.address])).toEqual([
      ['w1', '10.0.0.1'],
      ['w2', '10.0.0.2'],
      ['a', 'a'],
    ]);
  });

  it('keeps a written file that must be corrected, and fails', async () => {
    const root = write({ vagrant: 'Host a\n  HostName 10.0.0.1\nHost b\n  HostName 10.0.0.1\n' });
    const [file, schema] = [join(root, 'fleet.yaml'), join(root, 'fleet.schema.json')];
    expect(await runCommand(['fleet', 'init', '-f', file, '--from-vagrant', join(root, 'vagrant')])).toEqual({
      code: 1,
      stdout: `${file} and ${schema} written. Correct the errors in ${file}, then run kubeletadm fleet validate -f ${file}\n`,
      stderr: expect.stringContaining(`${file}:`),
    });
    writeFileSync(file, readFileSync(file, 'utf8').replace('10.0.0.1', '10.0.0.2'));
    expect((await runCommand(['fleet', 'validate', '-f', file])).code).toBe(0);
  });

  it.each([
    ['replaces an older schema', '{"title": "Fleet of kubeletadm.dev/v1alpha1"}', true],
    ['keeps a schema of others', '{"title": "Fleet of cars"}', false],
    ['keeps a file that is no schema', 'text', false],
  ])('%s', async (_, text, isReplaced) => {
    const root = write({ 'fleet.schema.json': text });
    const [file, schema] = [join(root, 'fleet.yaml'), join(root, 'fleet.schema.json')];
    const written = `${file}${isReplaced ? ` and ${schema}` : ''} written. Show the hosts: kubeletadm fleet inventory -f ${file}\n`;
    expect(await runCommand(['fleet', 'init', '-f', file])).toEqual({ code: 0, stdout: written, stderr: '' });
    expect(readFileSync(schema, 'utf8')).toBe(isReplaced ? (await runCommand(['fleet', 'schema'])).stdout : text);
  });

  it('reads the groups of kubespray: control planes, bastions, other hosts, and node IPs', async () => {
    const root = write({ 'hosts.json': kubespray(NO_MORE) });
    const file = join(root, 'fleet.yaml');
    expect(await runCommand(['fleet', 'init', '-f', file, '--from-ansible', join(root, 'hosts.json')])).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect((await runCommand(['fleet', 'inventory', '-f', file])).stdout.replace(/ +$/gm, '')).toBe(
      [
        'NAME     ADDRESS          BASTION         ROLE           GROUPS',
        'node1    ubuntu@10.0.0.1  ubuntu@1.2.3.4  control-plane  k8s_cluster,kube_control_plane',
        'node2    ubuntu@10.0.0.2  ubuntu@1.2.3.4  worker         k8s_cluster,kube_node',
        'bastion  ubuntu@1.2.3.4   -               bastion        -',
        '',
      ].join('\n'),
    );
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', file, '--host', 'node2']);
    expect(stdout).toMatch(/\{"name":"node-ip","value":"10\.3\.0\.2"\}/);
    // No value is invented for hosts without one.
    const groups = { kube_node: { hosts: ['n1', 'n2'] }, k8s_cluster: { children: ['kube_node'] } };
    writeFileSync(join(root, 'hosts.json'), listOf({ n1: { ip: '10.3.0.1' } }, groups));
    const plain = await runCommand(['fleet', 'init', '-f', '-', '--from-ansible', join(root, 'hosts.json')]);
    expect(plain.stdout).not.toMatch(/^ +(?:nodeIP|hosts):/m);
  });

  it('imports the settings of a kubespray inventory, adds none, and lists ignored ones', async () => {
    const both = {
      cluster_name: 'prod.example',
      dns_domain: '{{ cluster_name }}',
      kubelet_fail_swap_on: false,
      kubelet_max_pods: 90,
      kube_version: 'v1.30.0',
      kubelet_logfiles_max_size: '5Mi',
      kubelet_cgroup_driver: 'cgroupfs',
      kube_cpu_reserved: '100m',
      kube_ephemeral_storage_reserved: '1Gi',
      system_pid_reserved: 1000,
      system_reserved: true,
      kube_network_plugin: 'calico',
      kubelet_custom_flags: ['--a=b'],
      node_labels: { pool: 'edge' },
    };
    const node1 = { kubelet_pod_pids_limit: 100, kube_memory_reserved: '256Mi' };
    const node2 = { kubelet_pod_pids_limit: 200, kube_memory_reserved: '512Mi', kubelet_event_record_qps: 5 };
    const root = write({ 'hosts.json': kubespray({ both, node1, node2 }) });
    const file = join(root, 'fleet.yaml');
    const { code, stderr } = await runCommand(['fleet', 'init', '-f', file, '--from-ansible', join(root, 'hosts.json')]);
    expect(code, stderr).toBe(0);
    const names =
      'kube_network_plugin, kubelet_custom_flags, kubelet_event_record_qps (declared for 1 of 2 nodes), node_labels, system_reserved';
    expect(stderr).toBe(`not imported from the inventory: ${names}. Declare kubelet settings in ${file}.\n`);
    const text = readFileSync(file, 'utf8');
    const comment = /# Not imported from the inventory:\n((?: +# {3}.*\n)+)/.exec(text)?.[1] ?? '';
    expect(
      comment
        .trim()
        .split(/\n? *# {3}|, /)
        .filter(Boolean),
    ).toEqual(names.split(', '));
    expect(text).toMatch(/^kubernetesVersion: "1\.30"/m);
    const read = parse(text) as { baseline?: { variables?: object; kubeletConfiguration?: object } };
    expect(read.baseline?.variables).toBeUndefined();
    expect(read.baseline?.kubeletConfiguration).toEqual({
      maxPods: 90,
      failSwapOn: false,
      containerLogMaxSize: '5Mi',
      clusterDomain: 'prod.example',
      cgroupDriver: 'cgroupfs',
      kubeReserved: { cpu: '100m', 'ephemeral-storage': '1Gi' },
      systemReserved: { pid: '1000' },
    });
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', file, '-o', 'json']);
    const { hosts } = JSON.parse(stdout) as { hosts: readonly { name: string; kubeletConfiguration: Record<string, unknown> }[] };
    const fields = hosts.map(({ name, kubeletConfiguration: { maxPods, podPidsLimit, kubeReserved } }) => [
      name,
      maxPods,
      podPidsLimit,
      kubeReserved,
    ]);
    expect(fields).toEqual([
      ['node1', 90, 100, { cpu: '100m', 'ephemeral-storage': '1Gi', memory: '256Mi' }],
      ['node2', 90, 200, { cpu: '100m', 'ephemeral-storage': '1Gi', memory: '512Mi' }],
    ]);
    expect((await runCommand(['fleet', 'validate', '-f', file])).code).toBe(0);
  });

  it.each([
    ['an inventory without such variables', '--from-ansible', 'hosts.json'],
    ['ssh_config', '--from-ssh-config', 'config'],
  ])('declares no version and no field for %s', async (_, option, name) => {
    const root = write({ 'hosts.json': listOf({}, { edge: { hosts: ['n1'] } }), config: 'Host n1\n' });
    const { code, stdout, stderr } = await runCommand(['fleet', 'init', '-f', '-', option, join(root, name)]);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^warning: no control plane was found: the only host is a worker\..*\n$/)]);
    const read = parse(stdout) as { kubernetesVersion?: string; baseline?: object | null };
    expect([read.kubernetesVersion, read.baseline ?? null]).toEqual([undefined, null]);
  });

  it('prints the file with -f -', async () => {
    const { code, stdout } = await runCommand(['fleet', 'init', '-f', '-']);
    expect([code, stdout.split('\n')[2]]).toEqual([0, 'apiVersion: kubeletadm.dev/v1alpha1']);
  });
});

describe('fleet init --from-vagrant', () => {
  const recording = readFileSync(new URL('../unit/fleet/fixtures/vagrant/libvirt-2.3.4.txt', import.meta.url), 'utf8');

  it('reads a recording from standard input or a file; key files are relative to the fleet file', async () => {
    const root = write({ 'here/x': '' });
    const text = recording.replaceAll('/home/ada/kubeletadm/vagrant', join(root, 'here'));
    const file = join(root, 'here/fleet.yaml');
    const argv = ['fleet', 'init', '--from-vagrant', '-', '--node-ip', '192.168.56.0/24'];
    expect(await runCommand([...argv, '-f', file], { stdin: text })).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(file, 'utf8')).toContain('\n        - .vagrant/machines/cp1/libvirt/private_key\n');
    expect((await runCommand(['fleet', 'inventory', '-f', file])).stdout.replace(/ +$/gm, '')).toBe(
      [
        'NAME     ADDRESS                  BASTION  ROLE           GROUPS',
        'cp1      vagrant@192.168.121.86   -        control-plane  -',
        'worker1  vagrant@192.168.121.127  -        worker         -',
        'worker2  vagrant@192.168.121.34   -        worker         -',
        '',
      ].join('\n'),
    );
    const saved = join(write({ saved: text }), 'saved');
    const printed = await runCommand(['fleet', 'init', '-f', '-', '--from-vagrant', saved]);
    expect(printed.stdout).toContain(`\n        - ${join(root, 'here')}/.vagrant/machines/cp1/libvirt/private_key\n`);
  });

  it('runs vagrant ssh-config, and reports its output when it fails', async () => {
    const bin = write({ vagrant: `#!/bin/sh\n[ "$*" = ssh-config ] || exit 9\ncat <<'X'\n${recording}X\n` });
    chmodSync(join(bin, 'vagrant'), 0o755);
    const PATH = process.env.PATH;
    const init = (): Promise<CliResult> => runCommand(['fleet', 'init', '-f', '-', '--from-vagrant']);
    try {
      process.env.PATH = `${bin}:${PATH}`;
      expect((await init()).stdout).toContain('  - name: worker2\n');
      writeFileSync(join(bin, 'vagrant'), '#!/bin/sh\necho "The machine is not created.\nRun vagrant up.\n\nMore." >&2; exit 1\n');
      expect(await init()).toEqual({
        code: 2,
        stdout: '',
        stderr: 'vagrant ssh-config exited with code 1: The machine is not created. Run vagrant up. [LOCAL_COMMAND_FAILED]\n',
      });
      process.env.PATH = write({ x: '' });
      expect(await init()).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^local host: cannot start vagrant: .*\[HOST_COMMAND_NOT_FOUND\]\n$/),
      });
    } finally {
      process.env.PATH = PATH;
    }
  });

  it('rejects an invalid node IP', async () => {
    expect(await runCommand(['fleet', 'init', '-f', '-', '--node-ip', '10.0.0.0/40'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^--node-ip: 10\.0\.0\.0\/40 is not the IP of a node\. .* \[USAGE\]\n$/),
    });
  });
});

describe('fleet inventory and validate', () => {
  it('report every error, with exit code 2', async () => {
    const root = write({
      'f.yaml': `${HEADER}hosts: [{name: n1, grops: [a]}]\nimports: [{ansibleInventory: nope.ini}, {ansibleInventory: bad.json}]\n`,
      'bad.json': listOf({}, { a: { children: ['a'] } }),
    });
    const file = join(root, 'f.yaml');
    const { code, stdout, stderr } = await runCommand(['fleet', 'inventory', '-f', file]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.split('\n').sort()).toEqual(
      [
        '',
        `${file}:3:20 hosts[0].grops: unknown field. Did you mean groups? [CONFIG_UNKNOWN_FIELD]`,
        `${file}:4:30 imports[0].ansibleInventory: cannot read ${join(root, 'nope.ini')}: no such file or directory. Check the path. [INPUT_UNREADABLE]`,
        `${join(root, 'bad.json')}:1:1: circular reference between groups: a -> a. Remove one of these groups from the children of the group before it. [FLEET_IMPORT_INVALID]`,
      ].sort(),
    );
    expect((await runCommand(['fleet', 'validate', '-f', file])).code).toBe(2);
  });

  it('find a host only by its name', async () => {
    const file = join(write({ 'f.yaml': `${HEADER}hosts: [{name: "edge-[01:20]"}]\n` }), 'f.yaml');
    expect(await runCommand(['fleet', 'inventory', '-f', file, '--host', 'edge-5'])).toEqual({
      code: 2,
      stdout: '',
      stderr: `${file} has no host or nodeName edge-5. Did you mean edge-05? [USAGE]\n`,
    });
  });

  it('validate configurations against the version of the file or of the flag', async () => {
    const file = join(
      write({
        'f.yaml': `${HEADER}kubernetesVersion: "1.30"\nbaseline: {kubeletConfiguration: {crashLoopBackOff: {maxContainerRestartPeriod: 10s}}}\nhosts: [{name: n1}]\n`,
      }),
      'f.yaml',
    );
    expect(await runCommand(['fleet', 'validate', '-f', file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${file}:4:35 kubeletConfiguration.crashLoopBackOff: unknown to a 1.30 kubelet`),
    });
    const { code, stderr } = await runCommand(['fleet', 'validate', '-f', file, '--kubernetes-version', '1.36']);
    expect([code, stderr.includes('crashLoopBackOff: not known')]).toEqual([0, false]);
  });

  it('read the file from standard input', async () => {
    expect(await runCommand(['fleet', 'validate', '-f', '-'], { stdin: `${HEADER}hosts: [{name: n1}]\n` })).toEqual({
      code: 0,
      stdout: 'ok\n',
      stderr: '',
    });
  });

  it('print a schema', async () => {
    const { stdout } = await runCommand(['fleet', 'schema']);
    expect(JSON.parse(stdout)).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#', required: ['apiVersion', 'kind'] });
  });
});

describe('an inventory that only Ansible reads', () => {
  const path = process.env.PATH;
  afterEach(() => {
    process.env.PATH = path;
  });
  const list = listOf({ w1: { rack: 7 } }, { all: { children: ['ungrouped', 'web'] }, web: { hosts: ['w1'] } });
  /** A fleet that imports `hosts.ini`, and in front of the search path a program in place of `ansible-inventory`. */
  function fleetWith(program: string): string {
    const root = write({ 'hosts.ini': '[web]\nw1 rack=7\n', 'fleet.yaml': `${HEADER}imports: [{ansibleInventory: hosts.ini}]\n`, list });
    writeFileSync(join(root, 'ansible-inventory'), `#!/bin/sh\ncd '${root}'\n${program}\n`, { mode: 0o755 });
    process.env.PATH = `${root}:${path}`;
    return root;
  }
  const inventoryOf = (root: string) => runCommand(['fleet', 'inventory', '-f', join(root, 'fleet.yaml'), '-o', 'json']);

  it('equals the output of ansible-inventory', async () => {
    const root = fleetWith('printf "%s\\n" "$@" "$ANSIBLE_INVENTORY_UNPARSED_FAILED" >asked; cat list');
    const { code, stdout, stderr } = await inventoryOf(root);
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({ hosts: [{ name: 'w1', groups: ['web'], variables: { rack: 7 } }] });
    expect(readFileSync(join(root, 'asked'), 'utf8')).toBe(`-i\n${join(root, 'hosts.ini')}\n--list\nTrue\n`);
  });

  it('is refused with the words of Ansible', async () => {
    const root = fleetWith('echo "ERROR! No inventory was parsed" >&2; exit 1');
    expect(await inventoryOf(root)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/fleet\.yaml:3:\d+ .*--list exited with code 1: ERROR! No inventory was parsed/),
    });
  });

  it('is refused when another thing is printed', async () => {
    expect(await inventoryOf(fleetWith('echo {}'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'hosts.ini: ansible-inventory --list printed no inventory. Check the output of ansible-inventory -i ',
      ),
    });
  });

  it('needs Ansible, or its output as a file', async () => {
    const root = fleetWith('');
    rmSync(join(root, 'ansible-inventory'));
    for (const name of ['env', 'sh']) symlinkSync(`/usr/bin/${name}`, join(root, name));
    process.env.PATH = root;
    const message = 'only Ansible can read this inventory, and ansible-inventory is not installed on the local host';
    const hint =
      'Install Ansible (package ansible-core). Or save the inventory on a host with Ansible, and import the saved file: ansible-inventory -i FILE --list > inventory.json';
    expect(await inventoryOf(root)).toEqual({
      code: 2,
      stdout: '',
      stderr: `${join(root, 'fleet.yaml')}:3:30 imports[0].ansibleInventory: ${message}. ${hint}. [FLEET_IMPORT_INVALID]\n`,
    });
  });
});

describe('an inventory of Ansible, with the real ansible-inventory', () => {
  const missing = requirement(
    'inventories as ansible-inventory reads them',
    spawnSync('ansible-inventory', ['--version']).status === 0 ? null : 'ansible-inventory is not installed (package ansible-core)',
  );

  const INVENTORIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'a file with group_vars and host_vars': {
      'hosts.ini':
        '[web]\nweb[01:03].lan rack=1\n[db]\ndb1:2222 ansible_user=core\n[prod:children]\nweb\ndb\n[prod:vars]\nzone=a\n[all:vars]\nansible_user=ubuntu\n',
      'group_vars/all.yml': 'domain: lan\nzone: all\n',
      'group_vars/web/10.yml': 'tier: front\nport: 80\n',
      'group_vars/web/20.yaml': 'port: 8080\n',
      'group_vars/web.yml': 'tier: never read\n',
      'group_vars/prod': 'zone: prod\n',
      'host_vars/web02.lan.yml': 'rack: 2\n',
      'host_vars/web03.lan': 'rack: 3\n',
      'host_vars/other.yml': 'rack: 4\n',
    },
    'a file in YAML': {
      'hosts.yaml':
        'all:\n  vars: {ansible_user: ubuntu}\n  children:\n    k8s:\n      vars: {role: node}\n      children:\n        edge: {hosts: {"e[a:c]": {n: 5}}, vars: {role: edge, ansible_group_priority: 10}}\n        core: {hosts: {e1: {}, ea: }, vars: {role: core}}\n',
    },
    'a directory': {
      'inventory/10-hosts': '[web]\nw1\nw2 a=1\n',
      'inventory/20-more.yml': 'web: {hosts: {w3: }, vars: {b: 2}}\nnew: {hosts: {w2: {a: 3}}}\n',
      'inventory/30-not.cfg': '[web]\nnot\n',
      'inventory/group_vars/web.yml': 'c: 4\n',
      'inventory/group_vars/new.json': '{"c": 5}',
    },
  };

  it.skipIf(missing).each(Object.entries(INVENTORIES))('%s', async (_, texts) => {
    const [first = ''] = Object.keys(texts);
    const path = first.includes('/') ? dirname(first) : first;
    const root = write({ ...texts, 'fleet.yaml': `${HEADER}imports: [{ansibleInventory: ${path}}]\n` });
    const { status, stdout: list } = spawnSync('ansible-inventory', ['-i', join(root, path), '--list'], {
      encoding: 'utf8',
      cwd: root,
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });
    expect(status).toBe(0);
    const { _meta, ...groups } = JSON.parse(list) as Record<
      string,
      { hosts?: string[]; children?: string[]; hostvars?: Record<string, Record<string, unknown>> }
    >;
    const { code, stdout, stderr } = await runCommand(['fleet', 'inventory', '-f', join(root, 'fleet.yaml'), '-o', 'json']);
    expect([code, stderr]).toEqual([0, '']);
    const ours = JSON.parse(stdout) as {
      hosts: readonly { name: string; groups: readonly string[]; variables: Record<string, unknown> }[];
    };
    const variables = ours.hosts.map(
      ({ name, variables: { name: _name, inventory_hostname: _host, inventory_hostname_short: _short, ...own } }) => [name, own],
    );
    const members = Object.values(groups).flatMap(({ hosts = [] }) => hosts);
    expect(ours.hosts.map(({ name }) => name).sort()).toEqual([...new Set(members)].sort());
    expect(Object.fromEntries(variables)).toEqual(
      Object.fromEntries([...new Set(members)].map((name) => [name, _meta?.hostvars?.[name] ?? {}])),
    );
    const hostsIn = (group: string): readonly string[] => [
      ...(groups[group]?.hosts ?? []),
      ...(groups[group]?.children ?? []).flatMap(hostsIn),
    ];
    for (const group of Object.keys(groups).filter((name) => name !== 'all' && name !== 'ungrouped'))
      expect([
        group,
        ours.hosts
          .filter((host) => host.groups.includes(group))
          .map(({ name }) => name)
          .sort(),
      ]).toEqual([group, [...new Set(hostsIn(group))].sort()]);
  });
});

describe('fleet trust', () => {
  const missing = requirement('fleet trust with OpenSSH', sshdMissing);
  const FINGERPRINT = /SHA256:[A-Za-z0-9+/]{43}/;
  let [one, two]: (Sshd | null)[] = [null, null];
  let odd: SshServer;
  beforeAll(async () => {
    if (!missing) [one, two] = await Promise.all([startSshd({ hostKeys: ['ed25519', 'rsa'] }), startSshd()]);
    odd = await startSshServer();
  });
  afterAll(async () => {
    await Promise.all([one?.stop(), two?.stop(), odd.stop()]);
  });

  function fleet(hosts: string): { readonly file: string; readonly known: string; readonly argv: readonly string[] } {
    const root = write({ 'fleet.yaml': `${HEADER}${hosts}`, 'ssh-config': 'Host *\n  User other\n' });
    chmodSync(join(root, 'ssh-config'), 0o600);
    const known = join(root, 'known_hosts');
    const argv = ['fleet', 'trust', '-f', join(root, 'fleet.yaml'), '--ssh-config', join(root, 'ssh-config'), '--ssh-known-hosts', known];
    return { file: join(root, 'fleet.yaml'), known, argv };
  }

  const at = (server: { readonly port: number } | null | undefined): string => `address: 127.0.0.1, ssh: {port: ${server?.port}}`;

  it('shows fingerprints, records them on request, and then reports them as known', async () => {
    const { argv, known } = fleet(`hosts: [{name: odd, ${at(odd)}}]\n`);
    const shown = await runCommand([...argv, '--dry-run']);
    expect(shown).toMatchObject({ code: 6, stderr: '' });
    expect(shown.stdout).toMatch(
      new RegExp(
        `^HOST +KNOWN AS +TYPE +FINGERPRINT +STATE\\nodd +\\[127\\.0\\.0\\.1\\]:${odd.port} +ED25519 +${FINGERPRINT.source} +unknown\\n$`,
      ),
    );
    // Without a terminal kubeletadm cannot prompt.
    expect(await runCommand(argv)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('fleet trust: standard input is not a terminal'),
    });
    expect(statSync(known, { throwIfNoEntry: false })).toBe(undefined);
    expect(await runCommand([...argv, '--yes'])).toMatchObject({ code: 0, stdout: expect.stringContaining(`recorded in ${known}\n`) });
    expect(readFileSync(known, 'utf8')).toBe(`[127.0.0.1]:${odd.port} ${odd.hostKey}\n`);
    expect(await runCommand([...argv, '--yes'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/ known\n$/) });
    expect(readFileSync(known, 'utf8').split('\n')).toHaveLength(2);
  });

  it.skipIf(missing)('does not log in', async () => {
    const { argv } = fleet(`hosts: [{name: n1, ${at(one)}}]\n`);
    const before = one?.log().length ?? 0;
    expect((await runCommand([...argv, '--yes'])).code).toBe(0);
    expect(one?.log().slice(before)).not.toMatch(/userauth|Failed|Accepted|invalid user/i);
  });

  it.skipIf(missing)('never records a changed key; the other keys are recorded', async () => {
    const { argv, known } = fleet(`hosts: [{name: n1, ${at(one)}}, {name: odd, ${at(odd)}}]\n`);
    const other = two?.hostKey('ed25519');
    writeFileSync(known, `[127.0.0.1]:${one?.port} ${other}\n`);
    const { code, stdout, stderr } = await runCommand([...argv, '--yes']);
    expect(code).toBe(4);
    expect(stdout).toMatch(/^n1 .* CHANGED$/m);
    expect(stderr).toMatch(/^n1: .*known_hosts:1:1: the host key has changed: .*\[HOST_KEY_MISMATCH\]\n$/);
    expect(readFileSync(known, 'utf8').split('\n')[0]).toBe(`[127.0.0.1]:${one?.port} ${other}`);
    expect(readFileSync(known, 'utf8')).toContain(odd.hostKey);
  });

  it.skipIf(missing)('asks a host with several keys for the known one', async () => {
    const { argv, known } = fleet(`hosts: [{name: n1, ${at(one)}}]\n`);
    writeFileSync(known, `[127.0.0.1]:${one?.port} ${one?.hostKey('rsa')}\n`);
    expect(await runCommand([...argv, '--dry-run'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/RSA .* known\n$/) });
  });

  it.skipIf(missing)('accepts only the keys of the fleet file for a host that declares keys', async () => {
    const entry = (key: string | undefined) => `hosts: [{name: n1, address: 127.0.0.1, ssh: {port: ${one?.port}, hostKeys: ["${key}"]}}]\n`;
    const right = fleet(entry(one?.hostKey('rsa')));
    expect(await runCommand([...right.argv, '--yes'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/RSA .* known\n$/) });
    const wrong = fleet(entry(two?.hostKey('ed25519')));
    writeFileSync(wrong.known, `[127.0.0.1]:${one?.port} ${one?.hostKey('ed25519')}\n`);
    const { code, stderr } = await runCommand([...wrong.argv, '--yes']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(new RegExp(`^n1: ${wrong.file}:3:1: the host key has changed: `))]);
  });

  it.skipIf(missing)("connects through a bastion after checking the bastion's key", async () => {
    const bastion = `{name: b, role: bastion, address: 127.0.0.1, ssh: {port: ${one?.port}, user: ${one?.user}, identityFiles: [${one?.identityFile}]}}`;
    const { argv, known } = fleet(`hosts: [${bastion}, {name: n1, address: localhost, ssh: {port: ${two?.port}, bastion: b}}]\n`);
    const closed = await runCommand([...argv, '--dry-run', '-o', 'json']);
    expect(closed).toMatchObject({ code: 1, stderr: expect.stringMatching(/^n1: jump host b: unknown host key/) });
    const { code, stdout } = await runCommand([...argv, '--yes', '-o', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'HostKeys',
      hosts: [
        { host: 'b', state: 'recorded' },
        { host: 'n1', knownAs: `[localhost]:${two?.port}`, state: 'recorded' },
      ],
    });
    expect(readFileSync(known, 'utf8')).toBe(
      `[127.0.0.1]:${one?.port} ${one?.hostKey('ed25519')}\n[localhost]:${two?.port} ${two?.hostKey('ed25519')}\n`,
    );
  });

  it('reports an unreachable host, and checks the others', async () => {
    const { argv } = fleet(`hosts: [{name: dead, address: 127.0.0.1, ssh: {port: 1}}, {name: odd, ${at(odd)}}]\n`);
    const { code, stdout, stderr } = await runCommand([...argv, '--yes', '--connect-timeout', '2']);
    expect(code).toBe(4);
    expect(stdout).toMatch(/^odd .* recorded in /m);
    expect(stderr).toMatch(/^dead: .*\[HOST_UNREACHABLE\]\n$/);
    expect((await runCommand([...argv, '--yes', '--limit', 'o*'])).code).toBe(0);
  });
});

describe('a start file', () => {
  it('names the kubeconfig in force, the ssh_config of its import and a schema that exists', async () => {
    const root = write({ 'lab/ssh_config': 'Host node1\n  HostName 192.0.2.1\n', 'here/x': '', 'lab/admin.conf': '' });
    chmodSync(join(root, 'lab/ssh_config'), 0o600);
    const [file, config] = [join(root, 'here/fleet.yaml'), join(root, 'lab/ssh_config')];
    const argv = ['fleet', 'init', '-f', file, '--from-ssh-config', config];
    expect(await runCommand(argv, { env: { KUBECONFIG: join(root, 'lab/admin.conf') } })).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).toContain(`\n  kubeconfig: ${root}/lab/admin.conf\n`);
    expect(readFileSync(file, 'utf8')).toContain(`\nsshConfig: ${config}\n`);
    expect(readFileSync(join(root, 'here/fleet.schema.json'), 'utf8')).toBe((await runCommand(['fleet', 'schema'])).stdout);
    const used: (string | undefined)[] = [];
    const services = () => ({
      connectHost: async ({ ssh }: HostTarget) => {
        used.push(ssh?.configFile);
        throw new AppError({ code: 'HOST_UNREACHABLE', message: 'seen' });
      },
    });
    await runCommand(['fleet', 'history', '-f', file], { services });
    await runCommand(['fleet', 'exec', '-f', file, '--ssh-config', 'other', '--', 'true'], { services });
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(config, '../lab/ssh_config'));
    await runCommand(['fleet', 'history', '-f', file], { services });
    expect(used).toEqual([config, 'other', config]);
  });

  it('declares nothing that was not found', async () => {
    const root = write({ x: '' });
    const { stdout } = await runCommand(['fleet', 'init', '-f', '-'], { env: { HOME: root } });
    const { cluster, baseline, kubernetesVersion, groups } = parse(stdout);
    expect({ cluster, baseline, kubernetesVersion, groups }).toEqual({ cluster: null, baseline: null, groups: [{ name: 'edge' }] });
    expect((await runCommand(['fleet', 'init', '-f', '-'], { env: { HOME: root, KUBECONFIG: 'a:b' } })).stdout).toContain(
      '  # kubeconfig:',
    );
  });
});
