import { describe, expect, it } from 'vitest';
import { explainConfigz } from '../../../../src/kubelet/effective/node-explanation.ts';

describe('explainConfigz', () => {
  const configMap = { namespace: 'kube-system', name: 'edge', kubeletConfigKey: 'kubelet' };
  const fromConfigMap = { kind: 'config-map', source: configMap, dropIns: 0 } as const;
  const sourceOf = (options: Partial<Parameters<typeof explainConfigz>[1]>, maxPods = 90) =>
    explainConfigz({ maxPods }, { defaults: { maxPods: 110 }, minor: 36, source: null, configMap: null, ...options })[0]?.source;

  it.each([
    ['sets the value', { maxPods: 90 }, 'ConfigMap kube-system/edge'],
    ['sets another value', { maxPods: 80 }, 'ConfigMap kube-system/edge, or a file or a flag of the host'],
    ['does not set the field', { port: 1 }, 'a file or a flag of the host'],
    ['cannot be read', null, 'ConfigMap kube-system/edge, or a file or a flag of the host'],
  ])('knows the source of a value whose ConfigMap %s', (_, read, source) => {
    expect(sourceOf({ source: fromConfigMap, configMap: read })).toBe(source);
  });

  it('names the ConfigMap that sets the default, and a file or a flag without a ConfigMap', () => {
    expect(sourceOf({ source: fromConfigMap, configMap: { maxPods: 110 } }, 110)).toBe('ConfigMap kube-system/edge');
    expect(sourceOf({}, 110)).toBe('kubelet 1.36');
    expect(sourceOf({ source: { kind: 'file', dropIns: 0 } })).toBe('a file or a flag of the host');
  });
});
