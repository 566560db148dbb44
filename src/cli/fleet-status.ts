import type { ExitCode } from '../base/errors.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { type FleetStatus, fleetStatus, type HostStatusRow } from '../fleet/use-cases/fleet-status.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { describeNodeSource, type NodeSource } from '../kubelet/node-source.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import { showTable, type Table, type TableRequest } from './show-table.ts';

export interface FleetStatusRequest {
  readonly run: FleetRunRequest;
  readonly output: TableRequest & { readonly verbosity: number };
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

/** `fleet status`: one line a host. */
export async function runFleetStatus(services: Services, { run, output, report: file }: FleetStatusRequest): Promise<ExitCode> {
  const { rows, failure } =
    file === undefined
      ? await readStatus(services, { run, output, readsCertificates: false })
      : await (await import('./report/report-file.ts')).reportStatus(services, { file, subject: fleetFileOf(run.file) }, () =>
          readStatus(services, { run, output, readsCertificates: true }),
        );
  showTable(services.output, tableOf(rows), output);
  if (failure !== null) throw failure;
  return 0;
}

async function readStatus(
  services: Services,
  { run, output, readsCertificates }: Pick<FleetStatusRequest, 'run' | 'output'> & { readonly readsCertificates: boolean },
): Promise<FleetStatus> {
  const watch = watchFleet(services, { format: 'text', verbosity: output.verbosity }, { title: 'fleet status', reads: true });
  return fleetStatus(services, run, { ...watch, readsCertificates }).finally(() => watch.close());
}

function tableOf(rows: readonly HostStatusRow[]): Table {
  return {
    columns: ['HOST', 'REACHABLE', 'KUBELET', 'CONFIG', 'SOURCE', 'HEALTH', 'NODE', 'DRIFT'],
    wide: ['ADDRESS', 'GROUPS'],
    rows: rows.map(({ host, reachable, address, groups, ...known }) => ({
      name: `host/${host}`,
      cells: [
        host,
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
