import fc, { type Arbitrary } from 'fast-check';

/** What is given to `kubeadm init`: documents, and the files of a directory of patches. */
export interface InitInput {
  readonly documents: readonly object[];
  readonly patches: Readonly<Record<string, string>>;
}

const maybe = <T>(arbitrary: Arbitrary<T>, weight = 2): Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined, freq: weight });
/** A record without the members that are undefined. */
const partial = (members: { readonly [name: string]: Arbitrary<unknown> }): Arbitrary<Readonly<Record<string, unknown>>> =>
  fc.record(members).map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)));

const word = fc.constantFrom('a', 'b2', 'audit', 'x-y', 'certs', 'zz');
const flag = fc.constantFrom(
  'v',
  'leader-elect',
  'bind-address',
  'feature-gates',
  'authorization-mode',
  'authorization-config',
  'enable-admission-plugins',
  'service-cluster-ip-range',
  'cluster-cidr',
  'advertise-client-urls',
  'listen-metrics-urls',
  'initial-cluster',
  'quota-backend-bytes',
  'zz-last',
  'a-first',
);
const flagValue = fc.constantFrom(
  'true',
  '0.0.0.0',
  '::',
  '10.1.2.3',
  'A=true,B=false',
  'Node,RBAC,Webhook',
  'RBAC',
  'https://10.0.0.9:2379',
  'https://[fd00::9]:4001,http://127.0.0.1:2381',
  'http://0.0.0.0',
  'x="q r"',
  "it's",
  '#hash: colon',
  '*',
  'ünïcode',
  '12e3',
  '',
);
const extraArgs = fc.array(fc.record({ name: flag, value: flagValue }), { maxLength: 4 });
const extraVolumes = fc.array(
  partial({
    name: fc.constantFrom('audit', 'ca-certs', 'k8s-certs', 'kubeconfig', 'etc-ca-certificates', 'zz'),
    hostPath: fc.constantFrom('/var/log/kubernetes', '/srv//x', '/etc/audit.yaml'),
    mountPath: fc.constantFrom('/var/log/kubernetes', '/etc/ssl/certs', '/x'),
    readOnly: maybe(fc.boolean()),
    pathType: maybe(fc.constantFrom('DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket')),
  }),
  { maxLength: 3 },
);
const extraEnvs = fc.array(
  fc.oneof(
    partial({ name: fc.constantFrom('GOGC', 'A', 'http_proxy', 'a'), value: maybe(fc.constantFrom('80', '', 'x y', 'true')) }),
    fc.constant({ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }),
    fc.constant({ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } }),
    fc.constant({ name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } }),
    fc.constant({ name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } }),
  ),
  { maxLength: 3 },
);
const componentFields = { extraArgs: maybe(extraArgs), extraVolumes: maybe(extraVolumes), extraEnvs: maybe(extraEnvs) };
const component = partial(componentFields);
const apiServer = partial({
  ...componentFields,
  certSANs: maybe(fc.constantFrom(['API.example.org', '203.0.113.9'], ['*.lab.example', 'fd00::1'])),
});
const image = {
  imageRepository: maybe(fc.constantFrom('registry.example.org/x', 'registry.k8s.io')),
  imageTag: maybe(fc.constantFrom('v9.9.9', '1.2')),
};

const localEtcd = partial({
  dataDir: maybe(fc.constantFrom('/data/etcd', '/var/lib/etcd/')),
  extraArgs: maybe(extraArgs),
  extraEnvs: maybe(extraEnvs),
  serverCertSANs: maybe(fc.constant(['etcd.example.org'])),
  ...image,
});
const certificate = fc.constantFrom(
  '/etc/etcd/ca.crt',
  '/etc/etcd/pki/c.crt',
  '/etc/etcd2/x.key',
  '/srv/x.crt',
  '/etc/kubernetes/pki/e.crt',
  '/etc/ssl/certs/y.crt',
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
);

