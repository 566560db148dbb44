import { type ExitCode, formatProblem } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { type Overview, type OverviewRequest, type OverviewRow, readOverview, watchOverview } from '../fleet/use-cases/overview.ts';
import type { Services } from './output/services.ts';
import { showTable, type TableRequest } from './show-table.ts';
import { watchRun } from './watch-run.ts';
import { tableWatch, type WatchedTable } from './watch-table.ts';

export interface StatusRequest extends OverviewRequest {
  readonly output: TableRequest & { readonly verbosity: number };
  /** Print changed rows until interrupted. */
  readonly watches: boolean;
}

/** `status [HOST|NODE...]`: hosts and Nodes in one table. Exit code as `fleet status`. */
export async function runStatus(services: Services, request: StatusRequest): Promise<ExitCode> {
  const { output } = request;
  const now = services.clock.now();
  const watch = watchRun(services, { format: 'text', verbosity: output.verbosity }, { title: 'status', reads: true });
  if (request.watches) {
    watch.close();
    const show = tableWatch(services.output, output);
    return watchOverview(services, request, { ...watch, changed: (overview) => show(tableOf(overview, services.clock.now())) });
  }
  const overview = await readOverview(services, request, watch).finally(() => watch.close());
  const { rows, unseen, failure } = overview;
  const table = tableOf(overview, now);
  const notes = [...table.rows.flatMap((row) => row.notes), ...unseen.map((what) => `Not read: ${what}.`)];
  const document = (): object => ({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'Status', items: rows.map(documentOf), unseen });
  showTable(services.output, { ...table, notes, document }, output);
  if (failure !== null) throw failure;
  return 0;
}

function documentOf({ certificate, ...row }: OverviewRow): object {
  return { ...row, certificate: certificate === null ? null : { ...certificate, notAfter: certificate.notAfter?.toISOString() ?? null } };
}

const UNKNOWN = 'unknown';

function tableOf({ rows, failure }: Overview, now: Date): WatchedTable {
  const reported = new Set((failure?.problems ?? []).map(({ host }) => host));
  return {
    columns: ['HOST', 'NODE NAME', 'STATUS', 'KUBELET', 'CONFIG', 'DRIFT', 'CHANGE', 'CERTIFICATES'],
    wide: ['CONFIGMAP', 'CERTIFICATE FILE'],
    rows: rows.map((row) => ({
      name: row.host === null ? `node/${row.node}` : `host/${row.host}`,
      cells: [
        row.host ?? UNKNOWN,
        row.node ?? UNKNOWN,
        row.ready ?? UNKNOWN,
        row.kubelet ?? UNKNOWN,
        shortName(row.configuration),
        driftText(row),
        row.change ?? UNKNOWN,
        expiryText(row, now),
      ],
      wide: [row.configuration?.includes('/') === true ? row.configuration : 'none', row.certificate?.path ?? UNKNOWN],
      document: documentOf(row),
      notes: notesOf(
        row,
        reported.has(row.host ?? '') ? (failure?.problems ?? []).filter(({ host }) => host === row.host).map(formatProblem) : [],
      ),
    })),
    empty: 'No hosts or Nodes found.',
  };
}

/** A ConfigMap without its namespace; a path as it is. */
function shortName(configuration: string | null): string {
  if (configuration === null) return UNKNOWN;
  return configuration.startsWith('/') ? configuration : configuration.replace(/^[^/ ]+\//, '');
}

function driftText({ drift, changed }: OverviewRow): string {
  if (drift === null) return UNKNOWN;
  if (drift.length === 0) return 'none';
  return `${drift.length} ${drift.length === 1 ? 'difference' : 'differences'}${changed === null ? '' : `: ${changed} changed`}`;
}

/** `client in 34d`; an expired one, or one with another error, says so. */
function expiryText({ certificate }: OverviewRow, now: Date): string {
  if (certificate === null || certificate.notAfter === null) return UNKNOWN;
  const left = certificate.notAfter.getTime() - now.getTime();
  return left <= 0 ? `${certificate.role} expired` : `${certificate.role} in ${formatAge(left)}`;
}

/** The differences, and why parts are unknown. A problem of a host is printed on standard error. */
function notesOf({ host, node, drift, unseen }: OverviewRow, problems: readonly string[]): readonly string[] {
  const name = host ?? node;
  return [
    ...(drift ?? []).map((one) => `${name}: ${one}`),
    ...(problems.length > 0 ? [] : unseen.map((why) => `${name}: not read: ${why}`)),
  ];
}
