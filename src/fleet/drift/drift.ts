import { type Change, changedRef, isClusterChange } from '../../host/plan/change.ts';
import { CONTENT_DIFFERS } from '../../host/plan/diff-file.ts';
import { type HostPlan, hasChangesOrDeferred } from '../../host/plan/document.ts';
import { BOOTSTRAP_CONF, KUBELET_CONF, KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import { CONFIG_OVERRIDDEN } from '../../kubeadm/workflows/node/check-config-source.ts';
import { shownChanges } from '../plan/operations.ts';
import type { HostOutcome } from '../run/fleet.ts';
import { type DriftEvidence, describeFieldDrift, type FieldDrift, fieldDrift } from './field-drift.ts';

/** Credentials of a new node: a joining one, or the first control plane. */
const NEW_NODE_FILES: readonly string[] = [BOOTSTRAP_CONF, KUBELET_CONF];

/** A difference between a host and the fleet file or the cluster. */
export interface Drift {
  readonly what: string;
  readonly why: string;
  /** Of a field of the kubelet's configuration. */
  readonly field?: FieldDrift;
}

/**
 * Whether a host has drifted, or runs a ConfigMap that overrides a field of the fleet file. A host that preflight
 * rejects is included, because its actual state was read.
 */
export function hasDrift({ plan }: HostOutcome): boolean {
  return plan !== null && (hasChangesOrDeferred(plan.host) || overridesIn(plan).length > 0);
}

/** The fields of the fleet file that a ConfigMap overrides on a host. */
export function overridesOf({ plan }: HostOutcome): readonly Drift[] {
  return plan === null ? [] : overridesIn(plan);
}

function overridesIn({ warnings }: NonNullable<HostOutcome['plan']>): readonly Drift[] {
  return warnings.flatMap(({ code, field, message }) =>
    code === CONFIG_OVERRIDDEN ? [{ what: field ?? KUBELET_CONFIG_FILE, why: message }] : [],
  );
}

interface DriftOptions {
  readonly verbosity?: number;
  readonly kubelet?: PendingChanges | undefined;
  readonly evidence?: DriftEvidence | undefined;
}

/**
 * The differences between a host and the fleet file or the cluster; empty when the actual state was not read.
 * @param options.evidence the recorded and running values of its fields
 * @param options.verbosity 1 or more includes the program's internal files. Default: 0
 * @param options.kubelet what its running kubelet has not read. Default: nothing
 */
export function driftOf({ plan }: HostOutcome, { verbosity = 0, kubelet, evidence = {} }: DriftOptions = {}): readonly Drift[] {
  const phases = plan?.host.phases ?? [];
  if (isNew(phases)) return [{ what: 'host', why: 'the host has not joined the cluster' }];
  const all = phases.flatMap(({ plan: { changes } }): readonly (Change & { readonly path?: string })[] => changes);
  const changes = shownChanges(all, verbosity);
  const { pending, failures } = pendingOf({ plan }, kubelet ?? { pending: [], failures: [] });
  // A reload or restart that only follows from a listed change is no drift of its own.
  const causes = changes.filter((change) => isClusterChange(change) || (change.kind !== 'restart-unit' && change.kind !== 'daemon-reload'));
  const changesFiles = causes.some(({ kind }) => kind === 'write-file' || kind === 'remove-file');
  const changed = (changesFiles || pending.length > 0 ? causes : changes).flatMap((change): Drift | readonly Drift[] => {
    const { reason } = change;
    if (change.kind === 'write-file' && change.fields !== undefined && change.fields.length > 0)
      return [
        ...fieldDrift(change.fields, all, evidence).map((field) => ({ what: change.path, why: describeFieldDrift(field), field })),
        // Its mode or owner.
        ...(reason === CONTENT_DIFFERS ? [] : [{ what: change.path, why: reason }]),
      ];
    if (isClusterChange(change)) {
      const { kind, name } = changedRef(change);
      return { what: `${kind} ${name}`, why: reason };
    }
    if (change.kind === 'daemon-reload') return { what: 'unit kubelet', why: reason };
    if (change.kind === 'confirm-commit') return { what: 'unconfirmed change', why: reason };
    if (change.kind === 'restart-unit') return { what: `unit ${change.unit}`, why: `must be restarted: ${reason}` };
    return { what: 'path' in change ? change.path : 'unit' in change ? `unit ${change.unit}` : change.kind, why: reason };
  });
  return plan === null ? changed : [...changed, ...overridesIn(plan), ...pending, ...failures];
}

/** Changes that a running kubelet has not read, and reasons for which its next start would fail; none for a host that has not joined. */
export function pendingOf({ plan }: Pick<HostOutcome, 'plan'>, kubelet: PendingChanges): PendingChanges {
  return plan === null || isNew(plan.host.phases) ? { pending: [], failures: [] } : kubelet;
}

export interface PendingChanges {
  readonly pending: readonly Drift[];
  readonly failures: readonly Drift[];
}

/** The phase waits for the join, or the plan writes the credentials with which a new node joins. */
function isNew(phases: HostPlan['phases']): boolean {
  return phases.some(
    ({ phase, plan }) =>
      phase === 'join' ||
      plan.changes.some((change) => change.kind === 'write-file' && NEW_NODE_FILES.includes(change.path) && change.before === null),
  );
}
