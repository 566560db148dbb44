import { describe, expect, it } from 'vitest';
import { sourceToJson } from '../../../src/codec/source.ts';
import type { ResolvedHost } from '../../../src/fleet/file/model.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../src/kubelet/documents/decode.ts';
import { hostOf, resolved } from './support.ts';

const LAYERS = `baseline:
  variables: {rack: a, pods: 110, domain: "{{ rack }}.lan"}
  ssh: {user: core, identityFiles: [keys/fleet], bastion: jump}
  labels: {rack: "rack-{{ rack }}"}
  kubeletExtraArgs: [{name: v, value: "1"}, {name: v, value: "2"}]
  kubeletConfiguration:
    maxPods: "{{ pods }}"
    clusterDomain: "{{ domain }}"
    evictionHard: {memory.available: 100Mi, nodefs.available: 10%}
groups:
  - name: edge
    ssh: {port: 2222}
    labels: {pool: edge}
    taints: [{key: pool, value: "{{ rack }}", effect: NoSchedule}]
    kubeletConfiguration:
      evictionHard: {memory.available: 50Mi}
  - name: gpu
    labels: {pool: gpu}
    kubeletConfiguration: {maxPods: 20}
hosts:
  - name: jump
    role: bastion
    address: 192.0.2.1
    ssh: {user: root}
  - name: edge-[008:010]
    address: "10.0.0.{{ number }}"
    nodeIP: "10.0.0.{{ number }}"
    nodeName: "{{ name }}.{{ domain }}"
    groups: [edge]
  - name: both
    groups: [edge, gpu]
    variables: {rack: b}
    kubeletExtraArgs: [{name: v, value: "4"}]
    resolvConf: /run/{{ rack }}.conf
    cgroupDriver: cgroupfs
  - name: same
    groups: [gpu, edge]
`;

function configOf({ overlays }: ResolvedHost): unknown[] {
  return overlays.map(({ layer, document }) => {
    const { apiVersion: _, kind: __, ...config } = sourceToJson(document.root as never) as Record<string, unknown>;
    return [layer, config];
  });
}

