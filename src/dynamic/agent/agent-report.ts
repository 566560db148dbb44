import type { Problem } from '../../base/errors.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import { AGENT_SERVICE, POINTER_DROP_IN } from '../../kubeadm/node-agent/agent-units.ts';
import { pointerFile } from '../../kubeadm/node-agent/layout.ts';
import type { ClientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { type AccessProblem, describeAccess, READ_CONFIG_MAP } from './access-problem.ts';
import { type AgentState, desiredPayload, neededHashes } from './state.ts';

/** A checkpoint on disk. */
export interface CheckpointReading {
  readonly hash: string;
  /** The ConfigMap it was made of; null: its manifest can't be read. */
  readonly source: string | null;
  readonly files: readonly string[];
  readonly isWhole: boolean;
  /** Unix seconds; 0: not known. */
  readonly writtenAt: number;
}

/** All that a host keeps of its agent, and what runs. */
export interface AgentReading {
  readonly directory: string;
  /** Unix seconds, by the host's clock. */
  readonly now: number;
  readonly state: AgentState | null;
  /** State files that can't be read. */
  readonly damaged: readonly string[];
  readonly checkpoints: readonly CheckpointReading[];
  /** What the next kubelet would run; null: its own configuration. */
  readonly pointer: string | null;
  readonly hasPointerFile: boolean;
  readonly hasDropIn: boolean;
  readonly agent: UnitState | null;
  readonly kubelet: UnitState | null;
  /** Null: it serves none. */
  readonly healthz: HttpFact | null;
  /** What the process runs; `local`: its own configuration; null: there is none. */
  readonly runs: string | 'local' | null;
  /** Requests that the API server refused the agent when it last made them. */
  readonly access: readonly AccessProblem[];
  /** The credential of the kubelet, which the agent uses; null: its kubeconfig is not the one that is looked at. */
  readonly identity: ClientIdentity | null;
}

const REPAIR = 'dynamic inspect --repair gets it back';

/** What is wrong there, the worst first; warnings among it. */
export function reportAgent(reading: AgentReading): readonly Problem[] {
  const { state, damaged, pointer, checkpoints, agent, directory, identity } = reading;
  const findings: Problem[] = [];
  const find = (code: string, message: string, hint: string, severity: 'error' | 'warning' = 'error'): void =>
    void findings.push({ code, message, hint, severity });
  const wholes = new Set(checkpoints.filter(({ isWhole }) => isWhole).map(({ hash }) => hash));
  if (!isKubeletUp(reading)) find('KUBELET_UNHEALTHY', describeKubelet(reading), REPAIR);
  if (pointer !== null && !wholes.has(pointer))
    find('CHECKPOINT_DAMAGED', `what the next kubelet would run, ${short(pointer)}, is gone, torn or was changed`, REPAIR);
  if (reading.hasPointerFile && pointer === null)
    find(
      'AGENT_POINTER_DAMAGED',
      `${pointerFile(directory)} names no checkpoint: the kubelet would run its own configuration`,
      REPAIR,
      'warning',
    );
  if (!reading.hasDropIn)
    find('AGENT_DROP_IN_MISSING', `${POINTER_DROP_IN} is gone: the kubelet does not read what the agent says`, 'Run dynamic enable');
  if (agent?.activeState !== 'active')
    find(
      'AGENT_DOWN',
      `the agent does not run (${agent?.activeState ?? 'no such unit'}): assignments are not read`,
      'dynamic inspect --repair starts it, dynamic enable installs it',
    );
  if (state === null && damaged.length > 0)
    find(
      'AGENT_STATE_DAMAGED',
      `${damaged.join(' and ')} can't be read: what was good is forgotten`,
      'The agent begins anew by itself',
      'warning',
    );
  else if (damaged.length > 0)
    find(
      'AGENT_STATE_DAMAGED',
      `${damaged.join(' and ')} can't be read, the other copy counts`,
      'The agent writes it anew by itself',
      'warning',
    );
  const needed = state === null ? [] : neededHashes(state);
  for (const hash of needed)
    if (hash !== pointer && !wholes.has(hash))
      find(
        'CHECKPOINT_DAMAGED',
        `${roleOf(state, hash)}, ${short(hash)}, is gone, torn or was changed`,
        'The agent goes without it by itself',
        'warning',
      );
  if (reading.runs !== null && reading.runs !== (pointer ?? 'local') && isKubeletUp(reading))
    find(
      'AGENT_NOT_IN_FORCE',
      `the kubelet runs ${name(reading.runs)}, and its next start would be with ${name(pointer ?? 'local')}`,
      'The agent restarts it; --repair starts an agent that is down',
      'warning',
    );
  if (identity !== null && identity.state !== 'usable')
    find(
      'NODE_NO_CREDENTIALS',
      `the agent can't use the credential of the kubelet: ${identity.state === 'missing' ? `${KUBELET_CONF} does not exist` : identity.why}`,
      'Run certs renew-kubelet',
    );
  for (const problem of reading.access) find('AGENT_REFUSED', describeAccess(problem), accessHint(problem));
  return findings.toSorted((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'));
}

function accessHint({ code, request }: AccessProblem): string {
  // A certificate of another CA has not expired, and proves no Node.
  if (code === 'CLUSTER_UNAUTHORIZED')
    return 'The agent uses the credential of the kubelet: renew it with certs renew-kubelet --force --kubeconfig admin.conf --node-name NODE';
  return request === READ_CONFIG_MAP
    ? 'Run dynamic enable again: it creates the Role and RoleBinding of the agent'
    : 'Check the authorization mode Node of the API server, and the user and groups of the kubelet credential';
}

/**
 * What gets a kubelet back, and its agent: the kubelet is started with its own configuration where it is not well with what the pointer names, and the agent is
 * started. It then does what its state says, and goes back by itself where that does no good.
 */
export function planAgentRepair(reading: AgentReading): readonly HostChange[] {
  const { pointer, checkpoints, agent, directory } = reading;
  const isDamaged = pointer !== null && !checkpoints.some(({ hash, isWhole }) => hash === pointer && isWhole);
  const reason = 'the kubelet is to start with its own configuration';
  const isUp = isKubeletUp(reading);
  const toLocal = reading.hasPointerFile && (isDamaged || pointer === null || !isUp);
  return [
    ...(toLocal ? [{ kind: 'remove-file', path: pointerFile(directory), before: null, reason } as const] : []),
    ...(toLocal || !isUp ? [{ kind: 'restart-unit', unit: 'kubelet', reason: toLocal ? reason : 'it is not well' } as const] : []),
    ...(agent?.activeState === 'active' || agent?.loadState !== 'loaded'
      ? []
      : [{ kind: 'restart-unit', unit: AGENT_SERVICE, reason: 'it does not run' } as const]),
  ];
}

/** The checkpoints that nobody needs and that are older than that. None where it is not known what is needed. */
export function unneededCheckpoints({ state, pointer, runs, checkpoints, now }: AgentReading, olderThanSeconds: number): readonly string[] {
  if (state === null) return [];
  const needed = new Set([...neededHashes(state), pointer, runs]);
  return checkpoints.filter(({ hash, writtenAt }) => !needed.has(hash) && writtenAt < now - olderThanSeconds).map(({ hash }) => hash);
}

/** What a checkpoint is for; empty: for nothing any more. */
export function usesOf({ state, pointer }: Pick<AgentReading, 'state' | 'pointer'>, hash: string): readonly string[] {
  const roles =
    state === null
      ? []
      : [
          ...(state.phase !== 'local' && state.assigned.hash === hash ? ['assigned'] : []),
          ...(state.active?.hash === hash ? ['active'] : []),
          ...(state.lastKnownGood?.hash === hash ? ['last known good'] : []),
          ...(desiredPayload(state)?.hash === hash && state.active?.hash !== hash ? ['wanted'] : []),
        ];
  return [...roles, ...(pointer === hash && roles.length === 0 ? ['pointer'] : [])];
}

function roleOf(state: AgentState | null, hash: string): string {
  return usesOf({ state, pointer: null }, hash).join(', ') || 'a checkpoint';
}

function isKubeletUp({ kubelet, healthz }: AgentReading): boolean {
  return kubelet?.activeState === 'active' && (healthz === null || ('status' in healthz && healthz.status === 200));
}

function describeKubelet({ kubelet, healthz, runs }: AgentReading): string {
  const unit =
    kubelet === null ? 'its unit is not told' : `its unit is ${kubelet.activeState} (${kubelet.subState}), ${kubelet.restarts} restarts`;
  const reported = healthz === null ? '' : 'status' in healthz ? `, healthz answers ${healthz.status}` : `, healthz: ${healthz.error}`;
  return `${runs === null ? 'no kubelet runs' : `the kubelet is not well with ${name(runs)}`}: ${unit}${reported}`;
}

function name(what: string | null): string {
  return what === null ? 'nothing' : what === 'local' ? 'its own configuration' : `payload ${short(what)}`;
}

function short(hash: string): string {
  return hash.slice(0, 12);
}
