import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { readConfigMapDocument } from '../../../../src/kubeadm/workflows/node/cluster-baseline.ts';

const map = (data: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'kube-system', name: 'kubelet-config' },
  data,
});
const read = (kubelet: string) => readConfigMapDocument(map({ kubelet }), 'kubelet');

describe('the document of a ConfigMap', () => {
  it.each(['maxPods: 5\n', '---\nmaxPods: 5\n', '# note\n---\nmaxPods: 5\n---\n'])('is the only one: %j', (text) => {
    expect(read(text).root).not.toBeNull();
  });

  it.each([
    ['maxPods: 5\n---\nmaxPods: 6\n', 'key kubelet holds several documents'],
    ['# nothing\n', 'key kubelet is empty'],
  ])('%j', (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'CLUSTER_CONFIG_INVALID', message: expect.stringContaining(message) }),
    );
  });

  it('is required', () => {
    expect(() => readConfigMapDocument(map({}), 'kubelet')).toThrow(/has no key kubelet/);
  });
});
