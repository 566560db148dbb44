import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { adviseKubeadmDefaults, kubeadmDefaults, setAt } from '../../../src/kubelet/layers/kubeadm-defaults.ts';

const INPUT = { clusterDNS: '10.96.0.10', dnsDomain: 'cluster.local', certificatesDir: '/etc/kubernetes/pki' };

describe('kubeadmDefaults', () => {
  it('equal those of kubeadm 1.36', () => {
    expect(kubeadmDefaults(INPUT)).toEqual({
      staticPodPath: '/etc/kubernetes/manifests',
      clusterDNS: ['10.96.0.10'],
      clusterDomain: 'cluster.local',
      authentication: { x509: { clientCAFile: '/etc/kubernetes/pki/ca.crt' }, anonymous: { enabled: false }, webhook: { enabled: true } },
      authorization: { mode: 'Webhook' },
      healthzBindAddress: '127.0.0.1',
      healthzPort: 10248,
      rotateCertificates: true,
      cgroupDriver: 'systemd',
    });
  });

  it.each([
    [
      'a separate certificates directory',
      { ...INPUT, certificatesDir: '/srv/pki/' },
      { authentication: { x509: { clientCAFile: '/srv/pki/ca.crt' } } },
    ],
    ['an IPv6 service network', { ...INPUT, clusterDNS: 'fd03::a' }, { clusterDNS: ['fd03::a'] }],
  ])('follow %s', (_, input, expected) => {
    expect(kubeadmDefaults(input)).toMatchObject(expected);
  });

  it('omit the domain when the cluster has none', () => {
    expect(kubeadmDefaults({ ...INPUT, dnsDomain: '' })).not.toHaveProperty('clusterDomain');
  });
});

describe('adviseKubeadmDefaults', () => {
  const advice = (config: JsonObject): readonly string[] => adviseKubeadmDefaults(config, INPUT).map(({ message }) => message);

  it.each<[string, JsonObject]>([
    ['nothing is set', {}],
    ['all values are the recommended ones', kubeadmDefaults(INPUT)],
    ['cgroupDriver is another: it is not kubeadm’s business', { cgroupDriver: 'cgroupfs' }],
    ['readOnlyPort is 0', { readOnlyPort: 0 }],
  ])('is silent when %s', (_, config) => {
    expect(advice(config)).toEqual([]);
  });

  it.each<[JsonObject, string]>([
    [
      { clusterDNS: ['10.1.0.10', '10.1.0.11'] },
      'The recommended value for "clusterDNS" in "KubeletConfiguration" is: [10.96.0.10]; the provided value is: [10.1.0.10 10.1.0.11]',
    ],
    [{ clusterDNS: [] }, 'The recommended value for "clusterDNS" in "KubeletConfiguration" is: [10.96.0.10]; the provided value is: []'],
    [
      { clusterDomain: 'example' },
      'The recommended value for "clusterDomain" in "KubeletConfiguration" is: cluster.local; the provided value is: example',
    ],
    [
      { staticPodPath: '' },
      'The recommended value for "staticPodPath" in "KubeletConfiguration" is: /etc/kubernetes/manifests; the provided value is: ',
    ],
    [
      { authentication: { anonymous: { enabled: true } } },
      'The recommended value for "authentication.anonymous.enabled" in "KubeletConfiguration" is: false; the provided value is: true',
    ],
    [
      { authentication: { webhook: { enabled: false } } },
      'The recommended value for "authentication.webhook.enabled" in "KubeletConfiguration" is: true; the provided value is: false',
    ],
    [
      { authorization: { mode: 'AlwaysAllow' } },
      'The recommended value for "authorization.mode" in "KubeletConfiguration" is: Webhook; the provided value is: AlwaysAllow',
    ],
    [{ healthzPort: 0 }, 'The recommended value for "healthzPort" in "KubeletConfiguration" is: 10248; the provided value is: 0'],
    [{ readOnlyPort: 10255 }, 'The recommended value for "readOnlyPort" in "KubeletConfiguration" is: 0; the provided value is: 10255'],
  ])('warns of %j as kubeadm does', (config, message) => {
    expect(advice(config)).toEqual([message]);
  });

  it('warns of disabled certificate rotation, which kubeadm silently enables', () => {
    expect(adviseKubeadmDefaults({ rotateCertificates: false }, INPUT)).toMatchObject([
      { code: 'KUBELET_NO_ROTATION', field: 'rotateCertificates' },
    ]);
  });
});

describe('setAt', () => {
  it.each<[JsonObject, readonly string[], JsonObject]>([
    [{}, ['a'], { a: 1 }],
    [{ a: { b: 2 } }, ['a', 'c'], { a: { b: 2, c: 1 } }],
    [{ a: [1] }, ['a', 'b'], { a: { b: 1 } }],
    [{ a: null }, ['a', 'b'], { a: { b: 1 } }],
    [{ a: 2 }, [], { a: 2 }],
  ])('%j at %j', (config, path, expected) => {
    const before = JSON.stringify(config);
    expect(setAt(config, path, 1)).toEqual(expected);
    expect(JSON.stringify(config)).toBe(before);
  });
});
