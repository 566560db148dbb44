import { onAbort } from '../../base/abort.ts';
import type { RunTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { configMapData } from '../../kube/object.ts';
import { kubeletBinary } from '../../kubelet/facts/kubelet-version.ts';
import { trialPods } from '../../kubelet/health/trial-pods.ts';
import { describeSource } from '../../kubelet/layers/config-source.ts';
import { type AgentOptions, canReplaceManagerState } from './agent-options.ts';
import { type CheckpointStore, checkpointStore, type StoredAgent } from './checkpoint-store.ts';
import { type AccessProblem, clusterAccess, describeAccess, READ_CONFIG_MAP } from './cluster-access.ts';
import { configzSource } from './configz-source.ts';
import { agentStateMachine, type ReportAgentMessage } from './execute.ts';
import { type AssignmentMessage, followAssignment, watchObject } from './follow-assignment.ts';
import { forbiddenCheckpoints } from './forbidden-checkpoints.ts';
import { kubeletWatch } from './kubelet-watch.ts';
import { managerStateSwitches } from './manager-state-switch.ts';
import { nextTimer } from './next.ts';
import { type AssignedObject, requireStartable } from './prepare-assigned.ts';
import { statusReporter } from './report-status.ts';
import { prepareVerified } from './require-signature.ts';
import { type AgentEvent, type AgentState, neededHashes } from './state.ts';

/** `issue`: the Node cannot be watched. */
type Message = Exclude<AssignmentMessage, { readonly kind: 'wake' }> | { readonly kind: 'node-issue'; readonly error: unknown };

/**
 * Runs an agent until its signal is aborted: watches the Node and its assignment, and makes the kubelet run
 * the assigned configuration. All decisions are made by `next`; this function connects it with event sources
 * and effects.
 */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { host, signal } = options;
  const report: ReportAgentMessage = (level, code, message) => options.reporter.report({ level, code, message, host: options.nodeName });
  const store = checkpointStore(host, options.directory);
  const loaded = await store.load(signal);
  const agent = assembleAgent(options, store, loaded, report);
  const { machine, workload } = agent;
  options.watchFile?.(options.localConfig, () => agent.eventQueue.put({ kind: 'local-config' }));
  const background = Promise.all([watchNode(agent), agent.status.run(signal)]);
  try {
    await agent.watch.removeStaleProbePod();
    await dropForbidden(agent, null);
    const intact = loaded.checkpoints.flatMap(({ hash, files }) => (files === null ? [] : [hash]));
    await machine.dispatch({ kind: 'booted', intact, kubelet: await kubeletVersion(host) });
    agent.onState(machine.state);
    while (!signal.aborted) await turn(agent);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await workload.end();
    await background;
  }
}

type Agent = ReturnType<typeof assembleAgent>;

/** Connects the state machine with the sources of its events and the ports of its effects. */
function assembleAgent(options: AgentOptions, store: CheckpointStore, loaded: StoredAgent, report: ReportAgentMessage) {
  const eventQueue = createEventQueue<Message>(options);
  const access = clusterAccess(options, loaded.access, accessWriter(store, report, options.onAccess));
  const { cluster } = access;
  options.onAccess?.(loaded.access);
  const copy = loaded.state === null ? 'no other copy is readable' : 'the other copy is used';
  for (const path of loaded.damaged) report('warning', 'AGENT_STATE_DAMAGED', `${path} cannot be read; ${copy}`);
  const status = statusReporter({ ...options, cluster });
  const onIssue = (message: string): void => report('debug', 'CONFIGZ_NOT_TOLD', message);
  const workload = trialPods({ ...options, onIssue });
  const watch = kubeletWatch({ ...options, cluster, store, configz: configzSource(options), workload, onIssue });
  const onState = (state: AgentState): void => {
    if (state.phase !== 'trial') void workload.end();
    status.stateIs(state);
    options.onState?.(state);
  };
  const states = canReplaceManagerState(options.allow) ? managerStateSwitches({ ...options, store }) : null;
  const effects = { ...options, store, states, status, watch, report, requireStartable: () => requireStartable(options) };
  const machine = agentStateMachine(effects, loaded, onState);
  const assignment = followAssignment({
    ...options,
    follow: (source, until) =>
      void watchObject(
        { apiVersion: 'v1', kind: 'ConfigMap', namespace: source.namespace, name: source.name },
        {
          ...options,
          cluster,
          signal: until,
          onObject: (object) => eventQueue.put({ kind: 'config-map', source, object }),
          onIssue: (error) => eventQueue.put({ kind: 'config-map-issue', source, error }),
          // An immutable ConfigMap is read once, which saves the API server a watch.
          isFinal: (object) => object.immutable === true,
        },
      ),
    prepare: (assigned) => storeAssigned(assigned, machine.state, { options, store, report }),
  });
  const forbidden = forbiddenCheckpoints({ ...options, store, onIssue });
  return { options, report, eventQueue, access, status, workload, watch, onState, machine, assignment, forbidden };
}

