import { describe, expect, it } from 'vitest';
import { podErrorIn } from '../../../../src/kubelet/health/probe-pod.ts';

const SANDBOX = String.raw`E1123 11:02:22.260899     427 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"CreatePodSandbox\" for \"probe-a-node1_kube-system(0453f49d)\" with CreatePodSandboxError: \"Failed to generate sandbox config for pod \\\"probe-a-node1_kube-system(0453f49d)\\\": open /no/such: no such file or directory\"" pod="kube-system/probe-a-node1" podUID="0453f49d-15ad-443f-b0e0-23168e6a7ae8"`;
const RUNTIME = String.raw`E1123 11:02:22.260899     427 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"KillPodSandbox\" for \"2034\" with KillPodSandboxError: \"rpc error: code = Unknown desc = failed to destroy network for sandbox \\\"c7f3\\\": plugin type=\\\"loopback\\\" failed (delete)\"" pod="default/web" podUID="20349573"`;

describe('the last error of a kubelet about a pod', () => {
  it.each([
    [
      'of the kubelet itself',
      SANDBOX,
      'kube-system/probe-a-node1',
      /^failed to "CreatePodSandbox" .*: open \/no\/such: no such file or directory$/,
    ],
    [
      'of the runtime, without the enclosing errors',
      RUNTIME,
      'default/web',
      /^failed to destroy network for sandbox "c7f3": plugin type="loopback" failed \(delete\)$/,
    ],
    ['of the newest line', `${RUNTIME}\n${RUNTIME.replace('c7f3', 'last')}\nI1123 other`, 'default/web', /"last"/],
  ])('%s', (_, log, pod, expected) => {
    expect(podErrorIn(log, pod)).toMatch(expected);
  });

  it.each([
    ['another pod', SANDBOX, 'kube-system/probe-b-node1'],
    ['a line without an error', 'I1123 pod="default/web" started', 'default/web'],
    ['an empty log', '', 'default/web'],
  ])('is null for %s', (_, log, pod) => {
    expect(podErrorIn(log, pod)).toBeNull();
  });

  it('is shortened', () => {
    expect(podErrorIn(RUNTIME.replace('c7f3', 'x'.repeat(9000)), 'default/web')).toHaveLength(303);
  });
});
