import { describe, expect, it } from 'vitest';
import { differenceLines } from '../../../../src/fleet/use-cases/cluster-differences.ts';
import { diffClusterConfiguration } from '../../../../src/kubeadm/config/diff-cluster.ts';
import type { ClusterConfiguration } from '../../../../src/kubeadm/config/model.ts';

const FOUND: ClusterConfiguration = {
  kubernetesVersion: 'v1.36.1',
  clusterName: 'kubernetes',
  controlPlaneEndpoint: 'api.example:6443',
  networking: { serviceSubnet: '10.96.0.0/12', dnsDomain: 'cluster.local', podSubnet: '10.244.0.0/16' },
  apiServer: {
    certSANs: ['a.example', 'b.example'],
    extraArgs: [
      { name: 'profiling', value: 'false' },
      { name: 'v', value: '4' },
    ],
  },
};

const lines = (declared: ClusterConfiguration, bindPort?: number) =>
  differenceLines('cluster.yaml', diffClusterConfiguration(declared, FOUND, bindPort), 'node1');
const END = 'apply changes only the kubelet of an existing control plane';
const OTHER = 'Correct cluster.yaml, or reconfigure the control planes as with kubeadm';

describe('the differences of cluster.configuration and the cluster', () => {
  it.each<[string, ClusterConfiguration]>([
    ['unset', {}],
    ['equal, with defaults', { kubernetesVersion: '1.36.1', networking: { dnsDomain: 'cluster.local' }, scheduler: { extraArgs: [] } }],
    ['a label', { kubernetesVersion: 'stable-1.36' }],
    ['an endpoint without a port', { controlPlaneEndpoint: 'api.example' }],
    ['lists in another order', { apiServer: { certSANs: ['B.example', 'a.example'] } }],
    ['a value that Go omits', { proxy: { disabled: false } }],
  ])('are none for settings that are %s', (_, declared) => {
    expect(lines(declared)).toEqual([]);
  });

  it('name the command of an upgrade, and no downgrade', () => {
    expect(lines({ kubernetesVersion: 'v1.36.2' })).toEqual([
      `cluster.yaml declares kubernetesVersion v1.36.2, the cluster has v1.36.1 (ConfigMap kube-system/kubeadm-config); ${END}. Run kubeletadm upgrade apply v1.36.2 --host node1`,
    ]);
    expect(lines({ kubernetesVersion: 'v1.36.0' })[0]).toMatch(/\. Set kubernetesVersion v1\.36\.1 in cluster\.yaml$/);
  });

  it('use the port of the API server for the endpoint', () => {
    expect(lines({ controlPlaneEndpoint: 'api.example' }, 7443)[0]).toContain(
      'declares controlPlaneEndpoint api.example:7443, the cluster has api.example:6443 (',
    );
  });

  it('name arguments without their values', () => {
    const extraArgs = [
      { name: 'v', value: 'secret-4' },
      { name: 'audit-log-maxage', value: 'secret-30' },
    ];
    expect(lines({ apiServer: { extraArgs, extraEnvs: [{ name: 'TOKEN', value: 'secret-5' }] } })).toEqual(
      [
        'declares another value of apiServer.extraArgs.v than the cluster has',
        'declares apiServer.extraArgs.audit-log-maxage, which the cluster does not have',
        'does not declare apiServer.extraArgs.profiling, which the cluster has',
        'declares apiServer.extraEnvs, which the cluster does not have',
      ].map((text) => `cluster.yaml ${text} (ConfigMap kube-system/kubeadm-config); ${END}. ${OTHER}`),
    );
  });

  it('are at most five lines', () => {
    const declared = {
      ...{ clusterName: 'b', imageRepository: 'registry.test', certificatesDir: '/pki', kubernetesVersion: 'v1.36.2' },
      networking: { podSubnet: '10.1.0.0/16', dnsDomain: 'b.local' },
    };
    const shown = lines(declared);
    expect(shown).toHaveLength(5);
    expect(shown[4]).toBe('cluster.yaml and the cluster differ in 2 more settings: networking.podSubnet, networking.dnsDomain');
    expect(lines({ ...declared, clusterName: 'kubernetes' })[4]).toContain(
      'declares networking.dnsDomain b.local, the cluster has cluster.local (',
    );
  });
});
