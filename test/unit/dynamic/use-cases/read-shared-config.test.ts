import { expect, it } from 'vitest';
import type { InputFiles } from '../../../../src/base/local-files.ts';
import { readSharedConfig, type SharedConfigRequest } from '../../../../src/dynamic/use-cases/read-shared-config.ts';
import type { OpenClusterPorts } from '../../../../src/kubeadm/use-cases/open-cluster.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: a, user: {token: t}}]
`;

/** A cluster with the Node `n1`, whose kubelet has this version. */
function portsOf(kubeletVersion: string): OpenClusterPorts {
  const cluster = fakeCluster({
    objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, status: { nodeInfo: { kubeletVersion } } }],
  });
  const kubeletconfig = { maxPods: 60, resolvConf: '/run/resolv.conf', staticPodURLHeader: { a: ['<masked>'] } };
  cluster.proxyNode('n1', (path) => (path === '/configz' ? { status: 200, body: { kubeletconfig } } : null));
  const input: Partial<InputFiles> = { readText: async () => KUBECONFIG };
  return { env: {}, homeDirectory: '/root', input: input as InputFiles, connectCluster: async () => cluster };
}

const REQUEST: SharedConfigRequest = {
  node: 'n1',
  kind: undefined,
  withoutDefaults: true,
  isSeparated: false,
  cluster: { kubeconfig: 'admin.conf' },
};
const OVERLAY = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigurationOverlay' };
const CONFIGURATION = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

it.each([
  ['v1.36.2', undefined, OVERLAY],
  ['v1.36.2', 'configuration', CONFIGURATION],
  ['v1.23.17', 'overlay', OVERLAY],
] as const)('separates the fields of the node: kubelet %s, --kind %s', async (version, kind, header) => {
  const { document, ownDocument, nodeSpecific, masked } = await readSharedConfig(portsOf(version), { ...REQUEST, kind });
  expect(document).toEqual({ ...header, maxPods: 60 });
  expect(ownDocument).toEqual({ ...CONFIGURATION, resolvConf: '/run/resolv.conf' });
  // The kubelet has no other source for the field than a complete configuration.
  expect(nodeSpecific).toEqual([{ path: 'resolvConf', value: '/run/resolv.conf', source: header === CONFIGURATION ? 'default' : 'local' }]);
  expect(masked).toEqual(['staticPodURLHeader']);
});

it('keeps the fields of a node up to 1.23, which reads no overlay', async () => {
  const { document, nodeSpecific } = await readSharedConfig(portsOf('v1.23.17'), REQUEST);
  expect(document).toEqual({ ...CONFIGURATION, maxPods: 60, resolvConf: '/run/resolv.conf' });
  expect(nodeSpecific).toEqual([{ path: 'resolvConf', value: '/run/resolv.conf', source: 'kept' }]);
  const separated = await readSharedConfig(portsOf('v1.23.17'), { ...REQUEST, isSeparated: true });
  expect(separated.document).toEqual({ ...CONFIGURATION, maxPods: 60 });
});
