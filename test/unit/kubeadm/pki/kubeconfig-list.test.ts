import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { parseKubeconfig } from '../../../../src/kube/kubeconfig.ts';
import { renewKubeconfig } from '../../../../src/kubeadm/pki/kubeconfig-list.ts';

const pem = (label: string, content: string) => `-----BEGIN ${label}-----\n${content}\n-----END ${label}-----\n`;
const CERTIFICATE = pem('CERTIFICATE', 'AAAA'.repeat(200));
const KEY = pem('PRIVATE KEY', 'AAAA');
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A kubeconfig of many clusters whose context uses the first one. */
function kubeconfigOf(count: number): string {
  const names = Array.from({ length: count }, (_, i) => `c${i}`);
  const cluster = { server: 'https://10.0.0.1:6443', 'certificate-authority-data': base64(CERTIFICATE) };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c0',
    clusters: names.map((name) => ({ name, cluster })),
    contexts: names.map((name) => ({ name, context: { cluster: name, user: name } })),
    users: names.map((name) => ({ name, user: { 'client-certificate-data': base64(CERTIFICATE), 'client-key-data': base64(KEY) } })),
  });
}

describe('renewKubeconfig', () => {
  it('keeps the other clusters of a large kubeconfig', () => {
    const text = kubeconfigOf(100);
    expect(text.length).toBeGreaterThan(128 * 1024);
    const renewed = { certificatePem: 'new', keyPem: new Secret('key'), caPem: 'ca' };
    const { clusters, users } = parseKubeconfig(renewKubeconfig(text, 'admin.conf', renewed).reveal(), 'admin.conf');
    expect([clusters.length, users.length]).toEqual([100, 100]);
  });
});
