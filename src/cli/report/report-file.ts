import { type AppError, formatProblem, isAppError } from '../../base/errors.ts';
import { type ReportModel, runReport, statusReport } from '../../fleet/report/report-model.ts';
import type { FleetPorts, HostOutcome } from '../../fleet/run/fleet.ts';
import { runRecorder } from '../../fleet/run/run-timeline.ts';
import type { FleetStatus } from '../../fleet/use-cases/fleet-status.ts';
import type { ClusterName } from '../../host/plan/document.ts';
import { VERSION } from '../../version.ts';
import type { Services } from '../output/services.ts';
import { renderReport } from './render-report.ts';

/** `--report`: the file of the page, and what its title names. */
interface ReportRequest {
  readonly file: string;
  /** The fleet file or saved plan. */
  readonly subject: string;
}

/** Ports of reports. */
export type ReportPorts = Pick<Services, 'clock' | 'output' | 'requireWritable' | 'templates' | 'writeLocalFile'>;

/** Collects the content of a report while a command runs. */
export interface RunReport {
  /** The given ports, whose events are recorded. */
  record(ports: FleetPorts): FleetPorts;
  /** The cluster of the run. */
  useCluster(cluster: ClusterName): void;
  /** @param canary number of hosts that are changed first */
  useCanary(canary: number): void;
}

/**
 * Runs `plan` or `apply`, and writes its report when it has finished, also if it failed.
 * @param work returns the failure of the run; null: none
 * @returns the result of `work`
 * @throws AppError INPUT_UNWRITABLE before `work` starts; the errors of `work`, after which the report is written
 * unless the exit code is 2: nothing was run
 */
export async function reportRun<T extends { readonly failure: AppError | null }>(
  services: ReportPorts,
  command: 'plan' | 'apply',
  request: ReportRequest,
  work: (report: RunReport) => Promise<T>,
): Promise<T> {
  await services.requireWritable(request.file);
  const recorder = runRecorder(services.clock);
  const outcomes: HostOutcome[] = [];
  let cluster: ClusterName | null = null;
  let canary = 0;
  const modelOf = (failure: AppError | null): ReportModel =>
    runReport({
      ...{ command, subject: request.subject, cluster, outcomes, failure },
      startedAt: recorder.startedAt,
      endedAt: services.clock.now(),
      timelines: command === 'apply' ? recorder.timelines(canary) : [],
    });
  return reportFailures(services, request, modelOf, () =>
    work({
      record: (ports) =>
        recorder.record({
          ...ports,
          ended: async (outcome) => {
            outcomes.push(outcome);
            await ports.ended?.(outcome);
          },
        }),
      useCluster: (name) => {
        cluster = name;
      },
      useCanary: (hosts) => {
        canary = hosts;
      },
    }),
  );
}

/**
 * Runs `fleet status`, and writes its report.
 * @throws AppError INPUT_UNWRITABLE before `work` starts; the errors of `work`
 */
export async function reportStatus(services: ReportPorts, request: ReportRequest, work: () => Promise<FleetStatus>): Promise<FleetStatus> {
  await services.requireWritable(request.file);
  const startedAt = services.clock.now();
  const modelOf = (failure: AppError | null, status: Pick<FleetStatus, 'rows' | 'certificates'>): ReportModel =>
    statusReport({ ...status, subject: request.subject, cluster: null, startedAt, endedAt: services.clock.now(), failure });
  return reportFailures(services, request, (failure, status) => modelOf(failure, status ?? { rows: [], certificates: [] }), work);
}

/** Runs a command and writes a report with its failure, whether it was returned or thrown. */
async function reportFailures<T extends { readonly failure: AppError | null }>(
  services: ReportPorts,
  request: ReportRequest,
  modelOf: (failure: AppError | null, result: T | null) => ReportModel,
  work: () => Promise<T>,
): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    if (isAppError(error) && error.exitCode !== 2) await writeDespiteFailure(services, request, modelOf(error, null));
    throw error;
  }
  if (result.failure === null) await writeReport(services, request, modelOf(null, result));
  else await writeDespiteFailure(services, request, modelOf(result.failure, result));
  return result;
}

/** An unwritable report is a warning: the failure of the run is the one to fix. */
async function writeDespiteFailure(services: ReportPorts, request: ReportRequest, model: ReportModel): Promise<void> {
  try {
    await writeReport(services, request, model);
  } catch (error) {
    if (!isAppError(error)) throw error;
    for (const problem of error.problems) services.output.stderr(`warning: ${formatProblem(problem)}\n`);
  }
}

async function writeReport(services: ReportPorts, { file }: ReportRequest, model: ReportModel): Promise<void> {
  const page = renderReport(model, await services.templates(), VERSION);
  await services.writeLocalFile(file, page);
  services.output.stderr(`wrote ${file} (${Math.ceil(Buffer.byteLength(page) / 1000)} kB)\n`);
}
