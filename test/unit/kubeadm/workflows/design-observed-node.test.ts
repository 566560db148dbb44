import { describe, expect, it } from 'vitest';
import { versionWarnings } from '../../../../src/kubeadm/workflows/node/design-observed-node.ts';

const codes = (kubelet: number | null, controlPlane: number) => versionWarnings(kubelet, controlPlane).map(({ code }) => code);

describe('the versions of a node', () => {
  it('warn about a kubelet with unknown rules', () => {
    expect(versionWarnings(38, 36)).toEqual([
      {
        code: 'KUBELET_RULES_OF_OTHER_MINOR',
        message:
          'kubeletadm does not know Kubernetes 1.38: fields, flags, gates and values are checked by the rules of 1.37, the newest known version',
      },
    ]);
    expect(codes(36, 36)).toEqual([]);
    expect(codes(20, 36)).toEqual([]);
  });

  it('name the assumed version when the host has no kubelet', () => {
    expect(versionWarnings(null, 35)).toEqual([
      { code: 'KUBELET_MISSING', message: 'no kubelet is installed: files are generated for 1.35, the version of the control plane' },
    ]);
    expect(codes(null, 38)).toEqual(['KUBELET_MISSING', 'KUBELET_RULES_OF_OTHER_MINOR']);
    expect(versionWarnings(null, 38)[0]?.message).toContain('generated for 1.37, the known version nearest to cluster version 1.38');
    expect(versionWarnings(null, 17)[0]?.message).toContain('generated for 1.20, the known version nearest to cluster version 1.17');
  });
});
