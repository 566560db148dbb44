import type { RunSettings } from '../../host/run-settings.ts';
import { phaseSelection } from '../../host/run-workflow.ts';
import type { Timeouts } from '../../kubeadm/config/model.ts';
import { upgradeKubeletConfig } from '../../kubeadm/phases/kubelet-start.ts';
import { NodeGroups } from '../../kubeadm/render/node-groups.ts';
import { checksOf } from '../../kubeadm/use-cases/init-phases.ts';
import { durationMs, type FieldsRequest, isForKubelet, readOverlay } from '../../kubeadm/use-cases/node-options.ts';
import type { UpgradeNodeOptions } from '../../kubeadm/workflows/upgrade/upgrade-node.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { PlannedPatch } from '../../kubelet/layers/patch-files.ts';
import type { NodeCommandPorts } from '../ports.ts';

/** Options for the kubelet of an upgraded node, as given on the command line. */
export interface UpgradedKubeletRequest {
  readonly fields: FieldsRequest;
  /** Ignore the settings stored on the host. */
  readonly forget: boolean;
}

/** The options for the kubelet of a node that `upgrade apply` and `upgrade node` share. */
export async function upgradeNodeOptions(
  services: NodeCommandPorts,
  { fields, forget }: UpgradedKubeletRequest,
  {
    timeouts,
    patches,
    run,
  }: { readonly timeouts: Timeouts | undefined; readonly patches: readonly PlannedPatch[] | null; readonly run: RunSettings },
): Promise<Omit<UpgradeNodeOptions, 'trust' | 'nodeName'>> {
  return {
    templates: await services.templates(),
    catalogue: await loadCatalogue(),
    groups: new NodeGroups(),
    overlays: fields.overlay === undefined ? null : await readOverlay(services, fields.overlay),
    declared: fields.declared,
    settings: fields.settings.length === 0 ? null : fields.settings,
    patches: patches?.filter(isForKubelet) ?? null,
    configDir: fields.configDir,
    ignoreSavedSettings: forget,
    ...checksOf({ phases: [upgradeKubeletConfig] }, run),
    run: phaseSelection(run)(upgradeKubeletConfig.name) ? run : { ...run, podLoss: 'ignore' },
    staged: false,
    kubeletHealthCheckMs: durationMs(timeouts?.kubeletHealthCheck, 240_000),
  };
}