const networking = fc.oneof(
  partial({
    serviceSubnet: maybe(fc.constantFrom('10.200.0.0/16', '192.168.100.0/24', '10.96.0.5/12')),
    podSubnet: maybe(fc.constantFrom('10.244.0.0/16', '172.16.0.0/12')),
    dnsDomain: maybe(fc.constantFrom('lab.local', 'k8s')),
  }),
  fc.constant({ serviceSubnet: '10.96.0.0/16,fd03::/112', podSubnet: '10.244.0.0/16,fd04::/48' }),
  fc.constant({ serviceSubnet: 'fd03::/112', podSubnet: 'fd04::/48' }),
);

const clusterConfiguration = partial({
  kubernetesVersion: fc.constantFrom('v1.36.2', '1.36.0', 'v1.35.4', 'v1.36.2-rc.1', 'v1.36.1+build.5'),
  clusterName: maybe(fc.constantFrom('lab', 'kubernetes')),
  controlPlaneEndpoint: maybe(fc.constantFrom('api.lab.example:6443', 'api.lab.example', '[fd00::1]:7443', '10.0.0.5')),
  certificatesDir: maybe(fc.constantFrom('/srv/pki', '/etc/kubernetes/pki/', '/etc/kubernetes/pki')),
  imageRepository: maybe(fc.constantFrom('registry.example.org/k8s', 'registry.k8s.io', 'localhost:5000')),
  networking: maybe(networking, 3),
  apiServer: maybe(apiServer, 3),
  controllerManager: maybe(component, 3),
  scheduler: maybe(component, 3),
  etcd: maybe(fc.oneof(fc.record({ local: localEtcd }), fc.record({ external: externalEtcd })), 3),
  dns: maybe(partial({ ...image, disabled: maybe(fc.boolean()) })),
  proxy: maybe(fc.record({ disabled: fc.boolean() })),
  featureGates: maybe(fc.constantFrom({ RootlessControlPlane: true }, { RootlessControlPlane: false }), 1),
  encryptionAlgorithm: fc.constantFrom('ECDSA-P256', 'ECDSA-P384'),
  certificateValidityPeriod: maybe(fc.constantFrom('100h', '8760h', '17520h30m')),
  caCertificateValidityPeriod: maybe(fc.constantFrom('43800h', '200000h')),
});

const kubelet = partial({
  maxPods: maybe(fc.constantFrom(50, 0)),
  clusterDNS: maybe(fc.constantFrom(['10.0.0.53'], [])),
  clusterDomain: maybe(fc.constantFrom('own.local', '')),
  evictionHard: maybe(fc.constantFrom({ 'memory.available': '100Mi', 'nodefs.available': '10%' }, {})),
  featureGates: maybe(fc.constantFrom({ NodeSwap: false }, {})),
  syncFrequency: maybe(fc.constantFrom('90s', '0s')),
  authentication: maybe(fc.constantFrom({ anonymous: { enabled: true } }, { webhook: { cacheTTL: '5m' } }, {})),
  systemReserved: maybe(fc.constantFrom({ cpu: '0.5', memory: '1024Mi' }, {})),
  cgroupDriver: maybe(fc.constantFrom('cgroupfs', 'systemd')),
  registerWithTaints: maybe(fc.constantFrom([], [{ key: 'a', effect: 'NoSchedule' }])),
  logging: maybe(fc.constantFrom({ format: 'json', verbosity: 3 }, { vmodule: [{ filePattern: 'a', verbosity: 2 }] })),
});

const duration = fc.constantFrom('0s', '5s', '1h30m', '90m', '1.5s', '1ms');
const kubeProxy = partial({
  mode: maybe(fc.constantFrom('ipvs', 'nftables', '')),
  bindAddress: maybe(fc.constantFrom('10.0.0.1', '0.0.0.0', '')),
  clusterCIDR: maybe(fc.constantFrom('10.99.0.0/16', '')),
  featureGates: maybe(fc.constantFrom({ B: true, A: false }, {})),
  clientConnection: maybe(
    partial({ kubeconfig: maybe(fc.constant('/x')), qps: maybe(fc.constantFrom(5, 2.5, 0)), burst: maybe(fc.constant(10)) }),
  ),
  conntrack: maybe(
    partial({
      maxPerCore: maybe(fc.constantFrom(0, 32768)),
      min: maybe(fc.constant(null)),
      tcpEstablishedTimeout: maybe(duration),
      udpTimeout: maybe(duration),
    }),
  ),
  iptables: maybe(partial({ masqueradeBit: maybe(fc.constant(14)), localhostNodePorts: maybe(fc.boolean()), syncPeriod: maybe(duration) })),
  ipvs: maybe(partial({ excludeCIDRs: maybe(fc.constantFrom([], ['10.0.0.0/8'])), strictARP: maybe(fc.boolean()) })),
  logging: maybe(
    partial({
      format: maybe(fc.constant('json')),
      flushFrequency: maybe(fc.constantFrom('5s', 5_000_000_000)),
      verbosity: maybe(fc.constant(3)),
      options: maybe(fc.constant({ json: { infoBufferSize: '10Ki', splitStream: true } })),
    }),
  ),
  nodePortAddresses: maybe(fc.constantFrom([], ['10.0.0.0/8'], null)),
  oomScoreAdj: maybe(fc.constantFrom(-999, 0)),
  windowsRunAsService: maybe(fc.boolean()),
  metricsBindAddress: maybe(fc.constantFrom('0.0.0.0:10249', 'a: b')),
});

