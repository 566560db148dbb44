import { expect, it } from 'vitest';
import type { ReportEvent } from '../../../../src/base/reporter.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { clusterNoSuchKind } from '../../../../src/kube/cluster-problems.ts';
import { runController } from '../../../../src/rollouts/controller/run-controller.ts';
import { controllerPorts } from '../../../support/controller-ports.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

it('shows once, without its code, how to install the definition of rollouts', async () => {
  const cluster = fakeCluster();
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
  const list: Cluster['list'] = async (type, options) => {
    if (type.kind === 'KubeletConfigRollout') throw clusterNoSuchKind('https://10.0.0.1:6443', type.apiVersion, type.kind);
    return cluster.list(type, options);
  };
  const stop = new AbortController();
  const events: ReportEvent[] = [];
  const report = (event: ReportEvent) => void events.push(event);
  const options = { namespace: 'kubeletadm-system', identity: 'controller-1' };
  const running = runController(controllerPorts({ ...cluster, list }, stop.signal, report), options);
  const found = () => events.filter(({ level }) => level === 'warning').map(({ code, message }) => [code, message]);
  await expect.poll(found, { timeout: 20_000 }).not.toEqual([]);
  stop.abort();
  await running;
  expect(found()).toEqual([
    [
      'CLUSTER_NO_SUCH_KIND',
      'the API server https://10.0.0.1:6443 has no kind KubeletConfigRollout in kubeletadm.dev/v1alpha1. Install the CustomResourceDefinition with the controller: kubeletadm controller install, or alone: kubeletadm controller crd | kubectl apply -f -.',
    ],
  ]);
});
