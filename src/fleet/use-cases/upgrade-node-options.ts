import type { Impact } from '../../host/plan/impact.ts';
import { phaseSelection, skipsPreflight } from '../../host/run-workflow.ts';
import type { Timeouts, UpgradeApply, UpgradeNode } from '../../kubeadm/config/model.ts';
import { upgradeKubeletConfig } from '../../kubeadm/phases/kubelet-start.ts';
import { NodeGroups } from '../../kubeadm/render/node-groups.ts';
import { checksOf } from '../../kubeadm/use-cases/init-phases.ts';
import { durationMs, type FieldsRequest, isForKubelet, readOverlay } from '../../kubeadm/use-cases/node-options.ts';
import type { PodLossPolicy } from '../../kubeadm/workflows/node-options.ts';
import type { UpgradeNodeOptions } from '../../kubeadm/workflows/upgrade-node.ts';
import { loadCatalogue } from '../../kubelet/load-catalogue.ts';
import type { PlannedPatch } from '../../kubelet/patch-files.ts';
import type { NodeCommandPorts } from '../ports.ts';

/** Options for the kubelet of an upgraded node, as given on the command line. */
export interface UpgradedKubeletRequest {
  /** Undefined: all phases. */
  readonly onlyPhase: string | undefined;
  readonly fields: FieldsRequest;
  readonly podLoss: PodLossPolicy;
  /** The most disruptive impact on a running kubelet that is applied. */
  readonly allow: Impact;
  /** Ignore the settings stored on the host. */
  readonly forget: boolean;
}

export interface UpgradedNodeSettings {
  readonly settings: UpgradeApply | UpgradeNode;
  readonly timeouts: Timeouts | undefined;
  /** All patches of the directory; null: no directory was given. */
  readonly patches: readonly PlannedPatch[] | null;
  readonly skipPhases: readonly string[];
  readonly dryRun: boolean;
}

/** The options for the kubelet of a node that `upgrade apply` and `upgrade node` share. */
export async function upgradeNodeOptions(
  services: NodeCommandPorts,
  { onlyPhase, fields, podLoss, forget }: UpgradedKubeletRequest,
  { settings, timeouts, patches, skipPhases, dryRun }: UpgradedNodeSettings,
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
    ignorePreflightErrors: settings.ignorePreflightErrors ?? [],
    ...checksOf({ phases: [upgradeKubeletConfig] }, { onlyPhase, skipPreflight: skipsPreflight(skipPhases) }),
    podLoss: phaseSelection(skipPhases, onlyPhase)(upgradeKubeletConfig.name) ? podLoss : 'ignore',
    dryRun,
    staged: false,
    kubeletHealthCheckMs: durationMs(timeouts?.kubeletHealthCheck, 240_000),
  };
}
