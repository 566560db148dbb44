import fc from 'fast-check';
import { maybe, partial } from './arbitraries.ts';

const flag = fc.constantFrom(
  'v',
  'leader-elect',
  'bind-address',
  'secure-port',
  'feature-gates',
  'authorization-mode',
  'authorization-config',
  'authentication-config',
  'anonymous-auth',
  'enable-admission-plugins',
  'service-account-issuer',
  'service-cluster-ip-range',
  'cluster-cidr',
  'allocate-node-cidrs',
  'root-ca-file',
  'kubeconfig',
  'etcd-servers',
  'advertise-client-urls',
  'listen-client-urls',
  'listen-metrics-urls',
  'initial-cluster',
  'data-dir',
  'quota-backend-bytes',
  'zz-last',
  'a-first',
);
const flagValue = fc.constantFrom(
  'true',
  'false',
  '0.0.0.0',
  '::',
  '::1',
  '10.1.2.3',
  '10443',
  'A=true,B=false',
  'Node,RBAC,Webhook',
  'RBAC',
  'AlwaysAllow,Node',
  'webhook,ABAC',
  'https://10.0.0.9:2379',
  'https://[fd00::9]:4001,http://127.0.0.1:2381',
  'http://0.0.0.0',
  'http://localhost:9999',
  'x="q r"',
  "it's",
  '#hash: colon',
  '*',
  'ünïcode',
  '12e3',
  'a=b=c',
  ' blank ',
  '',
);
const extraArgs = fc.array(fc.record({ name: flag, value: flagValue }), { maxLength: 4 });
const extraVolumes = fc.array(
  partial({
    name: fc.constantFrom('audit', 'ca-certs', 'k8s-certs', 'kubeconfig', 'etc-ca-certificates', 'flexvolume-dir', 'etcd-data', 'zz'),
    hostPath: fc.constantFrom('/var/log/kubernetes', '/srv//x', '/etc/audit.yaml', '/etc/kubernetes/pki'),
    mountPath: fc.constantFrom('/var/log/kubernetes', '/etc/ssl/certs', '/x'),
    readOnly: maybe(fc.boolean()),
    pathType: maybe(fc.constantFrom('DirectoryOrCreate', 'Directory', 'File', 'FileOrCreate', 'Socket', 'CharDevice', 'BlockDevice', '')),
  }),
  { maxLength: 3 },
);
const extraEnvs = fc.array(
  fc.oneof(
    partial({ name: fc.constantFrom('GOGC', 'A', 'http_proxy', 'a'), value: maybe(fc.constantFrom('80', '', 'x y', 'true', '$(A)')) }),
    fc.constant({ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }),
    fc.constant({ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } }),
    fc.constant({ name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1024Ki', containerName: 'c' } } }),
    fc.constant({ name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } }),
    fc.constant({ name: 'MAP', valueFrom: { configMapKeyRef: { name: 'm', key: 'k', optional: false } } }),
    fc.constant({ name: 'FILE', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }),
  ),
  { maxLength: 3 },
);
const componentFields = { extraArgs: maybe(extraArgs), extraVolumes: maybe(extraVolumes), extraEnvs: maybe(extraEnvs) };
const component = partial(componentFields);
const sans = fc.constantFrom(
  ['api.example.org', '203.0.113.9'],
  ['*.lab.example', 'fd00::1'],
  ['kubernetes', '10.96.0.1', 'kubernetes', 'localhost', '127.0.0.1'],
  ['FD00:0:0::0001', '::ffff:10.0.0.1', '0::1'],
  ['xn--bcher-kva.example', 'a'.repeat(63), 'a.b.c.d.e'],
  [],
);
const apiServer = partial({ ...componentFields, certSANs: maybe(fc.oneof(sans, fc.constant(['API.example.org', '*.LAB.example']))) });
const image = {
  imageRepository: maybe(fc.constantFrom('registry.example.org/x', 'registry.k8s.io', 'localhost:5000/a/b')),
  imageTag: maybe(fc.constantFrom('v9.9.9', '1.2', '3.5.21-0', '3.6.0-0', 'v3.4.1', 'latest', '4')),
};

