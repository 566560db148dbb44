import { describe, expect, it } from 'vitest';
import { renderTable } from '../../../src/base/text/table.ts';
import { hostTable, INVENTORY_COLUMNS, inventoryDocument, inventoryRows } from '../../../src/fleet/file/inventory-document.ts';
import { loadFleet } from '../../../src/fleet/file/load.ts';
import { resolveFleet } from '../../../src/fleet/file/resolve.ts';
import { importAnsible } from '../../../src/fleet/imports/ansible/import.ts';
import { starterFile } from '../../../src/fleet/imports/starter.ts';
import { fixture } from '../../support/fixture.ts';
import { hostOf, resolved } from './support.ts';

const BODY = `name: lab
baseline: {ssh: {user: core, bastion: b}, variables: {rack: a, db_password: hunter2}, kubeletConfiguration: {maxPods: 100}}
groups: [{name: edge, labels: {pool: edge}, kubeletConfiguration: {maxPods: 60, evictionHard: {memory.available: 50Mi}}}]
hosts: [{name: b, role: bastion, ssh: {port: 2222}}, {name: "e[1:2]", address: "fd00::{{ number }}", groups: [edge], nodeName: "{{ name }}"}]
`;

describe('the resolved inventory', () => {
  const fleet = resolved(BODY);

  it('is printed as a table', () => {
    const rows = inventoryRows(fleet, fleet.hosts);
    expect(renderTable([INVENTORY_COLUMNS.columns, ...rows.map(({ cells }) => cells)])).toEqual([
      'NAME  ADDRESS       BASTION  ROLE     GROUPS',
      'e1    core@fd00::1  b        worker   edge',
      'e2    core@fd00::2  b        worker   edge',
      'b     core@b:2222   -        bastion  -',
    ]);
    expect(rows.map(({ name, wide }) => [name, ...wide])).toEqual([
      ['host/e1', '-', 'pool=edge', '-'],
      ['host/e2', '-', 'pool=edge', '-'],
      ['host/b', '-', '-', '-'],
    ]);
  });

  it('names the line of each part of a setting that is merged by member', () => {
    const host = hostOf(
      resolved('baseline: {proxy: {https: "http://p:1", noProxy: [.a]}}\nhosts: [{name: n1, proxy: {noProxy: [.b]}}]\n'),
      'n1',
    );
    expect([...host.origins().keys()]).toEqual(['proxy.https', 'proxy.noProxy']);
    expect(hostTable(host).find(([name]) => name === 'proxy')?.[2]).toBe('fleet.yaml:3:27 (baseline), fleet.yaml:4:28 (host n1)');
  });

  it('is printed for one host, with the line of each setting', () => {
    expect(renderTable([['SETTING', 'VALUE', 'SOURCE'], ...hostTable(hostOf(fleet, 'e2'))])).toEqual(
      [
        'SETTING                                              VALUE                                         SOURCE',
        'name                                                 e2                                            fleet.yaml:6:61',
        'role                                                 worker                                        -',
        'groups                                               ["edge"]                                      -',
        'address                                              fd00::2                                       fleet.yaml:6:80 (host e[1:2])',
        'ssh.user                                             core                                          fleet.yaml:4:24 (baseline)',
        'ssh.become                                           auto                                          -',
        'ssh.transport                                        builtin                                       -',
        'ssh.bastion                                          [{"name":"b","address":"b","user":"core","port":2222}]  fleet.yaml:4:39 (baseline)',
        'nodeName                                             e2                                            fleet.yaml:6:128 (host e[1:2])',
        'kubeletExtraArgs                                     [{"name":"node-labels","value":"pool=edge"}]  fleet.yaml:5:38 (group edge)',
        'kubeletConfiguration.maxPods                         60                                            fleet.yaml:5:77 (group edge)',
        'kubeletConfiguration.evictionHard[memory.available]  50Mi                                          fleet.yaml:5:114 (group edge)',
        'variables[name]                                      e2                                            -',
        'variables[inventory_hostname]                        e2                                            -',
        'variables[inventory_hostname_short]                  e2                                            -',
        'variables[index]                                     2                                             -',
        'variables[number]                                    2                                             -',
        'variables[rack]                                      a                                             fleet.yaml:4:61 (baseline)',
        'variables[db_password]                               [secret]                                      fleet.yaml:4:77 (baseline)',
      ].map((line) =>
        expect.stringMatching(
          new RegExp(
            `^${line
              .split(/ {2,}/)
              .map((cell) => cell.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
              .join('\\s+')}$`,
          ),
        ),
      ),
    );
  });

  it('is printed as JSON and YAML, without secrets', () => {
    const document = inventoryDocument(fleet, fleet.hosts, true);
    expect(JSON.stringify(document)).not.toContain('hunter2');
    expect(document).toMatchObject({
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'Inventory',
      name: 'lab',
      groups: ['edge'],
      bastions: [{ name: 'b', address: 'b', user: 'core', port: 2222 }],
    });
    expect((document.hosts as readonly unknown[])[0]).toMatchObject({
      name: 'e1',
      ssh: { address: 'fd00::1', user: 'core', jumps: [{ name: 'b' }] },
      nodeRegistration: { name: 'e1', kubeletExtraArgs: [{ name: 'node-labels', value: 'pool=edge' }] },
      kubeletConfiguration: { maxPods: 60, evictionHard: { 'memory.available': '50Mi' } },
      origins: { 'kubeletConfiguration.maxPods': 'fleet.yaml:5:77 (group edge)' },
    });
  });
});

