import type { ExitCode } from '../base/errors.ts';
import { openPullImages, type PullImagesRequest as PullRequest } from '../fleet/use-cases/open-pull-images.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface PullImagesRequest extends PullRequest {
  readonly plan: PlanRequest;
}

/** `config images pull`. */
export function runPullImages(services: Services, request: PullImagesRequest): Promise<ExitCode> {
  const { plan } = request;
  return runOpened(services, plan, {
    title: 'config images pull',
    open: () => openPullImages(services, request),
    afterwards: ({ images }) => {
      if (!plan.dryRun && plan.format === 'text') services.output.stdout(images.map((image) => `Pulled ${image}\n`).join(''));
    },
  });
}
