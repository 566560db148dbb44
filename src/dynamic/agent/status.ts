import { type ConfigStatus, describeSource } from '../../kubelet/layers/config-source.ts';
import { CONFIG_ERRORS } from '../error-texts.ts';
import { type AgentState, assignedOf, type Fault, isObserved, isObservedWithTarget, type SyncFailure } from './state.ts';

/** The Node condition for the configuration. Kubelets 1.8 to 1.10 had one of the same name. */
export const CONFIG_CONDITION = 'KubeletConfigOk';

/** Reasons of the condition before and after the kubelet was observed healthy with an assigned configuration. */
export const STARTING_REASON = 'Starting';
export const TRIAL_REASON = 'Trial';
export const GOOD_REASON = 'Good';

/** Reason of the condition while the assigned payload was rejected before it ran. */
export const REJECTED_REASON = 'Rejected';

/** Reason of the condition while the assignment cannot be read, or the kubelet cannot be switched. */
export const UNAVAILABLE_REASON = 'Unavailable';

/** Reason of the condition while a re-created Node has no new assignment. */
export const ASSIGNMENT_LOST_REASON = 'AssignmentLost';

const TRIAL_PAUSED = 'paused because the configuration cannot be verified';
const EARLIER_TRIAL_PAUSED = 'whose time does not count while not all can be seen';

/** Whether the message of a condition, also of an earlier agent, is that of a trial paused for unobservable facts. */
export function isTrialPaused(message: string): boolean {
  return message.includes(TRIAL_PAUSED) || message.includes(EARLIER_TRIAL_PAUSED);
}

/** Between a field of the ConfigMap and the flag or drop-in file of the node that wins over it. */
export const OVERRIDDEN = 'is overridden by';

/** Whether the message of a condition names fields of the ConfigMap without effect. */
export function namesOverridden(message: string): boolean {
  return message.includes(` ${OVERRIDDEN} `);
}

