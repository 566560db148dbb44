import type { ExitCode } from '../base/errors.ts';
import { type GenerateCsrRequest as GenerateRequest, openGenerateCsr } from '../fleet/use-cases/open-generate-csr.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface GenerateCsrRequest extends GenerateRequest {
  readonly plan: PlanRequest;
}

/** `certs generate-csr`. */
export function runCertsGenerateCsr(services: Services, request: GenerateCsrRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'certs generate-csr', open: () => openGenerateCsr(services, request) });
}
