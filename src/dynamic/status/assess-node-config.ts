import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeIdentity,
  describeSource,
  RETRY_ANNOTATION,
  sameIdentity,
  sameSource,
} from '../../kubelet/layers/config-source.ts';
import {
  ASSIGNMENT_LOST_REASON,
  GOOD_REASON,
  isTrialPaused,
  namesOverridden,
  REJECTED_REASON,
  STARTING_REASON,
  TRIAL_REASON,
  UNAVAILABLE_REASON,
} from '../agent/status.ts';
import { type ConfigErrorCode, findConfigError } from '../error-texts.ts';
import type { ConfigEvent } from './config-event.ts';
import type { NodeConfig } from './node-config.ts';

/**
 * State of a node's dynamic configuration.
 *
 * - `off`: neither kubelet nor agent reads the assignment.
 * - `local`: nothing is assigned; the local configuration runs.
 * - `waiting`: assigned and not reported yet.
 * - `trial`: the configuration runs, but not yet for the duration of a trial (ten minutes by default).
 * - `good`: the configuration runs and is the last known good.
 * - `rejected`: the configuration was refused before it ran; the last known good or the local configuration
 *   runs.
 * - `rolled-back`: the configuration ran and failed; the last known good or the local configuration runs.
 * - `not-synced`: the ConfigMap cannot be read; the previous configuration keeps running.
 * - `looping`: the kubelet started with the configuration and has not reported since.
 * - `reporting`: the agent is writing a report, and the two parts on the Node do not belong together yet.
 */
type ConfigState = 'off' | 'local' | 'waiting' | 'trial' | 'good' | 'rolled-back' | 'rejected' | 'not-synced' | 'looping' | 'reporting';

export interface ConfigVerdict {
  readonly state: ConfigState;
  /** Time of the last configuration change; for `not-synced`, the time of the first failed read. Null: unknown. */
  readonly since: Date | null;
  /** Reason as a clause; null: none. */
  readonly why: string | null;
  readonly hint: string | null;
}

/**
 * A kubelet that announced a restart and has not reported after this time is in a crash loop: a start takes
 * up to a minute.
 */
const LOOP_MS = 60_000;

/** Assesses a node's configuration. @param event the last Event of its kubelet, if known */
export function assessNodeConfig(config: NodeConfig, event: ConfigEvent | null, now: Date): ConfigVerdict {
  const changedAt = event?.at ?? config.agentCondition?.since ?? null;
  /** The agent's message has the cause; the error text of the status only its category. */
  const reported = (otherwise: string | null): string | null => config.agentCondition?.message ?? otherwise;
  const verdict = (state: ConfigState, why: string | null = null, hint: string | null = null): ConfigVerdict => ({
    state,
    since: state === 'not-synced' ? notSyncedSince(config) : changedAt,
    why,
    hint,
  });
  const { status, source } = config;
  if (source.issue !== null)
    return verdict(
      'not-synced',
      `invalid assignment in ${config.backend === 'agent' ? `the annotation ${CONFIG_SOURCE_ANNOTATION}` : 'spec.configSource'}: ${source.issue}`,
      `Assign another ConfigMap, or remove the assignment: kubeletadm dynamic reset ${config.name}`,
    );
  if (status === null) return source.source === null ? verdict('off') : verdict('off', ...whyOff(config));
  if (event !== null && isStatusOlder(config, event)) {
    if (now.getTime() - event.at.getTime() >= LOOP_MS) return verdict('looping', whyLooping(config, event), LOOPING_HINT);
    return verdict('waiting', whyNoReport(config, event));
  }
  if (config.isReporting) return verdict('reporting', 'the agent is writing a new report');
  const { assigned, active, lastKnownGood, error } = status;
  const known = error === null ? null : findConfigError(error);
  const notReady = config.isReady ? null : config.issues.join('; ');
  if (source.source === null) {
    if (assigned !== null) return verdict('waiting', notReady ?? 'the kubelet has not returned to its local configuration yet');
    const left =
      error === null
        ? null
        : 'the reported error belongs to a previous assignment and can be ignored: the kubelet clears the error at its next restart';
    if (config.backend === 'native') return verdict('local', left ?? notReady);
    return verdict('local', left ?? (config.agentCondition?.reason === ASSIGNMENT_LOST_REASON ? config.agentCondition.message : null));
  }
  // An unknown error text is the agent's message about a configuration that ran.
  if (known !== null && !known.rolledBack)
    return verdict(
      'not-synced',
      config.agentCondition?.reason === UNAVAILABLE_REASON ? config.agentCondition.message : known.cause,
      known.hint,
    );
  if (!sameSource(assigned, source.source)) return verdict('waiting', ...whyNotReported(config, notReady));
  if (error === null && !sameIdentity(assigned, active) && isAssignmentInProgress(config))
    return verdict('waiting', notReady ?? NOT_OBSERVED_MESSAGE);
  if (error !== null || !sameIdentity(assigned, active))
    return verdict(
      isRejected(config, known?.code) ? 'rejected' : 'rolled-back',
      reported(known?.cause ?? error),
      config.agentCondition === null ? (known?.hint ?? SEE_LOG) : agentHint(config.name, isRejected(config, known?.code)),
    );
  const message = config.agentCondition?.message ?? '';
  const overridden = namesOverridden(message) ? message : null;
  if (sameIdentity(assigned, lastKnownGood)) return verdict('good', notReady ?? overridden);
  return config.isTrialHealthy
    ? verdict('trial', notReady ?? (isTrialPaused(message) ? message : overridden))
    : verdict('waiting', notReady ?? NOT_OBSERVED_MESSAGE);
}

