import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { Flags } from '../../../../src/kubeadm/config/flag-values.ts';
import {
  mergeInitFlags,
  mergeJoinFlags,
  mergeResetFlags,
  mergeUpgradeFlags,
  type UpgradeCommand,
} from '../../../../src/kubeadm/config/flags.ts';
import { emptyConfig, type LoadedConfig, loadConfig } from '../../../../src/kubeadm/config/load.ts';
import type { ConfigKind } from '../../../../src/kubeadm/config/model.ts';
import { documentOf, errorCodes, linesOf } from './support.ts';

const TOKEN = 'abcdef.0123456789abcdef';
const OTHER = 'fedcba.fedcba9876543210';
const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const PIN = 'sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc';

function structure(text: string, ...kinds: ConfigKind[]): LoadedConfig {
  return loadConfig(text, 'f.yaml', { kinds, check: 'structure', allowDeprecated: true });
}
const initFile = (body: string, cluster = '') =>
  structure(`${documentOf('init', body)}---\n${documentOf('cluster', cluster)}`, 'InitConfiguration', 'ClusterConfiguration');
const joinFile = (body: string) => structure(documentOf('join', body), 'JoinConfiguration');

/** Models with their secrets revealed, for comparison. */
function clear(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(clear);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, clear(member)]));
}

