import type { Problem } from '../../base/errors.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import type { ClientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { describeHealth, isHealthy } from '../../kubelet/health/observe.ts';
import { AGENT_SERVICE, POINTER_DROP_IN } from '../../kubelet/node-agent/agent-units.ts';
import { pointerFile } from '../../kubelet/node-agent/layout.ts';
import type { StoredAgent } from './checkpoint-store.ts';
import { type AccessProblem, describeAccess, READ_CONFIG_MAP } from './cluster-access.ts';
import { type AgentState, desiredPayload, neededHashes } from './state.ts';

/** The files of an agent on its host, and the running processes. */
export interface AgentReading extends Pick<StoredAgent, 'state' | 'damaged' | 'pointer' | 'access'> {
  readonly directory: string;
  /** Unix seconds, by the clock of the host. */
  readonly now: number;
  readonly checkpoints: readonly {
    readonly hash: string;
    /** The ConfigMap of the checkpoint; null: its manifest cannot be read. */
    readonly source: string | null;
    readonly files: readonly string[];
    /** The keys of the ConfigMap that the checkpoint keeps. */
    readonly keys: readonly string[];
    readonly isWhole: boolean;
    readonly writtenAt: number;
  }[];
  readonly hasPointerFile: boolean;
  readonly hasDropIn: boolean;
  readonly agent: UnitState | null;
  readonly kubelet: UnitState | null;
  /** Null: the kubelet serves no healthz. */
  readonly healthz: HttpFact | null;
  /** Configuration of the running process; `local`: the local configuration; null: no process. */
  readonly runs: string | 'local' | null;
  /** The credential of the kubelet, which the agent uses; null: the kubelet uses another kubeconfig. */
  readonly identity: ClientIdentity | null;
}

const REPAIR = 'Repair the kubelet: kubeletadm dynamic inspect --repair HOST';

type Find = (code: string, message: string, hint: string, severity?: 'error' | 'warning') => void;

