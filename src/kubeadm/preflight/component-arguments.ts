import { formatPosition } from '../../base/errors.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { type Origins, placeFinding } from '../config/origins.ts';
import { componentArgumentFindings, loadComponentFlags } from '../control-plane/component-flags.ts';
import type { Finding } from './check.ts';

/**
 * Finds arguments of components with which a static Pod would exit at startup. kubeadm lacks this check: it waits for the
 * Pod until its time limit.
 * @param cluster with its version
 * @param origins positions in the configuration file, if any
 */
export async function componentArguments(
  cluster: ClusterConfiguration & { readonly kubernetesVersion: string },
  origins: Origins = new Map(),
): Promise<readonly Finding[]> {
  const findings = componentArgumentFindings(cluster, await loadComponentFlags(), cluster.kubernetesVersion);
  return findings.map((finding) => {
    const { position, path, message, hint, severity = 'error' } = placeFinding(finding, origins);
    const place = [position === undefined ? '' : formatPosition(position), path ?? ''].filter(Boolean).join(' ');
    return { id: 'ComponentArguments', severity, message: `${place}: ${message}`, hint };
  });
}
