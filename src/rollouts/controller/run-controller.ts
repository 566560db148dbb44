import type { AppError } from '../../base/errors.ts';
import { isAppError } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import { CONFIG_EVENT_REASON } from '../../dynamic/status/config-event.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { noRolloutDefinition } from '../api/rollout.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../api/schema.ts';
import { approveServing } from './approve-serving.ts';
import type { ChangePorts } from './change-nodes.ts';
import { type ClusterView, RolloutController } from './controller.ts';
import { fencedCluster } from './fenced-cluster.ts';
import { type Leadership, steadyClock, whileLeader } from './lease.ts';
import type { ControllerMetrics } from './metrics.ts';
import { reportError } from './report-error.ts';
import { Waiting } from './waiting.ts';

/** Events that arrive within this time cause one step. */
const LEAST_STEP_MS = 500;

interface ControllerPorts extends ChangePorts {
  readonly random: () => number;
  readonly web: HttpsClient;
  readonly metrics: ControllerMetrics;
}

/**
 * Runs the controller until the signal is aborted: acts on rollouts while it holds the Lease.
 * @param options.identity unique for each process
 */
export async function runController(
  ports: ControllerPorts,
  options: {
    readonly namespace: string;
    readonly identity: string;
    /** Receives why a request for the Lease has failed; null: it has not. */
    readonly onReadiness?: (issue: string | null) => void;
    /** Approves CSRs for serving certificates; further names of the API server. Null: approves none. */
    readonly approval?: { readonly serverNames: readonly string[] } | null;
  },
): Promise<void> {
  const { cluster, reporter, random, signal } = ports;
  const { onReadiness = () => undefined } = options;
  const reported = new Set<string>();
  const report = (error: AppError): void => {
    if (reported.has(error.message)) return;
    reported.add(error.message);
    reportError(reporter, error);
  };
  const onChange = (leader: string): void => {
    reported.clear();
    const message =
      leader === options.identity
        ? 'this controller is the leader'
        : leader === ''
          ? 'no controller is the leader'
          : `the leader is ${leader}`;
    reporter.report({ level: 'info', code: 'LEADER', message });
  };
  const onIssue = (error: AppError): void => {
    onReadiness(error.message);
    report(error);
  };
  const { clock } = ports;
  const election = { cluster, clock, random, signal, ...options, onIssue, onAnswer: () => onReadiness(null), onChange };
  await whileLeader(election, async (leadership, until) => {
    const leader = { ...ports, clock: steadyClock(clock), signal: until };
    await actAsLeader(leader, leadership, { ...options, onIssue: report, systemTime: () => clock.now() });
  });
}

async function actAsLeader(
  ports: ControllerPorts,
  leadership: Leadership,
  {
    namespace,
    onIssue,
    systemTime,
    approval,
  }: Pick<Parameters<typeof runController>[1], 'namespace' | 'approval'> & {
    readonly onIssue: (error: AppError) => void;
    readonly systemTime: () => Date;
  },
): Promise<void> {
  const { clock, signal } = ports;
  const waiting = new Waiting();
  const fenced = { ...ports, cluster: fencedCluster(ports.cluster, leadership) };
  const { web, metrics } = ports;
  const controller = new RolloutController(fenced, leadership, { namespace, systemTime, web, metrics, wake: () => waiting.wake() });
  metrics.leads(true);
  const approving = approval == null ? null : approveServing(fenced, ports.cluster, { namespace, ...approval, onIssue });
  const watched = watchCluster(ports, { onIssue, wake: () => waiting.wake() });
  try {
    while (!signal.aborted) {
      const view = watched.view();
      const waitMs = view === null ? LEAST_STEP_MS : await controller.step(view);
      await clock.sleep(LEAST_STEP_MS, signal);
      await waiting.sleep(waitMs, ports);
    }
  } catch (error) {
    if (!signal.aborted && !isAppError(error, 'LEASE_LOST')) throw error;
  } finally {
    metrics.leads(false);
    await controller.close();
    await watched.ended();
    await approving;
  }
}

/** Lists and watches the objects that a leader needs. The lists are read after the election, so that they are as new as its Lease. */
function watchCluster(
  { cluster, clock, random, signal }: ChangePorts & { readonly random: () => number },
  { onIssue, wake }: { readonly onIssue: (error: AppError) => void; readonly wake: () => void },
) {
  const found: { -readonly [K in keyof ClusterView]?: ClusterView[K] } = {};
  const follow = (name: keyof ClusterView, kind: Parameters<typeof listWatch>[0], onFailure: () => void = () => undefined) =>
    listWatch(kind, {
      cluster,
      clock,
      random,
      signal,
      reduce: withoutImages,
      onObjects: (objects: ReadonlyMap<string, KubeObject>) => {
        found[name] = [...objects.values()];
        wake();
      },
      onIssue: (error) => {
        onFailure();
        if (!isAppError(error)) throw error;
        onIssue(name === 'rollouts' && error.code === 'CLUSTER_NO_SUCH_KIND' ? noRolloutDefinition(error) : error);
      },
    });
  const fieldSelector = `involvedObject.kind=Node,reason=${CONFIG_EVENT_REASON}`;
  const following = [
    follow('rollouts', { apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND }),
    follow('nodes', { apiVersion: 'v1', kind: 'Node' }),
    // Events only show when a kubelet up to 1.23 restarted.
    follow('events', { apiVersion: 'v1', kind: 'Event', namespace: 'default', fieldSelector }, () => {
      found.events ??= [];
    }),
  ];
  return {
    /** Null: not complete yet. */
    view: (): ClusterView | null => {
      const { rollouts, nodes, events } = found;
      return rollouts === undefined || nodes === undefined || events === undefined ? null : { rollouts, nodes, events };
    },
    ended: () => Promise.all(following),
  };
}

/** The images of a Node, up to 50 with several names, are most of its size. */
function withoutImages(object: KubeObject): KubeObject {
  const { status } = object;
  if (object.kind !== 'Node' || !isJsonObject(status)) return object;
  const { images: _images, ...kept } = status;
  return { ...object, status: kept };
}
