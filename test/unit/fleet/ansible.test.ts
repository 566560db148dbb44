import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { importAnsible, readAnsibleInventory } from '../../../src/fleet/ansible/import.ts';
import { parseIniValue, STRUCTURE } from '../../../src/fleet/ansible/value.ts';
import { filterImport } from '../../../src/fleet/filter-import.ts';
import { importSshConfig } from '../../../src/fleet/import-ssh-config.ts';
import { fixture } from '../../support/fixture.ts';

interface Recorded {
  readonly kind: 'ini' | 'yaml';
  readonly text: string;
  /** Ansible does not read it. */
  readonly refused?: boolean;
  readonly hosts?: Readonly<Record<string, { readonly groups: readonly string[]; readonly vars: Readonly<Record<string, unknown>> }>>;
  readonly groups?: readonly string[];
}

function read(text: string, path: string) {
  const { hosts, groups, problems } = readAnsibleInventory([{ path, text }]);
  const plain = hosts.map(({ name, groups: own, variables }) => {
    const vars = [...variables].map(([key, value]) => [key, value === STRUCTURE ? '<structure>' : value]);
    return [name, { groups: own, vars: Object.fromEntries(vars) }];
  });
  return { hosts: Object.fromEntries(plain), order: hosts.map(({ name }) => name), groups: [...groups].sort(), problems };
}

describe('an inventory, as Ansible 2.14 reads it', () => {
  const cases = JSON.parse(fixture(import.meta.url, 'fixtures/ansible-2.14.json')) as readonly Recorded[];
  const good = cases.filter(({ refused }) => refused !== true);

  it.each(good.map((each, i) => [i, each] as const))('number %i', (_, { kind, text, hosts = {}, groups }) => {
    const found = read(text, kind === 'ini' ? 'hosts.ini' : 'hosts.yml');
    expect(found.problems.filter(({ severity }) => severity !== 'warning').map(formatProblem)).toEqual([]);
    expect(found.order).toEqual(Object.keys(hosts));
    expect(found.hosts).toEqual(hosts);
    expect(found.groups).toEqual(groups);
  });

  it('is refused where Ansible refuses it', () => {
    const taken = cases
      .filter(({ refused }) => refused === true)
      .filter(({ kind, text }) =>
        read(text, kind === 'ini' ? 'hosts.ini' : 'hosts.yml').problems.every(({ severity }) => severity === 'warning'),
      );
    expect(taken).toEqual([]);
  });
});

describe('parseIniValue', () => {
  it.each<[string, unknown]>([
    ['1', 1],
    ['01', '01'],
    ['0x1F', 31],
    ['1_000', 1000],
    ['-5', -5],
    ['--5', '--5'],
    ['1.50', 1.5],
    ['True', true],
    ['true', 'true'],
    ['None', null],
    ["'a b'", 'a b'],
    ['"a" "b"', 'ab'],
    ['"q" # c', 'q'],
    ['x # c', 'x # c'],
    ['"a\\tb"', 'a\tb'],
    ['[1, 2]', STRUCTURE],
    ['[a]', '[a]'],
    ['{{ x }}', '{{ x }}'],
    ['1j', STRUCTURE],
    ['', ''],
  ])('%s', (text, value) => {
    expect(parseIniValue(text)).toBe(value);
  });

  it('ends for any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', "'", '\\', '[', '{', ']', '}', 'x', '0', 'u', '#', ' ') }),
        (text) => void parseIniValue(text),
      ),
    );
    const started = process.cpuUsage().user;
    for (const part of ['\\', "'", '"a" ', '[', 'x#', '"\\']) parseIniValue(part.repeat(20_000));
    expect(process.cpuUsage().user - started).toBeLessThan(10_000_000);
  });
});

