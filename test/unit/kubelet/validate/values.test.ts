import { describe, expect, it } from 'vitest';
import { DISCOVERY, type DocumentName, documentOf, errorCodes, linesOf, load } from '../../kubeadm/config/support.ts';

/** Verdicts of single values: document, body with `@` for the value, then values that pass and values that fail, with the code. */
type Table = readonly [field: string, document: DocumentName, body: string, good: readonly string[], bad: readonly string[], code: string];

const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const PIN = 'sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc';
const ENDPOINT = 'discovery: {bootstrapToken: {token: abcdef.1234567890123456, unsafeSkipCAVerification: true, apiServerEndpoint: "@"}}';

const TABLES: readonly Table[] = [
  [
    'nodeRegistration.name',
    'init',
    'nodeRegistration: {name: "@"}',
    ['valid-nodename', 'INVALID-NODENAME', ' W-2 ', 'a.b.c', 'a'.repeat(253)],
    ['invalid-nodename-', 'invalid-node?name', '-a', 'a_b', 'a..b', ' ', 'a'.repeat(254)],
    'CONFIG_INVALID_NAME',
  ],
  [
    'nodeRegistration.criSocket',
    'init',
    'nodeRegistration: {criSocket: "@"}',
    ['unix:///some/path', 'unix:/some/path', '/some/path', 'unix:////some//path', 'unix:///a b'],
    ['bla:///some/path', ':::', 'unix://host', 'foo', 'tcp://x:1', 'unix://', 'unix:///'],
    'CONFIG_INVALID_SOCKET',
  ],
  [
    'nodeRegistration.kubeletExtraArgs[].name',
    'init',
    'nodeRegistration: {kubeletExtraArgs: [{name: "@", value: x}]}',
    ['v', 'node-ip', 'feature-gates'],
    ['--v', '-v', 'a=b', 'a b', 'a\\nb'],
    'CONFIG_INVALID_ARGUMENT',
  ],
  [
    'nodeRegistration.taints[].key',
    'init',
    'nodeRegistration: {taints: [{key: "@", effect: NoSchedule}]}',
    ['a', 'node-role.kubernetes.io/control-plane', 'A_b.c', 'x'.repeat(63)],
    ['a b', '/a', 'a/', 'A/b', 'a/b/c', '-a', 'a:b', 'x'.repeat(64)],
    'CONFIG_INVALID_TAINT',
  ],
  [
    'nodeRegistration.taints[].value',
    'init',
    'nodeRegistration: {taints: [{key: k, value: "@", effect: NoExecute}]}',
    ['', 'gpu', 'A_b.c-1'],
    ['a b', '-a', 'a:', 'x'.repeat(64)],
    'CONFIG_INVALID_TAINT',
  ],
  [
    'localAPIEndpoint.advertiseAddress',
    'init',
    'localAPIEndpoint: {advertiseAddress: "@"}',
    ['4.5.6.7', '2001:db7::2', '127.0.0.1', '::1', '0.0.0.0', '::', '::ffff:1.2.3.4'],
    [
      '1.2.34',
      '2001:db7:1',
      '1234',
      '1.2',
      '1.2.3.4/16',
      '2001:db8::1/64',
      '2001:xb8::',
      '2001::db8::',
      '255.255.255.255',
      '224.0.0.1',
      '169.254.1.1',
      'fe80::1',
      'ff02::1',
      '010.0.0.1',
      'host',
    ],
    'CONFIG_INVALID_ADDRESS',
  ],
  [
    'localAPIEndpoint.bindPort',
    'init',
    'localAPIEndpoint: {bindPort: @}',
    ['1', '300', '65535', '0'],
    ['-1234', '65538', '-1'],
    'CONFIG_OUT_OF_RANGE',
  ],
  [
    'certificateKey',
    'init',
    'certificateKey: "@"',
    [KEY, KEY.toUpperCase()],
    ['e6a2', `z${KEY.slice(1)}`, `${KEY}00`],
    'CONFIG_INVALID_CERTIFICATE_KEY',
  ],
  [
    'bootstrapTokens[].token',
    'init',
    'bootstrapTokens: [{token: "@"}]',
    ['772ef5.6b6baab1d4a0a171', 'abcdef.1234567890123456', '123456.aabbccddeeffgghh', '123456.1234560123456789'],
    [
      '',
      '.',
      '.6b6baab1d4a0a171',
      '772ef5.',
      'abcdef.1234567890123456@foobar',
      '1234567890123456789012',
      '12345.1234567890123456',
      '.1234567890123456',
      '123456.',
      '123456:1234567890.123456',
      'abcdef:1234567890123456',
      'Abcdef.1234567890123456',
      '123456.AABBCCDDEEFFGGHH',
      '123456.AABBCCD-EEFFGGHH',
      'abc*ef.1234567890123456',
      'abcdef.1234567890123456\\n',
    ],
    'CONFIG_INVALID_TOKEN',
  ],
  [
    'bootstrapTokens[].usages',
    'init',
    'bootstrapTokens: [{usages: [@]}]',
    ['', 'signing, authentication'],
    ['something else', 'Signing'],
    'CONFIG_INVALID_VALUE',
  ],
  [
    'bootstrapTokens[].groups',
    'init',
    'bootstrapTokens: [{groups: ["@"]}]',
    ['system:bootstrappers:anygroup', 'system:bootstrappers:a:b-c'],
    ['some group', 'system:bootstrappers:', 'system:masters', 'system:bootstrappers:A'],
    'CONFIG_INVALID_VALUE',
  ],
  ['bootstrapTokens[].ttl', 'init', 'bootstrapTokens: [{ttl: "@"}]', ['0', '0s', '24h', '1.5h'], ['-1s'], 'CONFIG_OUT_OF_RANGE'],
  ['timeouts', 'init', 'timeouts: {kubernetesAPICall: "@"}', ['0s', '.5m', '+10s', '1h30m'], ['-1s'], 'CONFIG_OUT_OF_RANGE'],
  [
    'networking.serviceSubnet, form',
    'cluster',
    'networking: {serviceSubnet: "@"}',
    ['10.0.0.16/12', '2001:db8::/112', '10.0.0.16/12,2001:db8::/112', '2001:db8::/112,10.0.0.16/12', '10.0.0.0/28'],
    [
      '1.2.3.4,2001:db8::/98',
      '2001:db8::1,10.0.0.16/12',
      '10.0.0.0/12,',
      ',10.0.0.0/12',
      '10.0.0.0/33',
      '10.00.0.0/16',
      '10.0.0.0/16, 2001:db8::/112',
    ],
    'CONFIG_INVALID_CIDR',
  ],
  [
    'networking.serviceSubnet, use',
    'cluster',
    'networking: {serviceSubnet: "@"}',
    ['10.0.0.0/12', 'fd03::/108'],
    [
      '10.0.0.16/29,2001:db8::/112',
      '10.0.0.16/12,2001:db8::/125',
      '10.0.0.16/12,192.168.0.0/16',
      '2001:db8::/112,2005:db8::/112',
      '10.0.0.16/12,2001:db8::/112,192.168.0.0/16',
      '10.0.0.16/2',
      '2001:db8::1/64',
      '2001:db8::1/112,10.0.0.16/6',
      '2001:db8::1/12,10.0.0.16/16',
      '10.0.0.16/11',
    ],
    'CONFIG_INVALID_SUBNET',
  ],
  [
    'networking.podSubnet',
    'cluster',
    'networking: {serviceSubnet: 172.16.0.0/16, podSubnet: "@"}',
    ['10.0.0.16/12', '2001:db8::/48', '2001:db8::/48,10.0.0.16/12', '10.0.0.16/12,2001:db8::/48', '10.0.1.15/16'],
    [
      '10.0.0.16/29',
      '2001:db8::1/112',
      '2001:db8::1/12',
      '10.0.0.16/29,2001:db8::/48',
      '2001:db8::1/112,10.0.0.16/16',
      '2001:db8::1/12,10.0.0.16/16',
      '10.0.0.0/25',
      '10.0.0.0/7',
    ],
    'CONFIG_INVALID_SUBNET',
  ],
  [
    'networking.podSubnet and the IPv4 node mask',
    'cluster',
    'networking: {podSubnet: 10.0.0.16/24}\ncontrollerManager: {extraArgs: [{name: node-cidr-mask-size-ipv4, value: "@"}]}',
    ['24', '26', '40', ''],
    ['23', '41', 'aa'],
    'CONFIG_INVALID_SUBNET',
  ],
  [
    'networking.podSubnet and the IPv6 node mask',
    'cluster',
    'networking: {podSubnet: "2001:db8::1/64"}\ncontrollerManager: {extraArgs: [{name: node-cidr-mask-size, value: "20"}, {name: node-cidr-mask-size-ipv6, value: "@"}]}',
    ['64', '80'],
    ['24', '120', 'a83'],
    'CONFIG_INVALID_SUBNET',
  ],
  [
    'networking.dnsDomain',
    'cluster',
    'networking: {dnsDomain: "@"}',
    ['cluster.local', 'a'],
    ['Cluster.local', 'a_b', '.local', 'a b'],
    'CONFIG_INVALID_NAME',
  ],
  [
    'controlPlaneEndpoint',
    'cluster',
    'controlPlaneEndpoint: "@"',
    ['cp.k8s.io:8081', 'cp.k8s.io', '1.2.3.4:8081', '1.2.3.4', '[2001:db7::1]:8081', '2001:db7::1', '1.2.34', 'a:'],
    ['a.B.c.d.e', '2001:db7:1', 'https://a', '[fd00::1]', 'a b'],
    'CONFIG_INVALID_ENDPOINT',
  ],
  [
    'controlPlaneEndpoint, port',
    'cluster',
    'controlPlaneEndpoint: "@"',
    ['1.2.3.4:1', 'a:65535'],
    ['1.2.3.4:0', 'a:65536', 'a:x', '[::1]:-1'],
    'CONFIG_OUT_OF_RANGE',
  ],
  [
    'apiServer.certSANs',
    'cluster',
    'apiServer: {certSANs: [@]}',
    [
      '',
      'my-hostname, my.subdomain, 1.2.3.4',
      'my-hostname2, "2001:db8::10"',
      '"*.my-hostname2", "*.my.other.subdomain"',
      'ELB.example.COM',
    ],
    ['"1,2,,3"', 'my-hostname, "???&?.garbage"', '"**.my-hostname2"', '"*.*.my-hostname2"', '"a.*.my-hostname2"', '"*"'],
    'CONFIG_INVALID_SAN',
  ],
  [
    'etcd.local.serverCertSANs',
    'cluster',
    'etcd: {local: {serverCertSANs: ["@"]}}',
    ['a.b', '::1'],
    ['A.b', '*', 'a/b'],
    'CONFIG_INVALID_SAN',
  ],
  [
    'imageRepository',
    'cluster',
    'imageRepository: "@"',
    [
      'a',
      'a.b.c',
      'a.b.c/repo',
      'a:5000',
      'a.b.c:5000',
      'a.b.c:5000/repo',
      'a/b/c',
      '127.0.0.1:5000/repo',
      'A.b:1/c',
      '[fd00::1]:5000/x',
      'a__b/c--d',
    ],
    [
      'a.b/c\\n\\ts',
      ' a.b.c',
      'a.b c',
      'a.b.c:5000/',
      'https://a.b.c:5000',
      'a//b/c',
      'a.b.c:5000/test:1.0',
      'a/B',
      'a___b/c',
      'a@sha256:x',
    ],
    'CONFIG_INVALID_IMAGE_REPOSITORY',
  ],
  ['dns.imageRepository', 'cluster', 'dns: {imageRepository: "@"}', ['r.io/dns'], ['a/'], 'CONFIG_INVALID_IMAGE_REPOSITORY'],
  [
    'kubernetesVersion',
    'cluster',
    'kubernetesVersion: "@"',
    [
      'v1.36.2',
      '1.36.2',
      'v1.36.0-beta.0',
      'v1.36.0-alpha.1.20+abc',
      'stable',
      'stable-1',
      'stable-1.36',
      'latest',
      'latest-1.36',
      'ci/latest',
      'release/stable-1',
      'ci/v1.36.0-alpha.0',
    ],
    ['1.36', 'v1', 'v1.2.3.4', 'stable-0', 'newest', 'v01.2.3', 'v1.36.2_x', 'foo/stable', 'stable-1.365'],
    'CONFIG_INVALID_VERSION',
  ],
  ['certificatesDir', 'cluster', 'certificatesDir: "@"', ['/etc/cert/dir'], ['./tmp', 'foo..'], 'CONFIG_INVALID_PATH'],
  ['etcd.local.dataDir', 'cluster', 'etcd: {local: {dataDir: "@"}}', ['/some/path'], ['some/path'], 'CONFIG_INVALID_PATH'],
  [
    'apiServer.extraVolumes[].hostPath',
    'cluster',
    'apiServer: {extraVolumes: [{name: a, hostPath: "@", mountPath: /b}]}',
    ['/a'],
    ['a'],
    'CONFIG_INVALID_PATH',
  ],
  [
    'featureGates',
    'cluster',
    'featureGates: {"@": true}',
    ['RootlessControlPlane', 'NodeLocalCRISocket', 'PublicKeysECDSA'],
    ['Unknown', 'rootlessControlPlane', 'NodeSwap'],
    'CONFIG_UNKNOWN_FEATURE_GATE',
  ],
  [
    'etcd.external.endpoints without certificates',
    'cluster',
    'etcd: {external: {endpoints: ["@"]}}',
    ['http://10.100.0.1:2379', 'https://external.etcd1:2379', 'http://example.com', 'https://[fd00::1]:2379/'],
    [':://example.com', 'example.com', '10.100.0.1:2379', 'ftp://a', 'http://'],
    'CONFIG_INVALID_URL',
  ],
  [
    'etcd.external.endpoints with certificates',
    'cluster',
    'etcd: {external: {endpoints: ["@"], caFile: /ca, certFile: /c, keyFile: /k}}',
    ['https://external.etcd1:2379'],
    ['http://external.etcd1:2379'],
    'CONFIG_INVALID_URL',
  ],
  [
    'discovery.bootstrapToken.apiServerEndpoint',
    'join',
    ENDPOINT,
    ['192.168.122.100:6443', 'kube-apiserver:6443', 'API.example:1', '[fd00::1]:6443'],
    ['192.168.122.100', 'https://a:1', 'fd00::1:6443', ':6443', 'a:', 'a b:1'],
    'CONFIG_INVALID_ENDPOINT',
  ],
  ['discovery.bootstrapToken.apiServerEndpoint, port', 'join', ENDPOINT, ['a:1'], ['a:0', 'a:70000', 'a:https'], 'CONFIG_OUT_OF_RANGE'],
  [
    'discovery.bootstrapToken.caCertHashes',
    'join',
    'discovery: {bootstrapToken: {token: abcdef.1234567890123456, apiServerEndpoint: "a:1", caCertHashes: ["@"]}}',
    [PIN, PIN.toUpperCase().replace('SHA', 'sha')],
    ['aaaa', 'sha256:xyz', PIN.slice(0, -1), PIN.replace('sha256', 'md5'), KEY],
    'CONFIG_INVALID_PIN',
  ],
  [
    'discovery.tlsBootstrapToken',
    'join',
    'discovery: {file: {kubeConfigPath: /x}, tlsBootstrapToken: "@"}',
    ['', 'abcdef.1234567890123456'],
    ['abcdef.1234567890123456@foobar'],
    'CONFIG_INVALID_TOKEN',
  ],
  [
    'discovery.file.kubeConfigPath',
    'join',
    'discovery: {file: {kubeConfigPath: "@"}}',
    ['/foo/bar', 'foo', 'file:///x', 'https://url/file.conf'],
    ['http://[::1]a', 'http://url/file.conf', 'https://u r l/file.conf', 'https://', 'ftp://a/b'],
    'CONFIG_INVALID_URL',
  ],
  ['caCertPath', 'join', `${DISCOVERY}caCertPath: "@"`, ['/some/cert.crt'], ['/some/cert', 'cert.crt'], 'CONFIG_INVALID_PATH'],
  [
    'controlPlane.localAPIEndpoint',
    'join',
    `${DISCOVERY}controlPlane: {localAPIEndpoint: {advertiseAddress: 1.2.3.4, bindPort: @}}`,
    ['1234'],
    ['-1'],
    'CONFIG_OUT_OF_RANGE',
  ],
  ['ResetConfiguration.criSocket', 'reset', 'criSocket: "@"', ['unix:///x', '/x'], ['foo'], 'CONFIG_INVALID_SOCKET'],
  ['ResetConfiguration.certificatesDir', 'reset', 'certificatesDir: "@"', ['/foo/bar'], ['bar'], 'CONFIG_INVALID_PATH'],
  [
    'UpgradeConfiguration.apply.patches.directory',
    'upgrade',
    'apply: {patches: {directory: "@"}}',
    ['/foo/bar', ''],
    ['foo'],
    'CONFIG_INVALID_PATH',
  ],
  [
    'UpgradeConfiguration.node.patches.directory',
    'upgrade',
    'node: {patches: {directory: "@"}}',
    ['/foo/bar'],
    ['foo'],
    'CONFIG_INVALID_PATH',
  ],
  [
    'UpgradeConfiguration.plan.kubernetesVersion',
    'upgrade',
    'plan: {kubernetesVersion: "@"}',
    ['v1.36.2'],
    ['1.36'],
    'CONFIG_INVALID_VERSION',
  ],
  [
    'ignorePreflightErrors',
    'reset',
    'ignorePreflightErrors: [@]',
    ['', 'Swap', 'CRI, Mem, cri', 'all', 'All, all'],
    ['CRI, Mem, all', 'Swap, ALL'],
    'CONFIG_CONFLICT',
  ],
];

