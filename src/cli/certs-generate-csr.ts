import type { ExitCode } from '../base/errors.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { KUBERNETES_DIR } from '../kube/well-known.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { loadConfigFile, requireValid } from '../kubeadm/use-cases/load-config-file.ts';
import { generateCsrWorkflow } from '../kubeadm/workflows/generate-csr.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface GenerateCsrRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Undefined: as configured. */
  readonly certificatesDir: string | undefined;
  /** Undefined: `/etc/kubernetes`. */
  readonly kubeconfigDir: string | undefined;
  readonly hosts: HostsRequest;
  readonly plan: PlanRequest;
}

/** `certs generate-csr`. */
export async function runCertsGenerateCsr(services: Services, request: GenerateCsrRequest): Promise<ExitCode> {
  const config = mergeInitFlags(await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration']), {});
  const warnings = requireValid(config);
  const { certificatesDir, plan } = request;
  const options = {
    issuer: await services.certificateIssuer(),
    init: config.init ?? {},
    cluster: { ...config.cluster, ...(certificatesDir === undefined ? {} : { certificatesDir }) },
    kubernetesDir: request.kubeconfigDir ?? KUBERNETES_DIR,
  };
  return runOnHosts(services, {
    targets: await readHostTargets(services, request.hosts),
    cluster: null,
    planHost: (context, run) => planWorkflow(generateCsrWorkflow, context, options, run),
    plan,
    writing: null,
    reporter: services.reporter({ verbosity: plan.verbosity, format: 'text' }),
    warnings,
    dryRun: plan.dryRun,
    skipPhases: [],
  });
}
