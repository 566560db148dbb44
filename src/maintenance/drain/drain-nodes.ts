import { AppError, isAppError } from '../../base/errors.ts';
import type { MemberOutcome } from '../member-outcome.ts';
import { nextStep, type RolloutMember } from '../next-step.ts';
import { type DrainedNode, type DrainPorts, type DrainSettings, drainNode, giveBack } from './drain-node.ts';
import { nodeHeld } from './drain-problems.ts';

/** The result of a node of a run. */
export interface DrainOutcome {
  readonly node: string;
  readonly outcome: Extract<MemberOutcome, 'changed' | 'unchanged' | 'refused' | 'failed' | 'interrupted' | 'not-started'>;
  readonly error: AppError | null;
  readonly drained: DrainedNode | null;
}

/**
 * Drains nodes by the rules of a rollout: no further node is started after a failure.
 * @param limits.atOnce nodes drained at the same time
 * @param limits.timeoutMs total time limit: no node starts after it; null: none
 * @param done called for each drained node; if it throws, the node is uncordoned again
 */
export async function drainNodes(
  ports: DrainPorts,
  names: readonly string[],
  settings: DrainSettings,
  limits: { readonly atOnce: number; readonly timeoutMs: number | null },
  done: (drained: DrainedNode) => Promise<void>,
): Promise<readonly DrainOutcome[]> {
  const members = names.map((name) => ({ name, state: 'queued' as RolloutMember['state'], result: null as DrainOutcome | null }));
  const rules = { canary: 0, maxUnavailable: limits.atOnce, maxFail: 0 };
  const now = (): number => ports.run.clock.now().getTime();
  const end = limits.timeoutMs === null ? Number.POSITIVE_INFINITY : now() + limits.timeoutMs;
  const running = new Set<Promise<void>>();
  for (;;) {
    const { start } = ports.signal.aborted || now() >= end ? { start: [] } : nextStep(members, rules);
    for (const member of start) {
      member.state = 'in-progress';
      const timeoutMs = Math.min(settings.timeoutMs, Math.max(1, end - now()));
      const work = drainOne(ports, member.name, { ...settings, timeoutMs }, done).then((result) => {
        member.result = result;
        member.state = result.outcome;
        running.delete(work);
      });
      running.add(work);
    }
    if (running.size === 0) break;
    await Promise.race(running);
  }
  const left = ports.signal.aborted ? 'interrupted' : 'not-started';
  return members.map(({ name, result }) => result ?? { node: name, outcome: left, error: null, drained: null });
}

async function drainOne(
  ports: DrainPorts,
  node: string,
  settings: DrainSettings,
  done: (drained: DrainedNode) => Promise<void>,
): Promise<DrainOutcome> {
  try {
    const drained = await drainNode(ports, node, settings);
    if (drained.state === 'skipped')
      return { node, outcome: 'refused', drained, error: new AppError(nodeHeld(node, drained.why), { exitCode: 3 }) };
    if (drained.problem !== null) return { node, outcome: 'failed', drained, error: new AppError(drained.problem) };
    await done(drained).catch(async (error: unknown) => {
      if (drained.isOurs) await giveBack(ports, node);
      throw error;
    });
    return { node, outcome: 'changed', drained, error: null };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { node, outcome: ports.signal.aborted ? 'interrupted' : 'failed', error, drained: null };
  }
}
