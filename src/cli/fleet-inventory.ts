import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { joinLines } from '../base/text/styled.ts';
import { hostTable, inventoryDocument, inventoryTable } from '../fleet/inventory-document.ts';
import type { ResolvedFleet, ResolvedHost } from '../fleet/model.ts';
import { selectHosts } from '../fleet/select.ts';
import { type FleetRequest, readFleet } from '../fleet/use-cases/load-fleet.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';

export interface FleetInventoryRequest extends FleetRequest {
  /** The host to show with the source of each setting; undefined: the table of hosts. */
  readonly host: string | undefined;
  readonly format: 'table' | 'json' | 'yaml';
}

/** `fleet inventory`. */
export async function runFleetInventory(services: Services, request: FleetInventoryRequest): Promise<ExitCode> {
  const { host: name, selection, format } = request;
  const fleet = await readFleet(services, request);
  for (const warning of fleet.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const hosts = name !== undefined ? [hostNamed(fleet, name)] : fleet.hosts.length === 0 ? [] : selectHosts(fleet.hosts, selection);
  if (format !== 'table') services.output.stdout(renderDocument(inventoryDocument(fleet, hosts, name !== undefined), format));
  else {
    const [only] = hosts;
    const lines = name === undefined || only === undefined ? inventoryTable(fleet, hosts, null) : hostTable(only);
    services.output.stdout(joinLines(lines));
  }
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
    likely === null ? 'kubeletadm fleet inventory lists them' : `Did you mean ${likely}?`,
  );
}