const localEtcd = partial({
  dataDir: maybe(fc.constantFrom('/data/etcd', '/var/lib/etcd/', '/var/lib/../lib/etcd')),
  extraArgs: maybe(extraArgs),
  extraEnvs: maybe(extraEnvs),
  serverCertSANs: maybe(sans),
  peerCertSANs: maybe(sans),
  ...image,
});
const certificate = fc.constantFrom(
  '/etc/etcd/ca.crt',
  '/etc/etcd/pki/c.crt',
  '/etc/etcd2/x.key',
  '/srv/x.crt',
  '/etc/kubernetes/pki/e.crt',
  '/etc/kubernetes/pki/etcd/e.crt',
  '/etc/ssl/certs/y.crt',
  '/y.crt',
);
const externalEtcd = fc.oneof(
  fc.record({
    endpoints: fc.constantFrom(['https://10.0.0.1:2379'], ['https://10.0.0.1:2379', 'https://[fd00::2]:2379']),
    caFile: certificate,
    certFile: certificate,
    keyFile: certificate,
  }),
  fc.record({ endpoints: fc.constant(['http://10.0.0.1:2379']) }),
  fc.record({ endpoints: fc.constant(['https://etcd.example.org']), caFile: certificate }),
  fc.record({ endpoints: fc.constant(['https://etcd.example.org']), httpEndpoints: fc.constant(['http://10.0.0.3:2381', 'https://x']) }),
);

const networking = fc.oneof(
  partial({
    serviceSubnet: maybe(fc.constantFrom('10.200.0.0/16', '192.168.100.0/24', '10.96.0.5/12', '10.0.0.0/28', '10.96.0.0/12')),
    podSubnet: maybe(fc.constantFrom('10.244.0.0/16', '172.16.0.0/12', '10.244.0.0/24', '10.0.0.0/8')),
    dnsDomain: maybe(fc.constantFrom('lab.local', 'k8s', 'a.b-c.d1', '1.2', '')),
  }),
  partial({
    serviceSubnet: maybe(fc.constantFrom('10.96.0.0/16,fd03::/112', 'fd03::/112,10.96.0.0/16', 'fd03::/112', 'FD03:0::/112')),
    podSubnet: maybe(fc.constantFrom('10.244.0.0/16,fd04::/48', 'fd04::/48,10.244.0.0/16', 'fd04::/48', 'fd04::/64')),
  }),
);

/** ClusterConfiguration in v1beta4. Few RSA keys: they are slow to generate. */
export const clusterConfiguration = partial({
  kubernetesVersion: fc.constantFrom(
    'v1.36.2',
    '1.36.0',
    'v1.35.4',
    'v1.36.2-rc.1',
    'v1.36.1+build.5',
    'v1.36.99',
    'ci/v1.36.2-10+abcdef',
    'v1.36.2',
  ),
  clusterName: maybe(fc.constantFrom('lab', 'kubernetes', 'my cluster: 1', 'a@b', '12', '')),
  controlPlaneEndpoint: maybe(
    fc.constantFrom(
      'api.lab.example:6443',
      'api.lab.example',
      '[fd00::1]:7443',
      '10.0.0.5',
      'fd00::1',
      '10.0.0.5:443',
      'api.lab.example:',
      '',
    ),
  ),
  certificatesDir: maybe(
    fc.constantFrom('/srv/pki', '/etc/kubernetes/pki/', '/etc/kubernetes/pki', '/etc/ssl/certs/k8s', '/etc/kubernetes/../kubernetes/pki'),
  ),
  imageRepository: maybe(fc.constantFrom('registry.example.org/k8s', 'registry.k8s.io', 'localhost:5000', 'k8s.gcr.io')),
  networking: maybe(networking, 8),
  apiServer: maybe(apiServer, 8),
  controllerManager: maybe(component, 8),
  scheduler: maybe(component, 8),
  etcd: maybe(
    fc.oneof({ weight: 7, arbitrary: fc.record({ local: localEtcd }) }, { weight: 1, arbitrary: fc.record({ external: externalEtcd }) }),
    8,
  ),
  dns: maybe(partial({ ...image, disabled: maybe(fc.boolean()) })),
  proxy: maybe(fc.record({ disabled: fc.boolean() })),
  featureGates: maybe(
    fc.constantFrom(
      { RootlessControlPlane: true },
      { RootlessControlPlane: false },
      { PublicKeysECDSA: true },
      { NodeLocalCRISocket: true },
      { NodeLocalCRISocket: false },
      {},
    ),
    1,
  ),
  encryptionAlgorithm: fc.oneof(
    { weight: 30, arbitrary: fc.constantFrom('ECDSA-P256', 'ECDSA-P384') },
    { weight: 1, arbitrary: fc.constantFrom('RSA-2048', 'RSA-3072', 'RSA-4096') },
  ),
  certificateValidityPeriod: maybe(fc.constantFrom('100h', '8760h', '17520h30m', '1m', '0s')),
  caCertificateValidityPeriod: maybe(fc.constantFrom('43800h', '200000h', '50h', '0s')),
});
