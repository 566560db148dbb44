import { AppError, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { DEFAULT_RUN, withDocument } from '../../host/run-settings.ts';
import { applyClusterDefaults } from '../../kubeadm/config/defaults.ts';
import { encodeClusterConfiguration, renderConfig } from '../../kubeadm/config/encode.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeUpgradeFlags } from '../../kubeadm/config/flags.ts';
import { releaseOf } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { diffManifests } from '../../kubeadm/workflows/upgrade/diff-manifests.ts';
import { planUpgrade } from '../../kubeadm/workflows/upgrade/plan-upgrade.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { resolveTarget, withControlPlane } from './control-plane-of.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';

export interface PlanClusterUpgradeRequest {
  readonly config: string | undefined;
  /** Options and the argument `version`, which override the document of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
}

/**
 * Plans the upgrade of the cluster of one control plane host. Warnings are reported.
 * @returns `configuration`: the ClusterConfiguration as YAML for `--print-config`, otherwise null
 * @throws AppError: problems of the configuration (exit code 2); failed checks of the cluster (exit code 3)
 */
export async function planClusterUpgrade(services: NodeCommandPorts, request: PlanClusterUpgradeRequest, reporter: Reporter) {
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'plan', request.flags);
  const warn = (warnings: readonly { readonly code: string; readonly message: string }[]): void => {
    for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
  };
  warn(requireValid(config));
  const options = config.upgrade?.plan ?? {};
  const version = options.kubernetesVersion === undefined ? null : await resolveTarget(services, options.kubernetesVersion);
  const [target, another] = await readHostTargets(services, request.hosts);
  if (target === undefined || another !== undefined)
    throw usageError('upgrade plan checks the cluster on exactly one control plane', 'Pass --host once');
  return withControlPlane(
    services,
    { target, kubeconfig: request.cluster, reporter },
    async ({ host, cluster, model, warnings: found }) => {
      warn(found);
      const { clock, signal } = services;
      const { plan, warnings, refusals } = await planUpgrade(
        { host, cluster, clock, reporter, signal },
        {
          cluster: model,
          target: version,
          allowExperimental: options.allowExperimentalUpgrades === true,
          allowReleaseCandidates: options.allowRCUpgrades === true,
          etcdUpgrade: options.etcdUpgrade !== false,
          run: withDocument(DEFAULT_RUN, options),
          releaseOf: (label) => releaseOf(services, label, false),
        },
      );
      warn(warnings);
      if (refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
      const configuration = renderConfig([encodeClusterConfiguration(applyClusterDefaults(model))]).reveal();
      return { plan, configuration: options.printConfig === true ? configuration : null };
    },
  );
}

/**
 * The differences between the static Pod manifests of control planes and those of a version.
 * @param request.contextLines unchanged lines around each difference, if neither an option nor a file sets their number
 * @returns unified diffs, with the name of the host before each path if several hosts are given
 * @throws AppError: problems of the configuration (exit code 2); the errors of `diffManifests`
 */
export async function diffUpgrade(
  services: NodeCommandPorts,
  request: PlanClusterUpgradeRequest & { readonly contextLines: number },
  reporter: Reporter,
): Promise<string> {
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'diff', request.flags);
  for (const { code, message } of requireValid(config)) reporter.report({ level: 'warning', code, message });
  const { kubernetesVersion, contextLines = request.contextLines } = config.upgrade?.diff ?? {};
  if (contextLines < 0) throw usageError(`--context-lines ${contextLines}: must not be negative`);
  const given = kubernetesVersion === undefined ? null : await resolveTarget(services, kubernetesVersion);
  const targets = await readHostTargets(services, request.hosts);
  const diffs: string[] = [];
  for (const target of targets) {
    const access = { target, kubeconfig: request.cluster, reporter };
    const diff = await withControlPlane(services, access, async ({ host, model, warnings }) => {
      for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
      const version = given ?? (await resolveTarget(services, model.kubernetesVersion ?? ''));
      const prefix = targets.length > 1 ? `${host.name}:` : '';
      return diffManifests(host, { cluster: model, version, contextLines, prefix }, services.signal);
    });
    diffs.push(diff);
  }
  return diffs.join('');
}
