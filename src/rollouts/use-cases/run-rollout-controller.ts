import type { RunTime } from '../../base/clock.ts';
import type { ListenAddress, LocalServers } from '../../base/local-server.ts';
import type { Reporter } from '../../base/reporter.ts';
import { serveEndpoints } from '../../base/serve-endpoints.ts';
import type { ThisProcess } from '../../base/this-process.ts';
import type { ClusterConnections, SecretSource } from '../../kubeadm/ports.ts';
import { connectFromPod } from '../../kubeadm/use-cases/connect-from-pod.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { answerRequest } from '../controller/http-endpoints.ts';
import { ControllerMetrics } from '../controller/metrics.ts';
import { runController } from '../controller/run-controller.ts';

interface ControllerPorts extends OpenClusterPorts, RunTime, Pick<SecretSource, 'newId'>, Pick<ClusterConnections, 'web'>, LocalServers {
  readonly self: ThisProcess;
  readonly hostname: string;
  random(): number;
}

export interface ControllerRequest {
  /** Without a kubeconfig and in a pod: the service account of the pod. */
  readonly cluster: KubeconfigRequest;
  readonly namespace: string;
  /** Of `/metrics`, `/healthz` and `/readyz`; null: none. */
  readonly listen: ListenAddress | null;
  /** Approve CSRs for serving certificates of kubelets. */
  readonly approvesServing: boolean;
}

/**
 * Runs the controller of rollouts until the signal is aborted.
 * @throws AppError CONTROLLER_LISTEN; the errors of `openCluster`
 */
export async function runRolloutController(
  services: ControllerPorts,
  { listen, ...request }: ControllerRequest,
  reporter: Reporter,
): Promise<void> {
  const metrics = new ControllerMetrics();
  let issue: string | null = 'the API server has not answered yet';
  const answer = (path: string) => answerRequest(path, { issue, metrics });
  const server = listen === null ? null : await serveEndpoints(services, listen, { code: 'CONTROLLER_LISTEN', answer });
  try {
    await control(services, request, { reporter, metrics, onReadiness: (now) => (issue = now) });
  } finally {
    await server?.close();
  }
}

async function control(
  services: ControllerPorts,
  { cluster: named, namespace, approvesServing }: Omit<ControllerRequest, 'listen'>,
  {
    reporter,
    metrics,
    onReadiness,
  }: { readonly reporter: Reporter; readonly metrics: ControllerMetrics; readonly onReadiness: (issue: string | null) => void },
): Promise<void> {
  const { cluster: connected, tlsServerName } = await connectFromPod(services, named, reporter);
  const cluster = metrics.counting(connected);
  const approval = approvesServing ? { serverNames: tlsServerName === undefined ? [] : [tlsServerName] } : null;
  const { clock, self, signal, hostname, web } = services;
  try {
    const identity = `${hostname}_${await services.newId()}`;
    const ports = { cluster, web, metrics, clock, self, signal, reporter, random: () => services.random() };
    await runController(ports, { namespace, identity, onReadiness, approval });
  } finally {
    await connected.close();
  }
}