/** The findings about an agent and its kubelet, errors before warnings. */
export function reportAgent(reading: AgentReading): readonly Problem[] {
  const { pointer, checkpoints, agent, directory, identity } = reading;
  const findings: Problem[] = [];
  const find: Find = (code, message, hint, severity = 'error') => void findings.push({ code, message, hint, severity });
  const wholes = new Set(checkpoints.filter(({ isWhole }) => isWhole).map(({ hash }) => hash));
  if (!isKubeletUp(reading)) find('KUBELET_UNHEALTHY', describeKubelet(reading), REPAIR);
  if (pointer !== null && !wholes.has(pointer))
    find(
      'CHECKPOINT_DAMAGED',
      `checkpoint ${short(pointer)} is missing, truncated or modified, and the kubelet needs this local copy of a ConfigMap at its next start`,
      REPAIR,
    );
  if (reading.hasPointerFile && pointer === null)
    find(
      'AGENT_POINTER_DAMAGED',
      `${pointerFile(directory)} does not name a checkpoint, so the kubelet would start with its local configuration`,
      REPAIR,
      'warning',
    );
  if (!reading.hasDropIn)
    find(
      'AGENT_DROP_IN_MISSING',
      `${POINTER_DROP_IN} does not exist, so the kubelet ignores the configuration that is assigned to its Node`,
      'Create this systemd drop-in again: kubeletadm dynamic enable HOST',
    );
  if (agent?.activeState !== 'active')
    find(
      'AGENT_DOWN',
      `the agent is not running (${agent?.activeState ?? 'no such unit'}), so assigned configurations are not applied`,
      'Start the agent with kubeletadm dynamic inspect --repair HOST, or install the agent with kubeletadm dynamic enable HOST',
    );
  reportStored(reading, wholes, find);
  if (reading.runs !== null && reading.runs !== (pointer ?? 'local') && isKubeletUp(reading))
    find(
      'AGENT_NOT_IN_FORCE',
      `the kubelet runs with ${name(reading.runs)}, but would start with ${name(pointer ?? 'local')} next time`,
      'Wait until the agent restarts the kubelet. If the agent is down, run kubeletadm dynamic inspect --repair HOST',
      'warning',
    );
  if (identity !== null && identity.state !== 'usable')
    find(
      'NODE_NO_CREDENTIALS',
      `the agent cannot use the credential of the kubelet: ${identity.state === 'missing' ? `${KUBELET_CONF} does not exist` : identity.why}`,
      'Renew the credential: kubeletadm certs renew-kubelet --host HOST',
    );
  for (const problem of reading.access) find('AGENT_REFUSED', describeAccess(problem), accessHint(problem));
  return findings.toSorted((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'));
}

/** Findings about the state files and the checkpoints that the kubelet does not need at its next start. */
function reportStored({ state, damaged, pointer }: AgentReading, wholes: ReadonlySet<string>, find: Find): void {
  if (state === null && damaged.length > 0)
    find(
      'AGENT_STATE_DAMAGED',
      `${damaged.join(' and ')} cannot be read. The agent has lost its records of the last known good configuration and of rejected configurations`,
      'No action is needed: the agent starts with empty records',
      'warning',
    );
  else if (damaged.length > 0)
    find(
      'AGENT_STATE_DAMAGED',
      `${damaged.join(' and ')} cannot be read; the other copy is used`,
      'No action is needed: the agent writes the file again',
      'warning',
    );
  const needed = state === null ? [] : neededHashes(state);
  for (const hash of needed)
    if (hash !== pointer && !wholes.has(hash))
      find(
        'CHECKPOINT_DAMAGED',
        `the checkpoint ${short(hash)} (${roleOf(state, hash)}) is missing, truncated or modified`,
        'No action is needed: the agent continues without this checkpoint',
        'warning',
      );
}

function accessHint({ code, request }: AccessProblem): string {
  // A certificate of another CA may be unexpired and still not authenticate the Node.
  if (code === 'CLUSTER_UNAUTHORIZED')
    return 'Renew the credential of the kubelet, which the agent uses as well: kubeletadm certs renew-kubelet --force --kubeconfig admin.conf --node-name NODE --host HOST';
  return request === READ_CONFIG_MAP
    ? 'Create the Role and RoleBinding of the agent again: kubeletadm dynamic enable HOST'
    : 'Check that kube-apiserver runs with --authorization-mode=Node,RBAC, and that the kubelet authenticates as user system:node:NODE in group system:nodes';
}

/**
 * Plans the repair of a kubelet and its agent: an unhealthy kubelet is started with its local configuration,
 * and the agent is started. The agent then applies its state and rolls back automatically if the kubelet
 * becomes unhealthy.
 */
export function planAgentRepair(reading: AgentReading): readonly HostChange[] {
  const { pointer, checkpoints, agent, directory } = reading;
  const isDamaged = pointer !== null && !checkpoints.some(({ hash, isWhole }) => hash === pointer && isWhole);
  const reason = 'start the kubelet with its local configuration';
  const isUp = isKubeletUp(reading);
  const toLocal = reading.hasPointerFile && (isDamaged || pointer === null || !isUp);
  return [
    ...(toLocal ? [{ kind: 'remove-file', path: pointerFile(directory), before: null, reason } as const] : []),
    ...(toLocal || !isUp ? [{ kind: 'restart-unit', unit: 'kubelet', reason: toLocal ? reason : 'unhealthy' } as const] : []),
    ...(agent?.activeState === 'active' || agent?.loadState !== 'loaded'
      ? []
      : [{ kind: 'restart-unit', unit: AGENT_SERVICE, reason: 'the unit is not running' } as const]),
  ];
}

/** Unneeded checkpoints older than the given age. Empty if the needed ones are not known. */
export function unneededCheckpoints({ state, pointer, runs, checkpoints, now }: AgentReading, olderThanSeconds: number): readonly string[] {
  if (state === null) return [];
  const needed = new Set([...neededHashes(state), pointer, runs]);
  return checkpoints.filter(({ hash, writtenAt }) => !needed.has(hash) && writtenAt < now - olderThanSeconds).map(({ hash }) => hash);
}

/** The uses of a checkpoint; empty: unused. */
export function checkpointUses({ state, pointer }: Pick<AgentReading, 'state' | 'pointer'>, hash: string): readonly string[] {
  const roles =
    state === null
      ? []
      : [
          ...(state.phase !== 'local' && state.assigned.hash === hash ? ['assigned'] : []),
          ...(state.active?.hash === hash ? ['active'] : []),
          ...(state.lastKnownGood?.hash === hash ? ['last known good'] : []),
          ...(desiredPayload(state)?.hash === hash && state.active?.hash !== hash ? ['desired'] : []),
        ];
  return [...roles, ...(pointer === hash && roles.length === 0 ? ['pointer'] : [])];
}

function roleOf(state: AgentState | null, hash: string): string {
  return checkpointUses({ state, pointer: null }, hash).join(', ') || 'a checkpoint';
}

function isKubeletUp({ kubelet, healthz }: AgentReading): boolean {
  return isHealthy({ unit: kubelet, healthz });
}

function describeKubelet({ kubelet, healthz, runs }: AgentReading): string {
  return `${runs === null ? 'no kubelet process is running' : `the kubelet is unhealthy with ${name(runs)}`}: ${describeHealth({ unit: kubelet, healthz })}`;
}

function name(what: string | null): string {
  return what === null ? 'nothing' : what === 'local' ? 'the local configuration' : `checkpoint ${short(what)}`;
}

function short(hash: string): string {
  return hash.slice(0, 12);
}