describe('resolveFleet', () => {
  const fleet = resolved(LAYERS);

  it('expands ranges, and lists bastions separately', () => {
    expect(fleet.hosts.map(({ name, ssh }) => [name, ssh.address])).toEqual([
      ['edge-008', '10.0.0.8'],
      ['edge-009', '10.0.0.9'],
      ['edge-010', '10.0.0.10'],
      ['both', 'both'],
      ['same', 'same'],
    ]);
    expect(fleet.bastions.map(({ name }) => name)).toEqual(['jump']);
    expect(fleet.groups).toEqual(['edge', 'gpu']);
  });

  it('merges baseline, groups in the order of the host, and host', () => {
    expect(configOf(hostOf(fleet, 'edge-008'))).toEqual([
      ['baseline', { maxPods: 110, clusterDomain: 'a.lan', evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' } }],
      ['group edge', { evictionHard: { 'memory.available': '50Mi' } }],
    ]);
    expect(configOf(hostOf(fleet, 'both')).map((each) => (each as unknown[])[0])).toEqual(['baseline', 'group edge', 'group gpu']);
    expect(configOf(hostOf(fleet, 'same')).map((each) => (each as unknown[])[0])).toEqual(['baseline', 'group gpu', 'group edge']);
  });

  it('renders templates for each host, and keeps the type of a single variable', () => {
    const both = hostOf(fleet, 'both');
    expect(configOf(both)[0]).toEqual(['baseline', expect.objectContaining({ maxPods: 110, clusterDomain: 'b.lan' })]);
    expect(both.nodeRegistration).toEqual({
      taints: [{ key: 'pool', value: 'b', effect: 'NoSchedule' }],
      kubeletExtraArgs: [
        { name: 'node-labels', value: 'rack=rack-b,pool=gpu' },
        { name: 'v', value: '4' },
      ],
    });
    expect(both.declared).toEqual([
      { path: ['resolvConf'], value: '/run/b.conf', source: 'fleet.yaml:36:17' },
      { path: ['cgroupDriver'], value: 'cgroupfs', source: 'fleet.yaml:37:19' },
    ]);
  });

  it('returns the registration in the form of JoinConfiguration', () => {
    expect(hostOf(fleet, 'edge-009').nodeRegistration).toEqual({
      name: 'edge-009.a.lan',
      taints: [{ key: 'pool', value: 'a', effect: 'NoSchedule' }],
      kubeletExtraArgs: [
        { name: 'node-ip', value: '10.0.0.9' },
        { name: 'node-labels', value: 'rack=rack-a,pool=edge' },
        { name: 'v', value: '1' },
        { name: 'v', value: '2' },
      ],
    });
  });

  it('drops flags of the hosts by name; the list of a higher layer wins', () => {
    const { hosts } = resolved('baseline: {droppedKubeletArgs: [v]}\nhosts: [{name: a}, {name: b, droppedKubeletArgs: [node-ip]}]\n');
    expect(hosts.map(({ nodeRegistration }) => nodeRegistration.droppedFlags)).toEqual([['v'], ['node-ip']]);
  });

  it('finds bastions among the hosts', () => {
    expect(hostOf(fleet, 'edge-008').ssh).toEqual({
      address: '10.0.0.8',
      user: 'core',
      port: 2222,
      identityFiles: ['keys/fleet'],
      become: 'auto',
      transport: 'builtin',
      hostKeys: [],
      direct: false,
      jumps: [{ name: 'jump', address: '192.0.2.1', user: 'root', identityFiles: ['keys/fleet'], hostKeys: [] }],
    });
  });

  it('shares a layer between hosts for which the result is equal', () => {
    const [first, second] = [hostOf(fleet, 'edge-008'), hostOf(fleet, 'edge-010')];
    expect(first.overlays.map(({ document }) => document)).toEqual(second.overlays.map(({ document }) => document));
    for (const [i, { document }] of first.overlays.entries()) expect(second.overlays[i]?.document).toBe(document);
    expect(hostOf(fleet, 'both').overlays[0]?.document).not.toBe(first.overlays[0]?.document);
    expect(hostOf(fleet, 'both').overlays[1]?.document).toBe(first.overlays[1]?.document);
  });

  it('names the line of the fleet file for each field, also of a template', async () => {
    const [{ document } = { document: null }] = hostOf(fleet, 'both').overlays;
    const decoded = decodeKubeletConfiguration(document as never, { minor: 36, catalogue: await loadCatalogue() });
    expect(decoded.problems).toEqual([]);
    expect(Object.fromEntries(decoded.fields)).toMatchObject({
      maxPods: { file: 'fleet.yaml', line: 9, column: 5 },
      clusterDomain: { file: 'fleet.yaml', line: 10, column: 5 },
      'evictionHard[memory.available]': { file: 'fleet.yaml', line: 11, column: 20 },
    });
  });

  it('names the layer and line of each setting of a host', () => {
    const origins = [...hostOf(fleet, 'same').origins()].map(
      ([path, { layer, position }]) => `${path} ${layer} ${position.line}:${position.column}`,
    );
    expect(origins).toEqual([
      'variables[rack] baseline 4:21',
      'variables[pods] baseline 4:30',
      'variables[domain] baseline 4:43',
      'ssh.user baseline 5:15',
      'ssh.identityFiles baseline 5:21',
      'ssh.bastion baseline 5:59',
      'labels[rack] baseline 6:18',
      'kubeletExtraArgs baseline 7:3',
      'kubeletConfiguration.clusterDomain baseline 10:20',
      'kubeletConfiguration.evictionHard[nodefs.available] baseline 11:63',
      'kubeletConfiguration.maxPods group gpu 21:37',
      'ssh.port group edge 14:17',
      'labels[pool] group edge 15:20',
      'taints group edge 16:5',
      'kubeletConfiguration.evictionHard[memory.available] group edge 18:40',
    ]);
  });

  it('keeps the notation: 01 is not 1', () => {
    const host = hostOf(
      resolved('hosts: [{name: n1, variables: {rack: 01, active: yes}, labels: {rack: "r{{ rack }}", x: "{{ active }}"}}]\n'),
      'n1',
    );
    expect(host.nodeRegistration.kubeletExtraArgs).toEqual([{ name: 'node-labels', value: 'rack=r01,x=yes' }]);
  });

  it('provides variables of each range', () => {
    const fleet2 = resolved(
      'hosts: [{name: "r[a:a]-n[07:07]", address: "{{ index1 }}-{{ index2 }}-{{ number2 }}-{{ index }}-{{ number }}"}]\n',
    );
    expect(fleet2.hosts[0]?.ssh.address).toBe('a-07-7-07-7');
  });

  it('accepts an address that is a range of the same length', () => {
    const { hosts } = resolved('hosts: [{name: "n[1:3]", address: "10.0.0.[11:13]"}]\n');
    expect(hosts.map(({ ssh }) => ssh.address)).toEqual(['10.0.0.11', '10.0.0.12', '10.0.0.13']);
  });

  it('connects directly to the bastion itself, and with ssh.bastion none', () => {
    const { hosts } = resolved(
      'baseline: {ssh: {bastion: b}}\nhosts: [{name: b}, {name: n1}, {name: n2, ssh: {bastion: none}}, {name: n3, ssh: {bastion: "root@x:22,b"}}]\n',
    );
    expect(hosts.map(({ name, ssh }) => [name, ssh.direct, ssh.jumps.map((jump) => jump.address)])).toEqual([
      ['b', true, []],
      ['n1', false, ['b']],
      ['n2', true, []],
      ['n3', false, ['x', 'b']],
    ]);
  });

  it('chains bastions', () => {
    const { hosts } = resolved(
      'hosts: [{name: a, ssh: {bastion: b}}, {name: b, ssh: {bastion: c}}, {name: c, ssh: {bastion: "d:2222"}}]\n',
    );
    expect(hosts[0]?.ssh.jumps.map(({ name, port }) => [name, port])).toEqual([
      ['d:2222', 2222],
      ['c', undefined],
      ['b', undefined],
    ]);
  });

  it('reads host keys with their places', () => {
    const key = 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
    const { hosts } = resolved(`hosts:\n  - name: n1\n    ssh:\n      hostKeys: [ssh-ed25519 ${key} root@n1]\n`);
    expect(hosts[0]?.ssh.hostKeys).toEqual([{ type: 'ssh-ed25519', blob: key, file: 'fleet.yaml', line: 6, marker: 'none', hosts: 'n1' }]);
  });

  it('keeps references to secrets, but no secret', () => {
    const { cluster } = resolved('cluster: {endpoint: "api:6443", token: {env: TOKEN}, caCert: ca.crt}\nhosts: [{name: n1}]\n');
    expect(cluster).toEqual({
      kubeconfig: null,
      context: null,
      configuration: null,
      endpoint: 'api:6443',
      caFile: 'ca.crt',
      caCertHashes: [],
      token: { env: 'TOKEN' },
    });
  });

  it('reads anchors, merge keys and JSON', () => {
    const { hosts } = resolved('groups:\n- &g {name: a, labels: {pool: edge}}\n- {<<: *g, name: b}\nhosts: [{name: n1, groups: [b]}]\n');
    expect(hosts[0]?.nodeRegistration.kubeletExtraArgs).toEqual([{ name: 'node-labels', value: 'pool=edge' }]);
  });
});

describe('a host that is imported and listed', () => {
  const place = { position: { file: 'hosts.ini', line: 3, column: 1 }, path: '' };
  const inventory = {
    groups: ['web', 'all-web'],
    hosts: [
      {
        name: 'w1',
        place,
        groups: ['all-web', 'web'],
        written: { address: '10.0.0.1', ssh: { user: 'ubuntu' }, variables: { zone: 'z1' } },
      },
      { name: 'w2', place, groups: ['all-web'], written: {} },
    ],
  };
  const body = `groups:
  - {name: web, labels: {zone: "{{ zone }}"}, ssh: {port: 22}}
  - {name: mine, labels: {mine: "1"}}
hosts:
  - {name: w1, kubeletConfiguration: {maxPods: 50}}
imports:
  - {ansibleInventory: hosts.ini, groups: [mine], ssh: {become: sudo}}
`;

  it('merges the settings of the fleet file over the imported ones', () => {
    const fleet = resolved(body, [inventory]);
    expect(fleet.hosts.map(({ name, groups, position }) => [name, groups, position.file])).toEqual([
      ['w1', ['all-web', 'web', 'mine'], 'fleet.yaml'],
      ['w2', ['all-web', 'mine'], 'hosts.ini'],
    ]);
    const w1 = hostOf(fleet, 'w1');
    expect(w1.ssh).toMatchObject({ address: '10.0.0.1', user: 'ubuntu', port: 22, become: 'sudo' });
    expect(w1.nodeRegistration.kubeletExtraArgs).toEqual([{ name: 'node-labels', value: 'zone=z1,mine=1' }]);
    expect(w1.overlays.map(({ layer }) => layer)).toEqual(['host w1']);
    expect(w1.origins().get('ssh.user')).toEqual({ layer: 'host w1', position: place.position });
    expect(fleet.groups).toEqual(['web', 'mine', 'all-web']);
  });
});
