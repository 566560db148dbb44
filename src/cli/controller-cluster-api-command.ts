import { type Command, Option } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { DEFAULT_ALLOWED } from '../host/plan/impact.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { ExtensionRequest } from '../rollouts/cluster-api/run-extension.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagChoice, flagNumber, flagText } from './option-values.ts';
import { addKubeconfigOptions, integerBetween } from './options.ts';
import type { Services } from './output/services.ts';
import { kubeconfigRequest, verbosityOf } from './request-parts.ts';

/** Cluster API replaces a machine for every change of a higher class, so none needs a drain. */
const ALLOWED = ['safe', DEFAULT_ALLOWED] as const;
const PORT = 9443;

/** `controller cluster-api`. */
export function defineClusterApi(controller: Command, on: On): void {
  const command = addKubeconfigOptions(
    controller.command('cluster-api').description('Run an in-place update extension of Cluster API, in its management cluster'),
    'kubeconfig of the management cluster (default: the service account of the pod, or KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)',
  );
  addOptionGroup(command, HEADINGS.cluster, (cluster) =>
    cluster.option(
      '-n, --namespace <namespace>',
      'namespace of the ConfigMaps with kubelet configurations in the workload clusters',
      AGENT_NAMESPACE,
    ),
  );
  addOptionGroup(command, HEADINGS.node, (node) =>
    node.addOption(
      new Option('--allow <class>', 'most disruptive class of changes that are made in place').choices(ALLOWED).default(DEFAULT_ALLOWED),
    ),
  );
  command
    .option('--bind-address <address>', 'address to serve on (default: all addresses)')
    .addOption(new Option('--port <port>', 'port to serve on').argParser(integerBetween(0, 65_535)).default(PORT))
    .option('--tls-cert-file <file>', 'serving certificate (PEM); a changed file is reloaded (required)')
    .option('--tls-private-key-file <file>', 'private key of the certificate (PEM) (required)')
    .option('--client-ca-file <file>', 'require a client certificate of this CA (PEM) for requests');
  addSections(on(command, extensionRequest, runClusterApi), { notes: NOTES, examples: EXAMPLES });
}

const NOTES = `The extension permits changes of the fields in kubelet patch files (kubeletconfiguration*.yaml) of a KubeadmConfig up to the class of --allow, and assigns them to the Node; its agent applies them. Machines with any other change are replaced. See docs/cluster-api.md.`;

const EXAMPLES = `  kubectl apply -k deploy/cluster-api
  kubeletadm controller cluster-api --tls-cert-file tls.crt --tls-private-key-file tls.key`;

interface ClusterApiRequest extends ExtensionRequest {
  readonly verbosity: number;
}

function extensionRequest(args: readonly string[], options: CommandOptions): ClusterApiRequest {
  if (args.length > 0) throw usageError(`controller cluster-api takes no arguments: ${args.join(' ')}`);
  return {
    cluster: kubeconfigRequest(options),
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    allow: flagChoice(options, 'allow', ALLOWED),
    host: flagText(options, 'bindAddress'),
    port: flagNumber(options, 'port', PORT),
    certFile: requiredFile(options, 'tlsCertFile', '--tls-cert-file'),
    keyFile: requiredFile(options, 'tlsPrivateKeyFile', '--tls-private-key-file'),
    clientCaFile: flagText(options, 'clientCaFile'),
    verbosity: verbosityOf(options),
  };
}

function requiredFile(options: CommandOptions, name: string, flag: string): string {
  const file = flagText(options, name);
  if (file === undefined || file === '')
    throw usageError(`controller cluster-api requires ${flag}`, 'Cluster API calls extensions by HTTPS only');
  return file;
}

/** `controller cluster-api`: runs until it is stopped. Exit code 0 when a signal requested the stop. */
async function runClusterApi(services: Services, { verbosity, ...request }: ClusterApiRequest): Promise<ExitCode> {
  const { runExtension } = await import('../rollouts/cluster-api/run-extension.ts');
  await runExtension(services, request, services.reporter({ verbosity, format: 'text' }));
  return 0;
}
