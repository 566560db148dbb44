import { usageError } from '../../base/errors.ts';
import { parseKubernetesVersion } from '../../base/kubernetes-version.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import { releaseOf } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { adminCluster } from '../../kubeadm/use-cases/node-cluster.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { type AdminCluster, requireClusterConfiguration } from '../../kubeadm/workflows/upgrade/control-plane-host.ts';
import type { HostTarget } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';

/**
 * Connects to a control plane host and its cluster, with `--kubeconfig` or admin.conf of the host, and closes both afterwards.
 * @throws AppError CLUSTER_NO_KUBEADM_CONFIG (exit code 3); the errors of `adminCluster` and `openCluster`
 */
export async function withControlPlane<T>(
  services: NodeCommandPorts,
  { target, kubeconfig, reporter }: { readonly target: HostTarget; readonly kubeconfig: KubeconfigRequest; readonly reporter: Reporter },
  work: (opened: AdminCluster & { readonly host: Host }) => Promise<T>,
): Promise<T> {
  const host = await services.connectHost(target, reporter);
  try {
    const cluster = isKubeconfigGiven(kubeconfig)
      ? (await openCluster(services, kubeconfig, { writes: reporter })).cluster
      : await adminCluster(services, host);
    if (cluster === null) throw new Error('--kubeconfig selects a cluster');
    try {
      return await work({ host, ...(await requireClusterConfiguration(cluster, host.name)) });
    } finally {
      await cluster.close();
    }
  } finally {
    await host.close();
  }
}

/**
 * The version of an argument or a document, with the leading `v`. A label (`stable-1.36`) is resolved at the release server.
 * @throws AppError USAGE (exit code 2)
 */
export async function resolveTarget(services: NodeCommandPorts, version: string): Promise<string> {
  const parsed = parseKubernetesVersion(version);
  const label = parsed?.kind === 'label' ? parsed : null;
  const release = label === null ? parsed : parseKubernetesVersion((await releaseOf(services, label.label, label.ci)) ?? '');
  if (release?.kind === 'release') return release.version;
  const why = label === null ? 'is not a version' : 'cannot be resolved at dl.k8s.io';
  throw usageError(`${JSON.stringify(version)} ${why}`, 'Write the version like v1.36.2');
}
