import { describe, expect, it } from 'vitest';
import { formatCidr } from '../../../../src/base/text/ip.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { clusterNoSuchKind, clusterRefused } from '../../../../src/kube/cluster-problems.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { listKubeletCsrs, readReservedNames } from '../../../../src/kubeadm/workflows/certificates/serving-csrs.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const configMap = (namespace: string, name: string, data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  data,
});
const kubeadmConfig = (text: string): KubeObject =>
  configMap('kube-system', 'kubeadm-config', {
    ClusterConfiguration: `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n${text}`,
  });
const clusterInfo = (server: string, more = ''): KubeObject =>
  configMap('kube-public', 'cluster-info', {
    kubeconfig: `apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {server: '${server}'${more}}\n`,
  });
const service = (namespace: string, name: string, spec: object, status: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace, name },
  spec: spec as never,
  status: status as never,
});
const endpoints: KubeObject = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { namespace: 'default', name: 'kubernetes' },
  subsets: [{ addresses: [{ ip: '10.0.0.11' }], notReadyAddresses: [{ ip: '10.0.0.12', hostname: 'cp2' }] }],
};

/** A cluster that also serves kinds unknown to the fake. */
function serving(cluster: Cluster, lists: Readonly<Record<string, readonly object[]>>): Cluster {
  const list: Cluster['list'] = async (kind, options) => {
    const items = lists[kind.kind];
    if (items === undefined) return cluster.list(kind, options);
    return { items: items as readonly KubeObject[], resourceVersion: '1' };
  };
  return { ...cluster, list };
}

describe('readReservedNames', () => {
  it('reads the API server names from all sources', async () => {
    const cluster = fakeCluster({
      objects: [
        kubeadmConfig('controlPlaneEndpoint: api.cluster.example:6443\napiServer: {certSANs: [10.9.9.9, "*.lb.example"]}\n'),
        clusterInfo('https://[fd00::7]:6443', ', tls-server-name: tls.example'),
        service('default', 'kubernetes', { clusterIP: '10.96.0.1', ports: [{ port: 443 }] }),
        endpoints,
      ],
    });
    const slices = [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'kubernetes' },
        endpoints: [{ addresses: ['10.0.0.13'] }],
      },
    ];
    const { apiServer, services } = await readReservedNames(serving(cluster, { EndpointSlice: slices }), ['sni.example']);
    expect(Object.fromEntries(apiServer)).toEqual({
      'cluster.test': 'the kubeconfig in use',
      'sni.example': 'the kubeconfig in use',
      'fd00::7': 'ConfigMap kube-public/cluster-info',
      'tls.example': 'ConfigMap kube-public/cluster-info',
      '10.0.0.11': 'Endpoints default/kubernetes',
      '10.0.0.12': 'Endpoints default/kubernetes',
      cp2: 'Endpoints default/kubernetes',
      '10.0.0.13': 'EndpointSlice of default/kubernetes',
      '10.9.9.9': 'apiServer.certSANs of kubeadm-config',
      '*.lb.example': 'apiServer.certSANs of kubeadm-config',
      'api.cluster.example': 'controlPlaneEndpoint of kubeadm-config',
    });
    expect([...services]).toEqual([['10.96.0.1', 'Service default/kubernetes']]);
  });

  it.each<[endpoint: string, host: string]>([
    ['10.0.0.1:6443', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['"[fd00::1]:6443"', 'fd00::1'],
    ['"fd00:0::1"', 'fd00::1'],
    ['api.example', 'api.example'],
  ])('reads the host of controlPlaneEndpoint %s', async (endpoint, host) => {
    const cluster = fakeCluster({ objects: [kubeadmConfig(`controlPlaneEndpoint: ${endpoint}\n`)] });
    expect([...(await readReservedNames(cluster)).apiServer.keys()]).toContain(host);
  });

  it('reads domain and subnets from kubeadm-config and ServiceCIDRs, and does not list Services in that case', async () => {
    const networking =
      'networking: {dnsDomain: corp.example, serviceSubnet: "10.96.0.0/12,fd00:10:96::/112", podSubnet: "10.244.0.0/16"}\n';
    const fake = fakeCluster({ objects: [kubeadmConfig(networking)] });
    const cidrs = [
      { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'more' }, spec: { cidrs: ['172.30.0.0/16'] } },
    ];
    const { clusterDomain, serviceSubnets, podSubnets } = await readReservedNames(serving(fake, { ServiceCIDR: cidrs }));
    expect(clusterDomain).toBe('corp.example');
    expect(serviceSubnets.map(formatCidr)).toEqual(['10.96.0.0/12', 'fd00:10:96::/112', '172.30.0.0/16']);
    expect(podSubnets.map(formatCidr)).toEqual(['10.244.0.0/16']);
    expect(fake.calls).not.toContain('list Service');
  });

  it('reads the addresses of all Services when no subnet is known', async () => {
    const objects = [
      service('default', 'kubernetes', { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::a'] }),
      service(
        'kube-system',
        'shop',
        { clusterIP: 'None', externalIPs: ['192.0.2.1'] },
        { loadBalancer: { ingress: [{ ip: '192.0.2.2' }, { hostname: 'lb.example' }] } },
      ),
    ];
    const { clusterDomain, serviceSubnets, services } = await readReservedNames(fakeCluster({ objects }));
    expect([clusterDomain, serviceSubnets]).toEqual(['cluster.local', []]);
    expect(Object.fromEntries(services)).toEqual({
      '10.96.0.1': 'Service default/kubernetes',
      'fd00::a': 'Service default/kubernetes',
      '192.0.2.1': 'Service kube-system/shop',
      '192.0.2.2': 'Service kube-system/shop',
      'lb.example': 'Service kube-system/shop',
    });
  });

  it('fails when a source is not readable', async () => {
    for (const call of [
      'get ConfigMap kube-system/kubeadm-config',
      'get ConfigMap kube-public/cluster-info',
      'get Endpoints default/kubernetes',
    ]) {
      const cluster = fakeCluster();
      cluster.failNext(call, clusterRefused(call, { httpStatus: 403, message: 'forbidden' }));
      await expect(readReservedNames(cluster)).rejects.toMatchObject({
        code: 'CLUSTER_FORBIDDEN',
        message: expect.stringContaining('Use credentials with these permissions: get ConfigMaps'),
      });
    }
    const cluster = fakeCluster();
    cluster.failNext('list EndpointSlice', clusterNoSuchKind('', '', ''));
    cluster.failNext('list ServiceCIDR', clusterRefused('list ServiceCIDR', { httpStatus: 500 }));
    await expect(readReservedNames(cluster)).rejects.toMatchObject({ code: 'CLUSTER_ERROR' });
  });

  it('rejects an invalid kubeadm-config and cluster-info', async () => {
    await expect(readReservedNames(fakeCluster({ objects: [kubeadmConfig('networking: [')] }))).rejects.toMatchObject({ name: 'AppError' });
    const broken = configMap('kube-public', 'cluster-info', { kubeconfig: 'clusters: {' });
    await expect(readReservedNames(fakeCluster({ objects: [broken] }))).rejects.toMatchObject({ name: 'AppError' });
  });
});

