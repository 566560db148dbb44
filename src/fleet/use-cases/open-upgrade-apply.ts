import { usageError } from '../../base/errors.ts';
import { parseKubernetesVersion } from '../../base/kubernetes-version.ts';
import { withDocument } from '../../host/run-settings.ts';
import type { PlannedWorkflow } from '../../host/run-workflow.ts';
import { keptPhases, phaseSelection } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeUpgradeFlags } from '../../kubeadm/config/flags.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { readPatches } from '../../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import {
  isEssentialPhase,
  skippedUpgradePhases,
  type UpgradeApplyOptions,
  upgradeApplyWorkflow,
} from '../../kubeadm/workflows/upgrade/upgrade-apply.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { confirmChange } from './confirm-change.ts';
import { resolveTarget } from './control-plane-of.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import { openControlPlaneUpgrades } from './open-control-plane-upgrade.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';
import { type UpgradedKubeletRequest, upgradeNodeOptions } from './upgrade-node-options.ts';

export interface UpgradeApplyRequest extends UpgradedKubeletRequest, HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options and the argument `version`, which override the document of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  /** Upgrade without a confirmation. */
  readonly yes: boolean;
}

/** What `upgrade apply` asks and shows. */
interface UpgradeApplyDialog {
  /** Null: no terminal. */
  readonly confirm: (version: string, plan: PlannedWorkflow) => Promise<boolean | null>;
  /** Receives the ClusterConfiguration of `--print-config`. */
  readonly showConfig: NonNullable<UpgradeApplyOptions['showConfig']>;
}

interface OpenedUpgradeApply extends HostsCommand {
  /** `v1.36.2` */
  readonly version: string;
  /** Phases without which the control plane is not upgraded, or not verified, and which the run skips. */
  readonly left: readonly string[];
}

/**
 * Prepares `upgrade apply VERSION` and `upgrade apply phase NAME...`.
 * @throws AppError: problems of the configuration, all at once, a missing version or several hosts (exit code 2); errors
 * of the kubeconfig
 */
export async function openUpgradeApply(
  services: NodeCommandPorts,
  request: UpgradeApplyRequest,
  { reporter, opened: keep, confirm, showConfig }: UpgradeApplyDialog & CommandScope,
): Promise<OpenedUpgradeApply> {
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'apply', request.flags);
  const warnings = requireValid(config);
  const { apply: settings = {}, timeouts } = config.upgrade ?? {};
  const version = await versionToInstall(services, settings.kubernetesVersion);
  const run = withDocument(request.run, settings);
  const force = settings.forceUpgrade === true;
  const directory = settings.patches?.directory;
  const patches = directory === undefined ? null : await readPatches(services, directory, reporter);
  const node = await upgradeNodeOptions(services, request, { timeouts, patches, run });
  const targets = await readHostTargets(services, request.hosts);
  if (targets.length > 1)
    throw usageError(
      'upgrade apply upgrades the first control plane of a cluster, but several hosts were given',
      'Run upgrade apply with one --host, then upgrade the other control planes with upgrade node, one after the other',
    );
  const given = isKubeconfigGiven(request.cluster) ? (await openCluster(services, request.cluster, { writes: reporter })).cluster : null;
  if (given !== null) keep(given);
  const opened = { node: { ...node, trust: null, nodeName: null }, settings, timeouts, patches, targets, given };
  const plan = await openControlPlaneUpgrades(services, opened, keep);
  const selects = phaseSelection(run);
  const planned = plan(upgradeApplyWorkflow, (common) => ({
    ...common,
    version,
    allowExperimental: settings.allowExperimentalUpgrades === true,
    allowReleaseCandidates: settings.allowRCUpgrades === true,
    force,
    checks: selects('preflight'),
    showConfig: settings.printConfig === true ? showConfig : null,
  }));
  const skippedPhases = skippedUpgradePhases(keptPhases(run));
  return {
    version,
    left: skippedPhases.filter(isEssentialPhase),
    targets,
    cluster: null,
    planHost: async (context, own) => {
      const result = await planned(context, own);
      const names = { command: 'upgrade apply', flag: '--yes', changed: 'the upgrade' };
      await confirmChange(run, request.yes || force, () => confirm(version, result), names);
      return result;
    },
    run,
    skippedPhases,
    warnings,
  };
}

/** The version as the cluster stores it. A label is resolved at the release server. */
async function versionToInstall(services: NodeCommandPorts, given: string | undefined): Promise<string> {
  if (given === undefined) throw usageError('upgrade apply needs the version to upgrade to', 'Example: kubeletadm upgrade apply v1.36.2');
  return `${parseKubernetesVersion(given)?.ci === true ? 'ci/' : ''}${await resolveTarget(services, given)}`;
}
