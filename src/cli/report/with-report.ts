import type { AppError } from '../../base/errors.ts';
import type { ReportPorts, RunReport } from './report-file.ts';

/** `--report` of `plan` and `apply`. */
interface RunReportRequest {
  readonly command: 'plan' | 'apply';
  /** Undefined: no report. */
  readonly file: string | undefined;
  /** The fleet file or saved plan. */
  readonly subject: string;
}

/**
 * As `reportRun`, whose code is loaded only for a report.
 * @param work receives null if no report is requested
 */
export async function withReport<T extends { readonly failure: AppError | null }>(
  services: ReportPorts,
  { command, file, subject }: RunReportRequest,
  work: (report: RunReport | null) => Promise<T>,
): Promise<T> {
  if (file === undefined) return work(null);
  return (await import('./report-file.ts')).reportRun(services, command, { file, subject }, work);
}
