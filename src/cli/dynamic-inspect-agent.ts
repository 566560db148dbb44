import { formatProblem, type Problem } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { printable } from '../base/text/printable.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type AgentReading, checkpointUses, reportAgent } from '../dynamic/agent/agent-report.ts';
import { configStatusOf, failureOf } from '../dynamic/agent/status.ts';
import type { ReadAgent } from '../dynamic/workflows/read-agent.ts';
import type { InspectedAssigner, InspectedHost } from '../fleet/use-cases/inspect-node-config.ts';
import type { UnitState } from '../host/facts/unit.ts';
import { type ConfigIdentity, describeIdentity, formatConfigStatus } from '../kubelet/layers/config-source.ts';
import { assignerDocument } from './node-document.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';

/** Findings on a host, ready to be printed. */
export interface Inspected {
  readonly shown: string;
  readonly findings: readonly Problem[];
}

/** Files and state of the agent on a host, as text or as a document. */
export function inspectedAgent(inspected: InspectedHost, found: ReadAgent, format: DocumentFormat): Inspected {
  const findings = reportAgent(found.reading);
  const shown = format === 'text' ? render(inspected, found, findings) : renderDocument(document(inspected, found, findings), format);
  return { shown, findings };
}

const MOST_CHARACTERS = 500;

/** `assigned by: alice@laptop, at 2030-01-01T00:00:00Z: OPS-7`; no line without a known author. */
export function assignerLines(assigner: InspectedAssigner): readonly string[] {
  if (assigner === null) return [];
  if ('why' in assigner) return [`assigned by: unknown (${assigner.why})`];
  const { by, at, reason } = assigner;
  const when = at === null ? '' : `, at ${at.toISOString().replace(/\.\d+Z$/, 'Z')}`;
  // The node can write any text to the annotation.
  return [`assigned by: ${printable(by, MOST_CHARACTERS)}${when}${reason === null ? '' : `: ${printable(reason, MOST_CHARACTERS)}`}`];
}

/** The author for machines. */
export function assignerMember(assigner: InspectedAssigner): object {
  return assigner === null || 'why' in assigner ? {} : { assignedBy: assignerDocument(assigner) };
}

/** A host, with its Node if that has another name. */
export function hostText(host: string, node: string | null): string {
  return node === null || node === host ? host : `${host} (Node ${node})`;
}

/** A finding in a line. */
export function findingLine(finding: Problem): string {
  return `${finding.severity === 'warning' ? 'warning: ' : ''}${formatProblem(finding)}`;
}

/** A finding for machines. */
export function findingDocument({ code, message, hint, severity }: Problem): object {
  return { code, severity: severity ?? 'error', message, ...(hint ? { hint } : {}) };
}

function render({ host, assigner }: InspectedHost, { reading, kubeletVersion, nodeName }: ReadAgent, findings: readonly Problem[]): string {
  const { state, pointer, runs, identity, now } = reading;
  const ago = (seconds: number): string => formatAge(Math.max(0, now - seconds) * 1000);
  const lines = [
    `${hostText(host, nodeName)}: kubelet ${kubeletVersion}, agent in ${reading.directory}`,
    `kubelet: ${unitText(reading.kubelet)}; agent: ${unitText(reading.agent)}`,
    `state: ${state === null ? 'none' : stateText(state, ago(state.since / 1000))}`,
    `assigned: ${identityText(state === null || state.phase === 'local' ? null : state.assigned.identity, 'nothing')}`,
    ...assignerLines(assigner),
    `last known good: ${identityText(state?.lastKnownGood?.identity ?? null, 'local configuration')}`,
    `starts with: ${pointer === null ? 'local configuration' : short(pointer)}`,
    `runs: ${runs === null ? 'nothing' : runs === 'local' ? 'local configuration' : short(runs)}`,
    `credential: ${credentialText(identity)}`,
  ];
  const rows = reading.checkpoints
    .toSorted((a, b) => b.writtenAt - a.writtenAt)
    .map(({ hash, source, files, isWhole, writtenAt }) => [
      short(hash),
      source ?? '-',
      files.join(',') || '-',
      ago(writtenAt),
      isWhole ? 'intact' : 'damaged',
      checkpointUses(reading, hash).join(', ') || '-',
    ]);
  const rejected = (state?.rejected ?? []).map(({ hash, fault, at }) => `rejected: ${short(hash)}, ${ago(at / 1000)} ago: ${fault.cause}`);
  const table = rows.length === 0 ? [] : renderTable([['CHECKPOINT', 'FROM', 'FILES', 'AGE', 'CONTENT', 'USED AS'], ...rows]);
  return joinLines([...lines, ...table, ...rejected, ...findings.map(findingLine)]);
}

function document(
  { host, assigner }: InspectedHost,
  { reading, kubeletVersion, nodeName }: ReadAgent,
  findings: readonly Problem[],
): object {
  const { state, identity } = reading;
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'AgentConfigStore',
    host,
    node: nodeName,
    kubeletVersion,
    directory: reading.directory,
    units: { kubelet: unitDocument(reading.kubelet), agent: unitDocument(reading.agent) },
    state:
      state === null
        ? null
        : {
            state: failureOf(state) === null ? state.phase : 'not-synced',
            phase: state.phase,
            since: new Date(state.since).toISOString(),
            ...formatConfigStatus(configStatusOf(state)),
          },
    ...assignerMember(assigner),
    startsWith: reading.pointer ?? 'local',
    runs: reading.runs,
    credentialExpires: identity?.state === 'usable' ? identity.notAfter : null,
    checkpoints: reading.checkpoints.map((one) => ({ ...one, usedAs: checkpointUses(reading, one.hash) })),
    rejected: (state?.rejected ?? []).map(({ hash, fault, at }) => ({ hash, at: new Date(at).toISOString(), cause: fault.cause })),
    damaged: reading.damaged,
    refused: reading.access.map(({ request, code, why, since }) => ({ request, code, why, since: new Date(since).toISOString() })),
    findings: findings.map(findingDocument),
  };
}

function unitText(unit: UnitState | null): string {
  return unit === null ? 'unknown' : `${unit.activeState} (${unit.subState}), ${unit.restarts} restarts`;
}

function unitDocument(unit: UnitState | null): object | null {
  return unit === null ? null : { activeState: unit.activeState, subState: unit.subState, restarts: unit.restarts };
}

/** The state as `dynamic status` shows it: a failed sync wins over the phase, whose configuration runs unless a switch failed. */
function stateText(state: NonNullable<AgentReading['state']>, age: string): string {
  const phase = `${state.phase}, for ${age}${faultText(state)}`;
  const failure = failureOf(state);
  if (failure === null) return phase;
  const isRunning = state.switching === null && !('fault' in state);
  return `not-synced: ${failure.cause}; ${isRunning ? 'running' : 'phase'}: ${phase}`;
}

function faultText(state: NonNullable<AgentReading['state']>): string {
  return 'fault' in state ? `: ${state.fault.cause}` : '';
}

function credentialText(identity: AgentReading['identity']): string {
  if (identity?.state !== 'usable') return identity === null ? 'not checked' : 'no usable credential';
  const until = identity.notAfter === null ? '' : `, valid until ${identity.notAfter.replace('.000', '')}`;
  return `${identity.commonName ?? 'of the kubelet'}${until} (${identity.source})`;
}

function identityText(identity: ConfigIdentity | null, otherwise: string): string {
  return identity === null ? otherwise : describeIdentity(identity);
}

function short(hash: string): string {
  return hash.slice(0, 12);
}
