import { usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { mergeUpgradeFlags } from '../../kubeadm/config/flags.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { diffManifests } from '../../kubeadm/workflows/upgrade/diff-manifests.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { resolveTarget, withControlPlane } from './control-plane-of.ts';
import { readHostTargets } from './host-access.ts';
import type { PlanClusterUpgradeRequest } from './plan-cluster-upgrade.ts';

const CONTEXT_LINES = 3;

/**
 * The differences between the static Pod manifests of control planes and those of a version.
 * @returns unified diffs, with the name of the host before each path if several hosts are given
 * @throws AppError: problems of the configuration (exit code 2); the errors of `diffManifests`
 */
export async function diffUpgrade(services: NodeCommandPorts, request: PlanClusterUpgradeRequest, reporter: Reporter): Promise<string> {
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'diff', request.flags);
  for (const { code, message } of requireValid(config)) reporter.report({ level: 'warning', code, message });
  const { kubernetesVersion, contextLines = CONTEXT_LINES } = config.upgrade?.diff ?? {};
  if (contextLines < 0) throw usageError(`--context-lines ${contextLines}: must not be negative`);
  const given = kubernetesVersion === undefined ? null : await resolveTarget(services, kubernetesVersion);
  const targets = await readHostTargets(services, request.hosts);
  const diffs: string[] = [];
  for (const target of targets) {
    const way = { target, kubeconfig: request.cluster, reporter };
    const diff = await withControlPlane(services, way, async ({ host, model, warnings }) => {
      for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
      const version = given ?? (await resolveTarget(services, model.kubernetesVersion ?? ''));
      const prefix = targets.length > 1 ? `${host.name}:` : '';
      return diffManifests(host, { cluster: model, version, contextLines, prefix }, services.signal);
    });
    diffs.push(diff);
  }
  return diffs.join('');
}
