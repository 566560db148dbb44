import { describeIdentity, describeSource, RETRY_ANNOTATION, sameIdentity, sameSource } from '../kubelet/config-source.ts';
import { ASSIGNMENT_LOST_REASON, GOOD_REASON, NOT_PROVEN, STARTING_REASON, TRIAL_REASON, UNAVAILABLE_REASON } from './agent/status.ts';
import type { ConfigEvent } from './config-event.ts';
import { findConfigError } from './error-texts.ts';
import type { NodeConfig } from './node-config.ts';

/**
 * `off`: nobody on the node reads what it is assigned · `local`: nothing is assigned, nothing runs but the local configuration · `waiting`: assigned,
 * and not reported yet · `trial`: it runs, for less than ten minutes · `good`: it runs and is the last known good · `fell-back`: it was refused, the
 * last known good or the local one runs · `not-synced`: it can't be fetched, what ran goes on · `looping`: the kubelet took it and does not come up · `reporting`: the agent writes a report, what the
 * Node says now does not belong together.
 */
export type ConfigState = 'off' | 'local' | 'waiting' | 'trial' | 'good' | 'fell-back' | 'not-synced' | 'looping' | 'reporting';

export interface ConfigVerdict {
  readonly state: ConfigState;
  /** When the kubelet last changed its configuration; of `not-synced`, since when it cannot be read. Null: not known. */
  readonly since: Date | null;
  /** A clause; null: there is nothing to say. */
  readonly why: string | null;
  readonly hint: string | null;
}

/** A kubelet that said it restarts and has not reported after this long does not come up: notice and start take up to a minute. */
const LOOP_MS = 60_000;

/** Says what became of a node's assignment. @param event the last word of its kubelet, where it is known */
export function assessNodeConfig(config: NodeConfig, event: ConfigEvent | null, now: Date): ConfigVerdict {
  const changedAt = event?.at ?? config.word?.since ?? null;
  /** The agent tells the real cause, upstream's texts a kind of it. */
  const reported = (otherwise: string | null): string | null => config.word?.message ?? otherwise;
  const verdict = (state: ConfigState, why: string | null = null, hint: string | null = null): ConfigVerdict => ({
    state,
    since: state === 'not-synced' ? notSyncedSince(config) : changedAt,
    why,
    hint,
  });
  const { status, source } = config;
  if (source.issue !== null)
    return verdict('not-synced', `what is assigned is wrong: ${source.issue}`, 'Assign another, or reset the node');
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
      error === null ? null : 'the error reported is of an assignment that is gone: it stays until the kubelet restarts, and means nothing';
    if (config.backend === 'native') return verdict('local', left ?? notReady);
    return verdict('local', left ?? (config.word?.reason === ASSIGNMENT_LOST_REASON ? config.word.message : null));
  }
  // An error that is not one of the kubelet's is the agent's word of what it ran.
  if (known !== null && !known.rolledBack)
    return verdict('not-synced', config.word?.reason === UNAVAILABLE_REASON ? config.word.message : known.cause, known.hint);
  if (!sameSource(assigned, source.source)) return verdict('waiting', ...whyNotReported(config, notReady));
  if (error === null && !sameIdentity(assigned, active) && isOnItsWay(config)) return verdict('waiting', notReady ?? NOT_SEEN);
  if (error !== null || !sameIdentity(assigned, active))
    return verdict('fell-back', reported(known?.cause ?? error), config.word === null ? (known?.hint ?? SEE_LOG) : agentHint(config.name));
  if (sameIdentity(assigned, lastKnownGood)) return verdict('good', notReady);
  return config.isTrialHealthy
    ? verdict('trial', notReady ?? (config.word?.message.includes(NOT_PROVEN) ? config.word.message : null))
    : verdict('waiting', notReady ?? NOT_SEEN);
}

/** An Event is about an earlier change; a condition that was False before has an earlier transition. */
function notSyncedSince({ report, word }: NodeConfig): Date | null {
  const since = new Date(report?.errorSince ?? Number.NaN);
  if (!Number.isNaN(since.getTime())) return since;
  return word?.reason === UNAVAILABLE_REASON ? word.since : null;
}

/** An agent reads an assignment within a second, and reports it even where it cannot use it. */
function whyNotReported({ backend, report }: NodeConfig, notReady: string | null): readonly [string | null, string | null] {
  if (backend === 'native') return [notReady, null];
  const last = `the agent has not reported this assignment; no report since ${report?.at ?? 'the assignment'}`;
  return [notReady === null ? last : `${notReady}; ${last}`, 'If that lasts, dynamic inspect with the host of the node shows the cause'];
}

const NOT_SEEN = 'the kubelet was not seen healthy with it yet';

/** What an agent reports as active was seen: the condition, which is written before, may be ahead of it. */
function isOnItsWay({ word }: NodeConfig): boolean {
  return word !== null && [STARTING_REASON, TRIAL_REASON, GOOD_REASON].includes(word.reason);
}

/** The agent tries a rejected payload again when the value of the annotation changes. */
function agentHint(node: string): string {
  return `Assign another ConfigMap, or run kubeletadm dynamic reset ${node}. To try the same configuration again: kubectl annotate node ${node} --overwrite ${RETRY_ANNOTATION}=$(date +%s)`;
}
const SEE_LOG = 'Look into the log of the kubelet: journalctl -u kubelet';

/**
 * Whether the reported status is older than the last restart of the kubelet: its Event names a configuration that the status does not show as assigned. An Event
 * from before a later heartbeat of the kubelet proves nothing: the Event of the change that followed was lost, or a repair changed the store.
 */
function isStatusOlder({ backend, status, heartbeat }: NodeConfig, event: ConfigEvent): boolean {
  if (backend !== 'native' || sameIdentity(event.identity, status?.assigned ?? null)) return false;
  return !(heartbeat !== null && heartbeat.getTime() > event.at.getTime() + LOOP_MS);
}

function whyNoReport({ issues }: NodeConfig, { identity, at }: ConfigEvent): string {
  const seen = issues.length === 0 ? '' : ` (${issues.join('; ')})`;
  return `no report from the kubelet since it restarted at ${timeText(at)} to use ${configText(identity)}${seen}`;
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
      ? '; what was assigned since is not read, for that happens 10 s after a start'
      : '';
  const seen = issues.length === 0 ? '' : ` (${issues.join('; ')})`;
  return `the kubelet took ${configText(identity)} at ${timeText(at)} and has not come up since${seen}${unread}; there is no way back by itself, and after ten minutes it becomes the last known good`;
}

const LOOPING_HINT = 'Assign what is right or reset the node, then get it back with dynamic inspect --repair HOST';

function whyOff({ backend, kubeletVersion, source }: NodeConfig): readonly [string, string] {
  const assigned = source.source === null ? '' : describeSource(source.source);
  if (backend === 'agent') return [`no agent has reported: ${assigned} is not read`, 'Run dynamic enable with its host'];
  return [
    `its kubelet ${kubeletVersion} has never reported a configuration: ${assigned} is not read`,
    'Run dynamic enable with its host, which gives it the flags and looks at the API server',
  ];
}
