import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/text/secret.ts';
import { parseKubeconfig, resolveContext } from '../../../src/kube/kubeconfig.ts';
import {
  clientCertificateFileKubeconfig,
  clientCertificateKubeconfig,
  clusterInfoKubeconfig,
  tokenKubeconfig,
} from '../../../src/kube/kubeconfig-render.ts';

const caPem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const CA = Buffer.from(caPem).toString('base64');
const keyPem = '-----BEGIN PRIVATE KEY-----\nBB==\n-----END PRIVATE KEY-----\n';
const cluster = { clusterName: 'kubernetes', server: 'https://10.0.0.1:6443', caPem };

describe('tokenKubeconfig', () => {
  it('is read back with its token', () => {
    const text = tokenKubeconfig({ ...cluster, user: 'x', token: new Secret('123456.1234567890123456') });
    expect(resolveContext(parseKubeconfig(text.reveal(), 'x')).user?.token?.reveal()).toBe('123456.1234567890123456');
  });

  it('masks the right place when the token also occurs elsewhere', () => {
    const text = tokenKubeconfig({ ...cluster, clusterName: 'token: x', user: 'x', token: new Secret('x') });
    expect(String(text).split('[secret]')).toHaveLength(2);
    expect(String(text)).toMatch(/ {4}token: \[secret\]\n$/);
  });
});

describe('clientCertificateKubeconfig', () => {
  const text = clientCertificateKubeconfig({ ...cluster, user: 'kubernetes-admin', certificatePem: caPem, keyPem: new Secret(keyPem) });

  it('embeds certificate and key', () => {
    const { user, context } = resolveContext(parseKubeconfig(text.reveal(), 'x'));
    expect(context).toBe('kubernetes-admin@kubernetes');
    expect(user).toMatchObject({ name: 'kubernetes-admin', certData: CA });
    expect(user?.keyData?.reveal()).toBe(Buffer.from(keyPem).toString('base64'));
  });

  it('shows the certificate and not the key', () => {
    expect(String(text)).toContain(`    client-certificate-data: ${CA}\n    client-key-data: [secret]\n`);
    expect(String(text)).not.toContain(Buffer.from(keyPem).toString('base64'));
  });
});

it('clientCertificateFileKubeconfig names files', () => {
  const pem = '/var/lib/kubelet/pki/kubelet-client-current.pem';
  const text = clientCertificateFileKubeconfig({ ...cluster, user: 'system:node:w1', certificateFile: pem, keyFile: pem });
  expect(resolveContext(parseKubeconfig(text, 'x')).user).toMatchObject({ name: 'system:node:w1', certFile: pem, keyFile: pem });
});

it('clusterInfoKubeconfig has one cluster without a name and nothing else', () => {
  expect(clusterInfoKubeconfig({ server: 'https://10.0.0.1:6443', caPem })).toBe(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${CA}
    server: https://10.0.0.1:6443
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
`);
});
