import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { controlPlaneApiserver, etcdLocal, staticPodsInput } from '../../../../src/kubeadm/phases/static-pods.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CLUSTER = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
`;
const OPTIONS = { mayChown: true };

function context(): PhaseContext {
  return { host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
}

describe('the phases of static pods', () => {
  it('write the manifest and create its directories, and plan nothing the second time', async () => {
    const input = staticPodsInput(controlPlaneNode(`${CLUSTER}etcd: {local: {dataDir: /data/etcd}}\n`), ['etcd'], OPTIONS);
    const within = context();
    const [first] = await planPhases([etcdLocal], within, input);
    expect(first?.plan.changes).toMatchObject([
      { kind: 'make-directory', path: '/etc/kubernetes/manifests', mode: 0o700 },
      { kind: 'make-directory', path: '/data/etcd', mode: 0o700 },
      { kind: 'write-file', path: '/etc/kubernetes/manifests/etcd.yaml', mode: 0o600, owner: 'root:root' },
    ]);
    await applyPhases([etcdLocal], within, input, []);
    expect((await planPhases([etcdLocal], within, input))[0]?.plan).toEqual({ changes: [], noop: 'the manifest is unchanged' });
  });

  it('update a manifest', async () => {
    const within = context();
    const input = (cluster: string) => staticPodsInput(controlPlaneNode(CLUSTER + cluster), ['kube-apiserver'], OPTIONS);
    await applyPhases([controlPlaneApiserver], within, input(''), []);
    const [again] = await planPhases([controlPlaneApiserver], within, input('imageRepository: registry.example.org\n'));
    expect(again?.plan.changes).toMatchObject([{ kind: 'write-file', action: 'update' }]);
  });

  it('write no manifest for external etcd', async () => {
    const node = controlPlaneNode(`${CLUSTER}etcd: {external: {endpoints: [http://10.0.0.1:2379]}}\n`);
    const [only] = await planPhases([etcdLocal], context(), staticPodsInput(node, ['etcd'], OPTIONS));
    expect(only?.plan).toEqual({ changes: [], noop: 'etcd is external' });
  });
});
