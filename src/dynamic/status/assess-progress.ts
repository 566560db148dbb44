import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { ConfigState, ConfigVerdict } from './assess-node-config.ts';
import type { NodeConfig } from './node-config.ts';

/** Desired configuration of a node. */
export interface Goal {
  /** Null: the local configuration. */
  readonly desired: ConfigSource | null;
  /** Required state: a healthy trial, or the last known good. */
  readonly until: 'trial' | 'good';
}

/** `failed` is final: waiting does not change it. */
export type Progress = 'updated' | 'failed' | 'in-progress';

const ROLLED_BACK: ReadonlySet<ConfigState> = new Set(['rolled-back', 'rejected']);
/** Final states: waiting does not change them. */
const FINAL: ReadonlySet<ConfigState> = new Set([...ROLLED_BACK, 'looping', 'off']);
/** The Node authorizer grants a new assignment's ConfigMap after a moment: the first read may fail. */
const SYNC_GRACE_MS = 60_000;

/** Whether a kubelet did not take over its assigned configuration, or returned to an earlier one. */
export function isRolledBack({ state }: ConfigVerdict): boolean {
  return ROLLED_BACK.has(state);
}

/**
 * Assesses the progress of a node since its assignment. A node is updated when it is Ready with the desired
 * configuration.
 */
export function assessProgress(config: NodeConfig, verdict: ConfigVerdict, goal: Goal, elapsedMs: number): Progress {
  if (isRunningDesired(config, verdict, goal) && (goal.desired === null || config.isReady)) return 'updated';
  // The rollback of a previous assignment is ignored.
  const isAbout = !isRolledBack(verdict) || sameSource(config.status?.assigned ?? null, goal.desired);
  return (FINAL.has(verdict.state) && isAbout) || (verdict.state === 'not-synced' && elapsedMs > SYNC_GRACE_MS) ? 'failed' : 'in-progress';
}

/** Whether a node runs the desired configuration, even if the node is not Ready. */
export function isRunningDesired(config: NodeConfig, verdict: ConfigVerdict, { desired, until }: Goal): boolean {
  if (desired === null) return verdict.state === 'local';
  const assigned = config.status?.assigned ?? null;
  // A newer version of the same ConfigMap counts as well: an edit in place.
  if (assigned === null || !sameSource(assigned, desired)) return false;
  return verdict.state === 'good' || (until === 'trial' && verdict.state === 'trial');
}
