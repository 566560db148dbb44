import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { KUBERNETES_DIR } from '../../kube/well-known.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import type { SecretSource } from '../../kubeadm/ports.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { generateCsrWorkflow } from '../../kubeadm/workflows/certificates/generate-csr.ts';
import type { NamedHostPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { HostsCommand } from './run-hosts.ts';

export interface GenerateCsrRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Undefined: as configured. */
  readonly certificatesDir: string | undefined;
  /** Undefined: `/etc/kubernetes`. */
  readonly kubeconfigDir: string | undefined;
  readonly hosts: HostsRequest;
  readonly run: RunSettings;
}

/**
 * Prepares `certs generate-csr`.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function openGenerateCsr(
  services: NamedHostPorts & Pick<SecretSource, 'certificateIssuer'>,
  request: GenerateCsrRequest,
): Promise<HostsCommand> {
  const config = mergeInitFlags(await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration']), {});
  const warnings = requireValid(config);
  const { certificatesDir, run } = request;
  const options = {
    issuer: await services.certificateIssuer(),
    init: config.init ?? {},
    cluster: { ...config.cluster, ...(certificatesDir === undefined ? {} : { certificatesDir }) },
    kubernetesDir: request.kubeconfigDir ?? KUBERNETES_DIR,
  };
  return {
    targets: await readHostTargets(services, request.hosts),
    cluster: null,
    planHost: (context, run) => planWorkflow(generateCsrWorkflow, context, options, run),
    run,
    warnings,
  };
}
