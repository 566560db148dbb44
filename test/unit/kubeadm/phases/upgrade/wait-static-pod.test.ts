import { describe, expect, it } from 'vitest';
import { staticPodPause } from '../../../../../src/kubeadm/phases/upgrade/wait-static-pod.ts';
import { fakeHost } from '../../../../support/fake-host.ts';

describe('staticPodPause', () => {
  it('asks the local host often at first, and a remote host as often as before', () => {
    const local = staticPodPause(fakeHost());
    const remote = staticPodPause({ dial: () => Promise.reject(new Error('not dialled')) });
    expect([local(0, 1), local(29_999, 1), local(30_000, 1)]).toEqual([100, 100, 1_000]);
    expect([remote(0, 1), remote(29_999, 1), remote(30_000, 1)]).toEqual([500, 500, 1_000]);
  });
});
