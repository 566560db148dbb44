import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { loadFleet } from '../../../src/fleet/file/load.ts';
import { resolveFleet } from '../../../src/fleet/file/resolve.ts';
import { numberOfRuns } from '../../support/thorough.ts';
import { HEADER, resolve } from './support.ts';

function problemsOf(body: string): readonly string[] {
  return resolve(body).problems;
}

const N1 = 'hosts: [{name: n1}]\n';

describe('an invalid fleet file', () => {
  it.each<[string, string, readonly string[]]>([
    ['an unknown field', `hots: []\n${N1}`, ['fleet.yaml:3:1 hots: unknown field. Did you mean hosts? [CONFIG_UNKNOWN_FIELD]']],
    [
      'an ssh setting in the wrong place',
      'hosts:\n  - name: n1\n    user: core\n',
      ['fleet.yaml:5:5 hosts[0].user: unknown field. Move user to ssh.user [CONFIG_UNKNOWN_FIELD]'.replace('ssh.user [', 'ssh.user. [')],
    ],
    [
      "Ansible's word",
      `groups:\n  - name: g\n    vars: {a: 1}\n${N1}`,
      ['fleet.yaml:5:5 groups[0].vars: unknown field. Rename the field to variables. [CONFIG_UNKNOWN_FIELD]'],
    ],
    [
      'a wrong type',
      'hosts: n1\n',
      ['fleet.yaml:3:8 hosts: expected a list, found the string "n1". Put a dash before each item. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'arguments as a mapping',
      'hosts: [{name: n1, kubeletExtraArgs: {v: "2"}}]\n',
      [
        'fleet.yaml:3:20 hosts[0].kubeletExtraArgs: expected a list, found an object. Write a list of names and values: - {name: v, value: …}. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'a host without a name',
      'hosts: [{address: x}]\n',
      ['fleet.yaml:3:9 hosts[0].name: required field is missing [CONFIG_MISSING_VALUE]'.replace('required.', 'required')],
    ],
    [
      'an unknown role',
      'hosts: [{name: n1, role: wroker}]\n',
      [
        'fleet.yaml:3:26 hosts[0].role: "wroker" is not one of worker, control-plane, controlPlane and bastion. Did you mean worker? [CONFIG_INVALID_VALUE]',
      ],
    ],
    [
      'a port out of range',
      'hosts: [{name: n1, ssh: {port: 70000}}]\n',
      ['fleet.yaml:3:32 hosts[0].ssh.port: 70000 is not a valid port. Use a port from 1 to 65535, without quotes. [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'an invalid duration',
      'hosts: [{name: n1, ssh: {connectTimeout: 10}}]\n',
      [
        'fleet.yaml:3:42 hosts[0].ssh.connectTimeout: expected a string, found the number 10. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_WRONG_TYPE]',
      ],
    ],
    [
      'a time limit out of range',
      'hosts: [{name: n1, ssh: {connectTimeout: 0s, commandTimeout: 1000h}}]\n',
      [
        'fleet.yaml:3:42 hosts[0].ssh.connectTimeout: must be a duration from 1s to 24h. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_OUT_OF_RANGE]',
        'fleet.yaml:3:62 hosts[0].ssh.commandTimeout: must be a duration from 1s to 24h. Write a number with a unit, such as 90s, 5m or 1h30m. [CONFIG_OUT_OF_RANGE]',
      ],
    ],
    [
      'an invalid host key',
      'hosts: [{name: n1, ssh: {hostKeys: ["ssh-ed25519 AAAA"]}}]\n',
      [
        'fleet.yaml:3:37 hosts[0].ssh.hostKeys[0]: not a public host key. Use type and key as in /etc/ssh/ssh_host_ed25519_key.pub on the host: ssh-ed25519 AAAA…. [FLEET_INVALID_HOST_KEY]',
      ],
    ],
    [
      'a template without quotes',
      'hosts:\n  - name: n1\n    address: {{ ip }}\n',
      ['fleet.yaml:5:15: not valid YAML: a mapping key must be a string. Quote a value that begins with {{: "{{ rack }}". [CONFIG_SYNTAX]'],
    ],
    [
      'an invalid template',
      'hosts: [{name: n1, address: "{{ ip | lower }}"}]\n',
      [
        'fleet.yaml:3:29 hosts[0].address: "{{ ip | lower }}" contains more than the name of a variable between {{ and }}. Write only the name of a variable between the braces: {{ rack }}. Write literal braces as {{ "{{" }}. [FLEET_INVALID_TEMPLATE]',
      ],
    ],
    [
      'an unknown variable, once for all hosts',
      'baseline: {variables: {rack: a}}\nhosts: [{name: "n[1:200]", address: "{{ rak }}-{{ name }}"}]\n',
      [
        'fleet.yaml:4:37 hosts[0].address: the variable "rak" is not defined for host "n1" and 199 more hosts. Did you mean rack? [FLEET_UNKNOWN_VARIABLE]',
      ],
    ],
    [
      'an unknown variable in a configuration',
      'baseline:\n  kubeletConfiguration:\n    maxPods: "{{ pods }}"\nhosts: [{name: n1}, {name: n2, variables: {pods: 5}}]\n',
      [
        'fleet.yaml:5:14 baseline.kubeletConfiguration: the variable "pods" is not defined for host "n1". Declare the variable under variables. [FLEET_UNKNOWN_VARIABLE]',
      ],
    ],
    [
      'circular variables',
      'hosts: [{name: n1, variables: {a: "{{ b }}", b: "{{ a }}"}, address: "{{ a }}"}]\n',
      [
        'fleet.yaml:3:35 hosts[0].variables.a: circular reference between variables: a -> b -> a. Set one of these variables to a value without references. [FLEET_VARIABLE_CYCLE]',
      ],
    ],
    [
      'a built-in variable',
      `baseline: {variables: {name: x}}\n${N1}`,
      [
        'fleet.yaml:3:30 baseline.variables.name: name is a built-in variable of every host and cannot be declared. Choose another name. [FLEET_RESERVED_VARIABLE]',
      ],
    ],
    [
      'two hosts with one name',
      'hosts:\n  - name: n1\n  - name: n[0:2]\n    address: 10.0.0.[0:2]\n',
      [
        'fleet.yaml:5:11 hosts[1].name: the host "n1" is defined twice, first at fleet.yaml:4:11. Give each host a unique name. [FLEET_DUPLICATE_NAME]',
      ],
    ],
    [
      'two hosts with one address in different notations',
      'hosts:\n  - {name: n1, address: "FD00::0:1"}\n  - {name: n2, address: "fd00::1", ssh: {port: 22}}\n',
      [
        'fleet.yaml:5:25 hosts[1].address: hosts "n2" and "n1" (fleet.yaml:4:12) have the same address fd00::1. Fix the address, or remove one of the hosts. [FLEET_DUPLICATE_ADDRESS]',
      ],
    ],
    [
      'two nodes with one name',
      'baseline: {nodeName: Node}\nhosts: [{name: n1}, {name: n2}]\n',
      [
        'fleet.yaml:3:22 baseline.nodeName: hosts "n2" and "n1" have the same nodeName "node". Use a template such as {{ name }}, or set a nodeName for each host. [FLEET_DUPLICATE_NODE]',
      ],
    ],
    [
      'two nodes with one IP',
      'hosts: [{name: n1, nodeIP: 10.0.0.1}, {name: n2, nodeIP: 10.0.0.1}]\n',
      [
        'fleet.yaml:3:58 hosts[1].nodeIP: hosts "n2" and "n1" have the same nodeIP "10.0.0.1". Set a different node IP for each host. [FLEET_DUPLICATE_NODE]',
      ],
    ],
    [
      'an unknown group',
      'groups: [{name: edge}]\nhosts: [{name: "n[1:3]", groups: [egde]}]\n',
      ['fleet.yaml:4:35 hosts[0].groups[0]: group "egde" does not exist. Did you mean edge? [FLEET_UNKNOWN_GROUP]'],
    ],
    [
      'two groups with one name',
      `groups: [{name: edge}, {name: edge}]\n${N1}`,
      [
        'fleet.yaml:3:31 groups[1].name: the group "edge" is defined twice, first at fleet.yaml:3:17. Merge both groups. [FLEET_DUPLICATE_NAME]',
      ],
    ],
    [
      'a group called all',
      `groups: [{name: all}]\n${N1}`,
      [
        'fleet.yaml:3:17 groups[0].name: "all" is not a valid group name. Use letters, digits, dashes, dots and underscores; \'all\' is reserved for all hosts. [FLEET_INVALID_NAME]',
      ],
    ],
    [
      'circular bastions',
      'hosts: [{name: a, ssh: {bastion: b}}, {name: b, ssh: {bastion: a}}]\n',
      [
        'fleet.yaml:3:64 hosts[1].ssh.bastion: circular reference between bastions: a -> b -> a. Set ssh.bastion: none for the host that is reached directly. [FLEET_BASTION_CYCLE]',
      ],
    ],
    [
      'a host that is its own bastion',
      'hosts: [{name: a, ssh: {bastion: a}}]\n',
      [
        'fleet.yaml:3:34 hosts[0].ssh.bastion: circular reference between bastions: a -> a. Set ssh.bastion: none for the host that is reached directly. [FLEET_BASTION_CYCLE]',
      ],
    ],
    [
      'an invalid bastion',
      'hosts: [{name: a, ssh: {bastion: "b:99999"}}]\n',
      [
        'fleet.yaml:3:34 hosts[0].ssh.bastion: "b:99999" is not a valid bastion. Write the name of a host in this file, [user@]address[:port], or none. [FLEET_INVALID_VALUE]',
      ],
    ],
    [
      'an invalid range',
      'hosts: [{name: "n[9:1]"}]\n',
      ['fleet.yaml:3:16 hosts[0].name: [9:1] has an end below its start. Put the smaller value first. [FLEET_INVALID_RANGE]'],
    ],
    [
      'ranges of different length',
      'hosts: [{name: "n[1:3]", address: "10.0.0.[1:4]"}]\n',
      [
        'fleet.yaml:3:35 hosts[0].address: the name range has 3 hosts, but the address range has 4. Use ranges of the same length, or an address with {{ number }}. [FLEET_INVALID_RANGE]',
      ],
    ],
    [
      'too many hosts',
      'hosts: [{name: "a[1:99999]"}, {name: "b[1:2]"}]\n',
      [
        'fleet.yaml:3:38 hosts[1].name: the fleet has more than 100000 hosts. Check the ends of the ranges, or split the fleet. [FLEET_TOO_MANY_HOSTS]',
      ],
    ],
    [
      'addresses with user, port or option',
      'hosts: [{name: a, address: "root@x"}, {name: b, address: "x:22"}, {name: c, address: "-oProxyCommand=x"}]\n',
      [
        'fleet.yaml:3:28 hosts[0].address: "root@x" is not a valid address. Set the user in ssh.user. [FLEET_INVALID_ADDRESS]',
        'fleet.yaml:3:58 hosts[1].address: "x:22" is not a valid address. Set the port in ssh.port, and write an IPv6 address without brackets. [FLEET_INVALID_ADDRESS]',
        'fleet.yaml:3:86 hosts[2].address: "-oProxyCommand=x" is not a valid address. Write a host name, an IP address or a Host alias of ssh_config. [FLEET_INVALID_ADDRESS]',
      ],
    ],
    [
      'a name with a space',
      'hosts: [{name: "n 1"}]\n',
      [
        'fleet.yaml:3:16 hosts[0].name: "n 1" is not a valid host name. Use letters, digits, dashes, dots, colons and underscores, at most 253 characters. [FLEET_INVALID_NAME]',
      ],
    ],
    [
      'a label that a kubelet may not set on its Node',
      'cluster: {endpoint: "a:6443", caCertHashes: ["sha256:HASH"], token: {env: T}}\nhosts: [{name: n1, labels: {node-role.kubernetes.io/worker: ""}}]\n'.replace(
        'HASH',
        'a'.repeat(64),
      ),
      [
        'fleet.yaml:4:29 hosts[0].labels["node-role.kubernetes.io/worker"]: a kubelet must not set the label node-role.kubernetes.io/worker on its own Node (restricted prefix). A kubelet may not set this label on its own Node. Set cluster.kubeconfig to an administrator kubeconfig, so that kubeletadm can set the label. [FLEET_INVALID_VALUE]',
      ],
    ],
    [
      'labels in addition to the flag',
      'hosts: [{name: n1, labels: {a: b}, kubeletExtraArgs: [{name: node-labels, value: c=d}]}]\n',
      [
        'fleet.yaml:3:62 hosts[0].kubeletExtraArgs[0].name: labels and the flag node-labels are mutually exclusive. Remove one of them. [FLEET_CONFLICT]',
      ],
    ],
    [
      'an invalid node name, socket and flag',
      'hosts: [{name: n1, nodeName: a_b, criSocket: "tcp://x", kubeletExtraArgs: [{name: --v, value: "2"}]}]\n',
      [
        'fleet.yaml:3:30 hosts[0].nodeName: "a_b" is not a valid node name. A node name has at most 253 lower-case letters, digits, dashes and dots, and begins and ends with a letter or digit. [CONFIG_INVALID_NAME]',
        'fleet.yaml:3:46 hosts[0].criSocket: "tcp://x" is not the URL of a unix socket. Use a URL such as unix:///var/run/containerd/containerd.sock. [CONFIG_INVALID_SOCKET]',
        'fleet.yaml:3:83 hosts[0].kubeletExtraArgs[0].name: "--v" is not a valid flag name. Remove the leading dashes. [CONFIG_INVALID_ARGUMENT]',
      ],
    ],
    [
      'an invalid node IP',
      'hosts: [{name: n1, nodeIP: "10.0.0.1,10.0.0.2"}]\n',
      [
        'fleet.yaml:3:28 hosts[0].nodeIP: "10.0.0.1,10.0.0.2" is not a valid node IP. Write an IP address, or a subnet that contains exactly one address of the host. For dual-stack (IPv4 and IPv6), write two values, comma-separated. [FLEET_INVALID_VALUE]',
      ],
    ],
    [
      'an unsupported version',
      `kubernetesVersion: "1.99"\n${N1}`,
      [
        'fleet.yaml:3:20 kubernetesVersion: "1.99" is not a supported kubelet version. Use a version from "1.20" to "1.37". [FLEET_INVALID_VALUE]',
      ],
    ],
    [
      'invalid discovery settings',
      `cluster: {endpoint: "https://api:6443", caCertHashes: ["sha256:0"], token: {}}\n${N1}`,
      [
        'fleet.yaml:3:21 cluster.endpoint: "https://api:6443" is not of the form ADDRESS:PORT. Remove the scheme: api:6443. [CONFIG_INVALID_ENDPOINT]',
        'fleet.yaml:3:56 cluster.caCertHashes[0]: "sha256:0" is not a valid CA certificate pin. A pin is sha256: followed by 64 hexadecimal digits, as printed by kubeletadm token create --print-join-command. [CONFIG_INVALID_PIN]',
        'fleet.yaml:3:69 cluster.token: token must have exactly one source. Set either env or file. [FLEET_INVALID_VALUE]',
      ],
    ],
    ['no host', 'groups: [{name: g}]\n', ['fleet.yaml:1:1: the fleet has no hosts. Add entries to hosts or imports. [FLEET_EMPTY]']],
    [
      'an import without a source',
      'imports: [{hosts: ["*"]}]\n',
      [
        'fleet.yaml:3:11 imports[0]: an import must have exactly one source. Set either ansibleInventory or sshConfig. [FLEET_INVALID_VALUE]',
      ],
    ],
  ])('%s', (_, body, expected) => {
    expect(problemsOf(body)).toEqual(expected);
  });

  it.each<[string, string, readonly string[]]>([
    [
      'no header',
      N1,
      [
        'f:1:1 apiVersion: the document has no apiVersion. Begin the file with apiVersion: kubeletadm.dev/v1alpha1. [CONFIG_MISSING_HEADER]',
        'f:1:1 kind: the document has no kind. Begin the file with kind: Fleet. [CONFIG_MISSING_HEADER]',
      ],
    ],
    [
      'another version',
      HEADER.replace('v1alpha1', 'v1') + N1,
      ['f:1:13: unknown version "kubeletadm.dev/v1". Use kubeletadm.dev/v1alpha1. [CONFIG_UNKNOWN_VERSION]'],
    ],
    [
      'another kind',
      HEADER.replace('Fleet', 'Fleeet') + N1,
      ['f:2:7: unknown kind "Fleeet" in "kubeletadm.dev/v1alpha1". Did you mean Fleet? [CONFIG_UNKNOWN_KIND]'],
    ],
    [
      'a configuration of kubeadm',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n',
      ['f:2:7: unknown kind "InitConfiguration" in "kubeadm.k8s.io/v1beta4". Supported kinds: Fleet. [CONFIG_UNKNOWN_KIND]'],
    ],
    [
      'two documents',
      `${HEADER}${N1}---\n${HEADER}${N1}`,
      ['f:6:7: duplicate Fleet, first on line 1. Remove one of the two documents. [CONFIG_DUPLICATE_KIND]'],
    ],
    ['nothing', '', ['f:1:1: the file contains no configuration for this command. Add a document of kind Fleet. [CONFIG_EMPTY]']],
    [
      'a list',
      '- a\n',
      ['f:1:1: a configuration document must be an object. Start the document with apiVersion and kind. [CONFIG_WRONG_TYPE]'],
    ],
  ])('with %s', (_, text, expected) => {
    expect(resolveFleet(loadFleet(text, 'f')).problems.map(formatProblem)).toEqual(expected);
  });

  it('reports all problems at once, in their order', () => {
    const body = 'hots: 1\nbaseline: {kubeletConfiguration: 5}\nhosts: [{name: "n[2:1]"}, {name: n1, ssh: {prot: 1}}]\n';
    expect(problemsOf(body).map((line) => /^\S+/.exec(line)?.[0])).toEqual([
      'fleet.yaml:3:1',
      'fleet.yaml:4:34',
      'fleet.yaml:5:16',
      'fleet.yaml:5:44',
    ]);
  });

  it('limits the number of reported problems of one kind', () => {
    const hosts = Array.from({ length: 200 }, () => '  - name: n1').join('\n');
    const lines = problemsOf(`hosts:\n${hosts}\n`);
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('179 more problems with this code [FLEET_DUPLICATE_NAME]');
  });
});

describe('a secret in a fleet file', () => {
  const TOKEN = 'abcdef.0123456789abcdef';
  const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----';
  it.each<[string, string, string]>([
    ['a token', `cluster: {token: ${TOKEN}}\n`, 'fleet.yaml:3:18 cluster.token: a bootstrap token is not allowed in a fleet file'],
    [
      'a token elsewhere',
      `baseline: {variables: {t: ${TOKEN}}}\n`,
      'fleet.yaml:3:27 baseline.variables.t: a value that looks like a bootstrap token is not allowed',
    ],
    [
      'a password',
      'baseline: {ssh: {password: hunter2}}\n',
      'fleet.yaml:3:18 baseline.ssh.password: a secret is not allowed in a fleet file',
    ],
    [
      'a private key',
      `baseline: {ssh: {identityFiles: ["${KEY}"]}}\n`,
      'fleet.yaml:3:34 baseline.ssh.identityFiles[0]: a private key is not allowed',
    ],
    [
      'a header in a hook',
      'baseline: {hooks: {afterChange: {command: [curl, -H, "Authorization: Bearer hunter2", https://example.com]}}}\n',
      'baseline.hooks.afterChange.command: a text that looks like a secret is not allowed',
    ],
    [
      'a password in a hook',
      'baseline: {hooks: {beforeChange: {command: curl -u me:hunter2 https://example.com}}}\n',
      'baseline.hooks.beforeChange.command: a text that looks like a secret is not allowed',
    ],
    [
      'a header in a gate',
      'rollout: {gates: [{name: g, command: [curl, -H, "Authorization: Bearer hunter2", https://example.com]}]}\n',
      'fleet.yaml:3:38 rollout.gates[0].command: a text that looks like a secret is not allowed',
    ],
  ])('%s is refused with its position and without its value', (_, body, line) => {
    const problems = problemsOf(body + N1);
    expect(problems[0]).toContain(line);
    expect(problems.every((each) => each.endsWith('[FLEET_INLINE_SECRET]'))).toBe(true);
    expect(problems.join()).not.toMatch(/hunter2|abcdef\.0123|OPENSSH/);
  });

  it('is not a valid host name', () => {
    expect(problemsOf('hosts: [{name: server.mycompanynetwor1}, {name: n2, address: abcdef.0123456789abcdef}]\n')).toEqual([]);
  });
});

describe('any text', () => {
  const word = fc.constantFrom(
    'hosts',
    'groups',
    'baseline',
    'imports',
    'name',
    'ssh',
    'variables',
    'labels',
    'kubeletConfiguration',
    'n[1:3]',
    '{{ a }}',
    '"{{ a }}"',
    '{{ a',
    'a',
    'bastion',
    '~',
    '1',
    'true',
    '[a, b]',
    '{a: b}',
    'taints',
    'address',
    'role',
    'cluster',
    'token',
    '&x',
    '*x',
    '<<',
    '"',
    '- ',
    'edge',
  );
  const line = fc
    .tuple(fc.nat(4), fc.boolean(), word, fc.constantFrom(': ', ':', ' '), word)
    .map(([depth, dash, a, colon, b]) => `${'  '.repeat(depth)}${dash ? '- ' : ''}${a}${colon}${b}`);

  it('results in problems or in a fleet, never in another error', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const { fleet, problems } = resolveFleet(loadFleet(`${HEADER}${lines.join('\n')}\n`, 'f'));
        for (const host of fleet.hosts) {
          host.origins();
          host.variables();
        }
        expect(problems.map(formatProblem).every((text) => !text.includes('\n'))).toBe(true);
        if (problems.every(({ severity }) => severity === 'warning'))
          expect(new Set(fleet.hosts.map(({ name }) => name)).size).toBe(fleet.hosts.length);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });

  const scalar = fc.oneof(
    fc.constantFrom('n1', 'n[1:3]', '{{ a }}', '{{ name }}', 'x y', '', '10.0.0.1', 'none', 'edge', 'worker', 'bastion'),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  );
  const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie('any'), { maxLength: 2 }),
      fc.dictionary(
        fc.constantFrom('name', 'a', 'env', 'user', 'bastion', 'key', 'effect', 'value', '__proto__', 'constructor'),
        tie('any'),
        { maxKeys: 3 },
      ),
    ),
  })).any;
  const layer = {
    address: value,
    role: value,
    ssh: value,
    variables: value,
    labels: value,
    taints: value,
    nodeName: value,
    nodeIP: value,
    kubeletConfiguration: value,
    kubeletExtraArgs: value,
  };
  const record = (model: Record<string, fc.Arbitrary<unknown>>) => fc.record(model, { requiredKeys: [] });
  const file = record({
    baseline: record(layer),
    groups: fc.array(record({ name: fc.constantFrom('edge', 'g2'), ...layer }), { maxLength: 2 }),
    hosts: fc.array(record({ name: fc.constantFrom('n1', 'n[1:3]', 'b'), groups: value, ...layer }), { maxLength: 3 }),
    cluster: value,
    imports: value,
  });

  it('of the right shape with arbitrary values does so too', () => {
    fc.assert(
      fc.property(file, (body) => {
        const text = JSON.stringify({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'Fleet', ...body });
        const { fleet, problems } = resolveFleet(loadFleet(text, 'f'));
        for (const host of fleet.hosts) {
          host.origins();
          host.variables();
        }
        for (const problem of problems) formatProblem(problem);
      }),
      { numRuns: numberOfRuns(400) },
    );
  });
});
