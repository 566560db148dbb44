import type { AppError } from '../../base/errors.ts';
import type { PageRequest, ReportPorts, RunPage } from './run-page.ts';

/**
 * As `publishRun`, whose code is loaded only for a page.
 * @param work receives null if no page is requested
 */
export async function withPage<T extends { readonly failure: AppError | null; readonly exitCode?: number }>(
  services: ReportPorts,
  request: PageRequest,
  work: (page: RunPage | null) => Promise<T>,
): Promise<T> {
  if (request.report === undefined && request.serve === undefined) return work(null);
  return (await import('./run-page.ts')).publishRun(services, request, work);
}
