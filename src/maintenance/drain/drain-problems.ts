import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import { namesText, sortedNames } from '../../base/text/name-ranges.ts';
import type { DrainForecast, NodeForecast } from '../forecast/forecast.ts';
import type { PodProgress } from './next-drain.ts';

/** A drain that did not end. The node was uncordoned again. */
export function drainFailed(node: string, ended: 'timeout' | 'permission', pods: readonly PodProgress[], timeoutMs: number): Problem {
  const left = pods.filter(({ stage }) => stage !== 'gone');
  const shown = left.slice(0, MOST_PODS).map(({ name, stage, why }) => `${name} (${why || stage})`);
  const more = left.length > MOST_PODS ? `, and ${left.length - MOST_PODS} more` : '';
  const list = `${shown.join(', ')}${more}`;
  if (ended === 'permission')
    return {
      code: 'DRAIN_NOT_PERMITTED',
      host: node,
      message: `cannot drain: pods without a controller or with emptyDir volumes started after the forecast: ${list}`,
      hint: `Check these pods: kubectl get pods -A -o wide --field-selector spec.nodeName=${node}. To lose these pods or their data, rerun drain or maintenance start with --force or --delete-emptydir-data, other commands with --force-drain`,
    };
  return {
    code: 'DRAIN_TIMEOUT',
    host: node,
    message: `not drained within ${timeoutMs / 1000} s: ${left.length} ${left.length === 1 ? 'pod remains' : 'pods remain'}: ${list}`,
    hint: `To see what blocks the pods, run kubeletadm drain ${node} --dry-run. Or raise the time limit: --node-timeout of drain and maintenance start, --drain-timeout of other commands`,
  };
}

const MOST_PODS = 5;

/** The run continues. */
export function notSettled(node: string, workloads: readonly string[], timeoutMs: number): Problem {
  return {
    code: 'PODS_NOT_SETTLED',
    host: node,
    message: `${timeoutMs / 1000} s after the node returned to service, these controllers are not known to have as many Ready pods as before the drain: ${namesOf(workloads)}. The run continues. To wait longer, use --settle`,
  };
}

/** Another client uncordoned the node, or another run took it over. */
export function holdLost(node: string): Problem {
  return {
    code: 'CORDON_LOST',
    host: node,
    message: 'another client uncordoned the node, deleted it or took it over during the drain',
    hint: `Check who changes the node: kubectl describe node ${node}`,
  };
}

/** @throws nothing: an AppError as a value */
export function nodeLeftCordoned(node: string, cause: AppError): AppError {
  const message = `the node stays cordoned, because the API server did not accept the change: ${cause.problems.map(formatProblem).join('; ')}`;
  const hint = `When the API server answers: kubeletadm uncordon ${node}`;
  return new AppError({ code: 'NODE_LEFT_CORDONED', host: node, message, hint }, { cause });
}

/** Why nodes cannot be drained; nothing was cordoned. */
export function drainRefused({ nodes }: Pick<DrainForecast, 'nodes'>): AppError | null {
  const problems = nodes.flatMap(({ node, blockers }) =>
    blockers
      .filter(({ isRefusal }) => isRefusal)
      .map(({ why, fix, pods }): Problem => {
        return { code: 'DRAIN_BLOCKED', host: node, message: `cannot drain: ${why}: ${namesOf(pods)}`, hint: fix };
      }),
  );
  return problems.length === 0 ? null : new AppError(problems, { exitCode: 3 });
}

/** With `--no-drain`: the change needs a node without pods to evict. */
export function nodeNotDrained(node: string): Problem {
  return {
    code: 'NODE_NOT_DRAINED',
    host: node,
    message: 'the change needs a drained node, but the node has pods to evict and --no-drain forbids evicting them',
    hint: `Drain the node first: kubeletadm drain ${node}. Or omit --no-drain, or add --allow-pod-loss to change the node without evicting its pods`,
  };
}

