import type { Warning } from '../../host/plan/change.ts';
import { controlPlaneImages, workerImages } from '../control-plane/images.ts';
import { type DocumentPorts, type DocumentsRequest, resolveInitDocuments } from './resolve-init-documents.ts';

interface ListedImages {
  readonly images: readonly string[];
  /** Those of them that other hosts than control planes need. */
  readonly workerImages: readonly string[];
  readonly kubernetesVersion: string;
  /** As configured; undefined: detected on the host. */
  readonly criSocket: string | undefined;
  readonly warnings: readonly Warning[];
}

/**
 * The images of a control plane with this configuration.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function listImages(services: DocumentPorts, request: DocumentsRequest): Promise<ListedImages> {
  const { config, cluster, warnings } = await resolveInitDocuments(services, request);
  return {
    images: controlPlaneImages(cluster),
    workerImages: workerImages(cluster),
    kubernetesVersion: cluster.kubernetesVersion,
    criSocket: config.init?.nodeRegistration?.criSocket,
    warnings,
  };
}
