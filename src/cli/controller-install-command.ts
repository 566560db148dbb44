import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { InstallOnHostsRequest, UninstallFromHostsRequest } from '../fleet/use-cases/open-controller-install.ts';
import type { RunSettings } from '../host/run-settings.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import { addClusterOptions, addDryRunOptions, addHostOption, addSshOptions } from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import {
  connectionRequest,
  flagNode,
  fleetNames,
  hostAddress,
  kubeconfigRequest,
  planRequest,
  requireDifferent,
  runRequest,
} from './request-parts.ts';
import { addLockOption, writingRequest } from './writing-options.ts';

type ChangeRequest = WithPlan<{ readonly cluster: KubeconfigRequest; readonly run: RunSettings }>;

type HostsChange = WithPlan<InstallOnHostsRequest & UninstallFromHostsRequest>;

/** On hosts, or as objects of the cluster. */
type Change<InCluster> = { readonly onHosts: HostsChange } | (ChangeRequest & InCluster & { readonly onHosts: null });

/** `controller install`, `controller uninstall`. */
export function defineControllerInstall(controller: Command, on: On): void {
  const install = controller
    .command('install')
    .description('Install or update the controller, in the cluster (Deployment with two replicas) or on control planes (systemd)')
    .option('--image <ref>', 'image of kubeletadm with its digest, as REGISTRY/NAME@sha256:DIGEST: install the controller in the cluster');
  addHostOption(install, 'control plane to install the program on, reached over SSH, or localhost (repeatable)');
  install
    .option('--program <file>', 'with --host: program to install (default: the program shipped with this kubeletadm)')
    .option('--node-js <path>', 'with --host: path of Node.js on the host (default: node in the PATH of the host)');
  on(addHostsOptions(install), installRequest, runInstall);
  addSections(install, { notes: INSTALL_NOTES, examples: INSTALL_EXAMPLES });
  const uninstall = controller
    .command('uninstall')
    .description('Delete the controller; rollouts and the configuration of nodes stay')
    .option('--crd', 'also delete the CustomResourceDefinition; refused while rollouts exist');
  addHostOption(uninstall, 'control plane to remove the program from (repeatable); the objects are deleted with the last one');
  on(addHostsOptions(uninstall), uninstallRequest, runUninstall);
}

function addHostsOptions(command: Command): Command {
  command.option('--node-name <name>', 'with one --host: name of the Node (default: the name under which the host is registered)');
  addOptionGroup(command, HEADINGS.host, (host) =>
    host.option(
      '--fleet <file>',
      'fleet file with the names of hosts; without --host, all its control planes (default: fleet.yaml, if --host is given)',
    ),
  );
  return addLockOption(addSshOptions(addClusterOptions(addDryRunOptions(command))));
}

const INSTALL_NOTES = `With --dry-run, -o yaml and -o json print the manifests, for kubectl apply or Kustomize. The namespace is kubeletadm-system. The controller may not read ConfigMaps or create Jobs in other namespaces: for a configMapRef or gates with Jobs there, create a Role (see docs/controller.md).

With --host, no image is needed: each host runs the program as unit kubeletadm-controller.service, with a user and a client certificate of its own. The certificate is valid for a year; certs renew and upgrade renew it.`;

const INSTALL_EXAMPLES = `  # the image of the release, in a registry of your own
  skopeo copy oci-archive:kubeletadm-VERSION-image-x64.tar docker://registry.example.com/kubeletadm:VERSION
  skopeo inspect --format '{{.Digest}}' docker://registry.example.com/kubeletadm:VERSION
  kubeletadm controller install --image registry.example.com/kubeletadm@sha256:DIGEST --dry-run
  kubeletadm controller install --image registry.example.com/kubeletadm@sha256:DIGEST
  kubectl -n kubeletadm-system rollout status deployment/kubeletadm-controller
  # without a registry: on two control planes, or on all of a fleet file
  kubeletadm controller install --host root@10.0.0.11 --host root@10.0.0.12 --kubeconfig admin.conf
  kubeletadm controller install --fleet fleet.yaml --kubeconfig admin.conf`;

function changeRequest(args: readonly string[], options: CommandOptions, command: string): ChangeRequest {
  if (args.length > 0) throw usageError(`controller ${command} takes no arguments: ${args.join(' ')}`);
  return { cluster: kubeconfigRequest(options), run: runRequest(options), plan: planRequest(options) };
}

/** Null: neither --host nor --fleet is given. */
function hostsChange(options: CommandOptions): HostsChange | null {
  const addresses = flagList(options, 'host').map(hostAddress);
  requireDifferent(addresses, '--host ');
  const file = fleetNames(options);
  const nodeName = flagNode(options, 'nodeName') ?? null;
  if (nodeName !== null && addresses.length !== 1)
    throw usageError('--node-name requires exactly one --host', 'Run the command for each host separately');
  if (addresses.length === 0 && file === undefined) return null;
  return {
    addresses,
    file,
    nodeName,
    program: flagText(options, 'program'),
    node: flagText(options, 'nodeJs') ?? null,
    removesDefinition: options.crd === true,
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
    writing: writingRequest(options),
  };
}

