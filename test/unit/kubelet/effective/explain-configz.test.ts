import { expect, it } from 'vitest';
import { explainConfigz } from '../../../../src/kubelet/effective/node-explanation.ts';

it('names the ConfigMap of a Node among the sources of a value in /configz', () => {
  const configMap = { namespace: 'kube-system', name: 'edge', kubeletConfigKey: 'kubelet' };
  const sourceOf = (source: Parameters<typeof explainConfigz>[1]['source']) =>
    explainConfigz({ maxPods: 90 }, { defaults: { maxPods: 110 }, minor: 36, source })[0]?.source;
  expect(sourceOf({ kind: 'config-map', source: configMap, dropIns: 0 })).toBe(
    'ConfigMap kube-system/edge, or a file or a flag of the host',
  );
  expect(sourceOf({ kind: 'file', dropIns: 0 })).toBe('a file or a flag of the host');
});
