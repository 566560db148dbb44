import { describe, expect, it } from 'vitest';
import { type PlanContext, savePlan } from '../../../../src/fleet/saved-plan.ts';
import type { FleetRunRequest } from '../../../../src/fleet/use-cases/fleet-request.ts';
import { readTasks } from '../../../../src/fleet/use-cases/fleet-tasks.ts';

const CONTEXT: PlanContext = {
  fleet: { file: 'fleet.yaml', directory: '/srv', name: null },
  cluster: { kubeconfig: 'admin.conf', context: null, configuration: null, endpoint: null, caFile: null, caCertHashes: [], token: null },
  server: 'https://10.0.0.1:6443',
  takeOver: false,
  ignorePreflightErrors: [],
};

const REQUEST = { file: undefined, selection: { limit: [], groups: [] }, podLoss: 'refuse' } as unknown as FleetRunRequest;

/** Whether the tasks of a saved plan may end pods. */
async function podLossOf(context: Partial<PlanContext>, request: Partial<FleetRunRequest>): Promise<unknown> {
  const text = JSON.stringify(savePlan({ ...CONTEXT, ...context }, []));
  const services = { input: { readText: async () => text } } as unknown as Parameters<typeof readTasks>[0];
  return (await readTasks(services, 'plan.json', { ...REQUEST, ...request })).request.podLoss;
}

describe('the tasks of a saved plan', () => {
  it.each<[string, Partial<PlanContext>, Partial<FleetRunRequest>, string]>([
    ['by default', {}, {}, 'refuse'],
    ['if the plan was made with --allow-pod-loss', { allowPodLoss: true }, {}, 'warn'],
    ['with --allow-pod-loss of apply', {}, { podLoss: 'warn' }, 'warn'],
  ])('treat changes that would end pods %s', async (_, context, request, expected) => {
    expect(await podLossOf(context, request)).toBe(expected);
  });
});
