import { usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { renewKubeletWorkflow } from '../../kubeadm/workflows/certificates/renew-kubelet.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { RulesRequest } from './fleet-rules.ts';
import type { HostsRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import { readHostTargets } from './named-hosts.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface RenewKubeletRequest {
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
  readonly run: RunSettings;
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
}

/**
 * Prepares `certs renew-kubelet`. A given token needs no administrator; otherwise the administrator's credentials
 * create one for the run.
 * @throws AppError USAGE (exit code 2) for one Node name and several hosts; the errors of `openCluster`
 */
export async function openRenewKubelet(
  services: NodeCommandPorts,
  request: RenewKubeletRequest,
  reporter: Reporter,
): Promise<OpenedCommand> {
  const { token, nodeName, run } = request;
  const targets = await readHostTargets(services, request.hosts);
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Renew the certificates of the hosts one by one');
  const named = request.cluster.kubeconfig !== undefined;
  const opened = token !== null && !named ? null : await openCluster(services, request.cluster, { writes: reporter });
  const close = async (): Promise<void> => opened?.cluster?.close();
  try {
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
      workflow: {
        targets,
        cluster: opened?.cluster ?? null,
        planHost: (context, run) => planWorkflow(renewKubeletWorkflow, context, options, run),
        rules: request.rules,
        writing: request.writing,
        run,
        oneHostPerNode: opened !== null,
      },
      warnings: opened?.warnings ?? [],
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
