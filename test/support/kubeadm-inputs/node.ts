import fc from 'fast-check';
import { maybe, partial } from './arbitraries.ts';

const tokens = fc.constantFrom(
  [{ token: 'abcdef.0123456789abcdef', ttl: '0s' }],
  [{ token: 'abcdef.0123456789abcdef', ttl: '0s', description: 'for tests', usages: ['signing', 'authentication'] }],
  [{ token: 'abcdef.0123456789abcdef', ttl: '1h30m', usages: ['authentication'] }],
  [{ token: 'abcdef.0123456789abcdef', usages: ['authentication', 'signing'], groups: [] }],
  [
    { token: 'abcdef.0123456789abcdef', ttl: '0s', groups: ['system:bootstrappers:kubeadm:default-node-token', 'system:bootstrappers:x'] },
    { token: 'fedcba.0123456789abcdef', ttl: '0s', usages: ['authentication'] },
  ],
);
const taints = fc.constantFrom(
  [],
  null,
  [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
  [
    { key: 'a', value: 'b', effect: 'NoExecute' },
    { key: 'c', effect: 'PreferNoSchedule' },
  ],
  [{ key: 'example.org/x', value: '', effect: 'NoSchedule' }],
);
const kubeletExtraArgs = fc.constantFrom(
  [],
  [{ name: 'node-ip', value: '192.168.56.10' }],
  [{ name: 'node-ip', value: '192.168.56.10,fd00:56::10' }],
  [
    { name: 'v', value: '4' },
    { name: 'node-labels', value: 'a=b,c=d' },
    { name: 'v', value: '5' },
  ],
  [{ name: 'node-labels', value: 'x="q r"' }],
  [{ name: 'register-with-taints', value: '' }],
  [{ name: 'cloud-provider', value: 'external' }],
  [{ name: 'container-runtime-endpoint', value: 'unix:///run/other.sock' }],
  [{ name: 'cert-dir', value: '/srv/kubelet-pki' }],
);

/** A node name that differs from the local host's name. */
export const nodeRegistration = partial({
  name: fc.constantFrom('cp-1', 'cp-2.example.org', 'CP-3', '1.2.3'),
  criSocket: fc.constantFrom('unix:///run/x.sock', 'unix:///var/run/crio/crio.sock', '/run/y.sock', 'unix:/run/z.sock'),
  taints: maybe(taints),
  kubeletExtraArgs: maybe(kubeletExtraArgs),
  imagePullPolicy: maybe(fc.constantFrom('Always', 'Never', 'IfNotPresent')),
  imagePullSerial: maybe(fc.boolean()),
  ignorePreflightErrors: maybe(fc.constantFrom(['Swap', 'NumCPU'], ['all'], [])),
});

export const localAPIEndpoint = partial({
  advertiseAddress: fc.constantFrom('192.168.56.10', '192.168.56.10', 'fd00:56::10', 'FD00:56:0::0010', '8.8.8.8'),
  bindPort: maybe(fc.constantFrom(7443, 6443, 443, 0)),
});

export const timeouts = maybe(
  partial({
    controlPlaneComponentHealthCheck: fc.constantFrom('4m', '41s', '10m0.5s', '0s', '1ms', '30s', '31s'),
    kubeletHealthCheck: maybe(fc.constant('9m')),
    kubernetesAPICall: maybe(fc.constant('2m')),
    etcdAPICall: maybe(fc.constant('3m')),
    tlsBootstrap: maybe(fc.constant('7m')),
    discovery: maybe(fc.constant('8m')),
    upgradeManifests: maybe(fc.constant('8m')),
  }),
);

/** InitConfiguration in v1beta4, with a node name that differs from the local host's name. */
export const initConfiguration = partial({
  bootstrapTokens: tokens,
  localAPIEndpoint,
  nodeRegistration,
  skipPhases: maybe(
    fc.constantFrom(
      ['preflight', 'addon/kube-proxy'],
      ['preflight', 'addon/coredns', 'show-join-command'],
      ['preflight', 'addon'],
      ['preflight', 'mark-control-plane', 'bootstrap-token', 'show-join-command'],
      ['preflight', 'upload-config/kubelet'],
      ['preflight', 'upload-config'],
    ),
    1,
  ),
  certificateKey: maybe(fc.constant('0123456789abcdef'.repeat(4)), 1),
  timeouts,
});