describe('importAnsible', () => {
  const one = (settings: string) => {
    const { inventory, problems } = importAnsible([{ path: 'hosts', text: `n1 ${settings}\n` }]);
    return { ...inventory.hosts[0]?.written, problems: problems.map(formatProblem) };
  };

  it('puts connection variables in the words of a fleet file', () => {
    expect(
      one('ansible_host=10.0.0.1 ansible_user=ubuntu ansible_port=2222 ansible_ssh_private_key_file=~/.ssh/k ansible_become=yes rack=7'),
    ).toEqual({
      address: '10.0.0.1',
      ssh: { user: 'ubuntu', port: 2222, identityFiles: ['~/.ssh/k'], become: 'sudo' },
      variables: expect.objectContaining({ rack: 7, ansible_host: '10.0.0.1' }),
      problems: [],
    });
  });

  it.each([
    ["ansible_ssh_common_args='-o ProxyJump=admin@jump:2222'", 'admin@jump:2222'],
    ["ansible_ssh_common_args='-J a,b'", 'a,b'],
    ["ansible_ssh_extra_args='-oProxyJump=a'", 'a'],
    [`ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p -q -p 2222 admin@jump"'`, 'admin@jump:2222'],
    [`ansible_ssh_common_args='-o ProxyCommand="ssh -l admin -i key jump -W %h:%p" -o StrictHostKeyChecking=no'`, 'admin@jump'],
  ])('finds the bastion in %s', (settings, bastion) => {
    expect(one(settings)).toMatchObject({ ssh: { bastion }, problems: [] });
  });

  it('says what it does not take', () => {
    expect(
      one(`ansible_become_method=doas ansible_password=hunter2 ansible_ssh_common_args='-o ProxyCommand="nc -x p %h %p"'`).problems,
    ).toEqual([
      'n1: hosts:1:1: its passwords are not read from the inventory. Use keys, or give passwords on standard input. [FLEET_IMPORT_IGNORED]',
      'n1: hosts:1:1: ansible_become_method doas is not known. There is sudo. [FLEET_IMPORT_IGNORED]',
      'n1: hosts:1:1: the ProxyCommand of its ssh arguments is not understood. Give ssh.bastion in the import. [FLEET_IMPORT_IGNORED]',
    ]);
  });

  it('says it once of all hosts of which it is true', () => {
    const text = 'web[01:30] ansible_password=x\nlab[1:2] ansible_connection=local\ndb1 ansible_password=y\n';
    expect(importAnsible([{ path: 'hosts', text }]).problems.map(formatProblem)).toEqual([
      'web[01:30], db1: hosts:1:1: its passwords are not read from the inventory. Use keys, or give passwords on standard input. [FLEET_IMPORT_IGNORED]',
      'hosts:2:1: lab1, lab2 are left out: ansible_connection is local [FLEET_IMPORT_IGNORED]',
    ]);
  });

  it('takes no secret', () => {
    const { variables } = one('ansible_password=hunter2 db_password=x api_token=y vault_key=z rack=1 compass=ok');
    expect(variables).toEqual({ rack: 1, compass: 'ok' });
  });

  it('leaves out what Ansible does not reach over SSH', () => {
    const { inventory, problems } = importAnsible([{ path: 'hosts', text: 'localhost ansible_connection=local\nn1\n' }]);
    expect(inventory.hosts.map(({ name }) => name)).toEqual(['n1']);
    expect(problems.map(formatProblem)).toEqual(['hosts:1:1: localhost is left out: ansible_connection is local [FLEET_IMPORT_IGNORED]']);
  });

  it('reads what ansible-inventory --list prints', () => {
    const list = {
      _meta: { hostvars: { n1: { ansible_host: '10.0.0.1' } } },
      all: { children: ['ungrouped', 'web'] },
      web: { hosts: ['n1', 'n2'] },
      db: ['n3'],
    };
    const { inventory, problems } = importAnsible([{ path: 'list.json', text: JSON.stringify(list) }]);
    expect(problems).toEqual([]);
    expect(inventory.hosts.map(({ name, groups, written }) => [name, groups, written.address])).toEqual([
      ['n1', ['web'], '10.0.0.1'],
      ['n2', ['web'], undefined],
      ['n3', ['db'], undefined],
    ]);
  });

  it('lays files of variables over the inventory as Ansible does: files of all before files of groups, after what the inventory says', () => {
    const text = '[web]\nn1 a=host\n[web:vars]\nb=inventory\nc=inventory\nd=inventory\n';
    const file = (of: 'group' | 'host', name: string, lines: string) => ({ of, name, path: `${of}_vars/${name}.yml`, text: lines });
    const { inventory } = importAnsible(
      [{ path: 'hosts.ini', text }],
      [file('group', 'all', 'b: all\nc: all\ne: all\n'), file('group', 'web', 'c: web\n'), file('host', 'n1', 'e: n1\n')],
    );
    expect(inventory.hosts[0]?.written.variables).toEqual({ a: 'host', b: 'all', c: 'web', d: 'inventory', e: 'n1' });
  });

  it.each<[string, string, string]>([
    [
      'hosts.ini',
      '[web\nn1\n',
      'hosts.ini:1:1: unmatched "[". Write a range like [1:20], [001:200], [1:20:2] or [a:f]; both ends count. [FLEET_IMPORT_INVALID]',
    ],
    [
      'hosts.ini',
      '[we b]\nn1\n',
      'hosts.ini:1:1: "[we b]" is not a heading. Write [group], [group:vars] or [group:children], without blanks. [FLEET_IMPORT_INVALID]',
    ],
    [
      'hosts.ini',
      '[web:hots]\nn1\n',
      'hosts.ini:1:1: a heading of type "hots" is not known. There are hosts, vars and children. [FLEET_IMPORT_INVALID]',
    ],
    ['hosts.ini', '\n  n1 user\n', 'hosts.ini:2:3: "user" is not name=value [FLEET_IMPORT_INVALID]'],
    ...[
      ['ec2.py', '#!/usr/bin/env python3\nprint("{}")\n', 'a program'],
      ['aws_ec2.yml', '# ours\nplugin: amazon.aws.aws_ec2\nregions: [eu-central-1]\n', 'the settings of a plugin'],
    ].map(([file, text, what]): [string, string, string] => [
      file as string,
      text as string,
      `${file}:1:1: this is ${what}, which only Ansible can run. Import what it comes to: ansible-inventory -i FILE --list > inventory.json. [FLEET_IMPORT_INVALID]`,
    ]),
    ['hosts.ini', 'n1 a="b\n', 'hosts.ini:1:1: a quote is not closed [FLEET_IMPORT_INVALID]'],
    [
      'hosts.ini',
      '[web:vars]\na=1\n',
      'hosts.ini:1:1: there is no group "web" to have these variables. Declare it with a heading [web]. [FLEET_IMPORT_INVALID]',
    ],
    ['hosts.ini', '[a:children]\nb\n', 'hosts.ini:2:1: there is no group "b". Declare it with a heading [b]. [FLEET_IMPORT_INVALID]'],
    [
      'hosts.ini',
      '[a:children]\nb\n[b:children]\na\n',
      'hosts.ini:1:1: its groups lead in a circle: a, then b, then a. Take one of them out of the children of the other. [FLEET_IMPORT_INVALID]',
    ],
    [
      'hosts.yml',
      'all: {hosts: {"n[2:1]": }}\n',
      'hosts.yml:1:15: [2:1] ends before it begins. Write the smaller end first. [FLEET_IMPORT_INVALID]',
    ],
    ['hosts.yml', '- n1\n', 'hosts.yml:1:1: this is not an inventory in YAML. Begin it with a group, such as all:. [FLEET_IMPORT_INVALID]'],
    ['hosts.yml', 'all: {hosts: {n1: [}\n', 'hosts.yml:1:20: not valid YAML:'],
    [
      'hosts',
      '$ANSIBLE_VAULT;1.1;AES256\n6162\n',
      'hosts:1:1: the file is encrypted by ansible-vault. Import what ansible-inventory --list prints, or decrypt the file. [FLEET_IMPORT_INVALID]',
    ],
  ])('%s: %j', (path, text, line) => {
    const [first = ''] = importAnsible([{ path, text }]).problems.map(formatProblem);
    expect(first.slice(0, line.length)).toBe(line);
  });
});

