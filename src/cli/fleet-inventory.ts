import { type ExitCode, formatProblem } from '../base/errors.ts';
import { hostTable, INVENTORY_COLUMNS, inventoryDocument, inventoryRows } from '../fleet/file/inventory-document.ts';
import type { ResolvedFleet, ResolvedHost } from '../fleet/file/model.ts';
import { declaredNode, hostNamed, selectHosts, unknownHost } from '../fleet/file/select.ts';
import { type FleetRequest, readFleet } from '../fleet/use-cases/load-fleet.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { showTable, type Table, type TableRequest } from './show-table.ts';

export interface FleetInventoryRequest extends FleetRequest {
  /** The host to show with the source of each setting; undefined: the table of hosts. */
  readonly host: string | undefined;
  readonly output: TableRequest;
}

const HOST_COLUMNS = ['SETTING', 'VALUE', 'SOURCE'];

/** `fleet inventory`. */
export async function runFleetInventory(services: Services, request: FleetInventoryRequest): Promise<ExitCode> {
  const { host: name, selection, output } = request;
  const fleet = await readFleet(services, request);
  for (const warning of fleet.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const hosts = name !== undefined ? [inventoryHost(fleet, name)] : fleet.hosts.length === 0 ? [] : selectHosts(fleet.hosts, selection);
  const [only] = hosts;
  const document = (): object => inventoryDocument(fleet, hosts, name !== undefined);
  const table =
    name === undefined || only === undefined
      ? inventoryTable(fleet, hosts)
      : { columns: HOST_COLUMNS, rows: hostTable(only).map((cells) => ({ name: `host/${only.name}`, cells })) };
  const isOneHost = name !== undefined && output.format === 'name';
  showTable(services.output, { ...table, ...(isOneHost ? { rows: table.rows.slice(0, 1) } : {}), document }, output);
  return 0;
}

function inventoryTable(fleet: ResolvedFleet, hosts: readonly ResolvedHost[]): Omit<Table, 'document'> {
  const node = nodeColumn(hosts.map((host) => ({ host: host.name, node: declaredNode(host) })));
  const rows = inventoryRows(fleet, hosts).map(({ host, cells, ...row }) => ({ ...row, cells: [...cells, ...node.cells(host)] }));
  return { columns: [...INVENTORY_COLUMNS.columns, ...node.header], wide: INVENTORY_COLUMNS.wide, rows };
}

function inventoryHost(fleet: ResolvedFleet, name: string): ResolvedHost {
  const host = hostNamed(fleet.hosts, name);
  if (host === undefined) throw unknownHost(fleet, name);
  return host;
}