describe('docs/fleet.md', () => {
  it('shows a valid file', () => {
    const [, text = ''] = /```yaml\n(apiVersion: kubeletadm[\s\S]*?)```/.exec(fixture(import.meta.url, '../../../docs/fleet.md')) ?? [];
    const { fleet, problems } = resolveFleet(loadFleet(text, 'fleet.yaml'));
    expect(problems).toEqual([]);
    expect(fleet.hosts).toHaveLength(201);
  });
});

describe('the start file', () => {
  it('is valid', () => {
    const { fleet, problems } = resolveFleet(loadFleet(starterFile('1.36'), 'fleet.yaml'));
    expect(problems).toEqual([]);
    expect(fleet.hosts.map(({ name }) => name)).toEqual(['edge-01', 'edge-02', 'edge-03', 'worker-1']);
  });

  it('is valid with its commented settings enabled', () => {
    const uncommented = starterFile('1.36').replace(/^( *)# ( *(?:- \{.*|(?:- )?[a-zA-Z]+:(?: .*)?))$/gm, '$1$2');
    const none = { hosts: [], groups: [] };
    const { fleet, problems } = resolveFleet(loadFleet(uncommented, 'fleet.yaml'), [none, none]);
    // The comments have placeholders for a pin and a key, and only hosts of a range have a number.
    expect(problems.map(({ code }) => code)).toEqual(['CONFIG_INVALID_PIN', 'FLEET_INVALID_HOST_KEY', 'FLEET_UNKNOWN_VARIABLE']);
    expect(fleet.hosts[0]).toMatchObject({
      ssh: { user: 'root', jumps: [{ name: 'jump.example.com' }] },
      nodeRegistration: { taints: [{ key: 'pool' }] },
    });
    expect(fleet.cluster).toMatchObject({ endpoint: 'api.example.com:6443', token: { env: 'KUBELETADM_TOKEN' } });
  });

  it('imports an inventory', () => {
    const names = Array.from({ length: 9 }, (_, i) => `n${i + 1}`);
    const groups = new Map(Object.entries({ edge: { hosts: names, children: [] }, on: { hosts: ['x'], children: [] } }));
    const { inventory } = importAnsible({ groups, variables: new Map() }, 'hosts.ini');
    const text = starterFile('1.36', { imports: [{ source: 'ansibleInventory', path: 'inventory/hosts.ini', inventory }] });
    const { fleet, problems } = resolveFleet(loadFleet(text, 'fleet.yaml'), [inventory]);
    expect(problems).toEqual([]);
    expect(fleet.hosts).toHaveLength(10);
    expect(text).toContain('  - ansibleInventory: inventory/hosts.ini\n    # 10 hosts: n1, n2, n3, n4, n5, ...\n');
    expect(text).toContain('  - name: "on"\n');
  });
});
