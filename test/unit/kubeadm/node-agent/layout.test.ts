import { describe, expect, it } from 'vitest';
import { type CheckpointManifest, formatManifest, parseManifest } from '../../../../src/kubelet/node-agent/layout.ts';

const MANIFEST: CheckpointManifest = {
  identity: { namespace: 'ns', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' },
  files: ['kubelet.yaml'],
};

describe('the manifest of a checkpoint', () => {
  it.each<[string, CheckpointManifest]>([
    ['of an overlay', { ...MANIFEST, sets: ['maxPods', 'evictionHard[memory.available]'] }],
    ['of a complete configuration', { ...MANIFEST, sets: null }],
    ['of an earlier version', MANIFEST],
  ])('is read as written: %s', (_, manifest) => {
    expect(parseManifest(formatManifest(manifest))).toEqual(manifest);
  });

  it('ignores fields of another type', () => {
    const text = formatManifest(MANIFEST).replace('}\n', ',"sets":["maxPods",7]}\n');
    expect(parseManifest(text)).toEqual({ ...MANIFEST, sets: ['maxPods'] });
    expect(parseManifest(formatManifest(MANIFEST).replace('}\n', ',"sets":"maxPods"}\n'))).toEqual(MANIFEST);
  });
});