describe('listKubeletCsrs', () => {
  const csr = (name: string, spec: object): KubeObject => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: spec as never,
  });
  const pending = { signerName: 'kubernetes.io/kubelet-serving', request: 'eA==', usages: ['server auth'] };

  it('lists the Nodes once for any number of CSRs', async () => {
    const cluster = fakeCluster();
    const items = Array.from({ length: 50 }, (_, i) => csr(`csr-${i}`, pending));
    expect(await listKubeletCsrs(serving(cluster, { CertificateSigningRequest: items }))).toHaveLength(50);
    expect(cluster.calls.filter((call) => /\bNode\b/.test(call))).toEqual(['list Node']);
  });

  it('sends no further request when no serving certificate is requested', async () => {
    const cluster = fakeCluster();
    const client = csr('csr-1', { ...pending, signerName: 'kubernetes.io/kube-apiserver-client-kubelet' });
    expect(await listKubeletCsrs(serving(cluster, { CertificateSigningRequest: [client] }))).toHaveLength(1);
    expect(cluster.calls).toEqual([]);
  });

  it.each<[string, object, string]>([
    ['no spec', { metadata: { name: 'x' } }, 'CertificateSigningRequest x: spec: expected object, received undefined'],
    [
      'a request that is not a string',
      { metadata: { name: 'x' }, spec: { request: 4 } },
      'CertificateSigningRequest x: spec.request: expected string',
    ],
    [
      'a usage that is not a string',
      { metadata: { name: 'x' }, spec: { ...pending, usages: [1] } },
      'spec.usages[0]: expected string, received number',
    ],
    [
      'an invalid time',
      { metadata: { name: 'x', creationTimestamp: 'soon' }, spec: pending },
      'metadata.creationTimestamp: must be a time',
    ],
    [
      'conditions that are not a list',
      { metadata: { name: 'x' }, spec: pending, status: { conditions: 'all' } },
      'status.conditions: expected array',
    ],
  ])('rejects a CSR with %s', async (_, object, message) => {
    const cluster = serving(fakeCluster(), { CertificateSigningRequest: [{ kind: 'CertificateSigningRequest', ...object }] });
    await expect(listKubeletCsrs(cluster)).rejects.toMatchObject({
      code: 'CLUSTER_ANSWER_INVALID',
      message: expect.stringContaining(message),
    });
  });
});
