import { usageError } from '../../base/errors.ts';
import { type PlanOnHost, planWorkflow } from '../../host/run-workflow.ts';
import type { JoinConfiguration } from '../../kubeadm/config/model.ts';
import { controlPlaneInputs } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import type { ReadNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import type { JoinOptions } from '../../kubeadm/workflows/join.ts';
import { type JoinControlPlaneOptions, joinControlPlaneWorkflow } from '../../kubeadm/workflows/join-control-plane.ts';
import { type HostTarget, isLocalHost } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { CommandScope } from './run-hosts.ts';

interface JoinControlPlaneInput {
  readonly targets: readonly HostTarget[];
  readonly node: ReadNodeOptions;
  readonly join: JoinOptions;
  readonly document: JoinConfiguration;
}

/**
 * The planner of `join --control-plane`: one host at a time, as etcd takes one member at a time.
 * @param opened closes the connections to the API server of the new control plane
 * @throws AppError USAGE (exit code 2) for several hosts
 */
export async function joinControlPlanePlanner(
  services: NodeCommandPorts,
  { node, document, targets, join }: JoinControlPlaneInput,
  opened: CommandScope['opened'],
): Promise<PlanOnHost> {
  if (targets.length > 1)
    throw usageError(
      `${targets.length} control planes cannot join at the same time`,
      'Join the control planes one after the other: etcd takes one new member at a time',
    );
  const { controlPlane = {}, timeouts = {} } = document;
  const workflowOptions: JoinControlPlaneOptions = {
    ...join,
    localAPIEndpoint: controlPlane.localAPIEndpoint ?? {},
    timeouts,
    staticPodPatches: node.staticPodPatches,
    kubeProxy: null,
    ...(await controlPlaneInputs(services, { isLocal: isLocalHost(targets[0]), staged: node.staged })),
    certificateKey: controlPlane.certificateKey ?? null,
    opened,
  };
  return (context, run) => planWorkflow(joinControlPlaneWorkflow, context, workflowOptions, run);
}