export interface ConfigCondition {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** The reported status, in the form of `Node.status.config`. Errors use the kubelet's texts where one exists. */
export function configStatusOf(state: AgentState): ConfigStatus {
  return {
    assigned: assignedOf(state)?.identity ?? null,
    active: state.lastObserved?.identity ?? null,
    lastKnownGood: state.lastKnownGood?.identity ?? null,
    error: errorOf(state),
  };
}

/** The condition `KubeletConfigOk`: a summary of `status.config` with the cause of an error. */
export function agentConditionOf(state: AgentState): ConfigCondition {
  const issue = failureOf(state);
  if (issue !== null && state.phase !== 'rejected' && state.phase !== 'fallen-back')
    return { status: 'False', reason: UNAVAILABLE_REASON, message: issue.cause };
  switch (state.phase) {
    case 'local': {
      const nothing = state.lost === null ? 'nothing is assigned' : lostAssignmentReason(state.lost);
      return isObservedWithTarget(state)
        ? {
            status: 'True',
            reason: state.lost === null ? 'Local' : ASSIGNMENT_LOST_REASON,
            message: `runs the local configuration; ${nothing}`,
          }
        : { status: 'Unknown', reason: STARTING_REASON, message: `starting with the local configuration; ${nothing}` };
    }
    case 'trial':
      // Until the first healthy check, so that a rollout waiting for a healthy trial does not take a start
      // for one.
      if (state.switching !== null || !state.watch.wasHealthy) {
        const missing = state.switching === null && state.watch.unproven !== null ? ` (${state.watch.unproven})` : '';
        return { status: 'Unknown', reason: STARTING_REASON, message: `starting${missing}: ${changesText(state.assigned.changes)}` };
      }
      return {
        status: 'True',
        reason: TRIAL_REASON,
        message: `${trialText(state.watch.unproven, state.baseline?.noProbe ?? null)}: ${changesText(state.assigned.changes)}`,
      };
    case 'good':
      return isObservedWithTarget(state)
        ? { status: 'True', reason: GOOD_REASON, message: `verified: ${changesText(state.assigned.changes)}` }
        : { status: 'Unknown', reason: STARTING_REASON, message: `starting: ${changesText(state.assigned.changes)}` };
    case 'rejected':
    case 'fallen-back': {
      const what = state.lastKnownGood === null ? 'the local configuration (config.yaml)' : 'the last known good configuration';
      const runs = isObservedWithTarget(state) ? `the kubelet runs ${what}` : notObservedText(state, what);
      const reason = state.phase === 'rejected' ? REJECTED_REASON : 'FallenBack';
      return { status: 'False', reason, message: `${state.fault.cause}; ${runs}` };
    }
  }
}

/**
 * Expected end of a trial, in milliseconds since 1970: when the configuration becomes the last known good if it stays
 * healthy. Null: no trial, no healthy check yet, or a paused trial.
 * @param trialMs required healthy time
 */
export function trialEndOf({ phase, switching, watch }: AgentState, trialMs: number): number | null {
  const { wasHealthy, unproven, lastAt, healthyMs } = watch;
  if (phase !== 'trial' || switching !== null || !wasHealthy || unproven !== null || lastAt === null) return null;
  return lastAt + Math.max(0, trialMs - healthyMs);
}

export function lostAssignmentReason({ identity, createdAt }: NonNullable<AgentState['lost']>): string {
  const source = describeSource(identity);
  return `nothing is assigned: the Node was re-created at ${createdAt}, and its assignment ${source} was deleted with the old Node. To assign the ConfigMap again, run kubeletadm dynamic assign NODE --configmap ${source}. This command also creates the RBAC rules of the agent again, which were deleted with the old Node`;
}

/** Text while the kubelet has not been observed with the configuration that it should run. */
function notObservedText(state: AgentState, what: string): string {
  const { switching, active, notObservedReason } = state;
  if (switching === null || switching.issue === null) return `the kubelet is starting with ${what}`;
  const failed = `the kubelet could not be switched to ${what}: ${switching.issue}`;
  if (isObserved(state) && active === null) return `${failed}; the kubelet runs the local configuration until the switch succeeds`;
  return `${failed}; it is unknown which configuration the kubelet runs (${notObservedReason ?? 'not observed'})`;
}

/** A trial without a signal, possibly paused. @param noProbe reason why no probe pod is used */
function trialText(unproven: string | null, noProbe: string | null): string {
  const checked = noProbe === null ? 'in trial' : `in trial without a probe pod (${noProbe})`;
  return unproven === null ? checked : `${checked}, ${TRIAL_PAUSED} (${unproven})`;
}

/** Why the assignment cannot be synced: the Node is then `not-synced`, in every phase. Null: no failure. */
export function failureOf({ sync, switching }: AgentState): SyncFailure | null {
  if (sync !== null) return sync;
  const why = switching?.issue ?? null;
  return why === null ? null : { code: 'SYNC_INTERNAL_FAILURE', cause: `the kubelet could not be switched: ${why}` };
}

function errorOf(state: AgentState): string | null {
  const issue = failureOf(state);
  if (issue !== null) return CONFIG_ERRORS[issue.code].text;
  return state.phase === 'rejected' || state.phase === 'fallen-back' ? faultText(state.fault) : null;
}

function faultText({ code, cause }: Fault): string {
  switch (code) {
    case 'LOAD_FAILED':
    case 'VALIDATION_FAILED':
    case 'INTERNAL_FAILURE':
      return CONFIG_ERRORS[code].text;
    case 'NOT_SIGNED':
      return `failed to verify config: ${cause}`;
    case 'NOT_ALLOWED':
      return `failed to accept config: ${cause}`;
    case 'RUN_FAILED':
      return `failed to run config: ${cause}`;
  }
}

const MOST_CHANGES = 10;

function changesText(changes: readonly string[]): string {
  if (changes.length === 0) return 'no field differs from the local configuration';
  const rest = changes.length - MOST_CHANGES;
  return `${changes.slice(0, MOST_CHANGES).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
