import type { Reporter } from '../../base/reporter.ts';
import type { ConfigSigner } from '../../dynamic/signing/statement.ts';
import type { Backend } from '../../dynamic/status/node-config.ts';
import { type Assigned, assignedBy, checkAssignment, executeAssignment, planRollout } from '../../dynamic/use-cases/assign.ts';
import type { DynamicRollout, RolloutPorts } from '../../dynamic/use-cases/perform-rollout.ts';
import type { PushedFileRequest, ValidationRequest } from '../../dynamic/use-cases/push-file.ts';
import type { RolloutOptions } from '../../dynamic/workflows/rollout.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type KubeconfigRequest, type OpenClusterPorts, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import type { FleetFilePorts, HostConnections } from '../ports.ts';
import { findNodeNames, type NodeChoice } from './find-node-names.ts';

/** The assigned source: a ConfigMap, or a file that is pushed first. */
export type AssignedRequest =
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly validation: ValidationRequest }
  | { readonly kind: 'file'; readonly pushed: PushedFileRequest };

/** The nodes of `dynamic assign` and `dynamic reset`, and how they are processed. */
export interface NodesRequest {
  readonly choice: NodeChoice;
  readonly rollout: RolloutOptions;
  /** Undefined: detected from each Node. */
  readonly backend: Backend | undefined;
  readonly cluster: KubeconfigRequest;
  /** `--reason`, recorded with the assignment. */
  readonly reason: string | undefined;
  readonly run: RunSettings;
}

export interface AssignToNodesRequest extends NodesRequest {
  /** Null: the assignment is removed. */
  readonly assigned: AssignedRequest | null;
  /** Assign to nodes without a reported status as well. */
  readonly force: boolean;
  /** Assign a configuration that would end pods. */
  readonly allowPodLoss: boolean;
}

/** Ports of `dynamic assign`. */
type AssignPorts = FleetFilePorts & Pick<HostConnections, 'connectHost'> & OpenClusterPorts & RolloutPorts & ConfigSigner;

/**
 * Assigns a configuration to nodes, batch by batch; a dry run only plans it.
 * @throws the errors of `openCluster`, `findNodeNames` and `checkAssignment`
 */
export async function assignToNodes(
  services: AssignPorts,
  request: AssignToNodesRequest,
  view: { readonly reporter: Reporter } & Pick<DynamicRollout, 'listenerFor' | 'ended'>,
) {
  const { choice, rollout, backend, force, allowPodLoss, reason } = request;
  const { reporter } = view;
  const assigned = await readAssigned(services, request.assigned);
  const opened = await openCluster(services, request.cluster, { writes: reporter });
  const cluster = opened.cluster as Cluster;
  try {
    const names = await findNodeNames(services, cluster, choice, { changes: true });
    const reverts = rollout.onFailure === 'revert';
    const checked = await checkAssignment(services, cluster, { names, backend, assigned, force, allowPodLoss, reverts, reporter });
    if (request.run.dryRun) {
      const by = assignedBy(services, { allowsPodLoss: allowPodLoss, reason });
      return { kind: 'planned' as const, plans: planRollout(checked, rollout, by), cluster };
    }
    const run = {
      ...view,
      backend,
      rollout,
      allowsPodLoss: allowPodLoss,
      reason,
      selector: choice.kind === 'selector' ? choice.selector.text : undefined,
    };
    return { kind: 'ended' as const, end: await executeAssignment(services, cluster, checked, run) };
  } finally {
    await cluster.close();
  }
}

async function readAssigned({ input }: Pick<AssignPorts, 'input'>, assigned: AssignedRequest | null): Promise<Assigned | null> {
  if (assigned?.kind !== 'file') return assigned;
  return { ...assigned, text: await input.readText(assigned.pushed.file) };
}
