import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { conditionOf } from '../../../src/kube/node-conditions.ts';
import { giveBack } from '../../../src/maintenance/drain/drain-node.ts';
import { nodeRef, takeHold } from '../../../src/maintenance/drain/hold.ts';
import { plannedDrains, removePlanned } from '../../../src/maintenance/drain/planned-drains.ts';
import { whileDrained } from '../../../src/maintenance/drain/while-drained.ts';
import { drainNode as node, drainPod as pod, scaled } from '../../support/drain-objects.ts';
import { drainWorld } from '../../support/drain-world.ts';

const NAMES = ['n1', 'n2', 'n3'];
const POLICY = { isAllowed: true, isForced: false, timeoutMs: 60_000, settleMs: 0 };

function world() {
  const firmware = { type: 'MaintenancePlanned', status: 'True', reason: 'AdminRequested', message: 'firmware' };
  const held = { ...node('n3'), status: { conditions: [{ type: 'Ready', status: 'True' }, firmware] } };
  const found = drainWorld([node('n1'), node('n2'), held, scaled('ReplicaSet/web', 1), pod('web-0', 'n1')]);
  const messages = async () => {
    const { items } = await found.cluster.list({ apiVersion: 'v1', kind: 'Node' });
    return items.map((object) => conditionOf(object, 'MaintenancePlanned')?.message ?? null);
  };
  const requests = () => found.cluster.calls.filter((call) => / Node(\/| |$)/.test(call) && !call.startsWith('list'));
  return { ...found, messages, requests };
}

const OWN = 'kubeletadm: a test, by alice@laptop';

describe('the nodes that a run is going to drain', () => {
  it('have the condition MaintenancePlanned until the run is done with them, with one read and one patch each', async () => {
    const { cluster, run, messages, requests } = world();
    const planned = plannedDrains(run);
    await planned.add(cluster, NAMES);
    await planned.add(cluster, ['n1']);
    expect(requests()).toHaveLength(3 + 2);
    expect(await messages()).toEqual([OWN, OWN, 'firmware']);
    await planned.remove('n1');
    expect(await messages()).toEqual([null, OWN, 'firmware']);
    await planned.removeAll();
    expect(await messages()).toEqual([null, null, 'firmware']);
    expect(requests()).toHaveLength(2 * 5);
  });

  it('lose it with their drain, also those that a killed run of another operator has marked', async () => {
    const here = world();
    const { cluster, run, messages } = here;
    await plannedDrains({ ...run, run: 'run-0', self: { ...run.self, name: 'bob@host' } }).add(cluster, NAMES);
    expect((await messages())[0]).toContain('bob@host');
    const planned = plannedDrains(run);
    await planned.add(cluster, ['n1', 'n2']);
    expect(await messages()).toEqual([OWN, OWN, 'firmware']);
    await whileDrained(here, { node: 'n1', impact: 'drain', isRestored: () => true }, POLICY, async () => undefined);
    expect(await messages()).toEqual([null, OWN, 'firmware']);
    await planned.removeAll();
    expect(await messages()).toEqual([null, null, 'firmware']);
  });

  it('keep it if another run holds them, or the API server does not answer', async () => {
    const here = world();
    const { cluster, run, messages } = here;
    const planned = plannedDrains(run);
    await planned.add(cluster, ['n1', 'n2']);
    const other = { ...run, run: 'run-2' };
    await takeHold(cluster, 'n1', other);
    cluster.failNext('get Node n2', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' }));
    await planned.removeAll();
    expect(await messages()).toEqual([OWN, OWN, 'firmware']);
    await giveBack({ ...here, run: other }, 'n1');
    expect(await messages()).toEqual([null, OWN, 'firmware']);
    expect(await removePlanned(cluster, 'n2', () => true)).toBe(true);
    expect(await messages()).toEqual([null, null, 'firmware']);
  });

  it('keep it until the end of another run of the same operator, which has marked them later', async () => {
    const { cluster, run, messages } = world();
    const planned = plannedDrains(run);
    await planned.add(cluster, ['n1', 'n2']);
    const later = plannedDrains({ ...run, run: 'run-2' });
    await later.add(cluster, ['n1']);
    await planned.removeAll();
    expect(await messages()).toEqual([OWN, null, 'firmware']);
    await later.removeAll();
    expect(await messages()).toEqual([null, null, 'firmware']);
  });

  it('keep it if another program has set it meanwhile', async () => {
    const { cluster, run, messages } = world();
    const planned = plannedDrains(run);
    await planned.add(cluster, ['n1']);
    const type = 'MaintenancePlanned';
    const condition = { type, status: 'True', reason: 'Firmware', message: OWN, lastTransitionTime: '2031-01-01T00:00:00Z' };
    await cluster.patch(nodeRef('n1'), 'strategic', { status: { conditions: [condition] } }, { subresource: 'status' });
    await planned.removeAll();
    expect(await messages()).toEqual([OWN, null, 'firmware']);
  });

  it('do not stop a run whose credentials may not mark them', async () => {
    const { cluster, run, messages } = world();
    const patch = () => Promise.reject(new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'cannot patch nodes/status' }));
    const planned = plannedDrains(run);
    await planned.add({ ...cluster, patch } as Cluster, NAMES);
    await planned.removeAll();
    expect(await messages()).toEqual([null, null, 'firmware']);
  });
});
