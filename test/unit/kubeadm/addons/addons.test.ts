import { describe, expect, it } from 'vitest';
import { corednsObjects } from '../../../../src/kubeadm/addons/coredns.ts';
import { kubeProxyObjects } from '../../../../src/kubeadm/addons/kube-proxy.ts';
import { isGenerated } from '../../../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { planPatches } from '../../../../src/kubelet/layers/patch-files.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';
import { initRecordings } from '../../../support/kubeadm-recordings.ts';

const recorded = initRecordings().flatMap(({ name, input, expected: { apiActions } }) => (apiActions ? [{ name, input, apiActions }] : []));
const ADDON = /^(?:system:)?coredns$|^kube-dns$|^kube-proxy$|^kubeadm:node-proxier$/;

describe('the addons', () => {
  it.each(recorded)('are the objects of kubeadm 1.36.2, in its order: $name', ({ input, apiActions }) => {
    const node = controlPlaneNode(input);
    const { dns, proxy } = node.cluster;
    const coredns = dns.disabled ? [] : Object.values(corednsObjects(node));
    const { configMap, daemonSet, serviceAccount, rbac } = kubeProxyObjects(node).objects;
    const objects = [...coredns, ...(proxy.disabled ? [] : [configMap, daemonSet, serviceAccount, ...rbac])];
    expect(objects).toEqual(apiActions.flatMap(({ object }) => object ?? []).filter(({ metadata }) => ADDON.test(metadata.name)));
  });
});

const CLUSTER = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
---
`;

function proxyOf(document: string, version = 'v1.36.2') {
  return kubeProxyObjects(
    controlPlaneNode(
      `${CLUSTER.replace('v1.36.2', version)}apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${document}`,
    ),
  );
}

describe('the configuration of kube-proxy', () => {
  const textOf = (document: string, version?: string): string =>
    (proxyOf(document, version).objects.configMap.data as Readonly<Record<string, string>>)['config.conf'] ?? '';

  it("merges the user's values over the defaults of kubeadm, and is not signed in that case", () => {
    const document =
      'mode: nftables\nconntrack: {maxPerCore: 0, tcpEstablishedTimeout: 90m}\nfeatureGates: {A: true}\nlogging: {flushFrequency: 5s}';
    const lines = textOf(document).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'mode: nftables',
        'clusterCIDR: 10.244.0.0/16',
        '  maxPerCore: 0',
        '  tcpEstablishedTimeout: 1h30m0s',
        '  A: true',
        '  flushFrequency: 5s',
      ]),
    );
    expect(isGenerated(proxyOf(document).objects.configMap)).toBe(false);
  });

  it('has an explicit mode from 1.37 on', () => {
    const modeOf = (document: string, version: string) => textOf(document, version).match(/^mode: .*$/m)?.[0];
    expect(modeOf('enableProfiling: false', 'v1.36.2')).toBe('mode: ""');
    expect(modeOf('enableProfiling: false', 'v1.37.0')).toBe('mode: iptables');
    expect(modeOf('mode: nftables', 'v1.37.0')).toBe('mode: nftables');
    expect(proxyOf('mode: nftables', 'v1.37.0').warnings).toEqual([]);
  });

  it('warns of the deprecated mode ipvs from 1.37 on', () => {
    const codesOf = (document: string, version: string) => proxyOf(document, version).warnings.map(({ code }) => code);
    expect(codesOf('mode: ipvs', 'v1.36.2')).toEqual([]);
    expect(codesOf('mode: ipvs', 'v1.37.0')).toEqual(['KUBE_PROXY_MODE_DEPRECATED']);
    expect(codesOf('mode: iptables', 'v1.37.0')).toEqual([]);
  });

  it('keeps values that differ from the recommendation of kubeadm, and warns', () => {
    const { warnings } = proxyOf('bindAddress: 10.0.0.1\nclusterCIDR: 10.99.0.0/16');
    expect(warnings.map(({ field, message }) => `${field}: ${message}`)).toEqual([
      'bindAddress: The recommended value for "bindAddress" in "KubeProxyConfiguration" is: 0.0.0.0; the provided value is: 10.0.0.1',
      'clusterCIDR: The recommended value for "clusterCIDR" in "KubeProxyConfiguration" is: 10.244.0.0/16; the provided value is: 10.99.0.0/16',
    ]);
  });

  it.each([
    ['moed: ipvs', /^input\.yaml:\d+:1 moed: unknown field\. Did you mean mode\?/],
    ['oomScoreAdj: high', /^input\.yaml:\d+:14 oomScoreAdj: must be an integer/],
    ['configSyncPeriod: 5', /^input\.yaml:\d+:19 configSyncPeriod: must be a duration/],
  ])('is rejected when it is invalid: %s', (document, message) => {
    expect(() => proxyOf(document)).toThrow(message);
  });
});

describe('patches of the DaemonSet of kube-proxy', () => {
  const { patches } = planPatches([
    { path: 'p/kubeproxydaemonset+merge.yaml', text: 'spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}' },
    {
      path: 'p/kubeproxydaemonset1.yaml',
      text: 'spec: {template: {spec: {containers: [{name: kube-proxy, resources: {limits: {cpu: 0.5}}}]}}}',
    },
  ]);
  const proxyWith = (version: string) => kubeProxyObjects(controlPlaneNode(CLUSTER.replace('v1.36.2', version), { patches }));

  it('are applied from 1.37 on', () => {
    const { objects, warnings } = proxyWith('v1.37.0');
    expect(warnings).toEqual([]);
    expect(objects.daemonSet).toMatchObject({
      spec: {
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 2 } },
        template: { spec: { containers: [{ name: 'kube-proxy', resources: { limits: { cpu: '500m' } } }] } },
      },
    });
  });

  it('are ignored before, with a warning for each file', () => {
    const { objects, warnings } = proxyWith('v1.36.2');
    expect(objects.daemonSet).toEqual(kubeProxyObjects(controlPlaneNode(CLUSTER)).objects.daemonSet);
    expect(warnings).toEqual([
      {
        code: 'PATCH_IGNORED',
        message:
          'p/kubeproxydaemonset+merge.yaml is not used: Kubernetes v1.36.2 has no patch target kubeproxydaemonset; 1.37 and later have it',
      },
      {
        code: 'PATCH_IGNORED',
        message:
          'p/kubeproxydaemonset1.yaml is not used: Kubernetes v1.36.2 has no patch target kubeproxydaemonset; 1.37 and later have it',
      },
    ]);
  });
});