/** Without the right to drain the node, which the change requires. */
export function drainForbidden(node: string): Problem {
  return {
    code: 'NODE_NOT_DRAINED',
    host: node,
    message: 'the change needs a drained node, but the credentials may not cordon the node and evict its pods',
    hint: 'Grant create on pods/eviction, list on pods and poddisruptionbudgets, and patch on nodes',
  };
}

/** The change continues. */
export function notDrainedWarning(node: string): Problem {
  return {
    code: 'NODE_NOT_DRAINED',
    host: node,
    message:
      'the node is not drained before the change, because the credentials of this run may not cordon it and evict pods. Pass --kubeconfig with the kubeconfig of an administrator',
  };
}

/** The change continues. */
export function drainUnknownWarning(host: string, why: string): Problem {
  return {
    code: 'NODE_NOT_DRAINED',
    host,
    message: `the change needs a drained node, but the node is not drained, because ${why}. Its running pods may be affected. Pass --kubeconfig with the kubeconfig of an administrator`,
  };
}

/** Before previous configurations are restored, which continues. */
export function restoredUndrained(nodes: readonly string[]): Problem {
  const are = nodes.length === 1 ? 'is' : 'are';
  const message = `${namesText(sortedNames(nodes))} ${are} not drained before the previous assignment is restored, because its impact is unknown`;
  return { code: 'NODE_NOT_DRAINED', message };
}

/** After a failed change: whether the node runs its previous configuration is not known. */
export function nodeLeftToFail(node: string): Problem {
  return {
    code: 'NODE_LEFT_CORDONED',
    host: node,
    message: `the node stays cordoned, because the change failed and the previous configuration is not verified. Fix the cause and rerun the command. If it does not change the node again, run kubeletadm uncordon ${node}`,
  };
}

/** The host needs no change. */
export function nodeLeftBefore(node: string): Problem {
  return {
    code: 'NODE_LEFT_CORDONED',
    host: node,
    message: `the node is still cordoned by an earlier run that ended without returning it to service. Check the node, then run kubeletadm uncordon ${node}`,
  };
}

/** The node is skipped. */
export function nodeHeld(node: string, why: string): Problem {
  return {
    code: 'NODE_HELD',
    host: node,
    message: `skipped: ${why}`,
    hint: `Wait until that work is finished. To see the owner, run kubeletadm maintenance status ${node}`,
  };
}

export function nodeNotFound(node: string): Problem {
  return { code: 'NODE_NOT_FOUND', host: node, message: 'the cluster has no Node of this name', hint: 'List the Nodes: kubectl get nodes' };
}

/** Names of pods; long lists are cut. */
export function namesOf(pods: readonly string[]): string {
  const more = pods.length > MOST_PODS ? ` and ${pods.length - MOST_PODS} more` : '';
  return `${pods.slice(0, MOST_PODS).join(', ')}${more}`;
}

/** The warning of a plan about a node whose drain would be refused or wait; null: the drain would not. */
export function drainForecastWarning(forecast: NodeForecast): Problem | null {
  if (forecast.state === 'ready' || forecast.state === 'drained') return null;
  return { code: 'DRAIN_FORECAST', message: `Node ${forecast.node}: ${forecastLine(forecast)}` };
}

/** `5 pods to evict; waits: …`: the forecast of a node in one line. */
export function forecastLine({ state, evictable, blockers, unplaced }: NodeForecast): string {
  if (state === 'drained') return 'no pods to evict';
  const count = `${evictable.length} ${evictable.length === 1 ? 'pod' : 'pods'} to evict`;
  const worst = blockers.find(({ isRefusal }) => isRefusal) ?? blockers[0];
  if (worst !== undefined) {
    const others = blockers.length > 1 ? ` (and ${blockers.length - 1} more)` : '';
    return `${count}; ${state === 'blocked' ? 'cannot be drained' : 'will wait'}: ${worst.why}${others}. ${worst.fix}`;
  }
  return unplaced.length === 0 ? count : `${count}; ${unplaced.length} fit on no other node (estimate)`;
}
