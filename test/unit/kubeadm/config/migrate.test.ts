import { describe, expect, it } from 'vitest';
import { applyClusterDefaults, applyInitDefaults, applyJoinDefaults } from '../../../../src/kubeadm/config/defaults.ts';
import {
  encodeClusterConfiguration,
  encodeInitConfiguration,
  encodeJoinConfiguration,
  renderConfig,
} from '../../../../src/kubeadm/config/encode.ts';
import { migrateConfig } from '../../../../src/kubeadm/config/migrate.ts';
import { DISCOVERY, documentOf, linesOf, load } from './support.ts';

const JOIN = documentOf('join3', DISCOVERY);
const KUBELET = '# capacity\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5 # five\n';
const PROXY = 'kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nmode:   ipvs\n';

function migrate(text: string): string {
  const { output, problems } = migrateConfig(text, 'f.yaml', { asKubeadm: false });
  expect(linesOf({ problems })).toEqual([]);
  return output?.reveal() ?? '';
}

describe('config migrate', () => {
  it.each([
    ['init', documentOf('init3'), ['InitConfiguration']],
    ['cluster', documentOf('cluster3', 'kubernetesVersion: v1.36.0'), ['ClusterConfiguration']],
    ['join', JOIN, ['JoinConfiguration']],
    ['init and cluster', `${documentOf('init3')}---\n${documentOf('cluster3')}`, ['InitConfiguration', 'ClusterConfiguration']],
    ['init and join', `${documentOf('init3')}---\n${JOIN}`, ['InitConfiguration', 'JoinConfiguration']],
    ['cluster and join', `${documentOf('cluster3')}---\n${JOIN}`, ['ClusterConfiguration', 'JoinConfiguration']],
    [
      'all, and components',
      `${documentOf('init3')}---\n${documentOf('cluster3')}---\n${JOIN}---\n${PROXY}---\n${KUBELET}`,
      ['InitConfiguration', 'ClusterConfiguration', 'JoinConfiguration', 'KubeProxyConfiguration', 'KubeletConfiguration'],
    ],
  ])('%s', (_, text, kinds) => {
    const migrated = migrate(text);
    expect([...migrated.matchAll(/^kind: (\w+)/gm)].map(([, kind]) => kind)).toEqual(kinds);
    expect(migrated).not.toContain('kubeadm.k8s.io/v1beta3');
    expect(linesOf(load(migrated))).toEqual([]);
  });

  it.each([
    ['nothing', '', 'CONFIG_EMPTY'],
    ['no kind', 'apiVersion: kubeadm.k8s.io/v1beta3\n', 'CONFIG_MISSING_HEADER'],
    ['an unknown kind', 'apiVersion: kubeadm.k8s.io/v1beta3\nkind: Foo\n', 'CONFIG_UNKNOWN_KIND'],
    ['an unknown field', documentOf('init3', 'foo: bar'), 'CONFIG_UNKNOWN_FIELD'],
    ['a version too old', 'apiVersion: kubeadm.k8s.io/v1beta2\nkind: InitConfiguration\n', 'CONFIG_OLD_VERSION'],
    ['a value of another type', documentOf('cluster3', 'certificatesDir: [x]'), 'CONFIG_WRONG_TYPE'],
  ])('rejects %s', (_, text, code) => {
    const { output, problems } = migrateConfig(text, 'f.yaml', { asKubeadm: false });
    expect(output).toBeNull();
    expect(problems.map((problem) => problem.code)).toEqual([code]);
  });

  it('keeps component configurations unchanged, including comments', () => {
    const text = `${documentOf('init3')}---\n${KUBELET}---\n${PROXY}`;
    expect(migrate(text)).toBe(`apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n---\n${KUBELET}---\n${PROXY}`);
  });

  it('keeps documents that are already v1beta4', () => {
    const text = `# mine\n${documentOf('reset', 'force: yes # really')}`;
    expect(migrate(text)).toBe(text);
    expect(migrate(`---\n${text}...\n`)).toBe(text);
  });

  it('adds no default and generates no token', () => {
    expect(migrate(documentOf('init3', 'nodeRegistration: {taints: []}'))).toBe(
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration:\n  taints: []\n',
    );
  });

  it('moves the timeout of the control plane to InitConfiguration and JoinConfiguration', () => {
    const timeout = documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m}');
    const moved = 'timeouts:\n  controlPlaneComponentHealthCheck: 2m0s\n';
    expect(migrate(timeout)).toBe(
      `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n${moved}---\napiServer: {}\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n`,
    );
    expect(
      migrate(`${timeout}---\n${documentOf('init', 'skipPhases: [a]')}---\n${documentOf('join', DISCOVERY)}`).split(moved),
    ).toHaveLength(3);
  });

  it('writes tokens into the file and prints none', () => {
    const { output } = migrateConfig(`${JOIN}---\n${documentOf('init', 'bootstrapTokens: [{token: fedcba.fedcba9876543210}]')}`, 'f.yaml', {
      asKubeadm: false,
    });
    expect(output?.reveal()).toContain('token: abcdef.0123456789abcdef');
    expect(output?.reveal()).toContain('token: fedcba.fedcba9876543210');
    expect(String(output)).not.toMatch(/0123456789abcdef|9876543210/);
  });

  it('is idempotent', () => {
    const once = migrate(
      `${documentOf('init3', 'nodeRegistration: {kubeletExtraArgs: {b: "1", a: x}}')}---\n${documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m}')}---\n${KUBELET}`,
    );
    expect(migrate(once)).toBe(once);
  });
});

