import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { importAnsible } from '../../../src/fleet/imports/ansible/import.ts';
import { type InventoryList, readInventoryList } from '../../../src/fleet/imports/ansible/inventory.ts';
import { filterImport } from '../../../src/fleet/imports/filter-import.ts';
import { importSshConfig } from '../../../src/fleet/imports/import-ssh-config.ts';

type Variables = Readonly<Record<string, unknown>>;

/** The output of `ansible-inventory --list`. */
function listOf(hostvars: Readonly<Record<string, Variables>>, groups: Readonly<Record<string, unknown>> = {}): InventoryList {
  const list = readInventoryList(JSON.stringify({ _meta: { hostvars }, all: { children: ['ungrouped'] }, ...groups }));
  if (list === null) throw new Error('not an inventory');
  return list;
}

describe('readInventoryList', () => {
  it.each([
    ['an INI inventory', '[web]\nn1\n'],
    ['a YAML inventory', 'all:\n  hosts:\n    n1:\n'],
    ['an inventory in JSON', '{"all": {"hosts": {"n1": {}}}}'],
    ['nothing', ''],
    ['another value', '[]'],
    ['hosts that are not strings', '{"_meta": {"hostvars": {}}, "web": {"hosts": [1]}}'],
    ['variables that are not an object', '{"_meta": {"hostvars": {"n1": 3}}}'],
  ])('refuses %s', (_, text) => {
    expect(readInventoryList(text)).toBeNull();
  });
});

describe('importAnsible', () => {
  const one = (variables: Variables) => {
    const { inventory, problems } = importAnsible(listOf({ n1: variables }), 'hosts');
    return { ...inventory.hosts[0]?.written, problems: problems.map(formatProblem) };
  };

  it('maps connection variables to fields of a fleet file', () => {
    expect(
      one({
        ansible_host: '10.0.0.1',
        ansible_user: 'ubuntu',
        ansible_port: 2222,
        ansible_ssh_private_key_file: '~/.ssh/k',
        ansible_become: 'yes',
        rack: 7,
      }),
    ).toEqual({
      address: '10.0.0.1',
      ssh: { user: 'ubuntu', port: 2222, identityFiles: ['~/.ssh/k'], become: 'sudo' },
      variables: expect.objectContaining({ rack: 7, ansible_host: '10.0.0.1' }),
      problems: [],
    });
  });

  it.each([
    [{ ansible_ssh_common_args: '-o ProxyJump=admin@jump:2222' }, 'admin@jump:2222'],
    [{ ansible_ssh_common_args: '-J a,b' }, 'a,b'],
    [{ ansible_ssh_extra_args: '-oProxyJump=a' }, 'a'],
    [{ ansible_ssh_common_args: '-o ProxyCommand="ssh -W %h:%p -q -p 2222 admin@jump"' }, 'admin@jump:2222'],
    [{ ansible_ssh_common_args: '-o ProxyCommand="ssh -l admin -i key jump -W %h:%p" -o StrictHostKeyChecking=no' }, 'admin@jump'],
  ])('finds the bastion in %j', (settings, bastion) => {
    expect(one(settings)).toMatchObject({ ssh: { bastion }, problems: [] });
  });

  it('reports ignored variables', () => {
    expect(
      one({
        ansible_become_method: 'doas',
        ansible_password: 'hunter2',
        ansible_ssh_common_args: '-o ProxyCommand="nc -x p %h %p"',
      }).problems,
    ).toEqual([
      'hosts:1:1: passwords are not read from the inventory (host n1). Use SSH keys, or pass the password with --ssh-password-stdin or --sudo-password-stdin. [FLEET_IMPORT_IGNORED]',
      'hosts:1:1: ansible_become_method doas is not supported (host n1). Use sudo. [FLEET_IMPORT_IGNORED]',
      'hosts:1:1: a ProxyCommand in the ssh arguments is not supported (host n1). Set ssh.bastion for the hosts in the fleet file. [FLEET_IMPORT_IGNORED]',
    ]);
  });

  it('reports each problem once for all affected hosts', () => {
    const web = Array.from({ length: 30 }, (_, i) => [`web${String(i + 1).padStart(2, '0')}`, { ansible_password: 'x' }]);
    const lab = { ansible_connection: 'local' };
    const list = listOf({ ...Object.fromEntries(web), lab1: lab, lab2: lab, db1: { ansible_password: 'y' } });
    expect(importAnsible(list, 'hosts').problems.map(formatProblem)).toEqual([
      'hosts:1:1: passwords are not read from the inventory (hosts web[01:30], db1). Use SSH keys, or pass the password with --ssh-password-stdin or --sudo-password-stdin. [FLEET_IMPORT_IGNORED]',
      'hosts:1:1: hosts lab1, lab2 are not imported: ansible_connection is local, but kubeletadm connects only over SSH [FLEET_IMPORT_IGNORED]',
    ]);
  });

  it('imports no secrets', () => {
    const { variables } = one({ ansible_password: 'hunter2', db_password: 'x', api_token: 'y', vault_key: 'z', rack: 1, compass: 'ok' });
    expect(variables).toEqual({ rack: 1, compass: 'ok' });
  });

  it('omits hosts that Ansible does not reach over SSH', () => {
    const { inventory, problems } = importAnsible(listOf({ localhost: { ansible_connection: 'local' }, n1: {} }), 'hosts');
    expect(inventory.hosts.map(({ name }) => name)).toEqual(['n1']);
    expect(problems.map(formatProblem)).toEqual([
      'hosts:1:1: host localhost is not imported: ansible_connection is local, but kubeletadm connects only over SSH [FLEET_IMPORT_IGNORED]',
    ]);
  });

  it('reads hosts, groups and variables from the list', () => {
    const hostvars = {
      n1: { ansible_host: '10.0.0.1', zone: 'a', labels: { pool: 'edge' }, none: null, vaulted: { __ansible_vault: '$ANSIBLE_VAULT;1.1' } },
      script: {},
    };
    const list = listOf(hostvars, {
      all: { children: ['ungrouped', 'web', 'prod'] },
      ungrouped: { hosts: ['single'] },
      web: { hosts: ['n1', 'n2'] },
      prod: { children: ['edge', 'web'] },
      edge: { hosts: ['n1'], children: ['empty'] },
      elsewhere: { hosts: ['n3'] },
    });
    const { inventory, problems } = importAnsible(list, 'list.json');
    expect(problems).toEqual([]);
    expect(inventory.hosts.map(({ name, groups, written }) => [name, groups, written.address])).toEqual([
      ['single', [], undefined],
      // A deeper group has precedence, then the later name.
      ['n1', ['prod', 'edge', 'web'], '10.0.0.1'],
      ['n2', ['prod', 'web'], undefined],
      ['n3', ['elsewhere'], undefined],
      ['script', [], undefined],
    ]);
    expect(inventory.hosts[1]).toMatchObject({ written: { variables: { zone: 'a' } }, unread: ['labels', 'vaulted'] });
    expect(inventory.groups).toEqual(['web', 'prod', 'edge', 'empty', 'elsewhere']);
  });

  it('refuses groups that contain each other', () => {
    const list = listOf({}, { a: { children: ['b'] }, b: { children: ['a'] } });
    expect(importAnsible(list, 'list.json').problems.map(formatProblem)).toEqual([
      'list.json:1:1: circular reference between groups: a -> b -> a. Remove one of these groups from the children of the group before it. [FLEET_IMPORT_INVALID]',
    ]);
  });
});