describe('flags of init', () => {
  it.each<readonly [string, Flags, unknown]>([
    ['nothing', {}, { init: {}, cluster: {} }],
    ['empty flags', { 'node-name': '', 'apiserver-cert-extra-sans': [], token: undefined }, { init: {}, cluster: {} }],
    ['other flags', { config: 'x', v: 5 }, { init: {}, cluster: {} }],
    ['node-name', { 'node-name': 'a' }, { init: { nodeRegistration: { name: 'a' } }, cluster: {} }],
    ['cri-socket', { 'cri-socket': 'unix:///x' }, { init: { nodeRegistration: { criSocket: 'unix:///x' } }, cluster: {} }],
    ['token', { token: TOKEN }, { init: { bootstrapTokens: [{ token: TOKEN }] }, cluster: {} }],
    ['token as a secret', { token: new Secret(TOKEN) }, { init: { bootstrapTokens: [{ token: TOKEN }] }, cluster: {} }],
    ['token-ttl', { 'token-ttl': '2h' }, { init: { bootstrapTokens: [{ ttl: '2h0m0s' }] }, cluster: {} }],
    ['token-ttl 0', { 'token-ttl': '0' }, { init: { bootstrapTokens: [{ ttl: '0s' }] }, cluster: {} }],
    [
      'token and token-ttl',
      { 'token-ttl': '2h', token: TOKEN },
      { init: { bootstrapTokens: [{ token: TOKEN, ttl: '2h0m0s' }] }, cluster: {} },
    ],
    ['pod-network-cidr', { 'pod-network-cidr': '10.244.0.0/16' }, { init: {}, cluster: { networking: { podSubnet: '10.244.0.0/16' } } }],
    [
      'service-cidr and domain',
      { 'service-cidr': '10.0.0.0/16', 'service-dns-domain': 'a.b' },
      { init: {}, cluster: { networking: { serviceSubnet: '10.0.0.0/16', dnsDomain: 'a.b' } } },
    ],
    ['kubernetes-version', { 'kubernetes-version': 'stable-1' }, { init: {}, cluster: { kubernetesVersion: 'stable-1' } }],
    [
      'API server address and port',
      { 'apiserver-advertise-address': '10.0.0.1', 'apiserver-bind-port': '8443' },
      { init: { localAPIEndpoint: { advertiseAddress: '10.0.0.1', bindPort: 8443 } }, cluster: {} },
    ],
    ['API server port as a number', { 'apiserver-bind-port': 8443 }, { init: { localAPIEndpoint: { bindPort: 8443 } }, cluster: {} }],
    ['control-plane-endpoint', { 'control-plane-endpoint': 'a:1' }, { init: {}, cluster: { controlPlaneEndpoint: 'a:1' } }],
    [
      'SANs',
      { 'apiserver-cert-extra-sans': ['a.b,c.d', '10.0.0.1'] },
      { init: {}, cluster: { apiServer: { certSANs: ['a.b', 'c.d', '10.0.0.1'] } } },
    ],
    ['cert-dir', { 'cert-dir': '/x' }, { init: {}, cluster: { certificatesDir: '/x' } }],
    ['image-repository', { 'image-repository': 'r.io/x' }, { init: {}, cluster: { imageRepository: 'r.io/x' } }],
    [
      'feature-gates',
      { 'feature-gates': 'RootlessControlPlane=true, NodeLocalCRISocket=T' },
      { init: {}, cluster: { featureGates: { RootlessControlPlane: true, NodeLocalCRISocket: true } } },
    ],
    ['patches', { patches: './p' }, { init: { patches: { directory: './p' } }, cluster: {} }],
    ['skip-phases', { 'skip-phases': 'addon,preflight' }, { init: { skipPhases: ['addon', 'preflight'] }, cluster: {} }],
    [
      'ignore-preflight-errors',
      { 'ignore-preflight-errors': ['all'] },
      { init: { nodeRegistration: { ignorePreflightErrors: ['all'] } }, cluster: {} },
    ],
    ['certificate-key', { 'certificate-key': KEY }, { init: { certificateKey: KEY }, cluster: {} }],
    ['dry-run', { 'dry-run': true }, { init: { dryRun: true }, cluster: {} }],
  ])('%s', (_, flags, expected) => {
    const { init, cluster, problems } = mergeInitFlags(emptyConfig(), flags);
    expect(linesOf({ problems })).toEqual([]);
    expect(clear({ init, cluster })).toEqual(expected);
  });

  it('take precedence over the file, and keep other fields', () => {
    const config = initFile(
      `nodeRegistration: {name: file, criSocket: "unix:///f", ignorePreflightErrors: [Swap]}\nlocalAPIEndpoint: {bindPort: 1}\nskipPhases: [a]\nbootstrapTokens: [{token: ${OTHER}, expires: 2030-01-02T03:04:05Z}, {usages: [authentication]}]`,
      'networking: {podSubnet: 10.1.0.0/16, dnsDomain: f.x}\nfeatureGates: {RootlessControlPlane: true}\napiServer: {certSANs: [f], extraArgs: [{name: v, value: "1"}]}',
    );
    const { init, cluster, problems } = mergeInitFlags(config, {
      'node-name': 'flag',
      'ignore-preflight-errors': 'mem,swap',
      'apiserver-advertise-address': '10.0.0.1',
      'skip-phases': 'b',
      'token-ttl': '1h',
      'pod-network-cidr': '10.2.0.0/16',
      'feature-gates': 'NodeLocalCRISocket=true',
      'apiserver-cert-extra-sans': 'g',
    });
    expect(linesOf({ problems })).toEqual([]);
    expect(clear({ init, cluster })).toEqual({
      init: {
        nodeRegistration: { name: 'flag', criSocket: 'unix:///f', ignorePreflightErrors: ['swap', 'mem'] },
        localAPIEndpoint: { bindPort: 1, advertiseAddress: '10.0.0.1' },
        skipPhases: ['b'],
        bootstrapTokens: [
          { token: OTHER, ttl: '1h0m0s' },
          { usages: ['authentication'], ttl: '1h0m0s' },
        ],
      },
      cluster: {
        networking: { podSubnet: '10.2.0.0/16', dnsDomain: 'f.x' },
        featureGates: { RootlessControlPlane: true, NodeLocalCRISocket: true },
        apiServer: { certSANs: ['g'], extraArgs: [{ name: 'v', value: '1' }] },
      },
    });
  });

  it('replace all tokens of the file with one token', () => {
    const { init } = mergeInitFlags(initFile(`bootstrapTokens: [{token: ${OTHER}, ttl: 1h}, {ttl: 2h}]`), { token: TOKEN });
    expect(clear(init?.bootstrapTokens)).toEqual([{ token: TOKEN }]);
  });

  it.each<readonly [string, Flags, readonly string[]]>([
    [
      'node-name',
      { 'node-name': 'a_b' },
      [
        '--node-name: "a_b" is not a valid node name. A node name has at most 253 lower-case letters, digits, dashes and dots, and begins and ends with a letter or digit. [CONFIG_INVALID_NAME]',
      ],
    ],
    [
      'token',
      { token: 'secret-thing' },
      ['--token: the value is not a bootstrap token of the form [a-z0-9]{6}.[a-z0-9]{16} [CONFIG_INVALID_TOKEN]'],
    ],
    [
      'certificate-key',
      { 'certificate-key': 'secret' },
      ['--certificate-key: the value is not 64 hexadecimal digits [CONFIG_INVALID_CERTIFICATE_KEY]'],
    ],
    ['token-ttl', { 'token-ttl': '1d' }, ['--token-ttl: "1d" is not a duration such as 24h or 90s [CONFIG_INVALID_FLAG]']],
    [
      'negative token-ttl',
      { 'token-ttl': '-1h' },
      ['--token-ttl: "-1h0m0s" is negative. For a token that never expires, use 0s. [CONFIG_OUT_OF_RANGE]'],
    ],
    ['port', { 'apiserver-bind-port': 'https' }, ['--apiserver-bind-port: "https" is not an integer [CONFIG_INVALID_FLAG]']],
    [
      'port out of range',
      { 'apiserver-bind-port': 70000 },
      ['--apiserver-bind-port: 70000 is not a valid port. Use a port from 1 to 65535. [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'feature-gates without a value',
      { 'feature-gates': 'RootlessControlPlane' },
      ['--feature-gates: "RootlessControlPlane" is not Name=true or Name=false [CONFIG_INVALID_FLAG]'],
    ],
    [
      'feature-gates, unknown',
      { 'feature-gates': 'Foo=true' },
      [
        '--feature-gates: kubeadm has no feature gate "Foo". kubeadm supports NodeLocalCRISocket, PublicKeysECDSA and RootlessControlPlane; set feature gates of the kubelet in KubeletConfiguration. [CONFIG_UNKNOWN_FEATURE_GATE]',
      ],
    ],
    ['dry-run', { 'dry-run': 'maybe' }, ['--dry-run: "maybe" is not true or false [CONFIG_INVALID_FLAG]']],
    [
      'subnets',
      { 'service-cidr': '10.0.0.0', 'pod-network-cidr': '10.0.0.0/30' },
      [
        '--service-cidr: "10.0.0.0" is not a CIDR or two comma-separated CIDRs. Use an address and a prefix length, such as 10.244.0.0/16. [CONFIG_INVALID_CIDR]',
        '--pod-network-cidr: "10.0.0.0/30" has 4 addresses, fewer than 14 [CONFIG_INVALID_SUBNET]',
        '--pod-network-cidr: "10.0.0.0/30" is smaller than a node CIDR (/24). Use a prefix of /24 or shorter. [CONFIG_INVALID_SUBNET]',
      ],
    ],
    [
      'one invalid name of several',
      { 'apiserver-cert-extra-sans': 'a,b b' },
      [
        '--apiserver-cert-extra-sans: "b b" is neither an IP address nor a DNS name. Use an IP address, a lower-case DNS name, or a wildcard such as *.example.com. [CONFIG_INVALID_SAN]',
      ],
    ],
    [
      'all together with other checks',
      { 'ignore-preflight-errors': 'all,Swap' },
      [
        "--ignore-preflight-errors: 'all' cannot be combined with other checks. Use 'all' alone, or list the checks without it. [CONFIG_CONFLICT]",
      ],
    ],
  ])('are reported when they are invalid: %s', (_, flags, expected) => {
    expect(linesOf(mergeInitFlags(emptyConfig(), flags))).toEqual(expected);
  });

  it('replace an invalid value of the file', () => {
    const config = initFile('nodeRegistration: {name: a_b}');
    expect(errorCodes(mergeInitFlags(config, {}))).toEqual(['CONFIG_INVALID_NAME']);
    expect(errorCodes(mergeInitFlags(config, { 'node-name': 'a' }))).toEqual([]);
  });

  it('report a conflict with the file', () => {
    const config = initFile('nodeRegistration: {ignorePreflightErrors: [Swap]}');
    expect(linesOf(mergeInitFlags(config, { 'ignore-preflight-errors': 'all' }))).toEqual([
      "--ignore-preflight-errors: 'all' cannot be combined with other checks. Use 'all' alone, or list the checks without it. [CONFIG_CONFLICT]",
    ]);
  });

  it('keep the errors of the file', () => {
    expect(linesOf(mergeInitFlags(initFile('foo: 1\ndryRun: x'), { 'node-name': 'a_' }))).toEqual([
      'f.yaml:3:1 foo: unknown field [CONFIG_UNKNOWN_FIELD]',
      'f.yaml:4:9 dryRun: expected true or false, found the string "x" [CONFIG_WRONG_TYPE]',
      '--node-name: "a_" is not a valid node name. A node name has at most 253 lower-case letters, digits, dashes and dots, and begins and ends with a letter or digit. [CONFIG_INVALID_NAME]',
    ]);
  });
});

describe('flags of join', () => {
  const DISCOVERY = { 'api-server-endpoint': '10.0.0.1:6443', 'discovery-token-ca-cert-hash': [PIN] };

  it('replace the taints of the file', () => {
    const file = joinFile('nodeRegistration: {taints: [{key: old, effect: NoSchedule}]}');
    const merged = mergeJoinFlags(file, { ...DISCOVERY, token: TOKEN, 'node-taints': ['gpu=a100:NoSchedule', 'edge:NoExecute'] });
    expect(errorCodes(merged)).toEqual([]);
    expect(merged.join?.nodeRegistration?.taints).toEqual([
      { key: 'gpu', value: 'a100', effect: 'NoSchedule' },
      { key: 'edge', effect: 'NoExecute' },
    ]);
  });

  it.each(['gpu', 'gpu=a100', 'gpu:Never', ':NoSchedule', 'gpu=a:b:NoSchedule'])('refuse the taint %s', (taint) => {
    expect(errorCodes(mergeJoinFlags(joinFile(''), { ...DISCOVERY, token: TOKEN, 'node-taints': [taint] }))).toEqual([
      'CONFIG_INVALID_FLAG',
    ]);
  });

  it.each<readonly [string, Flags, unknown]>([
    [
      'one token for both purposes',
      { ...DISCOVERY, token: TOKEN },
      {
        discovery: { bootstrapToken: { apiServerEndpoint: '10.0.0.1:6443', caCertHashes: [PIN], token: TOKEN }, tlsBootstrapToken: TOKEN },
      },
    ],
    [
      'token for discovery only',
      { ...DISCOVERY, 'discovery-token': TOKEN },
      { discovery: { bootstrapToken: { apiServerEndpoint: '10.0.0.1:6443', caCertHashes: [PIN], token: TOKEN } } },
    ],
    [
      'two tokens',
      { ...DISCOVERY, token: TOKEN, 'tls-bootstrap-token': OTHER },
      {
        discovery: { bootstrapToken: { apiServerEndpoint: '10.0.0.1:6443', caCertHashes: [PIN], token: TOKEN }, tlsBootstrapToken: OTHER },
      },
    ],
    [
      'no CA pin',
      { 'api-server-endpoint': 'a:1', token: TOKEN, 'discovery-token-unsafe-skip-ca-verification': true },
      {
        discovery: { bootstrapToken: { apiServerEndpoint: 'a:1', token: TOKEN, unsafeSkipCAVerification: true }, tlsBootstrapToken: TOKEN },
      },
    ],
    ['a file', { 'discovery-file': '/x.conf' }, { discovery: { file: { kubeConfigPath: '/x.conf' } } }],
    [
      'a file and a token for the kubelet',
      { 'discovery-file': '/x.conf', token: TOKEN },
      { discovery: { file: { kubeConfigPath: '/x.conf' }, tlsBootstrapToken: TOKEN } },
    ],
    [
      'a control plane',
      {
        'discovery-file': '/x.conf',
        'control-plane': true,
        'certificate-key': KEY,
        'apiserver-advertise-address': '10.0.0.2',
        'apiserver-bind-port': 8443,
      },
      {
        discovery: { file: { kubeConfigPath: '/x.conf' } },
        controlPlane: { certificateKey: KEY, localAPIEndpoint: { advertiseAddress: '10.0.0.2', bindPort: 8443 } },
      },
    ],
    [
      'the node',
      {
        'discovery-file': '/x.conf',
        'node-name': 'a',
        'cri-socket': 'unix:///x',
        patches: 'p',
        'skip-phases': ['a'],
        'ignore-preflight-errors': 'Swap',
        'dry-run': true,
      },
      {
        discovery: { file: { kubeConfigPath: '/x.conf' } },
        nodeRegistration: { name: 'a', criSocket: 'unix:///x', ignorePreflightErrors: ['Swap'] },
        patches: { directory: 'p' },
        skipPhases: ['a'],
        dryRun: true,
      },
    ],
  ])('%s', (_, flags, expected) => {
    const { join, problems } = mergeJoinFlags(emptyConfig(), flags);
    expect(linesOf({ problems })).toEqual([]);
    expect(clear(join)).toEqual(expected);
  });

  it('complete the discovery of the file', () => {
    const { join, problems } = mergeJoinFlags(
      joinFile('discovery: {bootstrapToken: {apiServerEndpoint: "a:1", unsafeSkipCAVerification: true}}'),
      { token: TOKEN },
    );
    expect(linesOf({ problems })).toEqual([]);
    expect(clear(join?.discovery)).toEqual({
      bootstrapToken: { apiServerEndpoint: 'a:1', unsafeSkipCAVerification: true, token: TOKEN },
      tlsBootstrapToken: TOKEN,
    });
  });

  it('take precedence over the token of the file', () => {
    const file = joinFile(
      `discovery: {bootstrapToken: {token: ${OTHER}, apiServerEndpoint: "a:1", caCertHashes: ["${PIN}"]}, tlsBootstrapToken: ${OTHER}}`,
    );
    expect(clear(mergeJoinFlags(file, { token: TOKEN }).join?.discovery)).toMatchObject({
      bootstrapToken: { token: TOKEN },
      tlsBootstrapToken: TOKEN,
    });
  });

  it('use the token for the TLS bootstrap when the file configures discovery', () => {
    const { join, problems } = mergeJoinFlags(joinFile('discovery: {file: {kubeConfigPath: /x}}'), { token: TOKEN });
    expect(linesOf({ problems })).toEqual([]);
    expect(clear(join?.discovery)).toEqual({ file: { kubeConfigPath: '/x' }, tlsBootstrapToken: TOKEN });
  });

  it('turn the control plane of the file into a worker', () => {
    const { join } = mergeJoinFlags(joinFile('controlPlane: {}\ndiscovery: {file: {kubeConfigPath: /x}}'), { 'control-plane': false });
    expect(join).not.toHaveProperty('controlPlane');
  });

  it('set fields of the control plane in the file', () => {
    const { join, problems } = mergeJoinFlags(
      joinFile('controlPlane: {localAPIEndpoint: {bindPort: 1}}\ndiscovery: {file: {kubeConfigPath: /x}}'),
      { 'apiserver-advertise-address': '10.0.0.2' },
    );
    expect(linesOf({ problems })).toEqual([]);
    expect(join?.controlPlane).toEqual({ localAPIEndpoint: { bindPort: 1, advertiseAddress: '10.0.0.2' } });
  });

  it.each<readonly [string, LoadedConfig, Flags, readonly string[]]>([
    [
      'nothing',
      emptyConfig(),
      {},
      [
        'discovery: no discovery method configured. On a control plane, run kubeletadm token create --print-join-command, which prints the complete join command. Or pass --discovery-file, or --config with discovery.bootstrapToken or discovery.file. [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'only a token',
      emptyConfig(),
      { token: TOKEN },
      [
        'discovery.bootstrapToken.apiServerEndpoint: the endpoint ADDRESS:PORT of the API server is required for discovery by token [CONFIG_MISSING_VALUE]',
        'discovery.bootstrapToken.caCertHashes: token discovery requires caCertHashes to verify the cluster CA. On a control plane, run kubeletadm token create --print-join-command, and pass the printed --discovery-token-ca-cert-hash. Or pass the CA certificate with --ca-cert. To accept any CA (insecure), pass --discovery-token-unsafe-skip-ca-verification. [CONFIG_MISSING_VALUE]',
      ],
    ],
    [
      'an endpoint with a scheme',
      emptyConfig(),
      { ...DISCOVERY, token: TOKEN, 'api-server-endpoint': 'https://a:1' },
      ['argument address:port: "https://a:1" is not of the form ADDRESS:PORT. Remove the scheme: a:1. [CONFIG_INVALID_ENDPOINT]'],
    ],
    [
      'an invalid CA pin',
      emptyConfig(),
      { ...DISCOVERY, token: TOKEN, 'discovery-token-ca-cert-hash': 'x' },
      [
        '--discovery-token-ca-cert-hash: "x" is not a valid CA certificate pin. A pin is sha256: followed by 64 hexadecimal digits, as printed by kubeletadm token create --print-join-command. [CONFIG_INVALID_PIN]',
      ],
    ],
    [
      'file and token',
      emptyConfig(),
      { ...DISCOVERY, token: TOKEN, 'discovery-file': '/x' },
      [
        '--discovery-file: discovery by file and discovery by token are mutually exclusive: discovery by token is set by argument address:port. Remove one of the two. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'file discovery in the flags, token discovery in the file',
      joinFile(`discovery:\n  bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: "a:1"}`),
      { 'discovery-file': '/x' },
      [
        '--discovery-file: discovery by file and discovery by token are mutually exclusive: discovery by token is set at f.yaml:4:3. Remove one of the two. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'token discovery in the flags, file discovery in the file',
      joinFile('discovery:\n  file: {kubeConfigPath: /x}'),
      { ...DISCOVERY, token: TOKEN },
      [
        'f.yaml:4:3 discovery.file: discovery by file and discovery by token are mutually exclusive: discovery by token is set by argument address:port. Remove one of the two. [CONFIG_CONFLICT]',
      ],
    ],
    [
      'control plane flags for a worker',
      emptyConfig(),
      { 'discovery-file': '/x', 'certificate-key': KEY, 'apiserver-bind-port': 1 },
      [
        '--certificate-key: has no effect without --control-plane. Add --control-plane, or omit this flag. [CONFIG_FLAG_NEEDS]',
        '--apiserver-bind-port: has no effect without --control-plane. Add --control-plane, or omit this flag. [CONFIG_FLAG_NEEDS]',
      ],
    ],
    [
      'an invalid token',
      emptyConfig(),
      { ...DISCOVERY, token: 'x' },
      ['--token: the value is not a bootstrap token of the form [a-z0-9]{6}.[a-z0-9]{16} [CONFIG_INVALID_TOKEN]'],
    ],
    [
      'an invalid address',
      emptyConfig(),
      { 'discovery-file': '/x', 'control-plane': true, 'apiserver-advertise-address': 'x' },
      [
        '--apiserver-advertise-address: "x" is not a valid IP address. Use an address such as 192.168.0.10 or fd00::10. [CONFIG_INVALID_ADDRESS]',
      ],
    ],
  ])('are reported when they are invalid: %s', (_, config, flags, expected) => {
    expect(linesOf(mergeJoinFlags(config, flags))).toEqual(expected);
  });
});

describe('positions', () => {
  it('refer to the file for values that no flag replaces', () => {
    const { positions } = mergeJoinFlags(
      joinFile('nodeRegistration: {name: a, criSocket: "unix:///x"}\ncontrolPlane: {localAPIEndpoint: {bindPort: 1}}'),
      {
        'node-name': 'b',
        'control-plane': true,
        'discovery-file': '/x',
      },
    );
    expect(positions.has('JoinConfiguration.nodeRegistration.name')).toBe(false);
    expect(positions.get('JoinConfiguration.nodeRegistration.criSocket')).toEqual({ file: 'f.yaml', line: 3, column: 40 });
    expect(positions.get('JoinConfiguration.controlPlane.localAPIEndpoint.bindPort')).toEqual({ file: 'f.yaml', line: 4, column: 45 });
  });
});

describe('flags of reset', () => {
  it('are all merged', () => {
    const flags = {
      'cert-dir': '/x',
      'cri-socket': 'unix:///x',
      'cleanup-tmp-dir': true,
      'dry-run': true,
      force: true,
      'ignore-preflight-errors': 'Mem',
      'skip-phases': 'b',
    };
    const { reset, problems } = mergeResetFlags(
      structure(documentOf('reset', 'ignorePreflightErrors: [CRI]'), 'ResetConfiguration'),
      flags,
    );
    expect(linesOf({ problems })).toEqual([]);
    expect(reset).toEqual({
      certificatesDir: '/x',
      criSocket: 'unix:///x',
      cleanupTmpDir: true,
      dryRun: true,
      force: true,
      ignorePreflightErrors: ['CRI', 'Mem'],
      skipPhases: ['b'],
    });
  });

  it('are validated', () => {
    expect(linesOf(mergeResetFlags(emptyConfig(), { 'cert-dir': 'x' }))).toEqual([
      '--cert-dir: "x" is not an absolute path. Use a path that begins with a slash. [CONFIG_INVALID_PATH]',
    ]);
  });
});

describe('flags of upgrade', () => {
  it('accept a patches path relative to the working directory, unlike a file', () => {
    const file = structure(documentOf('upgrade', 'node: {patches: {directory: p}}'), 'UpgradeConfiguration');
    expect(errorCodes(mergeUpgradeFlags(file, 'node', {}))).toEqual(['CONFIG_INVALID_PATH']);
    expect(errorCodes(mergeUpgradeFlags(file, 'node', { patches: './p' }))).toEqual([]);
  });

  it.each<readonly [UpgradeCommand, Flags, unknown]>([
    [
      'apply',
      {
        version: 'v1.36.2',
        force: true,
        'etcd-upgrade': false,
        'certificate-renewal': 'false',
        patches: '/p',
        'allow-release-candidate-upgrades': true,
        'ignore-preflight-errors': 'Mem',
      },
      {
        kubernetesVersion: 'v1.36.2',
        forceUpgrade: true,
        etcdUpgrade: false,
        certificateRenewal: false,
        patches: { directory: '/p' },
        allowRCUpgrades: true,
        ignorePreflightErrors: ['Swap', 'Mem'],
      },
    ],
    [
      'node',
      { 'dry-run': true, 'skip-phases': 'preflight', force: true, version: 'v1.36.2' },
      { ignorePreflightErrors: ['Swap'], dryRun: true, skipPhases: ['preflight'] },
    ],
    [
      'plan',
      { 'print-config': true, 'allow-experimental-upgrades': true },
      { ignorePreflightErrors: ['Swap'], printConfig: true, allowExperimentalUpgrades: true },
    ],
    ['diff', { 'context-lines': '5', version: 'v1.36.2' }, { contextLines: 5, kubernetesVersion: 'v1.36.2' }],
  ])('%s', (command, flags, expected) => {
    const file = structure(
      documentOf('upgrade', ['apply', 'node', 'plan'].map((part) => `${part}: {ignorePreflightErrors: [Swap]}`).join('\n')),
      'UpgradeConfiguration',
    );
    const { upgrade, problems } = mergeUpgradeFlags(file, command, flags);
    expect(linesOf({ problems })).toEqual([]);
    expect(upgrade?.[command]).toEqual(expected);
  });

  it('are validated', () => {
    expect(linesOf(mergeUpgradeFlags(emptyConfig(), 'apply', { version: 'new' }))).toEqual([
      'argument version: "new" is not a valid Kubernetes version. Use a version such as v1.36.2, or a label such as stable-1.36. [CONFIG_INVALID_VERSION]',
    ]);
  });
});
