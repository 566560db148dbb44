import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../../base/json.ts';
import { EMPTY_HEALTH_HISTORY } from '../../kubelet/health/assess.ts';
import { baselineFromJson, baselineToJson } from '../../kubelet/health/baseline.ts';
import { type ConfigIdentity, formatIdentity, parseIdentity } from '../../kubelet/layers/config-source.ts';
import { type AgentState, type Candidate, type Fault, newAgentState, type Payload, type Rejection, type SyncFailure } from './state.ts';

/**
 * Renders one of the two state files of an agent. The generation is incremented with each write, and the file with the higher
 * one is used. Facts about the running kubelet, such as its healthy time, are omitted: a restart of
 * the agent restarts a trial.
 */
export function formatStateFile({ generation, state }: { readonly generation: number; readonly state: AgentState }): string {
  const body = { generation, state: stateToJson(state), version: 1 };
  return `${JSON.stringify({ checksum: checksumOf(body), ...body })}\n`;
}

/** Reads a state file; null when it is truncated, modified or of an unknown version. */
export function parseStateFile(text: string): Parameters<typeof formatStateFile>[0] | null {
  const parsed = parseJsonObject(text);
  if (parsed === null) return null;
  const { checksum, ...body } = parsed;
  const { generation, state, version } = body;
  if (version !== 1 || typeof generation !== 'number' || !isJsonObject(state) || checksum !== checksumOf(body)) return null;
  const read = stateFromJson(state);
  return read === null ? null : { generation, state: read };
}

export function sameOnDisk(a: AgentState, b: AgentState): boolean {
  return JSON.stringify(stateToJson(a)) === JSON.stringify(stateToJson(b));
}

function checksumOf(body: JsonObject): string {
  return createHash('sha256').update(JSON.stringify(body)).digest('hex');
}

function stateToJson(state: AgentState): JsonObject {
  const { phase, active, lastObserved, lastKnownGood, rejected, sync, baseline, retried, nodeUid, lost, kubelet, since } = state;
  return {
    phase,
    since,
    active: candidateToJson(active),
    seen: candidateToJson(lastObserved),
    lastKnownGood: candidateToJson(lastKnownGood),
    assigned: candidateToJson(state.phase === 'local' ? null : state.assigned),
    fault: state.phase === 'rejected' || state.phase === 'fallen-back' ? { ...state.fault } : null,
    rejected: rejected.map(({ hash, fault, at }) => ({ hash, fault: { ...fault }, at })),
    // Only in a trial, so that files of other phases are those of earlier versions.
    ...(baseline === null ? {} : { workload: baselineToJson(baseline) }),
    ...(state.mayLosePods ? { mayLosePods: true } : {}),
    // Read by `dynamic inspect`; the agent reads the assignment again when it starts.
    ...(sync === null ? {} : { sync: { ...sync } }),
    retried,
    nodeUid,
    lost: lost === null ? null : { source: formatIdentity(lost.identity), createdAt: lost.createdAt },
    kubelet,
  };
}

function candidateToJson(candidate: Candidate | null): Json {
  if (candidate === null) return null;
  return { source: formatIdentity(candidate.identity), hash: candidate.hash, changes: candidate.changes };
}

function stateFromJson(json: JsonObject): AgentState | null {
  const { phase, since, rejected, retried, nodeUid, kubelet } = json;
  if (typeof since !== 'number') return null;
  const kept = {
    ...newAgentState(since),
    active: payloadFromJson(json.active),
    // Missing in files of earlier versions.
    lastObserved: payloadFromJson(json.seen === undefined ? json.active : json.seen),
    lastKnownGood: payloadFromJson(json.lastKnownGood),
    rejected: Array.isArray(rejected) ? rejected.flatMap((one: Json) => rejectionFromJson(one) ?? []) : [],
    baseline: baselineFromJson(json.workload),
    mayLosePods: json.mayLosePods === true,
    sync: syncFromJson(json.sync),
    retried: typeof retried === 'string' ? retried : null,
    nodeUid: typeof nodeUid === 'string' ? nodeUid : null,
    lost: lostFromJson(json.lost),
    kubelet: typeof kubelet === 'string' ? kubelet : null,
    watch: EMPTY_HEALTH_HISTORY,
  };
  const candidate = candidateFromJson(json.assigned);
  const payload = payloadFromJson(json.assigned);
  const fault = faultFromJson(json.fault);
  if (phase === 'local') return { ...kept, phase };
  if ((phase === 'trial' || phase === 'good') && payload !== null) return { ...kept, phase, assigned: payload };
  if (phase === 'rejected' && candidate !== null && fault !== null) return { ...kept, phase, assigned: candidate, fault };
  if (phase === 'fallen-back' && payload !== null && fault !== null) return { ...kept, phase, assigned: payload, fault };
  return null;
}

function candidateFromJson(json: Json | undefined): Candidate | null {
  if (!isJsonObject(json)) return null;
  const identity: ConfigIdentity | null = parseIdentity(json.source);
  const changes = Array.isArray(json.changes) ? json.changes.filter((one: Json) => typeof one === 'string') : [];
  return identity === null ? null : { identity, hash: typeof json.hash === 'string' ? json.hash : null, changes };
}

function syncFromJson(json: Json | undefined): SyncFailure | null {
  if (!isJsonObject(json) || typeof json.cause !== 'string') return null;
  const { code, cause } = json;
  return code === 'DOWNLOAD_FAILED' || code === 'SYNC_INTERNAL_FAILURE' || code === 'UNKNOWN_SOURCE' ? { code, cause } : null;
}

function lostFromJson(json: Json | undefined): AgentState['lost'] {
  if (!isJsonObject(json) || typeof json.createdAt !== 'string') return null;
  const identity = parseIdentity(json.source);
  return identity === null ? null : { identity, createdAt: json.createdAt };
}

function payloadFromJson(json: Json | undefined): Payload | null {
  const candidate = candidateFromJson(json);
  return candidate === null || candidate.hash === null ? null : { ...candidate, hash: candidate.hash };
}

function rejectionFromJson(json: Json): Rejection | null {
  if (!isJsonObject(json)) return null;
  const fault = faultFromJson(json.fault);
  return fault === null || typeof json.hash !== 'string' || typeof json.at !== 'number' ? null : { hash: json.hash, fault, at: json.at };
}

/** A file with a valid checksum was written by an agent: the members of a fault are not checked further. */
function faultFromJson(json: Json | undefined): Fault | null {
  if (!isJsonObject(json) || typeof json.code !== 'string' || typeof json.cause !== 'string') return null;
  // Earlier versions named the signal `sign`.
  const { sign, ...fault } = json;
  return (sign === undefined ? fault : { ...fault, signal: sign }) as unknown as Fault;
}
