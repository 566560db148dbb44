import type { PhaseContext } from '../../host/phase.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { removeController } from '../../kubeadm/phases/controller-remove.ts';
import { identifyNode, type NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import { revokeControllerRights } from '../phases/controller-on-host.ts';

export interface UninstallOnHostOptions {
  /** Named by the operator; null: the host must prove its Node. */
  readonly nodeName: string | null;
  readonly trust: NodeTrust;
  /** With the last controller, also delete the CustomResourceDefinition. */
  readonly removesDefinition: boolean;
}

type UninstallInput = Parameters<typeof revokeControllerRights.inspect>[1];

/** Reverts `controller install` on a host. */
export const uninstallOnHostWorkflow: Workflow<UninstallOnHostOptions, UninstallInput> = {
  name: 'controller uninstall',
  phases: [removeController.select(() => ({ keepsRights: false })), revokeControllerRights],
  prepare: async (
    context: PhaseContext,
    { nodeName, trust, removesDefinition }: UninstallOnHostOptions,
  ): Promise<Prepared<UninstallInput>> => {
    const { claim, refusals } = await identifyNode(context, { trust, named: nodeName });
    return { input: claim === null ? null : { nodeName: claim.nodeName, removesDefinition }, warnings: [], refusals, node: claim };
  },
};
