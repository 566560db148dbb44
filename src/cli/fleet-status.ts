import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { type FleetStatus, fleetStatus, type HostStatusRow } from '../fleet/use-cases/fleet-status.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { describeNodeSource, type NodeSource } from '../kubelet/node-source.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import { type OutputRequest, renderDocument } from './show-document.ts';

export interface FleetStatusRequest {
  readonly run: FleetRunRequest;
  readonly output: OutputRequest;
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
  const { format } = output;
  services.output.stdout(format === 'text' ? joinLines(tableOf(rows)) : renderDocument(documentOf(rows), format));
  if (failure !== null) throw failure;
  return 0;
}

async function readStatus(
  services: Services,
  { run, output, readsCertificates }: Pick<FleetStatusRequest, 'run' | 'output'> & { readonly readsCertificates: boolean },
): Promise<FleetStatus> {
  const watch = watchFleet(services, output, { reads: true });
  return fleetStatus(services, run, { ...watch, readsCertificates }).finally(() => watch.close());
}

function tableOf(rows: readonly HostStatusRow[]): readonly string[] {
  const header = ['HOST', 'REACHABLE', 'KUBELET', 'CONFIG', 'SOURCE', 'HEALTH', 'NODE', 'DRIFT'];
  const lines = rows.map(({ host, reachable, ...known }) => [
    host,
    reachable ? 'yes' : 'no',
    ...[known.kubelet, known.config, sourceText(known.source), known.health, known.node, known.drift].map((text) => text ?? '-'),
  ]);
  return renderTable([header, ...lines]);
}

function sourceText(source: NodeSource | null): string | null {
  return source === null ? null : describeNodeSource(source);
}

function documentOf(rows: readonly HostStatusRow[]): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'FleetStatus', hosts: rows };
}
