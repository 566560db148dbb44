import type { Reporter } from '../../base/reporter.ts';
import type { ConfigSigner } from '../../dynamic/signing/statement.ts';
import { type AssignmentRequest, checkAssignment, executeAssignment, planRollout } from '../../dynamic/use-cases/assign.ts';
import type { DynamicRollout } from '../../dynamic/use-cases/perform-rollout.ts';
import { assignedBy, type RolloutPorts } from '../../dynamic/workflows/rollout.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { drainingOf } from './draining.ts';
import { findNodeNames, type NodeChoice } from './named-hosts.ts';

/** The nodes of `dynamic assign` and `dynamic reset`, and their assignment. */
export interface AssignToNodesRequest extends AssignmentRequest {
  readonly choice: NodeChoice;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
}

/** What `dynamic assign` and `dynamic reset` share. */
export type NodesRequest = Omit<AssignToNodesRequest, 'assigned' | 'force' | 'allowPodLoss'>;

/**
 * Assigns a configuration to nodes, batch by batch; a dry run only plans it.
 * @throws the errors of `openCluster`, `findNodeNames` and `checkAssignment`
 */
export async function assignToNodes(
  services: NodeCommandPorts & RolloutPorts & ConfigSigner,
  request: AssignToNodesRequest,
  view: { readonly reporter: Reporter } & Pick<DynamicRollout, 'listenerFor' | 'ended'>,
) {
  const { choice, rollout, assigned } = request;
  const { reporter } = view;
  const text = assigned?.kind === 'file' ? await services.input.readText(assigned.pushed.file) : null;
  const assign = async (cluster: Cluster) => {
    const names = await findNodeNames(services, cluster, choice, { changes: true });
    const checked = await checkAssignment(services, cluster, request, { names, text, reporter });
    if (request.run.dryRun)
      return { kind: 'planned' as const, plans: planRollout(checked, rollout, assignedBy(services, request)), cluster };
    const selector = choice.kind === 'selector' ? choice.selector.text : undefined;
    const { policy, run = null } = (await drainingOf(services, request.run)) ?? {};
    const draining = policy === undefined || run === null ? undefined : { policy, run };
    return {
      kind: 'ended' as const,
      end: await executeAssignment(services, cluster, checked, { ...request, ...view, selector, draining }),
    };
  };
  return withCluster(services, request.cluster, assign, reporter);
}
