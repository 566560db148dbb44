import type { ExitCode } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { namesText, sortedNames } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { shortId } from '../fleet/history/host-history.ts';
import type { RecordedChange } from '../fleet/history/merge-history.ts';
import { fleetHistory, type HostHistory } from '../fleet/use-cases/fleet-history.ts';
import type { NamedHostsRequest } from '../fleet/use-cases/named-hosts.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { type OutputRequest, renderDocument } from './output/show-document.ts';

export interface FleetHistoryRequest extends NamedHostsRequest {
  readonly output: OutputRequest;
}

/** `fleet history`: one line for the hosts that a run changed in the same way, the oldest first. */
export async function runFleetHistory(services: Services, { output, ...request }: FleetHistoryRequest): Promise<ExitCode> {
  const { verbosity, format } = output;
  const { hosts, failure } = await fleetHistory(services, request, services.reporter({ verbosity, format: 'text' }));
  services.output.stdout(format === 'text' ? joinLines(tableOf(hosts)) : renderDocument(documentOf(hosts), format));
  if (failure !== null) throw failure;
  return 0;
}

function tableOf(hosts: readonly HostHistory[]): readonly string[] {
  const rows = rowsOf(hosts);
  if (rows.length === 0) return hosts.some(({ isRead }) => isRead) ? ['No changes are recorded.'] : [];
  const node = nodeColumn(hosts);
  const header = ['TIME', 'RUN', 'HOST', ...node.header, 'OPERATOR', 'SSH USER', 'COMMAND', 'RESULT', 'IMPACT', 'REASON', 'CHANGES'];
  return renderTable([
    header,
    ...rows.map(({ entry, names }) => [
      entry.time.slice(0, 19).concat('Z'),
      shortId(entry) ?? '-',
      namesText(names),
      ...node.cells(...names),
      entry.operator,
      entry.login ?? '-',
      entry.command,
      [entry.result === 'started' ? 'not completed' : entry.result, ...(entry.problems ?? [])].join(' '),
      entry.highestImpact ?? '-',
      entry.reason ?? '-',
      changesOf(entry),
    ]),
  ]);
}

/** The changes of a run that are equal share a row, at the time of the first one. */
function rowsOf(hosts: readonly HostHistory[]): readonly { readonly entry: RecordedChange; readonly names: readonly string[] }[] {
  const rows = new Map<string, { readonly entry: RecordedChange; readonly names: string[] }>();
  const changes = hosts.flatMap(({ host, entries }) => entries.map((entry) => ({ host, entry })));
  for (const { host, entry } of changes.toSorted((a, b) => a.entry.time.localeCompare(b.entry.time))) {
    const { id: _, time: _time, recordedIn: _recordedIn, ...shared } = entry;
    const key = entry.run === undefined ? JSON.stringify([host, rows.size]) : JSON.stringify(shared);
    const row = rows.get(key) ?? { entry, names: [] };
    rows.set(key, row);
    row.names.push(host);
  }
  return [...rows.values()].map(({ entry, names }) => ({ entry, names: sortedNames(names) }));
}

function changesOf({ fields, changes, result }: RecordedChange): string {
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
