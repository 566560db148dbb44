import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import type { ModelSet } from '../../../../src/kubeadm/config/model.ts';
import { DISCOVERY, documentOf, errorCodes, linesOf, load } from './support.ts';

function modelsOf(text: string): ModelSet {
  const loaded = load(text);
  expect(errorCodes(loaded)).toEqual([]);
  const { init, cluster, join } = loaded;
  return { ...(init && { init }), ...(cluster && { cluster }), ...(join && { join }) };
}

describe('conversion of v1beta3', () => {
  it('sorts arguments by name', () => {
    const text = documentOf('init3', 'nodeRegistration: {name: node, kubeletExtraArgs: {zoo: "1", bar: baz, Bar: x}}');
    expect(modelsOf(text)).toEqual({
      init: {
        nodeRegistration: {
          name: 'node',
          kubeletExtraArgs: [
            { name: 'Bar', value: 'x' },
            { name: 'bar', value: 'baz' },
            { name: 'zoo', value: '1' },
          ],
        },
      },
    });
  });

  it('sorts the arguments of each component and etcd, and keeps other fields', () => {
    const body = [
      'apiServer: {extraArgs: {a: b}, certSANs: [x], extraVolumes: [{name: vol, hostPath: /a, mountPath: /b}]}',
      'controllerManager: {extraArgs: {c: d}}',
      'scheduler: {extraArgs: {}}',
      'etcd: {local: {dataDir: /d, extraArgs: {e: f}, serverCertSANs: [s]}}',
      'dns: {imageTag: t}',
      'featureGates: {RootlessControlPlane: true}',
    ];
    expect(modelsOf(documentOf('cluster3', body.join('\n')))).toEqual({
      cluster: {
        apiServer: {
          extraArgs: [{ name: 'a', value: 'b' }],
          certSANs: ['x'],
          extraVolumes: [{ name: 'vol', hostPath: '/a', mountPath: '/b' }],
        },
        controllerManager: { extraArgs: [{ name: 'c', value: 'd' }] },
        scheduler: { extraArgs: [] },
        etcd: { local: { dataDir: '/d', extraArgs: [{ name: 'e', value: 'f' }], serverCertSANs: ['s'] } },
        dns: { imageTag: 't' },
        featureGates: { RootlessControlPlane: true },
      },
    });
  });

  it('keeps an external etcd', () => {
    expect(modelsOf(documentOf('cluster3', 'etcd: {external: {endpoints: ["http://a:1"]}}'))).toEqual({
      cluster: { etcd: { external: { endpoints: ['http://a:1'] } } },
    });
  });

  it('moves discovery.timeout', () => {
    const { join } = load(documentOf('join3', DISCOVERY.replace('{boot', '{timeout: 2m10s, boot')));
    expect(join?.timeouts).toEqual({ discovery: '2m10s' });
    expect(join?.discovery).not.toHaveProperty('timeout');
  });

  it.each([
    [
      'to an existing InitConfiguration',
      `${documentOf('init3', 'skipPhases: [a]')}---\n${documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m32s}')}`,
      '2m32s',
    ],
    ['to a new InitConfiguration', documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m32s}'), '2m32s'],
    [
      'over another value in InitConfiguration',
      `${documentOf('init', 'timeouts: {controlPlaneComponentHealthCheck: 1m}')}---\n${documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m}')}`,
      '2m0s',
    ],
    [
      'but not the default value',
      `${documentOf('init', 'timeouts: {controlPlaneComponentHealthCheck: 1m}')}---\n${documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 4m}')}`,
      '1m0s',
    ],
    ['but not a zero value', documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 0s}'), undefined],
  ])('moves timeoutForControlPlane %s', (_, text, expected) => {
    const loaded = load(text);
    expect(loaded.init?.timeouts?.controlPlaneComponentHealthCheck).toBe(expected);
    expect(loaded.cluster?.apiServer ?? {}).not.toHaveProperty('timeoutForControlPlane');
  });

  it('drops timeoutForControlPlane for commands that do not read InitConfiguration', () => {
    expect(load(documentOf('cluster3', 'apiServer: {timeoutForControlPlane: 2m}'), ['ClusterConfiguration']).init).toBeUndefined();
  });
});

describe('problems in v1beta3 refer to their original position', () => {
  it.each([
    [
      'argument',
      documentOf('init3', 'nodeRegistration:\n  kubeletExtraArgs:\n    good: a\n    --bad: b'),
      [
        'f.yaml:6:12 nodeRegistration.kubeletExtraArgs["--bad"]: "--bad" is not a valid flag name. Remove the leading dashes. [CONFIG_INVALID_ARGUMENT]',
      ],
    ],
    [
      'timeout',
      documentOf('join3', DISCOVERY.replace('{boot', '{timeout: -1s, boot')),
      ['f.yaml:3:22 discovery.timeout: "-1s" is negative [CONFIG_OUT_OF_RANGE]'],
    ],
    [
      'timeout of the control plane',
      documentOf('cluster3', 'apiServer:\n  timeoutForControlPlane: -1s'),
      ['f.yaml:4:27 apiServer.timeoutForControlPlane: "-1s" is negative [CONFIG_OUT_OF_RANGE]'],
    ],
  ])('%s', (_, text, expected) => {
    expect(linesOf(load(text))).toEqual(expected);
  });
});

describe('v1beta2, stored in clusters by kubeadm 1.15 to 1.21', () => {
  const IN_CLUSTER = [
    'apiServer:',
    '  extraArgs: {authorization-mode: "Node,RBAC"}',
    '  timeoutForControlPlane: 4m0s',
    'apiVersion: kubeadm.k8s.io/v1beta2',
    'certificatesDir: /srv/pki',
    'clusterName: old',
    'dns: {type: CoreDNS}',
    'etcd: {local: {dataDir: /var/lib/etcd}}',
    'featureGates: {IPv6DualStack: true}',
    'imageRepository: k8s.gcr.io',
    'kind: ClusterConfiguration',
    'kubernetesVersion: v1.21.14',
    'networking: {dnsDomain: old.local, serviceSubnet: 172.30.0.0/16}',
    'useHyperKubeImage: false',
    'scheduler: {}',
  ].join('\n');

  it('is loaded from a cluster, with a warning about unknown values', () => {
    const { cluster, problems } = loadConfig(IN_CLUSTER, 'ConfigMap', {
      kinds: ['ClusterConfiguration'],
      allowDeprecated: true,
      lenient: true,
    });
    expect(cluster).toMatchObject({
      certificatesDir: '/srv/pki',
      clusterName: 'old',
      networking: { dnsDomain: 'old.local', serviceSubnet: '172.30.0.0/16' },
    });
    expect(problems.map(({ path, severity }) => [path, severity])).toEqual([['featureGates.IPv6DualStack', 'warning']]);
  });

  it('is rejected in a file', () => {
    expect(errorCodes(load(IN_CLUSTER))).toEqual(['CONFIG_OLD_VERSION']);
  });
});
