import type { ExitCode } from '../base/errors.ts';
import { openPullImages, type PullImagesRequest } from '../fleet/use-cases/open-pull-images.ts';
import { listImages } from '../kubeadm/use-cases/list-images.ts';
import type { DocumentsRequest } from '../kubeadm/use-cases/resolve-init-documents.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderKubeadmDocument } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface ListImagesRequest extends DocumentsRequest {
  readonly format: ReadFormat;
}

/** `config images list`: the images of a control plane with this configuration. */
export async function runListImages(services: Services, request: ListImagesRequest): Promise<ExitCode> {
  const { format } = request;
  const { images, warnings } = await listImages(services, request);
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
  const document = { kind: 'Images', apiVersion: 'output.kubeadm.k8s.io/v1alpha3', images };
  if (format === 'text') services.output.stdout(images.map((image) => `${image}\n`).join(''));
  else services.output.document(renderKubeadmDocument(document, format));
  return 0;
}

export interface PullImagesCommandRequest extends PullImagesRequest {
  readonly plan: PlanRequest;
}

/** `config images pull`. */
export function runPullImages(services: Services, request: PullImagesCommandRequest): Promise<ExitCode> {
  const { plan } = request;
  return runOnHosts(services, request, {
    title: 'config images pull',
    open: () => openPullImages(services, request),
    afterwards: ({ images }) => {
      const prefix = services.programName === 'kubeadm' ? '[config/images] ' : '';
      if (!request.run.dryRun && plan.format === 'text')
        services.output.stdout(images.map((image) => `${prefix}Pulled ${image}\n`).join(''));
    },
  });
}