describe('filterImport', () => {
  const { inventory } = importAnsible([{ path: 'hosts', text: '[web]\nweb[1:3]\n[db]\ndb1\n' }]);
  it.each<[readonly string[] | undefined, readonly string[], readonly string[]]>([
    [undefined, ['web1', 'web2', 'web3', 'db1'], []],
    [['web'], ['web1', 'web2', 'web3'], []],
    [['web', '!web2'], ['web1', 'web3'], []],
    [['!web'], ['db1'], []],
    [['*1'], ['web1', 'db1'], []],
    [['nope*', 'db'], ['db1'], ['no imported host and no group is called "nope*". Check the pattern. [FLEET_IMPORT_IGNORED]']],
  ])('%j', (patterns, names, problems) => {
    const kept = filterImport(inventory, patterns);
    expect(kept.inventory.hosts.map(({ name }) => name)).toEqual(names);
    expect(kept.problems.map(formatProblem)).toEqual(problems);
  });
});

describe('importSshConfig', () => {
  it('takes names of Host lines that stand for one host, also of files that are included', () => {
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
    expect(importSshConfig(files).hosts.map(({ name, place }) => `${name} ${place.position.file}:${place.position.line}`)).toEqual([
      'n1 config:2',
      'n2 config:2',
      'n9 more:1',
    ]);
  });
});
