import { AppError, isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ObjectChange } from '../../host/plan/change.ts';
import { agentNamespaceProblem } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { planAgentRights } from '../../kubeadm/phases/agent-rights.ts';
import { ASSIGNMENT_LOST_REASON, UNAVAILABLE_REASON } from '../agent/status.ts';
import { agentRightsMissing } from '../status/dynamic-problems.ts';
import type { NodeConfig } from '../status/node-config.ts';

/** The changes that create the RBAC rules of agents again, by node. */
export type RestoredRights = ReadonlyMap<string, readonly ObjectChange[]>;

/**
 * Plans the RBAC rules of agents that cannot read ConfigMaps: the rules belong to the Node, so the garbage
 * collector deletes them with it. Only nodes that report a lost or unavailable assignment are checked.
 * Credentials that may not read the rules cause a warning.
 * @param options.checksNew also check Nodes without the annotation of the agent's namespace: if they were created again, the
 *   rules of the previous Node may not be deleted yet, and the agent may not have reported the loss yet
 */
export async function planMissingRights(
  cluster: Cluster,
  {
    nodes,
    namespace,
    reporter,
    checksNew = false,
  }: { readonly nodes: readonly NodeConfig[]; readonly namespace: string; readonly reporter: Reporter; readonly checksNew?: boolean },
): Promise<RestoredRights> {
  const reasons: readonly string[] = [ASSIGNMENT_LOST_REASON, UNAVAILABLE_REASON];
  const checked = nodes.filter(
    ({ backend, agentNamespace, agentCondition }) =>
      reasons.includes(agentCondition?.reason ?? '') || (checksNew && backend === 'agent' && agentNamespace === null),
  );
  if (agentNamespaceProblem(namespace) !== null) return new Map();
  const restored = new Map<string, readonly ObjectChange[]>();
  for (const { name } of checked) {
    try {
      const changes = await planAgentRights(cluster, { nodeName: name, namespace });
      if (changes.length > 0) restored.set(name, changes);
    } catch (error) {
      if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
      const { code, message, hint } = agentRightsMissing(name, `you may not read them: ${error.message}`);
      reporter.report({ level: 'warning', code, message: `${message}. ${hint}`, host: name });
    }
  }
  return restored;
}

/**
 * Creates the rules before the assignment.
 * @throws AppError AGENT_RIGHTS_MISSING (exit code 3) if the credentials may not create them
 */
export async function restoreRights(cluster: Cluster, rights: RestoredRights, reporter: Reporter): Promise<void> {
  for (const [node, changes] of rights) {
    for (const change of changes) {
      try {
        await applyClusterChange(cluster, change);
      } catch (error) {
        if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
        const what = change.kind === 'update-object' ? 'update those of the previous Node, which are not deleted yet' : 'create them';
        throw new AppError(agentRightsMissing(node, `you may not ${what}: ${error.message}`), { exitCode: 3, cause: error });
      }
    }
    const message = 'the RBAC rules of the agent, which were deleted with the previous Node, were created again';
    reporter.report({ level: 'info', code: 'AGENT_RIGHTS_RESTORED', host: node, message });
  }
}
