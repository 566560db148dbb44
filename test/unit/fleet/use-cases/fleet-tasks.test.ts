import { describe, expect, it } from 'vitest';
import { type PlanContext, savePlan } from '../../../../src/fleet/plan/saved-plan.ts';
import type { FleetRunRequest } from '../../../../src/fleet/use-cases/fleet-request.ts';
import { readTasks } from '../../../../src/fleet/use-cases/fleet-tasks.ts';
import { DEFAULT_RUN } from '../../../../src/host/run-settings.ts';
import { withRun } from '../../../support/with-run.ts';

const CONTEXT: PlanContext = {
  fleet: { file: 'fleet.yaml', directory: '/srv', name: null },
  cluster: { kubeconfig: 'admin.conf', context: null, configuration: null, endpoint: null, caFile: null, caCertHashes: [], token: null },
  server: 'https://10.0.0.1:6443',
  takeOver: false,
  ignorePreflightErrors: [],
};

const REQUEST = {
  file: undefined,
  selection: { limit: [], groups: [] },
  run: DEFAULT_RUN,
  rules: {},
  writing: {},
} as unknown as FleetRunRequest;

const LIFETIME = { createdAt: new Date('2026-03-01T12:00:00Z'), validForMs: 3_600_000 };

function servicesWith(text: string, now = '2026-03-01T12:59:59Z'): Parameters<typeof readTasks>[0] {
  const clock = { now: () => new Date(now) };
  return { clock, input: { readText: async () => text, exists: async () => true } } as unknown as Parameters<typeof readTasks>[0];
}

/** Whether the tasks of a saved plan may end pods. */
async function podLossOf(context: Partial<PlanContext>, request: Partial<FleetRunRequest>): Promise<unknown> {
  const text = JSON.stringify(savePlan({ ...CONTEXT, ...context }, [], LIFETIME));
  return (await readTasks(servicesWith(text), { ...REQUEST, planFile: 'plan.json', ...request })).request.run.podLoss;
}

describe('the tasks of a saved plan', () => {
  it.each<[string, Partial<PlanContext>, Partial<FleetRunRequest>, string]>([
    ['by default', {}, {}, 'refuse'],
    ['if the plan was made with --allow-pod-loss', { allowPodLoss: true }, {}, 'warn'],
    ['with --allow-pod-loss of apply', {}, withRun({ podLoss: 'warn' }), 'warn'],
  ])('treat changes that would end pods %s', async (_, context, request, expected) => {
    expect(await podLossOf(context, request)).toBe(expected);
  });

  it.each<[string, Partial<PlanContext>, Partial<FleetRunRequest>, unknown]>([
    ['by default what apply permits by default', {}, {}, undefined],
    ['the class that the plan was made with', { allow: 'drain' }, {}, 'drain'],
    ['a higher --allow of apply', { allow: 'new-pods-only' }, withRun({ allow: 'unsafe' }), 'unsafe'],
    ['a lower --allow of apply', { allow: 'drain' }, withRun({ allow: 'safe' }), 'safe'],
  ])('permit %s', async (_, context, request, expected) => {
    const text = JSON.stringify(savePlan({ ...CONTEXT, ...context }, [], LIFETIME));
    const { request: permitted } = await readTasks(servicesWith(text), { ...REQUEST, planFile: 'plan.json', ...request });
    expect(permitted.run.allow).toBe(expected);
  });

  it('are refused from the time at which the plan expires', async () => {
    const text = JSON.stringify(savePlan(CONTEXT, [], LIFETIME));
    const read = (now: string) => readTasks(servicesWith(text, now), { ...REQUEST, planFile: 'plan.json' });
    expect((await read('2026-03-01T12:59:59.999Z')).server).toBe(CONTEXT.server);
    await expect(read('2026-03-01T13:00:00Z')).rejects.toMatchObject({
      exitCode: 2,
      code: 'PLAN_EXPIRED',
      message: expect.stringContaining('the plan of 2026-03-01T12:00:00.000Z expired at 2026-03-01T13:00:00.000Z'),
    });
  });

  it('are refused without a plan file if a signature is required, and for a plan on standard input', async () => {
    const signed = { signers: { allowedSigners: 'signers' } };
    await expect(readTasks(servicesWith(''), { ...REQUEST, planFile: undefined, ...signed })).rejects.toThrow('requires a saved plan');
    await expect(readTasks(servicesWith(''), { ...REQUEST, planFile: '-', ...signed })).rejects.toThrow('has no signature file');
  });
});
