import { describe, expect, it } from 'vitest';
import { clientIdentity } from '../../../../src/kubelet/facts/kubelet-identity.ts';
import { commandOutput, parseFact, textFile } from '../../../support/answers.ts';
import { fixture } from '../../../support/fixture.ts';

const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const VALID = fixture(import.meta.url, '../../host/facts/fixtures/certificates/valid-until-2099.pem');
const EXPIRED = fixture(import.meta.url, '../../host/facts/fixtures/certificates/expired-2021.pem');
const NOW = commandOutput('1893456000\n');

function kubeconfig(user: string): string {
  return `apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster:
    server: https://10.0.0.1:6443
users:
- name: default-auth
  user: ${user}
contexts: []
current-context: default-context
`;
}

/** The kubeconfig that the kubelet writes after its TLS bootstrap. */
const BY_KUBELET = kubeconfig(`{client-certificate: ${PEM}, client-key: ${PEM}}`);
const usable = {
  state: 'usable',
  commonName: 'system:node:worker-2',
  notAfter: '2099-12-31T00:00:00.000Z',
  server: 'https://10.0.0.1:6443',
};

describe('clientIdentity', () => {
  it.each([
    ['no kubelet.conf', {}, { state: 'missing' }],
    [
      'kubelet.conf without its certificate',
      { conf: textFile(BY_KUBELET), date: NOW },
      { state: 'unusable', why: `${PEM} does not exist yet` },
    ],
    ['both', { conf: textFile(BY_KUBELET), pem: textFile(VALID), date: NOW }, { ...usable, source: PEM }],
    [
      'both, with the key after the certificate',
      {
        conf: textFile(BY_KUBELET),
        pem: textFile(`${VALID}-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n`),
        date: NOW,
      },
      { ...usable, source: PEM },
    ],
    [
      'a certificate in kubelet.conf itself',
      { conf: textFile(kubeconfig(`{client-certificate-data: ${Buffer.from(VALID).toString('base64')}}`)), date: NOW },
      { ...usable, source: '/etc/kubernetes/kubelet.conf' },
    ],
    [
      'an expired certificate',
      { conf: textFile(BY_KUBELET), pem: textFile(EXPIRED), date: NOW },
      { state: 'unusable', why: `the client certificate in ${PEM} expired on 2021-01-01T00:00:00.000Z`, commonName: usable.commonName },
    ],
    [
      'a host with an unknown time',
      { conf: textFile(BY_KUBELET), pem: textFile(EXPIRED) },
      { ...usable, source: PEM, notAfter: '2021-01-01T00:00:00.000Z' },
    ],
    [
      'a file that is not a certificate',
      { conf: textFile(BY_KUBELET), pem: textFile('hello\n'), date: NOW },
      { state: 'unusable', why: `${PEM} contains no certificate` },
    ],
    [
      'a damaged certificate',
      { conf: textFile(BY_KUBELET), pem: textFile('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'), date: NOW },
      { state: 'unusable', why: `${PEM} contains a certificate that cannot be read` },
    ],
    [
      'an empty certificate',
      { conf: textFile(BY_KUBELET), pem: textFile(''), date: NOW },
      { state: 'unusable', why: `${PEM} contains no certificate` },
    ],
    [
      'a certificate elsewhere',
      { conf: textFile(kubeconfig('{client-certificate: /srv/kubelet.pem}')), date: NOW },
      { state: 'usable', source: '/srv/kubelet.pem', commonName: null, notAfter: null, server: usable.server },
    ],
    [
      'a token',
      { conf: textFile(kubeconfig('{token: abc}')), date: NOW },
      { state: 'usable', source: '/etc/kubernetes/kubelet.conf', commonName: null, notAfter: null, server: usable.server },
    ],
    [
      'a credential plugin',
      { conf: textFile(kubeconfig('{exec: {command: x}}')), date: NOW },
      { state: 'usable', source: '/etc/kubernetes/kubelet.conf', commonName: null, notAfter: null, server: usable.server },
    ],
    [
      'a kubeconfig without credentials',
      { conf: textFile(kubeconfig('{}')), date: NOW },
      { state: 'unusable', why: '/etc/kubernetes/kubelet.conf has no credentials' },
    ],
    [
      'a kubeconfig without users',
      { conf: textFile('apiVersion: v1\nkind: Config\nusers: []\n'), date: NOW },
      { state: 'unusable', why: '/etc/kubernetes/kubelet.conf has no credentials' },
    ],
    [
      'a file that is not a kubeconfig',
      { conf: textFile('a: [\n'), date: NOW },
      { state: 'unusable', why: '/etc/kubernetes/kubelet.conf is not a kubeconfig' },
    ],
    [
      'an empty kubelet.conf',
      { conf: textFile(''), date: NOW },
      { state: 'unusable', why: '/etc/kubernetes/kubelet.conf is not a kubeconfig' },
    ],
  ])('%s', (_, given, expected) => {
    expect(parseFact(clientIdentity, given)).toEqual(expected);
  });
});
