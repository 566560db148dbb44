import { type AppError, formatProblem, isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { quoteShell } from '../../base/text/shell-quote.ts';
import { type ReportModel, runReport } from '../../fleet/report/report-model.ts';
import type { RunRecord } from '../../fleet/run/run-timeline.ts';
import type { ClusterName } from '../../host/plan/document.ts';
import { VERSION } from '../../version.ts';
import type { LiveView } from '../output/live-view.ts';
import type { Services } from '../output/services.ts';
import { type LivePagePorts, type PageAddress, serveLivePage } from './live-page.ts';
import { renderPage, renderParts, renderReport } from './render-report.ts';
import { withoutNotify } from './report-words.ts';
import { type PageSource, runSource, type ShownRun, stateOf } from './run-source.ts';

/** `--report`, `--serve` and what the page says about the command. */
export interface PageRequest {
  readonly command: string;
  /** The fleet file or saved plan; empty: none. */
  readonly subject: string;
  readonly reason: string | undefined;
  /** Undefined: no report. */
  readonly report: string | undefined;
  /** Undefined: no live page. */
  readonly serve: PageAddress | undefined;
}

/** Ports of reports and live pages. */
export type ReportPorts = LivePagePorts &
  Pick<Services, 'commandLine' | 'programName' | 'requireWritable' | 'self' | 'templates' | 'writeLocalFile'>;

/** The page of a command, which is written when the command has ended, and served while it runs. */
export interface RunPage {
  /** Shows this from now on. */
  show(source: PageSource): void;
  /** Shows a run over hosts from now on. */
  showRun(record: RunRecord, run: ShownRun, view: () => LiveView): void;
  useCluster(cluster: ClusterName): void;
  /** The given reporter, whose events name the cluster. */
  namingCluster(reporter: Reporter): Reporter;
  /** @param signer null: the signature was not verified */
  usePlan(plan: { readonly id: string; readonly signer: string | null }): void;
}

/** The result of a command. */
interface CommandResult {
  readonly failure: AppError | null;
  /** Default: 0 without a failure. */
  readonly exitCode?: number;
}

/**
 * Runs a command, and publishes its page: live while it runs, as a file when it has ended, also if it failed.
 * @returns the result of `work`
 * @throws AppError INPUT_UNWRITABLE or PAGE_NOT_SERVED before `work` starts; the errors of `work`, after which the report is
 * written unless the exit code is 2: nothing was run
 */
export async function publishRun<T extends CommandResult>(
  services: ReportPorts,
  request: PageRequest,
  work: (page: RunPage) => Promise<T>,
): Promise<T> {
  const { report, serve } = request;
  if (report !== undefined) await services.requireWritable(report);
  const templates = await services.templates();
  const shown = shownRun(services, request);
  const live =
    serve === undefined
      ? null
      : await serveLivePage(services, serve, {
          render: () => renderParts(shown.model(), templates, VERSION, shown.live()),
          document: (page) => renderPage(page, templates, { isLive: true }),
        });
  try {
    let result: T;
    try {
      result = await work(shown.page);
    } catch (error) {
      if (!isAppError(error)) throw error;
      shown.end(error, error.exitCode);
      if (report !== undefined && error.exitCode !== 2 && error.code !== 'DECLINED')
        await writeDespiteFailure(services, report, shown.model());
      throw error;
    }
    const { failure, exitCode = failure?.exitCode ?? 0 } = result;
    shown.end(failure, exitCode);
    if (report !== undefined) await (failure === null ? writeReport : writeDespiteFailure)(services, report, shown.model());
    return result;
  } finally {
    await live?.end();
  }
}

/** The model of a page at any time. */
function shownRun(services: ReportPorts, { command, subject, reason }: PageRequest) {
  const { clock, commandLine, programName, self } = services;
  const begun = clock.now();
  let cluster: ClusterName | null = null;
  let plans: RunRecord['plans'] = new Map();
  let plan: Parameters<RunPage['usePlan']>[0] | null = null;
  let ended: { readonly at: Date; readonly failure: AppError | null; readonly exitCode: number } | null = null;
  let source = unplannedSource(command, begun);
  const page: RunPage = {
    show: (next) => {
      source = next;
    },
    showRun: (record, run, view) => {
      page.show(runSource(record, run, view, plans));
      plans = record.plans;
    },
    useCluster: (name) => {
      cluster = name;
    },
    namingCluster: (reporter) => withClusterOf(reporter, page.useCluster),
    usePlan: (used) => {
      plan = used;
    },
  };
  return {
    page,
    live: (): LiveView | null => (ended === null ? source.live() : null),
    model: (): ReportModel =>
      source.model({
        subject,
        cluster,
        facts: {
          operator: self.name,
          commandLine: commandLine === undefined ? null : [programName, ...withoutNotify(commandLine).map(quoteShell)].join(' '),
          reason: reason ?? null,
          plan: plan?.id ?? null,
          signer: plan?.signer ?? null,
          exitCode: ended?.exitCode ?? null,
        },
        startedAt: source.startedAt,
        endedAt: ended?.at ?? clock.now(),
        failure: ended?.failure ?? null,
      }),
    end: (failure: AppError | null, exitCode: number): void => {
      ended = { at: clock.now(), failure, exitCode };
    },
  };
}

/** The page before the hosts are known. */
function unplannedSource(command: string, startedAt: Date): PageSource {
  const nothing = { hosts: [], changing: [], outcomes: [], plans: new Map(), timelines: [], gates: [] };
  return {
    startedAt,
    model: (head) => runReport({ ...head, ...nothing, command, progress: stateOf(head, 'planning') }),
    live: () => null,
  };
}

/** The given reporter; its events name the cluster. */
function withClusterOf(reporter: Reporter, use: RunPage['useCluster']): Reporter {
  return {
    ...reporter,
    report: (event) => {
      const { server, context } = event.code === 'CLUSTER' ? (event.data ?? {}) : {};
      if (typeof server === 'string') use(typeof context === 'string' ? { context, server } : { server });
      reporter.report(event);
    },
  };
}

/** An unwritable report is a warning: the failure of the run is the one to fix. */
async function writeDespiteFailure(services: ReportPorts, file: string, model: ReportModel): Promise<void> {
  try {
    await writeReport(services, file, model);
  } catch (error) {
    if (!isAppError(error)) throw error;
    for (const problem of error.problems) services.output.stderr(`warning: ${formatProblem(problem)}\n`);
  }
}

async function writeReport(services: ReportPorts, file: string, model: ReportModel): Promise<void> {
  const page = renderReport(model, await services.templates(), VERSION);
  await services.writeLocalFile(file, page);
  services.output.stderr(`wrote ${file} (${Math.ceil(Buffer.byteLength(page) / 1000)} kB)\n`);
}
