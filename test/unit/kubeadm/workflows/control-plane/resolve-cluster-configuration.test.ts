import { describe, expect, it } from 'vitest';
import { DEFAULT_RUN } from '../../../../../src/host/run-settings.ts';
import type { ClusterConfiguration } from '../../../../../src/kubeadm/config/model.ts';
import {
  type ResolveClusterInput,
  resolveClusterConfiguration,
} from '../../../../../src/kubeadm/workflows/control-plane/resolve-cluster-configuration.ts';

const settle = (input: Partial<ResolveClusterInput>) =>
  resolveClusterConfiguration({
    found: {},
    declared: {},
    bindPort: 6443,
    kubelet: null,
    releaseOf: async () => {
      throw new Error('unexpected query');
    },
    run: DEFAULT_RUN,
    ...input,
  });
const kubelet = (version: string) => ({ path: '/usr/bin/kubelet', version });

describe('resolveClusterConfiguration', () => {
  it.each<[string, Partial<ResolveClusterInput>, string]>([
    ['the declared configuration', { declared: { kubernetesVersion: '1.36.1' }, found: { kubernetesVersion: 'v1.36.2' } }, 'v1.36.1'],
    ['the existing cluster', { found: { kubernetesVersion: 'v1.36.0' }, kubelet: kubelet('v1.36.2') }, 'v1.36.0'],
    [
      'the existing cluster instead of a declared label',
      { declared: { kubernetesVersion: 'stable-1' }, found: { kubernetesVersion: 'v1.36.0' } },
      'v1.36.0',
    ],
    ['the kubelet', { kubelet: kubelet('v1.35.4') }, 'v1.35.4'],
    ['the newest known release when the kubelet is too old for a control plane', { kubelet: kubelet('v1.33.1') }, 'v1.36.2'],
    ['the newest known release without a kubelet', {}, 'v1.36.2'],
    ['the release of a label', { declared: { kubernetesVersion: 'stable-1.35' }, releaseOf: async () => 'v1.35.9' }, 'v1.35.9'],
    ['a declared CI build', { declared: { kubernetesVersion: 'ci/1.36.3-10+abc' } }, 'ci/v1.36.3-10+abc'],
    ['an existing cluster with a CI build', { found: { kubernetesVersion: 'ci/v1.36.3-10+abc' } }, 'ci/v1.36.3-10+abc'],
    ['the newest CI build', { declared: { kubernetesVersion: 'ci/latest' }, releaseOf: async () => 'v1.36.3-10+abc' }, 'ci/v1.36.3-10+abc'],
  ])('uses the version of %s', async (_, input, expected) => {
    const { cluster, warnings } = await settle(input);
    expect([cluster.kubernetesVersion, warnings]).toEqual([expected, []]);
  });

  it.each([
    ['the release server does not answer', null],
    ['the response is not a version', '<html>'],
    ['the response is newer than the newest known minor version', 'v1.37.0'],
  ])('uses the newest known release with a warning when %s', async (_, answer) => {
    const { cluster, warnings } = await settle({ declared: { kubernetesVersion: 'stable-1' }, releaseOf: async () => answer });
    expect([cluster.kubernetesVersion, warnings[0]?.code]).toEqual(['v1.36.2', 'KUBERNETES_VERSION_FALLBACK']);
  });

  it('rejects older versions, warns about newer versions', async () => {
    for (const kubernetesVersion of ['v1.34.9', 'v1.35.0-rc.1', 'ci/v1.34.9']) {
      const refused = settle({ declared: { kubernetesVersion } });
      await expect(refused, kubernetesVersion).rejects.toMatchObject({ code: 'KUBERNETES_VERSION_UNSUPPORTED', exitCode: 2 });
    }
    expect((await settle({ declared: { kubernetesVersion: 'v1.37.0' } })).warnings).toMatchObject([{ code: 'KubernetesVersion' }]);
  });

  it('marks add-ons of skipped phases as disabled, for later join and upgrade runs', async () => {
    const of = async (skipped: string) => (await settle({ run: { skipPhases: [skipped] } })).cluster;
    expect(await of('addon/coredns')).toMatchObject({ dns: { disabled: true }, proxy: {} });
    expect((await of('addon/kube-proxy')).proxy).toEqual({ disabled: true });
  });

  it('adds the port of the API server to the endpoint', async () => {
    const declared: ClusterConfiguration = { controlPlaneEndpoint: 'api.example' };
    expect((await settle({ declared, bindPort: 7443 })).cluster.controlPlaneEndpoint).toBe('api.example:7443');
  });
});
