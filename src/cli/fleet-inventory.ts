import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { hostTable, INVENTORY_COLUMNS, inventoryDocument, inventoryRows } from '../fleet/inventory-document.ts';
import type { ResolvedFleet, ResolvedHost } from '../fleet/model.ts';
import { selectHosts } from '../fleet/select.ts';
import { type FleetRequest, readFleet } from '../fleet/use-cases/load-fleet.ts';
import type { Services } from './services.ts';
import { showTable, type TableRequest } from './show-table.ts';

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
  const hosts = name !== undefined ? [hostNamed(fleet, name)] : fleet.hosts.length === 0 ? [] : selectHosts(fleet.hosts, selection);
  const [only] = hosts;
  const document = (): object => inventoryDocument(fleet, hosts, name !== undefined);
  const table =
    name === undefined || only === undefined
      ? { ...INVENTORY_COLUMNS, rows: inventoryRows(fleet, hosts) }
      : { columns: HOST_COLUMNS, rows: hostTable(only).map((cells) => ({ name: `host/${only.name}`, cells })) };
  const isOneHost = name !== undefined && output.format === 'name';
  showTable(services.output, { ...table, ...(isOneHost ? { rows: table.rows.slice(0, 1) } : {}), document }, output);
  return 0;
}

function hostNamed(fleet: ResolvedFleet, name: string): ResolvedHost {
  const found = fleet.hosts.find((host) => host.name === name);
  if (found) return found;
  const likely = closestName(
    name,
    fleet.hosts.map((host) => host.name),
  );
  throw usageError(
    `${fleet.file} has no host ${JSON.stringify(name)}`,
    likely === null ? 'List the hosts: kubeletadm fleet inventory' : `Did you mean ${likely}?`,
  );
}
