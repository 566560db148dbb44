import { describe, expect, it } from 'vitest';
import { createCa } from '../../../../../lab/api-server/pki.ts';
import { observeControlPlaneState } from '../../../../../src/kubeadm/workflows/control-plane/control-plane-state.ts';
import { fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeHost } from '../../../../support/fake-host.ts';

const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver.yaml';
const BOOTSTRAP = '/etc/kubernetes/bootstrap-kubelet.conf';
const KUBELET = '/etc/kubernetes/kubelet.conf';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const CONF = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://a:6443}}]
users: [{name: u, user: {client-certificate: ${PEM}, client-key: ${PEM}}}]
`;
const LABEL = { 'node-role.kubernetes.io/control-plane': '' };
const { certPem, keyPem } = await (await createCa()).issueClient({ commonName: 'system:node:cp2' });
const DONE = { [MANIFEST]: 'kind: Pod\n', [KUBELET]: CONF, [PEM]: certPem + keyPem };

/** @param labels of its Node; null: no Node is registered */
function stateOf(files: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>> | null, years = 0) {
  const seconds = Math.floor(Date.now() / 1000) + years * 366 * 86_400;
  const host = fakeHost({ files, units: {}, commands: { date: () => ({ stdout: `${seconds}\n` }) } });
  const cluster = fakeCluster({ objects: labels === null ? [] : [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp2', labels } }] });
  return { host, cluster };
}

describe('the control plane state of a host', () => {
  it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>> | null, string]>([
    ['nothing', {}, null, 'none'],
    ['a worker', { [KUBELET]: CONF, [PEM]: certPem }, {}, 'none'],
    ['only its manifests', { [MANIFEST]: 'kind: Pod\n' }, null, 'unfinished'],
    ['the kubelet was started', { [MANIFEST]: 'kind: Pod\n', [BOOTSTRAP]: 'token\n' }, null, 'unfinished'],
    ['the kubelet waits for its certificate', { [MANIFEST]: 'kind: Pod\n', [KUBELET]: CONF }, null, 'unfinished'],
    ['its token still exists on the host', { ...DONE, [BOOTSTRAP]: 'token\n' }, LABEL, 'unfinished'],
    ['no Node is registered', DONE, null, 'unfinished'],
    ['its Node is not marked', DONE, { pool: 'a' }, 'unfinished'],
    ['complete', DONE, LABEL, 'present'],
  ])('%s', async (_, files, labels, state) => {
    const { host, cluster } = stateOf(files, labels);
    expect(await observeControlPlaneState(host, cluster)).toBe(state);
  });

  it('does not depend on the expiration of the kubelet certificate', async () => {
    const { host, cluster } = stateOf(DONE, LABEL, 20);
    expect(await observeControlPlaneState(host, cluster)).toBe('present');
  });

  it('depends only on the host when the Node is not readable', async () => {
    const { host, cluster } = stateOf(DONE, null);
    const other = fakeCluster({ sharedWith: cluster, user: { name: 'unprivileged', groups: [] } });
    expect(await observeControlPlaneState(host, other)).toBe('present');
  });
});
