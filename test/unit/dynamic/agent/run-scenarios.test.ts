import { afterEach, describe, expect, it } from 'vitest';
import { SCENARIOS, scenarioNode } from '../../../support/agent-scenarios.ts';
import { NODE, newWorld, type World } from './world.ts';

let world: World;
afterEach(() => world.stop());

describe("an agent and an in-memory kubelet in the kubelet's scenarios", () => {
  it.each(SCENARIOS.map((scenario) => [`${scenario.number}. ${scenario.title}`, scenario] as const))('%s', async (_, scenario) => {
    world = newWorld();
    world.start();
    const node = scenarioNode({ cluster: world.cluster, nodeName: NODE, until: world.until });
    await node.reports({});
    await scenario.play(node);
    await node.reports(scenario.status);
    expect(world.starts()).toBe(scenario.restarts);
  });
});
