import { describe, expect, it } from 'vitest';
import { readMirrorPod, versionUrl } from '../../../../src/kubeadm/upgrade/static-pod-state.ts';

const manifest = (host: string): string =>
  `spec: {containers: [{name: kube-apiserver, readinessProbe: {httpGet: {host: "${host}", port: 6443, path: /readyz, scheme: HTTPS}}}]}`;

describe('versionUrl', () => {
  it('is on the host of the health endpoint', () => {
    expect(versionUrl(manifest('10.0.0.1'))).toBe('https://10.0.0.1:6443/version');
  });

  it.each(['not a host', '[', 'a:b'])('is not known for an address that is none: %j', (host) => {
    expect(versionUrl(manifest(host))).toBeNull();
  });
});

describe('readMirrorPod', () => {
  it('shows a bounded reason', () => {
    const state = { waiting: { reason: 'x'.repeat(5000) } };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, status: { containerStatuses: [{ name: 'etcd', state }] } };
    expect(readMirrorPod(pod, 'etcd')?.state.length).toBeLessThan(300);
  });
});
