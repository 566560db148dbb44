import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { present } from '../../base/present.ts';
import { firstNames } from '../../base/text/name-ranges.ts';
import { type ListedNode, MAX_LISTED, type RolloutCondition, type RolloutStatus } from '../api/schema.ts';
import type { BetweenBatches } from './between-batches.ts';
import { type Direction, listedAs, type Member } from './members.ts';
import type { Observed } from './observed.ts';

/** What the status reports apart from the nodes. */
export interface Situation {
  readonly direction: Direction;
  readonly stopped: string | null;
  readonly between: Pick<BetweenBatches, 'batch' | 'gates' | 'failed' | 'waiting'>;
  /** The revision failed, and is reverted from now on. */
  readonly isReverting: boolean;
  readonly blocked: readonly string[];
  readonly isChecking: boolean;
  readonly refused: readonly { readonly name: string; readonly why: string }[];
}

/** The status of a rollout after a decision. Times change only with their state, so that an unchanged state causes no write. */
export function statusOf(observed: Observed, members: readonly Member[], situation: Situation): RolloutStatus {
  const { rollout, revision } = observed;
  const { status } = rollout;
  const counts = countsOf(members);
  const summary = summaryOf(observed, counts, situation);
  const isEnabledDone = counts.pending + counts.inProgress === 0 && situation.direction === 'forward' && observed.refusal === null;
  const { batch, gates, waiting } = situation.between;
  const isCurrent = isEnabledDone && situation.stopped === null && waiting === null && counts.failed <= rollout.spec.strategy.maxFailures;
  const { nodes, omitted } = listed(members);
  const failedRevision = situation.isReverting ? revision.name : status.failedRevision === revision.name ? revision.name : undefined;
  return {
    observedGeneration: rollout.generation,
    phase: summary.phase,
    conditions: conditionsOf(observed, summary),
    counts,
    updateRevision: revision.name,
    updateConfigMap: revision.source,
    ...present({
      nodes: nodes.length === 0 ? undefined : [...nodes],
      omittedNodes: omitted === 0 ? undefined : omitted,
      currentRevision: isCurrent ? revision.name : status.currentRevision,
      currentConfigMap: isCurrent ? revision.source : status.currentConfigMap,
      failedRevision,
      batch,
      gates,
      leader: status.leader,
    }),
  };
}

type Counts = NonNullable<RolloutStatus['counts']>;

function countsOf(members: readonly Member[]): Counts {
  const numberOf = (...states: readonly Member['state'][]): number => members.filter(({ state }) => states.includes(state)).length;
  return {
    selected: members.length,
    updated: members.filter(({ state, target }) => state === 'Updated' && target !== undefined).length,
    inProgress: numberOf('InProgress'),
    pending: numberOf('Pending'),
    failed: numberOf('Failed', 'Unreachable'),
    unavailable: members.filter(({ state, node }) => state === 'InProgress' || !node.assessed.config.isReady).length,
    notEnabled: numberOf('NotEnabled'),
  };
}

const ORDER: readonly Member['state'][] = ['Failed', 'Unreachable', 'InProgress', 'NotEnabled', 'Pending'];

function listed(members: readonly Member[]): { readonly nodes: readonly ListedNode[]; readonly omitted: number } {
  const all = ORDER.flatMap((state) =>
    members.filter((member) => member.state === state).map(({ entry, node }) => entry ?? listedAs(node, state, '')),
  );
  const nodes = all
    .slice(0, MAX_LISTED)
    .map(({ message, ...node }) => (message === undefined || message === '' ? node : { ...node, message }));
  return { nodes, omitted: all.length - nodes.length };
}

interface Summary {
  readonly phase: NonNullable<RolloutStatus['phase']>;
  readonly isTrue: 'Ready' | 'Reconciling' | 'Stalled';
  readonly reason: string;
  readonly message: string;
}