/** Prepares and stores the payload of an assignment; removes unneeded checkpoints if the disk is full. */
async function storeAssigned(
  assigned: AssignedObject,
  state: AgentState,
  { options, store, report }: { readonly options: AgentOptions; readonly store: CheckpointStore; readonly report: ReportAgentMessage },
): Promise<AgentEvent> {
  const { candidate, files, sets, places, refusal, warning, podWarnings } = await prepareVerified(assigned, state, options);
  if (warning !== null) report('warning', warning.code, warning.message);
  for (const message of podWarnings) report('warning', 'PODS_AT_RISK', message);
  const { hash } = candidate;
  const origin = { identity: candidate.identity, sets, places, data: configMapData(assigned.object) };
  if (files !== null && hash !== null)
    await store.saveCheckpoint(hash, files, origin).catch(async (error: unknown) => {
      const removed = await store.collect([...neededHashes(state), hash], 0);
      if (removed.length === 0) throw error;
      await store.saveCheckpoint(hash, files, origin);
    });
  const mayLosePods = assigned.node.allowsPodLossOf === describeSource(assigned.source);
  return { kind: 'assigned', candidate, refusal, retry: assigned.node.retry, mayLosePods };
}

function watchNode({ options, access, eventQueue }: Agent): Promise<void> {
  return watchObject(
    { apiVersion: 'v1', kind: 'Node', name: options.nodeName },
    {
      ...options,
      cluster: access.cluster,
      onObject: (object) => eventQueue.put({ kind: 'node', node: object }),
      onIssue: (error) => eventQueue.put({ kind: 'node-issue', error }),
    },
  );
}

/** The event that follows from a message; null: none. */
async function handle({ options, report, status, watch, access, assignment }: Agent, message: Message): Promise<AgentEvent | null> {
  if (message.kind !== 'node' && message.kind !== 'node-issue') return assignment.handle(message);
  if (message.kind === 'node-issue') report('warning', 'NODE_NOT_FOLLOWED', `the agent cannot watch its Node: ${messageOf(message.error)}`);
  // The last state of the Node is outdated while the Node cannot be watched.
  const node = message.kind === 'node' ? message.node : null;
  options.onNode?.(node !== null);
  status.nodeIs(node);
  watch.nodeIs(node ?? (message.kind === 'node' ? `the Node ${options.nodeName} does not exist` : 'the API server is unreachable'));
  const event = await assignment.handle({ kind: 'node', node });
  if (event?.kind === 'unassigned') access.drop(READ_CONFIG_MAP);
  return event;
}

async function dropForbidden({ machine, forbidden }: Agent, pid: number | null): Promise<void> {
  const event = await forbidden(machine.state, pid);
  if (event !== null) await machine.dispatch(event);
}

/** Keeps a clock that was set back from causing a long wait. */
const LONGEST_WAIT_MS = 60_000;

async function turn(agent: Agent): Promise<void> {
  const { machine, assignment, watch } = agent;
  const { clock, timing } = agent.options;
  const now = (): number => clock.now().getTime();
  const dispatch = async (event: AgentEvent | null): Promise<void> => {
    if (event !== null) await machine.dispatch(event);
  };
  const times = [nextTimer(machine.state, timing)?.at ?? null, assignment.wakeAt].flatMap((at) => (at === null ? [] : [at - now()]));
  const message = await agent.eventQueue.take(times.length === 0 ? null : Math.min(Math.max(0, Math.min(...times)), LONGEST_WAIT_MS));
  if (message !== null) await dispatch(await handle(agent, message));
  await dispatch(await assignment.handle({ kind: 'wake' }));
  const due = nextTimer(machine.state, timing);
  if (due === null || (due.at > now() && due.at - now() <= LONGEST_WAIT_MS)) return;
  if (due.kind === 'switch') return machine.dispatch({ kind: 'tick' });
  const seen = await watch.inspect(machine.state);
  if (seen.pid !== undefined && seen.pid !== null) await dropForbidden(agent, seen.pid);
  await machine.dispatch({ kind: 'observed', seen });
}

/** Writes the problems in order of their changes; failed writes are reported. */
function accessWriter(
  store: Pick<CheckpointStore, 'saveAccess'>,
  report: ReportAgentMessage,
  onAccess: AgentOptions['onAccess'],
): (problems: readonly AccessProblem[]) => void {
  let last = Promise.resolve();
  return (problems) => {
    onAccess?.(problems);
    for (const problem of problems) report('warning', 'API_SERVER_REFUSES', describeAccess(problem));
    if (problems.length === 0) report('info', 'API_SERVER_ACCEPTS', 'the API server accepts all requests of the agent again');
    last = last
      .then(() => store.saveAccess(problems))
      .catch((error: unknown) => report('warning', 'AGENT_STATE_NOT_WRITTEN', `the agent cannot write its state: ${messageOf(error)}`));
  };
}

async function kubeletVersion(host: Host): Promise<string | null> {
  const found = await observe(host, kubeletBinary);
  return found !== null && 'version' in found ? found.version : null;
}

/**
 * Messages in order of arrival, for one reader. `take` returns the next one, or null when none arrived within `ms` (null: no
 * limit), and rejects with the reason of the signal when it is aborted.
 */
function createEventQueue<T>({ clock, signal }: RunTime) {
  const messages: T[] = [];
  let wake: () => void = () => undefined;
  return {
    put: (message: T): void => {
      messages.push(message);
      wake();
    },
    take: async (ms: number | null): Promise<T | null> => {
      signal.throwIfAborted();
      if (messages.length > 0) return messages.shift() as T;
      const stop = new AbortController();
      const removeListener = onAbort(signal, (reason) => stop.abort(reason));
      try {
        const arrival = new Promise<void>((resolve) => {
          wake = resolve;
          stop.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        const timeout = ms === null ? [] : [clock.sleep(ms, stop.signal).catch(() => undefined)];
        await Promise.race([arrival, ...timeout]);
        signal.throwIfAborted();
      } finally {
        wake = () => undefined;
        removeListener();
        stop.abort();
      }
      return messages.shift() ?? null;
    },
  };
}
