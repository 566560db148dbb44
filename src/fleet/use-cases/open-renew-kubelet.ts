import { usageError } from '../../base/errors.ts';
import type { Secret } from '../../base/text/secret.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { renewKubeletWorkflow } from '../../kubeadm/workflows/certificates/renew-kubelet.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface RenewKubeletRequest extends HostsSettings {
  /** The bootstrap token; null: one is created for the run. */
  readonly token: Secret | null;
  /** Null: the Node name in the client certificate of the host. */
  readonly nodeName: string | null;
  /** The time limit for the new certificate. */
  readonly timeoutMs: number;
  /** Renew a valid certificate as well. */
  readonly force: boolean;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
}

/**
 * Prepares `certs renew-kubelet`. A given token needs no administrator; otherwise the administrator's credentials
 * create one for the run.
 * @throws AppError USAGE (exit code 2) for one Node name and several hosts; the errors of `openCluster`
 */
export async function openRenewKubelet(
  services: NodeCommandPorts,
  request: RenewKubeletRequest,
  scope: CommandScope,
): Promise<HostsCommand> {
  const { token, nodeName, run } = request;
  const targets = await readHostTargets(services, request.hosts);
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Renew the certificates of the hosts one by one');
  const named = request.cluster.kubeconfig !== undefined;
  const opened = token !== null && !named ? null : await openCluster(services, request.cluster, { writes: scope.reporter });
  const cluster = opened?.cluster ?? null;
  if (cluster !== null) scope.opened(cluster);
  const options = {
    templates: await services.templates(),
    token,
    newToken: () => services.newToken(),
    apiServer: opened?.apiServer ?? null,
    force: request.force,
    trust: opened === null ? null : operatorNodeTrust(services, opened),
    nodeName,
    tlsBootstrapMs: request.timeoutMs,
    kubeletHealthCheckMs: 240_000,
  };
  return {
    targets,
    cluster,
    planHost: (context, run) => planWorkflow(renewKubeletWorkflow, context, options, run),
    run,
    inspectsFirst: true,
    warnings: opened?.warnings ?? [],
  };
}
