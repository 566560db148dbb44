import fc from 'fast-check';

const of = (kind: string, path: string, ...values: readonly unknown[]) => values.map((value) => ({ kind, path: path.split('.'), value }));
const TOKEN = 'abcdef.0123456789abcdef';

/** Values that kubeadm rejects, each with its field. */
const FLAWS = [
  ...of('ClusterConfiguration', 'apiServer.certSANs', ['bücher.example'], ['a_b.example'], ['*.*.example'], ['https://x'], [''], ['-a']),
  ...of('ClusterConfiguration', 'etcd', { local: { dataDir: 'relative' } }, { local: {}, external: { endpoints: ['https://x'] } }),
  ...of('ClusterConfiguration', 'etcd', { external: {} }, { external: { endpoints: ['x'] } }, { local: { peerCertSANs: ['a b'] } }),
  ...of('ClusterConfiguration', 'etcd', { external: { endpoints: ['http://x:2379'], caFile: '/x' } }),
  ...of('ClusterConfiguration', 'etcd', { external: { endpoints: ['https://x'], caFile: '/x', certFile: '/c' } }),
  ...of('ClusterConfiguration', 'etcd', { external: { endpoints: ['https://x'], caFile: 'x' } }),
  ...of(
    'ClusterConfiguration',
    'networking.serviceSubnet',
    '10.0.0.0/29',
    '10.0.0.0/8',
    '10.96.0.0/12,10.97.0.0/16',
    'x',
    '10.96.0.0',
    'fd03::/107',
  ),
  ...of(
    'ClusterConfiguration',
    'networking.serviceSubnet',
    '10.96.0.0/12, fd03::/112',
    '10.96.0.0/16,fd03::/112,fd05::/112',
    '10.96.0.0/33',
  ),
  ...of(
    'ClusterConfiguration',
    'networking.podSubnet',
    '10.244.0.0/25',
    '10.0.0.0/7',
    'fd04::/112',
    '::/0',
    '10.244.0.0/16,10.245.0.0/16',
    ',',
  ),
  ...of('ClusterConfiguration', 'networking.dnsDomain', 'Lab.local', '-x', 'a_b', 'a.', 'x'.repeat(254)),
  ...of(
    'ClusterConfiguration',
    'controlPlaneEndpoint',
    'api.lab.example:0',
    'https://api.lab.example',
    'a_b',
    'a:99999',
    'a:x',
    '[fd00::1',
    'a:b:c',
  ),
  ...of('ClusterConfiguration', 'imageRepository', 'Bad/Repo', 'x/', 'reg:port/x', 'http://x', ' x'),
  ...of('ClusterConfiguration', 'dns.imageRepository', 'Bad/Repo'),
  ...of('ClusterConfiguration', 'encryptionAlgorithm', 'ECDSA-P521', 'rsa-2048'),
  ...of('ClusterConfiguration', 'featureGates', { ControlPlaneKubeletLocalMode: true }, { Unknown: false }, { EtcdLearnerMode: true }),
  ...of('ClusterConfiguration', 'kubernetesVersion', 'v1.34.1', 'v1.35.0-alpha.3', 'v2.0.0', 'banana', 'v1.36.2.3', 'v1.036.2', '1.36'),
  ...of('ClusterConfiguration', 'certificatesDir', 'pki'),
  ...of('ClusterConfiguration', 'controllerManager.extraArgs', [{ value: 'x' }]),
  ...of('InitConfiguration', 'bootstrapTokens', [{ token: TOKEN, usages: ['signing'], groups: ['system:bootstrappers:x'] }]),
  ...of(
    'InitConfiguration',
    'bootstrapTokens',
    [{ token: TOKEN, groups: ['system:masters'] }],
    [{ token: TOKEN, usages: ['nonsense'] }],
    [{ token: 'x' }],
    [{ token: TOKEN, usages: ['signing'] }],
  ),
  ...of('InitConfiguration', 'localAPIEndpoint.advertiseAddress', 'x', '10.0.0.1/8', '1.2.3', '[fd00::1]'),
  ...of('InitConfiguration', 'localAPIEndpoint.bindPort', 70000, -1),
  ...of('InitConfiguration', 'nodeRegistration.name', 'a_b', 'a b', '-a', 'x'.repeat(254)),
  ...of('InitConfiguration', 'nodeRegistration.criSocket', 'http://x'),
  ...of('InitConfiguration', 'nodeRegistration.imagePullPolicy', 'Sometimes'),
  ...of('InitConfiguration', 'nodeRegistration.ignorePreflightErrors', ['all', 'Swap']),
  ...of('InitConfiguration', 'nodeRegistration.kubeletExtraArgs', [{ value: 'x' }]),
  ...of('InitConfiguration', 'certificateKey', 'xyz', 'abcd'),
  ...of('InitConfiguration', 'skipPhases', ['nonsense'], ['addon/nonsense']),
  ...of('InitConfiguration', 'timeouts.discovery', '5 minutes', 5),
] as const;

/** One flaw or none: mostly none. */
export const flaw = fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...FLAWS) });

/** The document with the flaw, if the flaw is for its kind. */
export function withFlaw(document: object, wrong: (typeof FLAWS)[number] | null): object {
  const { kind } = document as { kind?: string };
  return wrong !== null && wrong.kind === kind ? put(document, wrong.path, wrong.value) : document;
}

function put(object: object, [name, ...rest]: readonly string[], value: unknown): object {
  const members = object as Readonly<Record<string, object>>;
  if (name === undefined) return value as object;
  return { ...members, [name]: rest.length === 0 ? value : put(members[name] ?? {}, rest, value) };
}
