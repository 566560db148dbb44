import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { fleetStatus, type HostStatusRow } from '../fleet/use-cases/fleet-status.ts';
import { describeNodeSource, type NodeSource } from '../kubelet/node-source.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import { type OutputRequest, renderDocument } from './show-document.ts';

export interface FleetStatusRequest {
  readonly run: FleetRunRequest;
  readonly output: OutputRequest;
}

/** `fleet status`: one line a host. */
export async function runFleetStatus(services: Services, { run, output }: FleetStatusRequest): Promise<ExitCode> {
  const watch = watchFleet(services, output, { reads: true });
  const { rows, failure } = await fleetStatus(services, run, watch).finally(() => watch.close());
  const { format } = output;
  services.output.stdout(format === 'text' ? joinLines(tableOf(rows)) : renderDocument(documentOf(rows), format));
  if (failure !== null) throw failure;
  return 0;
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