describe('values', () => {
  const cases = TABLES.flatMap(([field, document, body, good, bad, code]) => [
    ...good.map((value) => [field, value, documentOf(document, body.replace('@', value)), [] as string[]] as const),
    ...bad.map((value) => [field, value, documentOf(document, body.replace('@', value)), [code]] as const),
  ]);
  it.each(cases)('%s: %s', (_, __, text, expected) => {
    expect([...new Set(errorCodes(load(text)))]).toEqual(expected);
  });
});

type Case = readonly [name: string, document: DocumentName, body: string, expected: readonly string[]];

describe('messages', () => {
  it.each<Case>([
    [
      'node name',
      'init',
      'nodeRegistration: {name: a_b}',
      [
        'f.yaml:3:26 nodeRegistration.name: "a_b" is not a valid node name. A node name has at most 253 lower-case letters, digits, dashes and dots, and begins and ends with a letter or digit. [CONFIG_INVALID_NAME]',
      ],
    ],
    [
      'two names of one node',
      'init',
      'nodeRegistration: {name: a, kubeletExtraArgs: [{name: hostname-override, value: b}]}',
      [
        'f.yaml:3:26 nodeRegistration.name: the node is named "a", but kubeletExtraArgs has hostname-override "b". Set the name only in nodeRegistration.name. [CONFIG_NODE_NAME_CONFLICT]',
      ],
    ],
    [
      'socket',
      'init',
      'nodeRegistration: {criSocket: foo}',
      [
        'f.yaml:3:31 nodeRegistration.criSocket: "foo" is not the URL of a unix socket. Use a URL such as unix:///var/run/containerd/containerd.sock. [CONFIG_INVALID_SOCKET]',
      ],
    ],
    [
      'socket as a path',
      'init',
      'nodeRegistration: {criSocket: /run/x.sock}',
      [
        'warning: f.yaml:3:31 nodeRegistration.criSocket: "/run/x.sock" has no scheme: using unix:///run/x.sock. Use unix:///run/x.sock. [CONFIG_SOCKET_WITHOUT_SCHEME]',
      ],
    ],
    [
      'argument with dashes',
      'init',
      'nodeRegistration: {kubeletExtraArgs: [{name: --v}]}',
      [
        'f.yaml:3:46 nodeRegistration.kubeletExtraArgs[0].name: "--v" is not a valid flag name. Remove the leading dashes. [CONFIG_INVALID_ARGUMENT]',
      ],
    ],
    [
      'argument with its value',
      'init',
      'nodeRegistration: {kubeletExtraArgs: [{name: v=4}]}',
      [
        'f.yaml:3:46 nodeRegistration.kubeletExtraArgs[0].name: "v=4" is not a valid flag name. Write only the name of the flag in name, and its value in value. [CONFIG_INVALID_ARGUMENT]',
      ],
    ],
    [
      'taint twice',
      'init',
      'nodeRegistration: {taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}',
      ['f.yaml:3:59 nodeRegistration.taints[1]: duplicate taint "a:NoSchedule". Remove one of the two taints. [CONFIG_INVALID_TAINT]'],
    ],
    [
      'all in addition to other checks',
      'init',
      'nodeRegistration: {ignorePreflightErrors: [all, Swap]}',
      [
        "f.yaml:3:20 nodeRegistration.ignorePreflightErrors: 'all' cannot be combined with other checks. Use 'all' alone, or list the checks without it. [CONFIG_CONFLICT]",
      ],
    ],
    [
      'address',
      'init',
      'localAPIEndpoint: {advertiseAddress: host}',
      [
        'f.yaml:3:38 localAPIEndpoint.advertiseAddress: "host" is not a valid IP address. Use an address such as 192.168.0.10 or fd00::10. [CONFIG_INVALID_ADDRESS]',
      ],
    ],
    [
      'address with leading zeros',
      'init',
      'localAPIEndpoint: {advertiseAddress: 010.0.0.1}',
      [
        'f.yaml:3:38 localAPIEndpoint.advertiseAddress: "010.0.0.1" is not a valid IP address. Remove the leading zeros from the numbers of the address. [CONFIG_INVALID_ADDRESS]',
      ],
    ],
    [
      'unreachable address',
      'init',
      'localAPIEndpoint: {advertiseAddress: 224.0.0.1}',
      [
        'f.yaml:3:38 localAPIEndpoint.advertiseAddress: "224.0.0.1" cannot be the address of the API server: other hosts cannot reach it. Use an address of one of the host\'s interfaces. [CONFIG_INVALID_ADDRESS]',
      ],
    ],
    [
      'port',
      'init',
      'localAPIEndpoint: {bindPort: 70000}',
      ['f.yaml:3:30 localAPIEndpoint.bindPort: 70000 is not a valid port. Use a port from 1 to 65535. [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'ttl and expires',
      'init',
      'bootstrapTokens:\n- ttl: 1h\n  expires: 2030-01-02T03:04:05Z',
      ['f.yaml:5:12 bootstrapTokens[0].expires: ttl and expires are mutually exclusive. Remove one of the two. [CONFIG_CONFLICT]'],
    ],
    ['expires alone, which kubeadm refuses', 'init', 'bootstrapTokens: [{expires: 2030-01-02T03:04:05Z}]', []],
    [
      'negative ttl',
      'init',
      'bootstrapTokens: [{ttl: -1h}]',
      ['f.yaml:3:25 bootstrapTokens[0].ttl: "-1h0m0s" is negative. For a token that never expires, use 0s. [CONFIG_OUT_OF_RANGE]'],
    ],
    ['negative timeout', 'init', 'timeouts: {discovery: -1s}', ['f.yaml:3:23 timeouts.discovery: "-1s" is negative [CONFIG_OUT_OF_RANGE]']],
    [
      'usage',
      'init',
      'bootstrapTokens: [{usages: [login]}]',
      [
        'f.yaml:3:29 bootstrapTokens[0].usages[0]: "login" is not a valid token usage. Use signing or authentication. [CONFIG_INVALID_VALUE]',
      ],
    ],
    [
      'signing alone, with any groups',
      'init',
      'bootstrapTokens: [{usages: [signing]}, {usages: [signing], groups: []}, {usages: [signing], groups: ["system:bootstrappers:a"]}, {usages: []}]',
      [
        'f.yaml:3:20 bootstrapTokens[0].usages: usages must contain authentication, because kubeadm adds a default group to every token, and groups need this usage. Add authentication to usages. [CONFIG_CONFLICT]',
        'f.yaml:3:41 bootstrapTokens[1].usages: usages must contain authentication, because kubeadm adds a default group to every token, and groups need this usage. Add authentication to usages. [CONFIG_CONFLICT]',
        'f.yaml:3:74 bootstrapTokens[2].usages: usages must contain authentication, because kubeadm adds a default group to every token, and groups need this usage. Add authentication to usages. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'group',
      'init',
      'bootstrapTokens: [{groups: [a]}]',
      [
        'f.yaml:3:29 bootstrapTokens[0].groups[0]: "a" is not a valid group of bootstrap tokens. A group is system:bootstrappers: followed by lower-case letters, digits, colons and dashes. [CONFIG_INVALID_VALUE]',
      ],
    ],
    [
      'CIDR',
      'cluster',
      'networking: {podSubnet: 10.0.1.15}',
      [
        'f.yaml:3:25 networking.podSubnet: "10.0.1.15" is not a CIDR or two comma-separated CIDRs. Use an address and a prefix length, such as 10.244.0.0/16. [CONFIG_INVALID_CIDR]',
      ],
    ],
    [
      'one family twice',
      'cluster',
      'networking: {podSubnet: "10.0.0.0/16,10.1.0.0/16"}',
      [
        'f.yaml:3:25 networking.podSubnet: "10.0.0.0/16,10.1.0.0/16" contains two IPv4 CIDRs. Set one CIDR, or one IPv4 and one IPv6 CIDR. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'three networks',
      'cluster',
      'networking: {podSubnet: "10.0.0.0/16,fd00::/48,10.1.0.0/16"}',
      [
        'f.yaml:3:25 networking.podSubnet: "10.0.0.0/16,fd00::/48,10.1.0.0/16" contains more than two CIDRs. Set one CIDR, or one IPv4 and one IPv6 CIDR. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'small service network',
      'cluster',
      'networking: {serviceSubnet: 10.0.0.0/29}',
      ['f.yaml:3:29 networking.serviceSubnet: "10.0.0.0/29" has 8 addresses, fewer than 10 [CONFIG_INVALID_SUBNET]'],
    ],
    [
      'large service network',
      'cluster',
      'networking: {serviceSubnet: 10.0.0.0/8}',
      [
        'f.yaml:3:29 networking.serviceSubnet: "10.0.0.0/8" is too large for Services. Use a prefix of /12 or longer. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'huge network',
      'cluster',
      'networking: {podSubnet: 0.0.0.0/1, serviceSubnet: 192.168.0.0/16}',
      [
        'f.yaml:3:25 networking.podSubnet: "0.0.0.0/1" is too large [CONFIG_INVALID_SUBNET]',
        'f.yaml:3:25 networking.podSubnet: "0.0.0.0/1" has too many node CIDRs: its prefix and the node mask (/24) differ by more than 16. Use a prefix of /8 or longer. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'pod network smaller than a node',
      'cluster',
      'networking: {podSubnet: 10.0.0.0/25}',
      [
        'f.yaml:3:25 networking.podSubnet: "10.0.0.0/25" is smaller than a node CIDR (/24). Use a prefix of /24 or shorter. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'no allocation of node CIDRs',
      'cluster',
      'networking: {podSubnet: 10.0.0.0/25}\ncontrollerManager: {extraArgs: [{name: allocate-node-cidrs, value: "false"}]}',
      [],
    ],
    [
      'invalid node mask',
      'cluster',
      'networking: {podSubnet: 10.0.0.0/16}\ncontrollerManager: {extraArgs: [{name: node-cidr-mask-size-ipv4, value: aa}]}',
      [
        'f.yaml:3:25 networking.podSubnet: "10.0.0.0/16" cannot be split into node CIDRs: node-cidr-mask-size-ipv4 of the controller manager is not an integer [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'site-local network',
      'cluster',
      'networking: {serviceSubnet: "fec0::/112"}',
      [
        'warning: f.yaml:3:29 networking.serviceSubnet: "fec0::/112" contains site-local addresses (fec0::/10), which RFC 3879 deprecates. Use unique local addresses (fd00::/8). [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'overlapping networks',
      'cluster',
      'networking: {serviceSubnet: 10.96.0.0/12, podSubnet: 10.100.0.0/16}',
      [
        'warning: f.yaml:3:54 networking.podSubnet: the pod subnet (10.100.0.0/16) and the service subnet (10.96.0.0/12) overlap. Use subnets that do not overlap. [CONFIG_SUBNETS_OVERLAP]',
      ],
    ],
    [
      'pods in the default network of services',
      'cluster',
      'networking: {podSubnet: 10.100.0.0/16}',
      [
        'warning: f.yaml:3:25 networking.podSubnet: the pod subnet (10.100.0.0/16) and the service subnet (10.96.0.0/12) overlap. Use subnets that do not overlap. [CONFIG_SUBNETS_OVERLAP]',
      ],
    ],
    [
      'endpoint with a scheme',
      'cluster',
      'controlPlaneEndpoint: https://api.x',
      [
        'f.yaml:3:23 controlPlaneEndpoint: "https://api.x" is not of the form HOST or HOST:PORT. Remove the scheme: api.x. [CONFIG_INVALID_ENDPOINT]',
      ],
    ],
    [
      'endpoint',
      'cluster',
      'controlPlaneEndpoint: A',
      [
        'f.yaml:3:23 controlPlaneEndpoint: "A" is not of the form HOST or HOST:PORT. Use an endpoint such as api.example.com or 10.0.0.10:6443 or [fd00::10]:6443. [CONFIG_INVALID_ENDPOINT]',
      ],
    ],
    [
      'repository with a scheme',
      'cluster',
      'imageRepository: https://r.io',
      ['f.yaml:3:18 imageRepository: "https://r.io" is not a valid image repository. Remove the scheme. [CONFIG_INVALID_IMAGE_REPOSITORY]'],
    ],
    [
      'repository with a tag',
      'cluster',
      'imageRepository: r.io/k8s:1.0',
      [
        'f.yaml:3:18 imageRepository: "r.io/k8s:1.0" is not a valid image repository. Use a repository such as registry.example.com:5000/k8s, without tag and trailing slash. [CONFIG_INVALID_IMAGE_REPOSITORY]',
      ],
    ],
    [
      'name in a certificate',
      'cluster',
      'apiServer: {certSANs: ["a b"]}',
      [
        'f.yaml:3:24 apiServer.certSANs[0]: "a b" is neither an IP address nor a DNS name. Use an IP address, a lower-case DNS name, or a wildcard such as *.example.com. [CONFIG_INVALID_SAN]',
      ],
    ],
    [
      'version',
      'cluster',
      'kubernetesVersion: v1',
      [
        'f.yaml:3:20 kubernetesVersion: "v1" is not a valid Kubernetes version. Use a version such as v1.36.2, or a label such as stable-1.36. [CONFIG_INVALID_VERSION]',
      ],
    ],
    [
      'domain',
      'cluster',
      'networking: {dnsDomain: A.b}',
      [
        'f.yaml:3:25 networking.dnsDomain: "A.b" is not a valid DNS domain. A domain has lower-case letters, digits, dashes and dots, such as cluster.local. [CONFIG_INVALID_NAME]',
      ],
    ],
    [
      'path',
      'cluster',
      'certificatesDir: pki',
      ['f.yaml:3:18 certificatesDir: "pki" is not an absolute path. Use a path that begins with a slash. [CONFIG_INVALID_PATH]'],
    ],
    [
      'gate of the kubelet',
      'cluster',
      'featureGates: {NodeSwap: true}',
      [
        'f.yaml:3:26 featureGates.NodeSwap: kubeadm has no feature gate "NodeSwap". kubeadm supports NodeLocalCRISocket, PublicKeysECDSA and RootlessControlPlane; set feature gates of the kubelet in KubeletConfiguration. [CONFIG_UNKNOWN_FEATURE_GATE]',
      ],
    ],
    [
      'misspelt gate',
      'cluster',
      'featureGates: {RootlesControlPlane: true}',
      [
        'f.yaml:3:37 featureGates.RootlesControlPlane: kubeadm has no feature gate "RootlesControlPlane". Did you mean RootlessControlPlane? [CONFIG_UNKNOWN_FEATURE_GATE]',
      ],
    ],
    [
      'deprecated gate',
      'cluster',
      'featureGates: {PublicKeysECDSA: true}',
      [
        'warning: f.yaml:3:33 featureGates.PublicKeysECDSA: the feature gate PublicKeysECDSA is deprecated. Set encryptionAlgorithm: ECDSA-P256 (v1beta4) instead. [CONFIG_DEPRECATED_FEATURE_GATE]',
      ],
    ],
    [
      'deprecated gate that is on by default',
      'cluster',
      'featureGates: {NodeLocalCRISocket: false}',
      [
        'warning: f.yaml:3:36 featureGates.NodeLocalCRISocket: the feature gate NodeLocalCRISocket is deprecated. Remove the feature gate. The CRI socket is then set in instance-config.yaml instead of a kubelet flag. [CONFIG_DEPRECATED_FEATURE_GATE]',
      ],
    ],
    [
      'value and valueFrom',
      'cluster',
      'apiServer: {extraEnvs: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}',
      [
        'f.yaml:3:45 apiServer.extraEnvs[0].valueFrom: value and valueFrom are mutually exclusive. Remove one of the two. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'local and external etcd',
      'cluster',
      'etcd: {local: {dataDir: x}, external: {endpoints: [x]}}',
      ['f.yaml:3:1 etcd: local and external are mutually exclusive. Remove one of the two. [CONFIG_CONFLICT]'],
    ],
    [
      'etcd without endpoints',
      'cluster',
      'etcd: {external: {}}',
      ['f.yaml:3:8 etcd.external.endpoints: an endpoint is required for external etcd [CONFIG_MISSING_VALUE]'],
    ],
    [
      'etcd with a certificate but no key',
      'cluster',
      'etcd: {external: {endpoints: ["https://a:1"], certFile: /c}}',
      ['f.yaml:3:57 etcd.external.certFile: keyFile is required with certFile [CONFIG_MISSING_VALUE]'],
    ],
    [
      'etcd with a client certificate but no CA',
      'cluster',
      'etcd: {external: {endpoints: ["https://a:1"], certFile: /c, keyFile: /k}}',
      ['f.yaml:3:57 etcd.external.certFile: caFile is required with certFile and keyFile [CONFIG_MISSING_VALUE]'],
    ],
    [
      'etcd over http with certificates',
      'cluster',
      'etcd: {external: {endpoints: ["http://a:1"], caFile: /c}}',
      [
        'f.yaml:3:31 etcd.external.endpoints[0]: "http://a:1" is not a valid https URL. Use a URL such as https://10.0.0.20:2379. [CONFIG_INVALID_URL]',
      ],
    ],
    [
      'long-lived certificates',
      'cluster',
      'certificateValidityPeriod: 17520h\ncaCertificateValidityPeriod: 175200h',
      [
        'warning: f.yaml:3:28 certificateValidityPeriod: 17520h0m0s exceeds the recommended 8760h0m0s [CONFIG_LONG_VALIDITY]',
        'warning: f.yaml:4:30 caCertificateValidityPeriod: 175200h0m0s exceeds the recommended 87600h0m0s [CONFIG_LONG_VALIDITY]',
      ],
    ],
    [
      'certificates that expire after their CA',
      'cluster',
      'certificateValidityPeriod: 2h\ncaCertificateValidityPeriod: 1h',
      ['warning: f.yaml:3:28 certificateValidityPeriod: 2h0m0s exceeds caCertificateValidityPeriod (1h0m0s) [CONFIG_LONG_VALIDITY]'],
    ],
    [
      'no discovery',
      'join',
      '',
      [
        'f.yaml:1:1 discovery: no discovery method configured. On a control plane, run kubeletadm token create --print-join-command, which prints the complete join command. Or pass --discovery-file, or --config with discovery.bootstrapToken or discovery.file. [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'two discovery methods',
      'join',
      'discovery:\n  bootstrapToken: {token: abcdef.1234567890123456}\n  file: {kubeConfigPath: "https://url/file.conf"}',
      [
        'f.yaml:5:3 discovery.file: discovery by file and discovery by token are mutually exclusive: discovery by token is set at f.yaml:4:3. Remove one of the two. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'empty token discovery',
      'join',
      'discovery: {bootstrapToken: {}}',
      [
        'f.yaml:3:13 discovery.bootstrapToken.apiServerEndpoint: the endpoint ADDRESS:PORT of the API server is required for discovery by token [CONFIG_MISSING_VALUE]',
        'f.yaml:3:13 discovery.bootstrapToken.token: a bootstrap token is required for discovery by token. Pass --token (printed by kubeletadm token create on a control plane). [CONFIG_MISSING_VALUE]',
        'f.yaml:3:13 discovery.bootstrapToken.caCertHashes: token discovery requires caCertHashes to verify the cluster CA. On a control plane, run kubeletadm token create --print-join-command, and pass the printed --discovery-token-ca-cert-hash. Or pass the CA certificate with --ca-cert. To accept any CA (insecure), pass --discovery-token-unsafe-skip-ca-verification. [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'file discovery without a path',
      'join',
      'discovery: {file: {}}',
      ['f.yaml:3:13 discovery.file.kubeConfigPath: a path or URL is required for discovery by file [CONFIG_MISSING_VALUE]'],
    ],
    [
      'discovery over http',
      'join',
      'discovery: {file: {kubeConfigPath: "http://a/b"}}',
      ['f.yaml:3:36 discovery.file.kubeConfigPath: must be a path or an https URL [CONFIG_INVALID_URL]'],
    ],
    [
      'endpoint without port',
      'join',
      'discovery: {bootstrapToken: {token: abcdef.1234567890123456, unsafeSkipCAVerification: true, apiServerEndpoint: a}}',
      [
        'f.yaml:3:113 discovery.bootstrapToken.apiServerEndpoint: "a" has no port. Use an endpoint such as 10.0.0.10:6443 or [fd00::10]:6443. [CONFIG_INVALID_ENDPOINT]',
      ],
    ],
    [
      'pin',
      'join',
      'discovery: {bootstrapToken: {token: abcdef.1234567890123456, apiServerEndpoint: "a:1", caCertHashes: [x]}}',
      [
        'f.yaml:3:103 discovery.bootstrapToken.caCertHashes[0]: "x" is not a valid CA certificate pin. A pin is sha256: followed by 64 hexadecimal digits, as printed by kubeletadm token create --print-join-command. [CONFIG_INVALID_PIN]',
      ],
    ],
  ])('%s', (_, document, body, expected) => {
    expect(linesOf(load(documentOf(document, body)))).toEqual(expected);
  });
});