const tokens = fc.constantFrom(
  [{ token: 'abcdef.0123456789abcdef', ttl: '0s' }],
  [{ token: 'abcdef.0123456789abcdef', ttl: '0s', description: 'for tests', usages: ['signing', 'authentication'] }],
  [
    { token: 'abcdef.0123456789abcdef', ttl: '0s', groups: ['system:bootstrappers:kubeadm:default-node-token', 'system:bootstrappers:x'] },
    { token: 'fedcba.0123456789abcdef', ttl: '0s', usages: ['authentication'] },
  ],
);
const taints = fc.constantFrom(
  [],
  [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
  [
    { key: 'a', value: 'b', effect: 'NoExecute' },
    { key: 'c', effect: 'PreferNoSchedule' },
  ],
);
const kubeletExtraArgs = fc.constantFrom(
  [{ name: 'node-ip', value: '192.168.56.10' }],
  [
    { name: 'v', value: '4' },
    { name: 'node-labels', value: 'a=b,c=d' },
    { name: 'v', value: '5' },
  ],
);

const initConfiguration = partial({
  bootstrapTokens: tokens,
  localAPIEndpoint: partial({
    advertiseAddress: fc.constantFrom('192.168.56.10', '192.168.56.10', 'fd00:56::10'),
    bindPort: maybe(fc.constantFrom(7443, 6443)),
  }),
  nodeRegistration: partial({
    name: fc.constantFrom('cp-1', 'cp-2.example.org'),
    criSocket: fc.constantFrom('unix:///run/x.sock', 'unix:///var/run/crio/crio.sock'),
    taints: maybe(taints),
    kubeletExtraArgs: maybe(kubeletExtraArgs),
    imagePullPolicy: maybe(fc.constantFrom('Always', 'Never')),
  }),
  timeouts: maybe(partial({ controlPlaneComponentHealthCheck: fc.constantFrom('4m', '41s', '10m0.5s', '0s') })),
});

const podPatches = {
  strategic: fc.constantFrom(
    'metadata: {annotations: {a: "1"}, labels: {tier: null}}',
    'spec: {dnsPolicy: ClusterFirst, hostNetwork: false, terminationGracePeriodSeconds: 0}',
    'spec: {containers: [{name: side, image: x, env: [{name: A, value: ""}, {name: B, value: b}], resources: {limits: {cpu: 0.5, memory: 1024Mi}}}]}',
    'spec: {volumes: [{name: extra, emptyDir: {sizeLimit: 1000M}}, {$patch: delete, name: ca-certs}], tolerations: [{operator: Exists, tolerationSeconds: 5}]}',
    'spec: {nonsense: {a: 1}, securityContext: {runAsUser: 0, runAsNonRoot: false, supplementalGroups: []}}',
    'spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}}',
    'null',
  ),
  merge: fc.constantFrom(
    'metadata: {annotations: null, labels: {x: z}}',
    'spec: {priority: 5, nodeSelector: {a: b}, containers: []}',
    'status: {}',
    'spec: {enableServiceLinks: false, restartPolicy: "", hostAliases: [{ip: 10.0.0.1}]}',
  ),
  json: fc.constantFrom(
    '[{op: add, path: /spec/containers/0/command/-, value: --x=y}]',
    '- {op: replace, path: /spec/containers/0/livenessProbe/httpGet/port, value: 8080}\n- {op: remove, path: /spec/priority}',
    '[{op: add, path: /spec/containers/0/ports/-, value: {containerPort: 99, protocol: UDP}}]',
    '[{op: test, path: /kind, value: Pod}, {op: add, path: /spec/overhead, value: {cpu: 1, memory: "0.5Gi"}}]',
    '[{op: add, path: /spec/initContainers, value: [{name: i, restartPolicy: Always, startupProbe: {exec: {command: [a]}}}]}]',
  ),
};
const deploymentPatches = {
  strategic: fc.constantFrom(
    'spec: {replicas: 3, template: {spec: {tolerations: [{operator: Exists}], containers: [{name: coredns, resources: {limits: {memory: 1Gi}}}]}}}',
    'spec: {replicas: 0, paused: false, strategy: {$retainKeys: [type], type: Recreate}}',
  ),
  merge: fc.constantFrom('spec: {strategy: {rollingUpdate: {maxSurge: 25%}}, minReadySeconds: 5}', 'metadata: {labels: {x: z}}'),
  json: fc.constantFrom(
    '[{op: add, path: /spec/template/spec/topologySpreadConstraints, value: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}]',
  ),
};
const patchFile = fc.oneof(
  ...(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'corednsdeployment'] as const).flatMap((target) =>
    (['strategic', 'merge', 'json'] as const).map((type) =>
      fc.record({
        name: word.map((suffix) => `${target}${suffix}+${type}.yaml`),
        text: (target === 'corednsdeployment' ? deploymentPatches : podPatches)[type] as Arbitrary<string>,
      }),
    ),
  ),
);
const patches = fc.oneof(
  { weight: 2, arbitrary: fc.constant<{ name: string; text: string }[]>([]) },
  { weight: 3, arbitrary: fc.array(patchFile, { minLength: 1, maxLength: 4 }) },
);

