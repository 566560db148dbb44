import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { addClusterOptions, addDryRunOptions } from './options.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { flagText, kubeconfigRequest, planRequest } from './request-parts.ts';

interface ChangeRequest {
  readonly cluster: KubeconfigRequest;
  readonly dryRun: boolean;
  readonly plan: PlanRequest;
}

/** `controller install`, `controller uninstall`. */
export function defineControllerInstall(controller: Command, on: On): void {
  const install = controller
    .command('install')
    .description('Install or update the controller in the cluster: CustomResourceDefinition, RBAC rules, Deployment with two replicas')
    .option('--image <ref>', 'image of kubeletadm with its digest, as REGISTRY/NAME@sha256:DIGEST (required)');
  on(addClusterOptions(addDryRunOptions(install)), installRequest, runInstall);
  addSections(install, { notes: INSTALL_NOTES, examples: INSTALL_EXAMPLES });
  const uninstall = controller
    .command('uninstall')
    .description('Delete the controller; rollouts and the configuration of nodes stay')
    .option('--crd', 'also delete the CustomResourceDefinition; refused while rollouts exist');
  on(addClusterOptions(addDryRunOptions(uninstall)), uninstallRequest, runUninstall);
}

const INSTALL_NOTES = `With --dry-run, -o yaml and -o json print the manifests, for kubectl apply or Kustomize. The namespace is kubeletadm-system. The controller may not read ConfigMaps or create Jobs in other namespaces: for a configMapRef or gates with Jobs there, create a Role (see docs/controller.md).`;

const INSTALL_EXAMPLES = `  # the image of the release, in a registry of your own
  skopeo copy oci-archive:kubeletadm-VERSION-image-x64.tar docker://registry.example.com/kubeletadm:VERSION
  skopeo inspect --format '{{.Digest}}' docker://registry.example.com/kubeletadm:VERSION
  kubeletadm controller install --image registry.example.com/kubeletadm@sha256:DIGEST --dry-run
  kubeletadm controller install --image registry.example.com/kubeletadm@sha256:DIGEST
  kubectl -n kubeletadm-system rollout status deployment/kubeletadm-controller`;

function changeRequest(args: readonly string[], options: CommandOptions, command: string): ChangeRequest {
  if (args.length > 0) throw usageError(`controller ${command} takes no arguments: ${args.join(' ')}`);
  return { cluster: kubeconfigRequest(options), dryRun: options.dryRun === true, plan: planRequest(options) };
}

function installRequest(args: readonly string[], options: CommandOptions): ChangeRequest & { readonly image: string } {
  const request = changeRequest(args, options, 'install');
  const image = flagText(options, 'image') ?? '';
  if (!/^[a-z0-9][\w./:-]*@sha256:[0-9a-f]{64}$/.test(image))
    throw usageError(
      image === ''
        ? 'controller install requires --image'
        : `--image ${image}: ${image.includes('@') ? 'the digest is not sha256: and 64 hexadecimal digits' : 'the image has no digest'}`,
      'Write REGISTRY/NAME@sha256:DIGEST, so that all replicas run the same program; skopeo inspect shows the digest',
    );
  return { ...request, image };
}

function uninstallRequest(args: readonly string[], options: CommandOptions): ChangeRequest & { readonly removesDefinition: boolean } {
  return { ...changeRequest(args, options, 'uninstall'), removesDefinition: options.crd === true };
}

async function runInstall(
  services: Services,
  { image, cluster: named, dryRun, plan: output }: ReturnType<typeof installRequest>,
): Promise<ExitCode> {
  const { format, verbosity } = output;
  if (dryRun && format !== 'text') {
    const { controllerObjects } = await import('../rollouts/install/controller-objects.ts');
    const { renderManifests } = await import('./output/show-document.ts');
    services.output.document(renderManifests(controllerObjects(image), format));
    return 0;
  }
  const [{ openCluster }, { applyObjects, planInstallation }, { showClusterPlan }] = await Promise.all([
    import('../kubeadm/use-cases/open-cluster.ts'),
    import('../rollouts/use-cases/install-controller.ts'),
    import('./output/show-plan.ts'),
  ]);
  const reporter = services.reporter({ verbosity, format: 'text' });
  const { cluster, warnings } = await openCluster(services, named, { dryRun, writes: reporter });
  try {
    const plan = await planInstallation(cluster, image);
    if (dryRun) return showClusterPlan(services, output, { phase: 'controller', plans: [plan], cluster, warnings });
    await applyObjects(cluster as Cluster, plan, reporter);
    services.output.stdout(
      plan.noop === undefined
        ? 'The objects of the controller are applied. Wait for its pods: kubectl -n kubeletadm-system rollout status deployment/kubeletadm-controller\n'
        : `Nothing to do: ${plan.noop}.\n`,
    );
    return 0;
  } finally {
    await cluster?.close();
  }
}

async function runUninstall(
  services: Services,
  { removesDefinition, cluster: named, dryRun, plan: output }: ReturnType<typeof uninstallRequest>,
): Promise<ExitCode> {
  const [{ withCluster }, { applyObjects, planRemoval }, { showClusterPlan }] = await Promise.all([
    import('../kubeadm/use-cases/lazy-cluster.ts'),
    import('../rollouts/use-cases/install-controller.ts'),
    import('./output/show-plan.ts'),
  ]);
  const reporter = services.reporter({ verbosity: output.verbosity, format: 'text' });
  const uninstall = async (cluster: Cluster): Promise<ExitCode> => {
    const { plan, left } = await planRemoval(cluster, { removesDefinition });
    if (dryRun) return showClusterPlan(services, output, { phase: 'controller', plans: [plan], cluster });
    await applyObjects(cluster, plan, reporter);
    services.output.stdout(`${[...(plan.noop === undefined ? [] : [`Nothing to do: ${plan.noop}.`]), ...left].join('\n')}\n`);
    return 0;
  };
  return withCluster(services, named, uninstall, reporter);
}