function installRequest(args: readonly string[], options: CommandOptions): Change<{ readonly image: string }> {
  const request = changeRequest(args, options, 'install');
  const onHosts = hostsChange(options);
  const image = flagText(options, 'image') ?? '';
  if (onHosts !== null) {
    if (image !== '')
      throw usageError('--image cannot be combined with --host or --fleet', 'Install the controller in the cluster or on hosts');
    return { onHosts };
  }
  if (!/^[a-z0-9][\w./:-]*@sha256:[0-9a-f]{64}$/.test(image))
    throw usageError(
      image === ''
        ? 'controller install requires --image, --host or --fleet'
        : `--image ${image}: ${image.includes('@') ? 'the digest is not sha256: and 64 hexadecimal digits' : 'the image has no digest'}`,
      'Write REGISTRY/NAME@sha256:DIGEST, so that all replicas run the same program; skopeo inspect shows the digest',
    );
  return { ...request, image, onHosts };
}

function uninstallRequest(args: readonly string[], options: CommandOptions): Change<{ readonly removesDefinition: boolean }> {
  const request = changeRequest(args, options, 'uninstall');
  const onHosts = hostsChange(options);
  return onHosts === null ? { ...request, removesDefinition: options.crd === true, onHosts } : { onHosts };
}

async function runInstall(services: Services, request: ReturnType<typeof installRequest>): Promise<ExitCode> {
  const { onHosts } = request;
  if (onHosts === null) return installInCluster(services, request);
  const [{ openInstallOnHosts }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-controller-install.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, onHosts, { title: 'controller install', open: (scope) => openInstallOnHosts(services, onHosts, scope) });
}

async function installInCluster(services: Services, { image, ...request }: ChangeRequest & { readonly image: string }): Promise<ExitCode> {
  const { run } = request;
  const { format, verbosity } = request.plan;
  if (run.dryRun && format !== 'text') {
    const { controllerObjects } = await import('../rollouts/install/controller-objects.ts');
    const { renderManifests } = await import('./output/show-document.ts');
    services.output.document(renderManifests(controllerObjects(image), format));
    return 0;
  }
  const [{ openCluster }, { applyObjects, planInstallation }, { showOrApply }] = await Promise.all([
    import('../kubeadm/use-cases/open-cluster.ts'),
    import('../rollouts/use-cases/install-controller.ts'),
    import('./output/show-plan.ts'),
  ]);
  const reporter = services.reporter({ verbosity, format: 'text' });
  const { cluster, warnings } = await openCluster(services, request.cluster, { ...run, writes: reporter });
  try {
    const plan = await planInstallation(cluster, image);
    return await showOrApply(services, request, { phase: 'controller', plans: [plan], cluster, warnings }, async () => {
      await applyObjects(cluster as Cluster, plan, reporter);
      services.output.stdout(
        plan.noop === undefined
          ? 'The objects of the controller are applied. Wait for its pods: kubectl -n kubeletadm-system rollout status deployment/kubeletadm-controller\n'
          : `Nothing to do: ${plan.noop}.\n`,
      );
      return 0;
    });
  } finally {
    await cluster?.close();
  }
}

async function runUninstall(services: Services, request: ReturnType<typeof uninstallRequest>): Promise<ExitCode> {
  const { onHosts } = request;
  if (onHosts === null) return uninstallFromCluster(services, request);
  const [{ openUninstallFromHosts }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-controller-install.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, onHosts, {
    title: 'controller uninstall',
    open: (scope) => openUninstallFromHosts(services, onHosts, scope),
  });
}

async function uninstallFromCluster(
  services: Services,
  { removesDefinition, ...request }: ChangeRequest & { readonly removesDefinition: boolean },
): Promise<ExitCode> {
  const [{ withCluster }, { applyObjects, planRemoval }, { showOrApply }] = await Promise.all([
    import('../kubeadm/use-cases/lazy-cluster.ts'),
    import('../rollouts/use-cases/install-controller.ts'),
    import('./output/show-plan.ts'),
  ]);
  const reporter = services.reporter({ verbosity: request.plan.verbosity, format: 'text' });
  const uninstall = async (cluster: Cluster): Promise<ExitCode> => {
    const { plan, left } = await planRemoval(cluster, { removesDefinition });
    return showOrApply(services, request, { phase: 'controller', plans: [plan], cluster }, async () => {
      await applyObjects(cluster, plan, reporter);
      services.output.stdout(`${[...(plan.noop === undefined ? [] : [`Nothing to do: ${plan.noop}.`]), ...left].join('\n')}\n`);
      return 0;
    });
  };
  return withCluster(services, request.cluster, uninstall, reporter);
}
