import { type ExitCode, usageError } from '../base/errors.ts';
import type { Secret } from '../base/text/secret.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { type KubeconfigRequest, openCluster, trustOf } from '../kubeadm/use-cases/open-cluster.ts';
import { renewKubeletWorkflow } from '../kubeadm/workflows/renew-kubelet.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

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
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
}

/**
 * `certs renew-kubelet`. A given token needs no administrator; otherwise the administrator's credentials
 * create one for the run.
 */
export async function runCertsRenew(services: Services, request: RenewKubeletRequest): Promise<ExitCode> {
  const { token, nodeName, plan } = request;
  const targets = await readHostTargets(services, request.hosts);
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Renew them one by one');
  const named = request.cluster.kubeconfig !== undefined;
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const opened =
    token !== null && !named ? null : await openCluster(services, request.cluster, { dryRun: false, staged: false, writes: reporter });
  try {
    const options = {
      templates: await services.templates(),
      token,
      newToken: () => services.newToken(),
      apiServer: opened?.apiServer ?? null,
      force: request.force,
      trust: opened === null ? null : trustOf(services, opened),
      nodeName,
      tlsBootstrapMs: request.timeoutMs,
      kubeletHealthCheckMs: 240_000,
    };
    return await runOnHosts(services, {
      targets,
      cluster: opened?.cluster ?? null,
      planHost: (context, run) => planWorkflow(renewKubeletWorkflow, context, options, run),
      plan,
      writing: request.writing,
      reporter,
      warnings: opened?.warnings ?? [],
      dryRun: plan.dryRun,
      skipPhases: [],
      oneHostPerNode: opened !== null,
    });
  } finally {
    await opened?.cluster?.close();
  }
}
