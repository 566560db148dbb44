import { expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { type FleetRules, runFleet } from '../../../src/fleet/run/fleet.ts';
import type { FleetMember } from '../../../src/fleet/run/fleet-member.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { seededRandom } from '../../support/seeded-random.ts';

const PLAN: HostPlan = {
  name: 'a host',
  phases: [{ phase: 'kubelet-start', plan: { changes: [{ kind: 'restart-unit', unit: 'kubelet', reason: 'a test' }] } }],
};
const failure = (code: string, exitCode: 1 | 3 | 5 = 1): AppError => new AppError({ code, message: 'a test' }, { exitCode });

/**
 * A fleet with random failures, rules and durations. Some failed hosts run their kubelet afterwards, others do not.
 * @returns whether the run ended, and the largest number of hosts that were down when a change of another was in progress
 */
async function runRandomFleet(seed: number) {
  const random = seededRandom(seed);
  const upTo = (most: number): number => Math.floor(random() * (most + 1));
  const isLikely = (share: number): boolean => random() < share;
  const turns = async (): Promise<void> => {
    for (let left = upTo(3); left >= 0; left--) await new Promise((resolve) => setImmediate(resolve));
  };
  const down = new Set<string>();
  const changing = new Set<string>();
  const changed: string[] = [];
  const found = { most: 0, lost: 0 };
  const member = (name: string): FleetMember => {
    const isDownBefore = isLikely(0.1);
    const isControlPlane = isLikely(0.15);
    const place = { stage: isControlPlane ? 1 : 0, isExclusive: isControlPlane, zone: ['a', 'b'][upTo(2)] };
    return {
      name,
      ...place,
      open: async () => {
        await turns();
        if (isLikely(0.05)) {
          down.add(name);
          throw failure('HOST_UNREACHABLE');
        }
        if (isLikely(0.05)) throw failure('PREFLIGHT', 3);
        if (isDownBefore) down.add(name);
        return {
          planned: { host: PLAN, warnings: [], refusals: [], isDown: isDownBefore },
          apply: async () => {
            changed.push(name);
            changing.add(name);
            if (!isDownBefore) found.most = Math.max(found.most, new Set([...changing, ...down]).size);
            await turns();
            changing.delete(name);
            if (isLikely(0.7)) {
              down.delete(name);
              return PLAN;
            }
            const error = [failure('PREFLIGHT', 3), failure('KUBELET_UNHEALTHY', 5), failure('KUBELET_UNHEALTHY')][upTo(2)] as AppError;
            if (error.exitCode === 1 && isLikely(0.7)) {
              down.add(name);
              found.lost++;
            }
            throw error;
          },
          isNodeDown: async () => {
            await turns();
            return down.has(name);
          },
          close: async () => undefined,
        };
      },
    };
  };
  const members = Array.from({ length: 2 + upTo(10) }, (_, i) => member(`h${i}`));
  const rules: FleetRules = {
    canary: upTo(2),
    maxUnavailable: 1 + upTo(3),
    maxFail: isLikely(0.5) ? upTo(5) : null,
    parallel: 1 + upTo(5),
    maxOpen: 20,
    observesFirst: isLikely(0.3),
    order: ([undefined, 'zone', 'spread'] as const)[upTo(2)],
  };
  const ports = { signal: new AbortController().signal, reporterOf: () => recordingReporter() };
  const { outcomes } = await runFleet(members, rules, ports);
  return { ...found, rules, changed, outcomes, names: members.map(({ name }) => name) };
}

it('a run over a random fleet never has more hosts down than --max-unavailable, and always ends', async () => {
  let lost = 0;
  for (let seed = 1; seed <= 1_000; seed++) {
    const run = await runRandomFleet(seed);
    expect(run.most, `seed ${seed}: ${JSON.stringify(run.rules)}`).toBeLessThanOrEqual(run.rules.maxUnavailable);
    expect(run.outcomes.map(({ host }) => host)).toEqual(run.names);
    expect(new Set(run.changed).size, `seed ${seed}`).toBe(run.changed.length);
    lost += run.lost;
  }
  expect(lost).toBeGreaterThan(100);
});
