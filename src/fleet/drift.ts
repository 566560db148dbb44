import { changedRef, isClusterChange } from '../host/plan/change.ts';
import type { HostPlan } from '../host/plan/document.ts';
import { CONFIG_YAML } from '../kube/well-known.ts';
import { type HostOutcome, hasWork } from './fleet.ts';

/** A difference between a host and the fleet file or the cluster. */
export interface Drift {
  readonly what: string;
  readonly why: string;
}

/**
 * Whether a host has drifted. A host that preflight rejects is included, because its actual state was read.
 */
export function hasDrift({ plan }: HostOutcome): boolean {
  return plan !== null && hasWork(plan.host);
}

/**
 * The differences between a host and the fleet file or the cluster; empty when the actual state was not read.
 */
export function driftOf({ plan }: HostOutcome): readonly Drift[] {
  const phases = plan?.host.phases ?? [];
  if (isNew(phases)) return [{ what: 'host', why: 'the host has not joined the cluster' }];
  const changes = phases.flatMap(({ plan: { changes } }) => changes);
  return changes.map((change): Drift => {
    const { reason } = change;
    if (isClusterChange(change)) {
      const { kind, name } = changedRef(change);
      return { what: `${kind} ${name}`, why: reason };
    }
    if (change.kind === 'daemon-reload') return { what: 'unit kubelet', why: reason };
    if (change.kind === 'confirm-commit') return { what: 'unconfirmed change', why: reason };
    if (change.kind === 'restart-unit') return { what: `unit ${change.unit}`, why: `needs a restart: ${reason}` };
    return { what: 'path' in change ? change.path : 'unit' in change ? `unit ${change.unit}` : change.kind, why: reason };
  });
}

/** The phase waits for the join, or a file does not exist without which the host is not a node. */
function isNew(phases: HostPlan['phases']): boolean {
  return phases.some(
    ({ phase, plan }) =>
      phase === 'join' ||
      plan.changes.some((change) => change.kind === 'write-file' && change.path === CONFIG_YAML && change.before === null),
  );
}
