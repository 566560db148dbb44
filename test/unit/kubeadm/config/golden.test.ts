import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { applyClusterDefaults, applyInitDefaults } from '../../../../src/kubeadm/config/defaults.ts';
import { diffClusterConfiguration } from '../../../../src/kubeadm/config/diff-cluster.ts';
import { encodeClusterConfiguration, renderConfig } from '../../../../src/kubeadm/config/encode.ts';
import { printDefaults } from '../../../../src/kubeadm/config/print.ts';
import { linesOf, load } from './support.ts';

const GOLDEN = new URL('golden/', import.meta.url);
const golden = (name: string) => readFileSync(new URL(name, GOLDEN), 'utf8');
const HOST = { hostname: 'other', criSockets: [], defaultRoute: { ipv4: '10.0.0.1' } };

/** Each folder contains a configuration and the ClusterConfiguration that kubeadm 1.36.2 stored. */
describe.each(readdirSync(GOLDEN).filter((name) => /^\d/.test(name)))('%s', (name) => {
  const loaded = load(golden(`${name}/input.yaml`));

  it('loads without problems', () => {
    expect(linesOf(loaded)).toEqual([]);
  });

  it('is stored like kubeadm stores it', () => {
    const { localAPIEndpoint } = applyInitDefaults(loaded.init ?? {}, HOST, []);
    const cluster = applyClusterDefaults(loaded.cluster ?? {}, localAPIEndpoint.bindPort);
    expect(renderConfig([encodeClusterConfiguration(cluster)]).reveal()).toBe(golden(`${name}/cluster-configuration.yaml`));
  });

  it('differs from the stored configuration in no setting', () => {
    const stored = load(golden(`${name}/cluster-configuration.yaml`)).cluster ?? {};
    expect(diffClusterConfiguration(loaded.cluster ?? {}, stored, loaded.init?.localAPIEndpoint?.bindPort)).toEqual([]);
  });

  it('is unchanged after a round trip', () => {
    const stored = load(golden(`${name}/cluster-configuration.yaml`));
    expect(linesOf(stored)).toEqual([]);
    expect(applyClusterDefaults(stored.cluster ?? {})).toEqual(stripEmpty(applyClusterDefaults(loaded.cluster ?? {})));
  });
});

/** Removes fields that Go omits when they are false. */
function stripEmpty<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (key, member: unknown) => (key === 'readOnly' && member === false ? undefined : member))) as T;
}

/** Output of `kubeadm config print …` 1.36.2 on a host named host-1. */
describe('config print', () => {
  const options = { hostname: 'host-1', kubernetesVersion: '1.36.0' };

  it.each(['init', 'join', 'reset', 'upgrade'] as const)('%s-defaults', (action) => {
    expect(printDefaults(action, options)).toBe(golden(`print/${action}-defaults.yaml`));
  });

  it('init-defaults with components', () => {
    expect(printDefaults('init', { ...options, componentConfigs: ['KubeProxyConfiguration'] })).toBe(
      golden('print/init-defaults-kube-proxy.yaml'),
    );
    const withKubelet = { ...options, componentConfigs: ['KubeletConfiguration'], kubeletConfiguration: 'kind: KubeletConfiguration\n' };
    expect(printDefaults('init', withKubelet)).toBe(`${golden('print/init-defaults.yaml')}---\nkind: KubeletConfiguration\n`);
  });

  it('rejects unknown components, and components of other actions', () => {
    expect(() => printDefaults('init', { ...options, componentConfigs: ['Foo'] })).toThrow(
      '--component-configs: unknown kind "Foo". Supported kinds: KubeProxyConfiguration, KubeletConfiguration. [USAGE]',
    );
    expect(() => printDefaults('join', { ...options, componentConfigs: ['KubeProxyConfiguration'] })).toThrow(
      '--component-configs is supported only for init-defaults [USAGE]',
    );
  });

  it.each(['init', 'join', 'reset', 'upgrade'] as const)('prints %s-defaults that can be loaded again', (action) => {
    expect(linesOf(load(printDefaults(action, options)))).toEqual([]);
  });
});
