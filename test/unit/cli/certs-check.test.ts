import { expect, it } from 'vitest';
import { createCa } from '../../../lab/api-server/pki.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { runCommand } from '../../support/run-cli.ts';

const ca = await createCa('kubernetes');
const CURRENT = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const CONF = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: ${Buffer.from(ca.certPem).toString('base64')}}}]
users: [{name: u, user: {client-certificate: ${CURRENT}, client-key: ${CURRENT}}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`;

it.each([
  ['system:node:w1', 'w1'],
  ['x, CN=system:node:w1', null],
  ['system:node:w1, CN=x', null],
])('certs check of a kubelet certificate for CN=%s names the Node %s', async (commonName, node) => {
  const { certPem, keyPem } = await ca.issueClient({ commonName, organizations: ['system:nodes'] });
  const files = {
    '/etc/kubernetes/kubelet.conf': CONF,
    [CURRENT]: certPem + keyPem,
    '/etc/kubernetes/pki/ca.crt': ca.certPem,
  };
  const services = () => ({ connectHost: async () => fakeHost({ files, commands: { 'date +%s': { exitCode: 1, stdout: '' } } }) });
  const { stdout } = await runCommand(['certs', 'check', '-o', 'json'], { services });
  expect(JSON.parse(stdout).hosts).toMatchObject([{ node }]);
});
