import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { ThisProcess } from '../../base/this-process.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { inClusterKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { ClusterConnections, SecretSource } from '../../kubeadm/ports.ts';
import { type KubeconfigRequest, type OpenClusterPorts, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { runController } from '../controller/run-controller.ts';

interface ControllerPorts extends OpenClusterPorts, RunTime, Pick<SecretSource, 'newId'>, Pick<ClusterConnections, 'web'> {
  readonly self: ThisProcess;
  readonly hostname: string;
  random(): number;
}

export interface ControllerRequest {
  /** Without a kubeconfig and in a pod: the service account of the pod. */
  readonly cluster: KubeconfigRequest;
  readonly namespace: string;
}

/**
 * Runs the controller of rollouts until the signal is aborted.
 * @throws AppError the errors of `openCluster`
 */
export async function runRolloutController(
  services: ControllerPorts,
  { cluster: named, namespace }: ControllerRequest,
  reporter: Reporter,
): Promise<void> {
  const cluster = await connect(services, named, reporter);
  const { clock, self, signal, hostname, web } = services;
  try {
    const identity = `${hostname}_${await services.newId()}`;
    await runController({ cluster, web, clock, self, signal, reporter, random: () => services.random() }, { namespace, identity });
  } finally {
    await cluster.close();
  }
}

async function connect(services: ControllerPorts, named: KubeconfigRequest, reporter: Reporter): Promise<Cluster> {
  const own = named.kubeconfig === undefined && services.env.KUBECONFIG === undefined ? inClusterKubeconfig(services.env) : null;
  if (own !== null) return services.connectCluster({ kubeconfig: own });
  return (await openCluster(services, named, { writes: reporter })).cluster as Cluster;
}
