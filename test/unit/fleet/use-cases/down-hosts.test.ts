import { expect, it } from 'vitest';
import type { HostOutcome } from '../../../../src/fleet/run/fleet.ts';
import { downHosts } from '../../../../src/fleet/use-cases/approve-plan.ts';
import { drainNode } from '../../../support/drain-objects.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

/** A host that is not changed; its Node was not Ready when it was planned. */
const planned = (host: string, node: string | null, more: Partial<HostOutcome> = {}): HostOutcome => ({
  host,
  status: 'unchanged',
  plan: { host: { name: host, phases: [], ...(node === null ? {} : { own: { node } }) }, warnings: [], refusals: [], isDown: true },
  error: null,
  ...more,
});

it('are those that were down when they were planned, without Nodes that are Ready since', async () => {
  const notReady = { ...drainNode('n2'), status: { conditions: [{ type: 'Ready', status: 'False' }] } };
  const cluster = fakeCluster({ objects: [drainNode('n1'), notReady] });
  const outcomes = [
    planned('repaired', 'n1'),
    planned('declared', null, { node: 'n1' }),
    planned('down', 'n2'),
    planned('deleted', 'n3'),
    planned('unknown', null),
    planned('n1', null, { status: 'unreachable', plan: null }),
    planned('changed', 'n2', { status: 'pending' }),
  ];
  expect(await downHosts(cluster, outcomes)).toEqual(['down', 'deleted', 'unknown', 'n1']);
  expect(cluster.calls.filter((call) => !call.startsWith('get Node'))).toEqual([]);
  expect(await downHosts(null, outcomes)).toEqual(['repaired', 'declared', 'down', 'deleted', 'unknown', 'n1']);
});