describe('the changes between v1beta3 and v1beta4', () => {
  const OLD = `apiVersion: kubeadm.k8s.io/v1beta3
kind: InitConfiguration
bootstrapTokens:
- token: n32eo4.cci2j99rnn8fmv42
  ttl: 24h
localAPIEndpoint: {advertiseAddress: 10.0.0.4, bindPort: 6443}
nodeRegistration:
  criSocket: unix:///some-socket-path
  kubeletExtraArgs: {foo: bar}
  name: node
---
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
apiServer: {timeoutForControlPlane: 2m32s, extraArgs: {foo: bar}}
controllerManager: {extraArgs: {foo: bar}}
etcd: {local: {extraArgs: {foo: bar}}}
kubernetesVersion: v1.36.0
scheduler: {extraArgs: {foo: bar}}
---
apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
nodeRegistration:
  criSocket: unix:///some-socket-path
  kubeletExtraArgs: {foo: baz}
  name: worker
  taints: null
discovery:
  bootstrapToken: {apiServerEndpoint: "some-address:6443", token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}
  tlsBootstrapToken: abcdef.0123456789abcdef
  timeout: 2m10s
`;
  const ARGS = (value: string) => `  extraArgs:\n  - name: foo\n    value: ${value}\n`;
  const TIMEOUTS = (discovery: string) => `timeouts:
  controlPlaneComponentHealthCheck: 2m32s
  discovery: ${discovery}
  etcdAPICall: 2m0s
  kubeletHealthCheck: 4m0s
  kubernetesAPICall: 1m0s
  tlsBootstrap: 5m0s
  upgradeManifests: 5m0s
`;
  /** Result of kubeadm 1.36, including defaults. */
  const EXPECTED = `apiVersion: kubeadm.k8s.io/v1beta4
bootstrapTokens:
- groups:
  - system:bootstrappers:kubeadm:default-node-token
  token: n32eo4.cci2j99rnn8fmv42
  ttl: 24h0m0s
  usages:
  - signing
  - authentication
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 10.0.0.4
  bindPort: 6443
nodeRegistration:
  criSocket: unix:///some-socket-path
  imagePullPolicy: IfNotPresent
  imagePullSerial: true
  kubeletExtraArgs:
  - name: foo
    value: bar
  name: node
  taints:
  - effect: NoSchedule
    key: node-role.kubernetes.io/control-plane
${TIMEOUTS('5m0s')}---
apiServer:
${ARGS('bar')}apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controllerManager:
${ARGS('bar')}dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
    - name: foo
      value: bar
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.0
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler:
${ARGS('bar')}---
apiVersion: kubeadm.k8s.io/v1beta4
caCertPath: /etc/kubernetes/pki/ca.crt
discovery:
  bootstrapToken:
    apiServerEndpoint: some-address:6443
    token: abcdef.0123456789abcdef
    unsafeSkipCAVerification: true
  tlsBootstrapToken: abcdef.0123456789abcdef
kind: JoinConfiguration
nodeRegistration:
  criSocket: unix:///some-socket-path
  imagePullPolicy: IfNotPresent
  imagePullSerial: true
  kubeletExtraArgs:
  - name: foo
    value: baz
  name: worker
  taints: null
${TIMEOUTS('2m10s')}`;

  it('keep the meaning of the file after migration', () => {
    const { init = {}, cluster = {}, join = {} } = load(migrate(OLD));
    const host = { hostname: 'x', criSockets: [], defaultRoute: {} };
    const documents = [
      encodeInitConfiguration(applyInitDefaults(init, host, [])),
      encodeClusterConfiguration(applyClusterDefaults(cluster)),
      encodeJoinConfiguration(applyJoinDefaults(join, host)),
    ];
    expect(renderConfig(documents).reveal()).toBe(EXPECTED);
  });
});
