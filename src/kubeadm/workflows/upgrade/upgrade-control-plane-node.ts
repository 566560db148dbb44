import type { PhaseContext } from '../../../host/phase.ts';
import type { Prepared, Workflow } from '../../../host/run-workflow.ts';
import { applyClusterDefaults } from '../../config/defaults.ts';
import { readAdminCluster } from './admin-cluster.ts';
import {
  addonPhases,
  type ControlPlaneUpgradeInput,
  type ControlPlaneUpgradeOptions,
  kubeconfigPhase,
  kubeletConfigPhases,
  postUpgradePhase,
  prepareControlPlaneUpgrade,
  upgradeControlPlanePhases,
} from './control-plane-upgrade.ts';

/**
 * Upgrades another control plane to the version of the cluster, after `upgrade apply` on the first one. Phases in the
 * order of kubeadm 1.36.
 */
export const upgradeControlPlaneNodeWorkflow: Workflow<ControlPlaneUpgradeOptions, ControlPlaneUpgradeInput> = {
  name: 'upgrade node',
  phases: [...upgradeControlPlanePhases, kubeconfigPhase, ...kubeletConfigPhases, ...addonPhases, postUpgradePhase],
  prepare: prepareUpgradeNode,
};

async function prepareUpgradeNode(context: PhaseContext, options: ControlPlaneUpgradeOptions): Promise<Prepared<ControlPlaneUpgradeInput>> {
  const { cluster, model, warnings } = await readAdminCluster(context, options.api);
  const { kubernetesVersion } = applyClusterDefaults(model);
  const target = { version: kubernetesVersion, cluster: model, kubelet: null };
  const prepared = await prepareControlPlaneUpgrade({ ...context, cluster }, options, target);
  return { ...prepared, warnings: [...warnings, ...prepared.warnings] };
}
