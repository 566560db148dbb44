import type { ExitCode } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { HistoryEntry } from '../fleet/history/host-history.ts';
import { fleetHistory, type HostHistory } from '../fleet/use-cases/fleet-history.ts';
import type { NamedHostsRequest } from '../fleet/use-cases/named-hosts.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { type OutputRequest, renderDocument } from './output/show-document.ts';

export interface FleetHistoryRequest extends NamedHostsRequest {
  readonly output: OutputRequest;
}

/** `fleet history`: one line for each recorded change, the oldest first. */
export async function runFleetHistory(services: Services, { output, ...request }: FleetHistoryRequest): Promise<ExitCode> {
  const { verbosity, format } = output;
  const { hosts, failure } = await fleetHistory(services, request, services.reporter({ verbosity, format: 'text' }));
  services.output.stdout(format === 'text' ? joinLines(tableOf(hosts)) : renderDocument(documentOf(hosts), format));
  if (failure !== null) throw failure;
  return 0;
}

function tableOf(hosts: readonly HostHistory[]): readonly string[] {
  const changes = hosts.flatMap(({ host, entries }) => (entries ?? []).map((entry) => ({ host, entry })));
  if (changes.length === 0) return hosts.some(({ entries }) => entries !== null) ? ['No changes are recorded.'] : [];
  const node = nodeColumn(hosts);
  const header = ['TIME', 'HOST', ...node.header, 'OPERATOR', 'SSH USER', 'COMMAND', 'RESULT', 'IMPACT', 'REASON', 'CHANGES'];
  const rows = changes
    .toSorted((a, b) => a.entry.time.localeCompare(b.entry.time))
    .map(({ host, entry }) => [
      entry.time.slice(0, 19).concat('Z'),
      host,
      ...node.cells(host),
      entry.operator,
      entry.login ?? '-',
      entry.command,
      [entry.result === 'started' ? 'not completed' : entry.result, ...(entry.problems ?? [])].join(' '),
      entry.highestImpact ?? '-',
      entry.reason ?? '-',
      changesOf(entry),
    ]);
  return renderTable([header, ...rows]);
}

function changesOf({ fields, changes, result }: HistoryEntry): string {
  if (result === 'refused') return 'none';
  if (fields.length > 0) return fields.map(({ field, before, after }) => `${field} ${valueText(before)} → ${valueText(after)}`).join(', ');
  return changes.length === 0 ? '-' : `${changes.length} ${changes.length === 1 ? 'operation' : 'operations'}`;
}

function valueText(value: Json): string {
  return value === null ? 'unset' : JSON.stringify(value);
}

function documentOf(hosts: readonly HostHistory[]): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'FleetHistory', hosts };
}
