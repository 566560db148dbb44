import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { ControllerRequest } from '../rollouts/use-cases/run-rollout-controller.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { LISTEN_HELP, listenAddress } from './listen-options.ts';
import { flagText } from './option-values.ts';
import { addClusterOptions } from './options.ts';
import type { Services } from './output/services.ts';
import { kubeconfigRequest, verbosityOf } from './request-parts.ts';

const LISTEN = '127.0.0.1:10247';

/** `controller` without its subcommands. */
export function defineControllerRun(controller: Command, on: On): void {
  addClusterOptions(controller);
  addOptionGroup(controller, HEADINGS.cluster, (cluster) =>
    cluster.option(
      '-n, --namespace <namespace>',
      'namespace of the Lease, of revisions and of the ConfigMaps of overlays; the agents must be allowed to read it',
      AGENT_NAMESPACE,
    ),
  );
  controller
    .option('--listen <address:port>', LISTEN_HELP, LISTEN)
    .option(
      '--approve-serving-certificates',
      'approve CSRs for kubelet serving certificates if the certificate in use confirms their addresses and names; others wait for csr approve',
    );
  addSections(on(controller, controllerRequest, runControllerCommand), { notes: NOTES, examples: EXAMPLES });
}

const NOTES = `Several controllers of a cluster elect a leader by a Lease; only the leader acts. In a pod, the controller uses the service account of the pod, unless --kubeconfig or KUBECONFIG is set.`;

const EXAMPLES = `  kubeletadm controller crd | kubectl apply -f -
  kubeletadm controller --kubeconfig /etc/kubernetes/admin.conf`;

interface RunRequest extends ControllerRequest {
  readonly verbosity: number;
}

function controllerRequest(args: readonly string[], options: CommandOptions): RunRequest {
  if (args.length > 0) throw usageError(`controller takes no arguments: ${args.join(' ')}`);
  return {
    cluster: kubeconfigRequest(options),
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    listen: listenAddress(options, LISTEN),
    approvesServing: options.approveServingCertificates === true,
    verbosity: verbosityOf(options),
  };
}

/** `controller`: runs until it is stopped. Exit code 0 when a signal requested the stop. */
async function runControllerCommand(services: Services, { verbosity, ...request }: RunRequest): Promise<ExitCode> {
  const { runRolloutController } = await import('../rollouts/use-cases/run-rollout-controller.ts');
  await runRolloutController(services, request, services.reporter({ verbosity, format: 'text' }));
  return 0;
}
