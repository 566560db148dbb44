import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { componentEndpoints } from '../../../../src/kubeadm/control-plane/component-endpoints.ts';
import { readEtcdManifest } from '../../../../src/kubeadm/control-plane/etcd-manifest.ts';

const podWith =
  (flags: Readonly<Record<string, readonly string[]>>) =>
  (name: string): JsonObject => ({ spec: { containers: [{ command: ['sidecar'] }, { command: [name, ...(flags[name] ?? [])] }] } });
const urls = (flags: Readonly<Record<string, readonly string[]>>) => componentEndpoints(podWith(flags)).map(({ url }) => url);

describe('componentEndpoints', () => {
  it('defaults to the endpoints of kubeadm', () => {
    expect(urls({})).toEqual(['https://127.0.0.1:6443/livez', 'https://127.0.0.1:10257/healthz', 'https://127.0.0.1:10259/livez']);
  });

  it('follows the flags in the manifests; the last of each wins', () => {
    expect(
      urls({
        'kube-apiserver': ['--advertise-address=fd00::1', '--secure-port=6443', '--secure-port=7443'],
        'kube-controller-manager': ['--bind-address=0.0.0.0', '--secure-port=11257'],
        'kube-scheduler': ['--bind-address=::', '--leader-elect=true'],
      }),
    ).toEqual(['https://[fd00::1]:7443/livez', 'https://127.0.0.1:11257/healthz', 'https://[::1]:10259/livez']);
  });
});

describe('readEtcdManifest', () => {
  it('returns the URLs and data directory of the member, and whether it started the cluster', () => {
    const command = ['etcd', '--advertise-client-urls=https://10.0.0.2:2379', '--initial-advertise-peer-urls=https://10.0.0.2:2380'];
    const volumes = [
      { name: 'etcd-certs', hostPath: { path: '/x' } },
      { name: 'etcd-data', hostPath: { path: '/data' } },
    ];
    const pod = (...more: readonly string[]): string =>
      JSON.stringify({ spec: { containers: [{ command: [...command, ...more] }], volumes } });
    const member = { peerURL: 'https://10.0.0.2:2380', clientURL: 'https://10.0.0.2:2379', dataDir: '/data' };
    expect(readEtcdManifest(pod('--initial-cluster=a=https://10.0.0.2:2380'))).toEqual({ ...member, isFirst: true });
    expect(readEtcdManifest(pod('--initial-cluster-state=existing'))).toEqual({ ...member, isFirst: false });
  });

  it('defaults to the data directory of kubeadm', () => {
    expect(readEtcdManifest('no: [yaml')).toEqual({ peerURL: null, clientURL: null, dataDir: '/var/lib/etcd', isFirst: true });
  });
});