describe('filterImport', () => {
  const { inventory } = importAnsible(
    listOf({}, { all: { children: ['web', 'db'] }, web: { hosts: ['web1', 'web2', 'web3'] }, db: { hosts: ['db1'] } }),
    'hosts',
  );
  it.each<[readonly string[] | undefined, readonly string[], readonly string[]]>([
    [undefined, ['web1', 'web2', 'web3', 'db1'], []],
    [['web'], ['web1', 'web2', 'web3'], []],
    [['web', '!web2'], ['web1', 'web3'], []],
    [['!web'], ['db1'], []],
    [['*1'], ['web1', 'db1'], []],
    [
      ['nope*', 'db'],
      ['db1'],
      ['the pattern "nope*" matches no imported host or group. Correct or remove the pattern. [FLEET_IMPORT_IGNORED]'],
    ],
  ])('%j', (patterns, names, problems) => {
    const kept = filterImport(inventory, patterns);
    expect(kept.inventory.hosts.map(({ name }) => name)).toEqual(names);
    expect(kept.problems.map(formatProblem)).toEqual(problems);
  });
});

describe('importSshConfig', () => {
  it('imports Host names without patterns, also from included files', () => {
    const line = (keyword: string, args: readonly string[], number: number) => ({
      file: 'config',
      line: number,
      keyword,
      args,
    });
    const included = { path: 'more', lines: [{ file: 'more', line: 1, keyword: 'host', args: ['n9'] }] };
    const files = [
      {
        path: 'config',
        lines: [
          line('host', ['*'], 1),
          line('host', ['n1', 'n2', '!n3', 'x?'], 2),
          line('hostname', ['10.0.0.1'], 3),
          { ...line('include', ['more'], 4), included: [included] },
          line('host', ['n1'], 5),
          line('match', ['host', 'n7'], 6),
        ],
      },
    ];
    const variables = {};
    const environment = { homeDirectory: '/root', workingDirectory: '/', userName: 'root', userId: 0, localHostName: 'local', variables };
    const { hosts } = importSshConfig({ files, environment, exec: () => true }).inventory;
    expect(hosts.map(({ name, place }) => `${name} ${place.position.file}:${place.position.line}`)).toEqual([
      'n1 config:2',
      'n2 config:2',
      'n9 more:1',
    ]);
    expect(hosts.map(({ sshConfig }) => sshConfig)).toEqual(['config', 'config', 'config']);
  });
});