function summaryOf({ rollout, refusal }: Observed, counts: Counts, situation: Situation): Summary {
  const { direction, stopped, between, isReverting, blocked, isChecking, refused } = situation;
  const { failed, waiting } = between;
  const progress = progressText(counts);
  const isBusy = counts.inProgress + counts.pending > 0;
  if (refusal !== null) return stalled('Refused', refusal.reason, refusal.message);
  if (direction === 'reset') return reconciling('Deleting', 'Resetting', `nodes return to their local configuration: ${progress}`);
  if (isReverting || (direction === 'revert' && isBusy))
    return reconciling('Reverting', 'Reverting', `nodes return to their previous configuration: ${progress}`);
  const { failedRevision } = rollout.status;
  if (direction === 'revert')
    return stalled('Reverted', 'Reverted', `revision ${failedRevision} failed, and the changed nodes have their previous configuration`);
  if (refused.length > 0) return stalled('Refused', 'PayloadRefused', refusedText(refused));
  if (failed !== null) return stalled('Failed', 'GateFailed', `${failed}; ${progress}`);
  const failures = `${counts.failed} of ${counts.selected} nodes failed, and no further node is changed: ${progress}`;
  if (stopped !== null) return stalled('Failed', 'NodesFailed', failures);
  if (rollout.spec.paused && (isBusy || waiting !== null)) return reconciling('Paused', 'Paused', `paused: ${progress}`);
  if (isChecking)
    return reconciling(
      'Progressing',
      'Validating',
      `validating the configuration for ${counts.pending} ${counts.pending === 1 ? 'node' : 'nodes'}`,
    );
  if (waiting !== null) return reconciling('Progressing', waiting.reason, `${waiting.message}; ${progress}`);
  if (isBusy && blocked.length > 0) {
    const message = `${progress}; no node can start, because these are not Ready: ${firstNames(blocked, MOST_NAMES)}`;
    return reconciling('Progressing', 'WaitingForNodes', message);
  }
  if (isBusy) return reconciling('Progressing', 'Progressing', progress);
  if (counts.failed > 0) return stalled('Failed', 'NodesFailed', progress);
  if (counts.notEnabled > 0) {
    const message = `${progress}: dynamic configuration is not enabled on ${counts.notEnabled} of them`;
    return reconciling('Progressing', 'WaitingForAgents', message);
  }
  return { phase: 'Complete', isTrue: 'Ready', reason: 'Complete', message: progress };
}

function reconciling(phase: Summary['phase'], reason: string, message: string): Summary {
  return { phase, isTrue: 'Reconciling', reason, message };
}

function stalled(phase: Summary['phase'], reason: string, message: string): Summary {
  return { phase, isTrue: 'Stalled', reason, message };
}

function progressText({ selected, updated, inProgress, failed }: Counts): string {
  const more = [inProgress === 0 ? '' : `${inProgress} in progress`, failed === 0 ? '' : `${failed} failed`].filter((text) => text !== '');
  return [`${updated} of ${selected} ${selected === 1 ? 'node' : 'nodes'} updated`, ...more].join(', ');
}

const MOST_NAMES = 5;

function refusedText(refused: Situation['refused']): string {
  const shown = refused.slice(0, MOST_NAMES).map(({ name, why }) => `${name}: ${why}`);
  const more = refused.length > MOST_NAMES ? [`and ${refused.length - MOST_NAMES} more nodes`] : [];
  return [...shown, ...more].join('; ').slice(0, 4_000);
}

const TYPES = ['Ready', 'Reconciling', 'Stalled'] as const;

function conditionsOf({ rollout, now }: Observed, { isTrue, reason, message }: Summary): RolloutCondition[] {
  return TYPES.map((type) => {
    const status = type === isTrue ? 'True' : 'False';
    const before = rollout.status.conditions?.find((condition) => condition.type === type);
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now.toISOString().replace(/\.\d+/, '');
    return { type, status, observedGeneration: rollout.generation, lastTransitionTime, reason, message };
  });
}

/** The JSON merge patch that replaces an object: members that it does not have any more are null. */
export function mergePatch(before: JsonObject, after: JsonObject): JsonObject {
  const removed = Object.keys(before).flatMap((key) => (after[key] === undefined ? [[key, null] as const] : []));
  const kept = Object.entries(after).map(([key, value]) => {
    const old = before[key];
    return [key, isJsonObject(old) && isJsonObject(value) ? mergePatch(old, value) : value] as const;
  });
  return Object.fromEntries([...kept, ...removed]);
}
