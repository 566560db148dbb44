import { expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { statusReporter } from '../../../../src/dynamic/agent/report-status.ts';
import { newAgentState } from '../../../../src/dynamic/agent/state.ts';
import { DEFAULT_TIMING } from '../../../../src/kubelet/health/assess.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };

it('reports immediately when the API server is reachable again, without waiting for the end of the retry delay', async () => {
  const cluster = fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }] });
  const stop = new AbortController();
  const pauses: number[] = [];
  // A delay that ends only when it is interrupted.
  const clock = {
    now: () => new Date('2030-01-01'),
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((_, reject) => {
        pauses.push(ms);
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
  };
  const reporter = statusReporter({ cluster, nodeName: 'n1', clock, random: () => 0.5, timing: DEFAULT_TIMING, signersFile: null });
  const running = reporter.run(stop.signal);
  const turn = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  cluster.failNext('patch Node', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no route' }));
  reporter.nodeIs(await cluster.get(NODE));
  reporter.stateIs(newAgentState(0));
  await turn();
  expect([pauses.length, reporter.isDelivered]).toEqual([1, false]);
  reporter.nodeIs(null);
  await turn();
  expect(reporter.isDelivered).toBe(true);
  expect((await cluster.get(NODE))?.metadata.annotations ?? {}).toEqual({});
  reporter.nodeIs(await cluster.get(NODE));
  await turn();
  expect((await cluster.get(NODE))?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION]).toBe('{}');
  stop.abort();
  await running;
});
