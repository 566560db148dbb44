import { controlPlaneImages, workerImages } from '../control-plane/images.ts';
import { type DocumentPorts, type DocumentsRequest, resolveInitDocuments } from './resolve-init-documents.ts';

/**
 * The images of a control plane with this configuration.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 */
export async function listImages(services: DocumentPorts, request: DocumentsRequest) {
  const { config, cluster, warnings } = await resolveInitDocuments(services, request);
  return {
    images: controlPlaneImages(cluster),
    /** Those of them that other hosts than control planes need. */
    workerImages: workerImages(cluster),
    kubernetesVersion: cluster.kubernetesVersion,
    /** As configured; undefined: detected on the host. */
    criSocket: config.init?.nodeRegistration?.criSocket,
    warnings,
  };
}