/** The same in the form of v1beta3, without what that did not have. */
function asV1beta3(document: Readonly<Record<string, unknown>>): object {
  const {
    timeouts: _,
    proxy: _1,
    encryptionAlgorithm: _2,
    certificateValidityPeriod: _3,
    caCertificateValidityPeriod: _4,
    ...rest
  } = document;
  // What it has in place of encryptionAlgorithm; RSA keys take long.
  const gates = rest.kind === 'ClusterConfiguration' ? { featureGates: { PublicKeysECDSA: true } } : {};
  return { ...(older(rest) as object), ...gates, apiVersion: 'kubeadm.k8s.io/v1beta3' };
}

function older(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(older);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    if (name === 'extraEnvs' || name === 'disabled') return [];
    if (!/^(?:extraArgs|kubeletExtraArgs)$/.test(name)) return [[name, older(member)]];
    return [[name, Object.fromEntries((member as { name: string; value: string }[]).map((each) => [each.name, each.value]))]];
  });
  return Object.fromEntries(members);
}

/** Configurations that kubeadm takes, of all that the control plane is made from. */
export const initInputs: Arbitrary<InitInput> = fc
  .record({
    init: initConfiguration,
    cluster: clusterConfiguration,
    proxy: maybe(kubeProxy),
    kubelet: maybe(kubelet),
    files: patches,
    isOld: fc.constantFrom(false, false, false, true),
  })
  .map(({ init, cluster, proxy, kubelet: kubeletConfig, files, isOld }) => {
    const own = [
      {
        apiVersion: 'kubeadm.k8s.io/v1beta4',
        kind: 'InitConfiguration',
        ...init,
        ...(files.length > 0 && { patches: { directory: '@PATCHES@' } }),
      },
      { apiVersion: 'kubeadm.k8s.io/v1beta4', kind: 'ClusterConfiguration', ...cluster },
    ];
    return {
      documents: [
        ...own.map((document) => (isOld ? asV1beta3(document) : document)),
        ...(proxy ? [{ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', ...proxy }] : []),
        ...(kubeletConfig ? [{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...kubeletConfig }] : []),
      ],
      patches: Object.fromEntries(files.map(({ name, text }) => [name, text])),
    };
  });
