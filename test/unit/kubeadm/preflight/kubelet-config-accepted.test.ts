import { expect, it } from 'vitest';
import { kubeletConfigAccepted } from '../../../../src/kubeadm/preflight/kubelet-config-accepted.ts';
import type { KubeletAcceptance } from '../../../../src/kubelet/facts/kubelet-acceptance.ts';

const refused = { verdict: 'refused', cause: 'maxPods is odd', hint: 'Change it', isHost: false } as const;

it.each<[KubeletAcceptance, unknown]>([
  [{ verdict: 'accepted' }, []],
  [
    refused,
    [
      {
        id: 'KubeletConfigAccepted',
        severity: 'error',
        message: 'kubelet v1.36.2 would fail at startup with this configuration: maxPods is odd',
        hint: 'Change it',
      },
    ],
  ],
  [{ ...refused, isHost: true }, []],
  [
    { verdict: 'unknown', why: 'no output within 20 s' },
    [{ id: 'KubeletConfigAccepted', severity: 'warning', message: expect.stringMatching(/could not validate .*: no output/) }],
  ],
])('creates findings for %j', (acceptance, findings) => {
  expect(kubeletConfigAccepted(acceptance, 'v1.36.2')).toEqual(findings);
});
