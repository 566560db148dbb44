import type { RunSettings } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import { listImages } from '../../kubeadm/use-cases/list-images.ts';
import type { DocumentPorts, DocumentsRequest } from '../../kubeadm/use-cases/resolve-init-documents.ts';
import { pullImagesWorkflow } from '../../kubeadm/workflows/pull-images.ts';
import type { NamedHostPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { HostsCommand } from './run-hosts.ts';

export interface PullImagesRequest extends DocumentsRequest {
  /** The socket of the container runtime; undefined: from the configuration, otherwise detected. */
  readonly criSocket: string | undefined;
  readonly hosts: HostsRequest;
  readonly run: RunSettings;
}

/**
 * Prepares `config images pull`.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function openPullImages(
  services: DocumentPorts & NamedHostPorts,
  request: PullImagesRequest,
): Promise<HostsCommand & { readonly images: readonly string[] }> {
  const { images, criSocket: configured, warnings } = await listImages(services, request);
  const criSocket = request.criSocket ?? configured;
  return {
    images,
    targets: await readHostTargets(services, request.hosts),
    cluster: null,
    planHost: (context, run) => planWorkflow(pullImagesWorkflow, context, { images, criSocket }, run),
    run: request.run,
    warnings,
  };
}
