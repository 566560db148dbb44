import type { ExitCode } from '../base/errors.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { KUBERNETES_DIR } from '../kubeadm/control-plane/paths.ts';
import { generateCsrWorkflow } from '../kubeadm/workflows/generate-csr.ts';
import type { CommandOptions } from './command.ts';
import { hostDirectory } from './host-directory.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';

/** `certs generate-csr`. */
export async function runCertsGenerateCsr(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const config = mergeInitFlags(await loadConfigFile(services, options, ['InitConfiguration', 'ClusterConfiguration']), {});
  const warnings = requireValid(config);
  const certificatesDir = hostDirectory(options, 'certDir', '--cert-dir');
  return runOnHosts(services, {
    workflow: generateCsrWorkflow,
    targets: await readHostTargets(services, options),
    cluster: null,
    workflowOptions: {
      issuer: await services.certificateIssuer(),
      init: config.init ?? {},
      cluster: { ...config.cluster, ...(certificatesDir === undefined ? {} : { certificatesDir }) },
      kubernetesDir: hostDirectory(options, 'kubeconfigDir', '--kubeconfig-dir') ?? KUBERNETES_DIR,
    },
    options,
    reporter: services.reporter({ verbosity: verbosityOf(options), format: 'text' }),
    warnings,
    dryRun: options.dryRun === true,
    skipPhases: [],
    takesLock: false,
  });
}
