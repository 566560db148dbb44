import { describe, expect, it } from 'vitest';
import { parseKubeconfig, resolveContext } from '../../../src/kube/kubeconfig.ts';
import { mergeKubeconfigs } from '../../../src/kube/operator-kubeconfig.ts';

const DEV = `apiVersion: v1
kind: Config
clusters:
- {name: dev, cluster: {server: "https://dev:6443", certificate-authority: pki/ca.crt}}
- {name: same, cluster: {server: "https://first:6443"}}
users:
- {name: dev, user: {client-certificate: /abs.crt, client-key: dev.key}}
`;
const PROD = `apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod, cluster: {server: "https://prod:6443"}}
- {name: same, cluster: {server: "https://second:6443"}}
contexts:
- {name: prod, context: {cluster: prod, user: prod}}
- {name: both, context: {cluster: dev, user: dev}}
- {name: same, context: {cluster: same, user: ""}}
users:
- {name: prod, user: {exec: {command: bin/login, apiVersion: client.authentication.k8s.io/v1}}}
`;
const merged = parseKubeconfig(
  mergeKubeconfigs([
    { file: '/home/me/dev/config', text: DEV },
    { file: 'prod.conf', text: PROD },
  ]),
  'KUBECONFIG',
);

describe('mergeKubeconfigs', () => {
  it('uses the first current-context', () => {
    expect(resolveContext(merged)).toMatchObject({ context: 'prod', cluster: { server: 'https://prod:6443' } });
  });

  it('lets a context of one file reference entries of another, with paths relative to that file', () => {
    expect(resolveContext(merged, 'both')).toMatchObject({
      cluster: { server: 'https://dev:6443', caFile: '/home/me/dev/pki/ca.crt' },
      user: { certFile: '/abs.crt', keyFile: '/home/me/dev/dev.key' },
    });
    expect(resolveContext(merged).user?.exec).toMatchObject({ command: 'bin/login' });
  });

  it('uses the first of two entries with the same name', () => {
    expect(resolveContext(merged, 'same').cluster.server).toBe('https://first:6443');
  });

  it('reports the file of an error', () => {
    const files = [
      { file: 'a', text: DEV },
      { file: 'b', text: 'clusters: 7\n' },
    ];
    expect(() => mergeKubeconfigs(files)).toThrow(/^b:1:\d+/);
  });
});
