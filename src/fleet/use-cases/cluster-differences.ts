import { isAppError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { compareSemanticVersions, parseSemanticVersion } from '../../base/semantic-version.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import { printable } from '../../base/text/printable.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type ClusterDifference, diffClusterConfiguration } from '../../kubeadm/config/diff-cluster.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { readClusterConfiguration } from '../../kubeadm/workflows/node/cluster-baseline.ts';
import { isControlPlane, type PlannedHost, type ResolvedFleet } from '../file/model.ts';
import { CONFIGURATION_KINDS } from './fleet-configuration.ts';
import { DEFAULT_FLEET_FILE, resolveFleetPath } from './load-fleet.ts';

const MOST_LINES = 5;
const CODE = 'CLUSTER_CONFIGURATION_DIFFERS';

/**
 * Warns of settings in `cluster.configuration` that the existing cluster does not have: a run over hosts does not change its
 * control plane. A line for each setting, at most five. Without the file or the ConfigMap, nothing is compared.
 */
export async function warnOfClusterDifferences(
  services: LocalFiles,
  cluster: Cluster,
  fleet: Pick<ResolvedFleet, 'cluster' | 'file'> & { readonly hosts: readonly PlannedHost[]; readonly reporter: Reporter },
): Promise<void> {
  const { configuration } = fleet.cluster;
  const path = configuration && resolveFleetPath(configuration, fleet.file, services.homeDirectory);
  if (!configuration || !path || !(await services.input.exists(path))) return;
  const warn = (message: string): void => fleet.reporter.report({ level: 'warning', code: CODE, message });
  try {
    const declared = await loadConfigFile(services, path, CONFIGURATION_KINDS);
    requireValid(declared);
    const { model } = await readClusterConfiguration(cluster);
    if (model === null || declared.cluster === undefined) return;
    const differences = diffClusterConfiguration(declared.cluster, model, declared.init?.localAPIEndpoint?.bindPort);
    const host = quoteShell(fleet.hosts.find(isControlPlane)?.name ?? 'HOST');
    const target = fleet.file === DEFAULT_FLEET_FILE ? host : `${host} --fleet ${quoteShell(fleet.file)}`;
    for (const message of differenceLines(configuration, differences, target)) warn(message);
  } catch (error) {
    if (!isAppError(error) || error.code === 'INTERRUPTED') throw error;
    warn(`${configuration} was not compared with the cluster: ${error.problems[0]?.message}`);
  }
}

/**
 * The messages about differing settings.
 * @param file as the fleet file names it
 * @param host a control plane, and the fleet file that has it: `cp1 --fleet prod/fleet.yaml`
 */
export function differenceLines(file: string, differences: readonly ClusterDifference[], host: string): readonly string[] {
  const isCut = differences.length > MOST_LINES;
  const shown = isCut ? differences.slice(0, MOST_LINES - 1) : differences;
  const others = differences.slice(shown.length).map(({ path }) => path);
  return [
    ...shown.map((difference) => `${file} ${differenceText(difference)} (${CONFIG_MAP}); ${UNCHANGED}. ${hintOf(file, difference, host)}`),
    ...(isCut ? [`${file} and the cluster differ in ${others.length} more settings: ${printable(others.join(', '), 300)}`] : []),
  ];
}

const CONFIG_MAP = 'ConfigMap kube-system/kubeadm-config';
const UNCHANGED = 'apply changes only the kubelet of an existing control plane';

function differenceText({ path, declared, found }: ClusterDifference): string {
  const [ours, theirs] = [valueText(declared), valueText(found)];
  const setting = printable(path, 200);
  if (declared === undefined) return `does not declare ${setting}, which the cluster has${theirs === null ? '' : ` as ${theirs}`}`;
  if (found === undefined) return `declares ${setting}${ours === null ? '' : ` ${ours}`}, which the cluster does not have`;
  if (ours === null || theirs === null) return `declares another value of ${setting} than the cluster has`;
  return `declares ${setting} ${ours}, the cluster has ${theirs}`;
}

/** The value if it can hold no secret: lists include arguments and environment variables, which can. */
function valueText(value: ClusterDifference['declared']): string | null {
  return value === undefined || typeof value === 'object' ? null : printable(maskSecrets(String(value)), 100);
}

function hintOf(file: string, { path, declared, found }: ClusterDifference, host: string): string {
  if (path !== 'kubernetesVersion') return `Correct ${file}, or reconfigure the control planes as with kubeadm`;
  const [ours, theirs] = [parseSemanticVersion(String(declared)), parseSemanticVersion(String(found))];
  const isUpgrade = ours === null || theirs === null || compareSemanticVersions(ours, theirs) > 0;
  return isUpgrade ? `Run kubeletadm upgrade apply ${declared} --host ${host}` : `Set kubernetesVersion ${valueText(found)} in ${file}`;
}
