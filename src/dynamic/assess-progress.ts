import { type ConfigSource, sameSource } from '../kubelet/config-source.ts';
import type { ConfigState, ConfigVerdict } from './assess-node-config.ts';
import type { NodeConfig } from './node-config.ts';

/** Where a node is to come. */
export interface Goal {
  /** Null: the local configuration. */
  readonly desired: ConfigSource | null;
  /** How far: a healthy trial, or the last known good. */
  readonly until: 'trial' | 'good';
}

/** `there` · `lost`: it will not come there by itself · `under-way`. */
export type Progress = 'there' | 'lost' | 'under-way';

/** Nothing changes from there by waiting. */
const FINAL: ReadonlySet<ConfigState> = new Set(['fell-back', 'looping', 'off']);
/** A node is authorized to read the ConfigMap a moment after it is assigned: the first try may fail. */
const SYNC_GRACE_MS = 60_000;

/** Says how a node does that was assigned something that long ago. It is there when it is Ready with it. */
export function assessProgress(config: NodeConfig, verdict: ConfigVerdict, goal: Goal, elapsedMs: number): Progress {
  if (runsDesired(config, verdict, goal) && (goal.desired === null || config.isReady)) return 'there';
  // A node that fell back from what it had before is not lost yet.
  const isAbout = verdict.state !== 'fell-back' || sameSource(config.status?.assigned ?? null, goal.desired);
  return (FINAL.has(verdict.state) && isAbout) || (verdict.state === 'not-synced' && elapsedMs > SYNC_GRACE_MS) ? 'lost' : 'under-way';
}

/** Whether a node's configuration is where it was to come, however the node is. */
export function runsDesired(config: NodeConfig, verdict: ConfigVerdict, { desired, until }: Goal): boolean {
  if (desired === null) return verdict.state === 'local';
  const assigned = config.status?.assigned ?? null;
  // A version of the ConfigMap that is newer than the one looked at is as good: somebody edited it since.
  if (assigned === null || !sameSource(assigned, desired)) return false;
  return verdict.state === 'good' || (until === 'trial' && verdict.state === 'trial');
}
