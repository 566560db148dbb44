import { type ExitCode, formatProblem } from '../base/errors.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { type FleetStatus, fleetStatus, type HostStatusRow, watchFleetStatus } from '../fleet/use-cases/fleet-status.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { describeNodeSource, type NodeSource } from '../kubelet/effective/node-source.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { showTable, type Table, type TableRequest } from './show-table.ts';
import { watchRun } from './watch-run.ts';
import { tableWatch, type WatchedTable } from './watch-table.ts';

export interface FleetStatusRequest extends FleetRunRequest {
  readonly output: TableRequest & { readonly verbosity: number };
  /** Print changed rows until interrupted. */
  readonly watches: boolean;
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

/** `fleet status`: one line a host. */
export async function runFleetStatus(services: Services, request: FleetStatusRequest): Promise<ExitCode> {
  const { output, report: file } = request;
  if (request.watches) {
    const first = await readStatus(services, request, false);
    const show = tableWatch(services.output, output);
    return watchFleetStatus(services, request, first, {
      reporter: services.reporter({ verbosity: output.verbosity, format: 'text' }),
      changed: (status) => show(watchedTable(status)),
    });
  }
  const { rows, failure } =
    file === undefined
      ? await readStatus(services, request, false)
      : await (await import('./report/report-file.ts')).reportStatus(services, { file, subject: fleetFileOf(request.file) }, () =>
          readStatus(services, request, true),
        );
  showTable(services.output, tableOf(rows), output);
  if (failure !== null) throw failure;
  return 0;
}

async function readStatus(services: Services, request: FleetStatusRequest, readsCertificates: boolean): Promise<FleetStatus> {
  const watch = watchRun(services, { format: 'text', verbosity: request.output.verbosity }, { title: 'fleet status', reads: true });
  return fleetStatus(services, request, { ...watch, readsCertificates }).finally(() => watch.close());
}

/** The problem of a host that was not inspected is a line below its row. */
function watchedTable({ rows, failure }: FleetStatus): WatchedTable {
  const { columns, wide, rows: shown } = tableOf(rows);
  const notesOf = (host: string): readonly string[] => (failure?.problems ?? []).filter((one) => one.host === host).map(formatProblem);
  return {
    columns,
    wide,
    rows: rows.flatMap((document, i) => {
      const row = shown[i];
      return row === undefined ? [] : [{ ...row, document, notes: notesOf(document.host) }];
    }),
    empty: 'No hosts found.',
  };
}

function tableOf(rows: readonly HostStatusRow[]): Table {
  const node = nodeColumn(rows.map(({ host, nodeName }) => ({ host, node: nodeName })));
  return {
    columns: ['HOST', ...node.header, 'REACHABLE', 'KUBELET', 'CONFIG', 'SOURCE', 'HEALTH', 'STATUS', 'DRIFT'],
    wide: ['ADDRESS', 'GROUPS'],
    rows: rows.map(({ host, reachable, address, groups, ...known }) => ({
      name: `host/${host}`,
      cells: [
        host,
        ...node.cells(host),
        reachable ? 'yes' : 'no',
        ...[known.kubelet, known.config, sourceText(known.source), known.health, known.node, known.drift].map((text) => text ?? '-'),
      ],
      wide: [address, groups.join(',') || '-'],
    })),
    document: () => ({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'FleetStatus', hosts: rows }),
  };
}

function sourceText(source: NodeSource | null): string | null {
  return source === null ? null : describeNodeSource(source);
}
