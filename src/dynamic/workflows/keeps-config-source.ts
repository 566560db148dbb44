import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { parseMinor } from '../../kubelet/catalogue.ts';
import { sourceDropped } from '../dynamic-problems.ts';

/** The first API server with dry runs. */
const DRY_RUN_MINOR = 13;

/**
 * Checks with a dry run that an API server keeps `spec.configSource`: an API server that drops the field
 * returns 200 as well.
 * @returns the problem, or a warning if the check is not possible
 */
export async function keepsConfigSource(
  cluster: Cluster,
  nodeName: string,
): Promise<{ readonly problem: Problem | null; readonly warning: Warning | null }> {
  const version = await cluster.version();
  if ((parseMinor(version) ?? 0) < DRY_RUN_MINOR) return { problem: null, warning: null };
  const configMap = { namespace: KUBE_SYSTEM, name: 'kubeletadm-probe', kubeletConfigKey: 'kubelet' };
  try {
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const { spec } = await cluster.patch(ref, 'merge', { spec: { configSource: { configMap } } }, { dryRun: true });
    const isKept = isJsonObject(spec) && isJsonObject(spec.configSource);
    return { problem: isKept ? null : sourceDropped(nodeName, cluster.server, version), warning: null };
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN') && !(error instanceof AppError)) throw error;
    const message = `cannot check whether the API server keeps the field spec.configSource of Nodes: ${error.problems[0]?.message ?? ''}`;
    return { problem: null, warning: { code: 'DYNAMIC_GATE_UNKNOWN', message } };
  }
}