/** Event and condition may be older than the sync error: their times are not used. */
function notSyncedSince({ report, agentCondition }: NodeConfig): Date | null {
  const since = new Date(report?.errorSince ?? Number.NaN);
  if (!Number.isNaN(since.getTime())) return since;
  return agentCondition?.reason === UNAVAILABLE_REASON ? agentCondition.since : null;
}

/**
 * Whether the configuration was refused before it ran. A kubelet up to 1.23 reports that only by the text of
 * its error.
 */
function isRejected({ agentCondition }: NodeConfig, code: ConfigErrorCode | undefined): boolean {
  return agentCondition === null ? code === 'LOAD_FAILED' || code === 'VALIDATION_FAILED' : agentCondition.reason === REJECTED_REASON;
}

/** An agent reads an assignment within a second and reports it even if the assignment is unusable. */
function whyNotReported({ backend, report }: NodeConfig, notReady: string | null): readonly [string | null, string | null] {
  if (backend === 'native') return [notReady, null];
  const last = `the agent has not reported this assignment yet${report?.at === undefined ? '' : `; its last report is from ${report.at}`}`;
  return [
    notReady === null ? last : `${notReady}; ${last}`,
    'If the agent does not report within a minute, find the cause: kubeletadm dynamic inspect HOST',
  ];
}

const NOT_OBSERVED_MESSAGE = 'the kubelet has not been observed healthy with this configuration yet';

/** The agent observed the active configuration. The condition is written first and may be ahead of the annotation. */
function isAssignmentInProgress({ agentCondition }: NodeConfig): boolean {
  return agentCondition !== null && [STARTING_REASON, TRIAL_REASON, GOOD_REASON].includes(agentCondition.reason);
}

/**
 * The next steps after an assignment without effect. A new value of the annotation makes the agent try a payload again that
 * ran and was rolled back.
 * @param isRejected the agent refused the payload before it ran, and would refuse the same content again
 */
function agentHint(node: string, isRejected: boolean): string {
  const others = `Assign another ConfigMap, or remove the assignment: kubeletadm dynamic reset ${node}`;
  if (isRejected) return others;
  return `${others}. Or remove the cause, then try the same configuration again: kubectl annotate node ${node} --overwrite ${RETRY_ANNOTATION}=$(date +%s)`;
}
const SEE_LOG = 'See journalctl -u kubelet on the host';

/**
 * Whether the reported status is older than the last restart of the kubelet: its Event names a configuration
 * that the status does not show as assigned. An Event older than a heartbeat of the kubelet proves nothing: a
 * later Event was lost, or a repair changed the store.
 */
function isStatusOlder({ backend, status, heartbeat }: NodeConfig, event: ConfigEvent): boolean {
  if (backend !== 'native' || sameIdentity(event.identity, status?.assigned ?? null)) return false;
  return !(heartbeat !== null && heartbeat.getTime() > event.at.getTime() + LOOP_MS);
}

function whyNoReport({ issues }: NodeConfig, { identity, at }: ConfigEvent): string {
  const seen = issues.length === 0 ? '' : ` (${issues.join('; ')})`;
  return `the kubelet restarted at ${timeText(at)} to use ${configText(identity)} and has not reported since${seen}`;
}

function configText(identity: ConfigEvent['identity']): string {
  return identity === null ? 'its local configuration' : describeIdentity(identity);
}

function timeText(at: Date): string {
  return at.toISOString().replace('.000', '');
}

function whyLooping({ issues, source }: NodeConfig, { identity, at }: ConfigEvent): string {
  const unread =
    identity !== null && !sameSource(identity, source.source)
      ? '. The kubelet reads a later assignment only 10 s after its start, so a crashing kubelet never reads it'
      : '';
  const seen = issues.length === 0 ? '' : ` (${issues.join('; ')})`;
  return `the kubelet started with ${configText(identity)} at ${timeText(at)} and has not reported since${seen}${unread}. Kubelets up to 1.23 do not roll back from a crash loop. After ten minutes, this configuration becomes the last known good one`;
}

const LOOPING_HINT =
  'Assign a valid configuration, or remove the assignment (kubeletadm dynamic reset NODE). Then repair the kubelet: kubeletadm dynamic inspect --repair HOST';

function whyOff({ backend, kubeletVersion, source }: NodeConfig): readonly [string, string] {
  const assigned = source.source === null ? '' : describeSource(source.source);
  if (backend === 'agent')
    return [`${assigned} is not applied: no agent has reported for this node`, 'Install the agent: kubeletadm dynamic enable HOST'];
  return [
    `${assigned} is not applied: kubelet ${kubeletVersion} has never reported a configuration`,
    'Enable dynamic configuration on the kubelet: kubeletadm dynamic enable HOST',
  ];
}

export interface Goal {
  /** Null: the local configuration. */
  readonly desired: ConfigSource | null;
  /** Required state: a healthy trial, or the last known good. */
  readonly until: 'trial' | 'good';
}

/** `failed` is final: waiting does not change it. */
export type Progress = 'updated' | 'failed' | 'in-progress';

const ROLLED_BACK: ReadonlySet<ConfigState> = new Set(['rolled-back', 'rejected']);
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
