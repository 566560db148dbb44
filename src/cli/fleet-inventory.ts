import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { joinLines } from '../base/text/styled.ts';
import { hostTable, inventoryDocument, inventoryTable } from '../fleet/inventory-document.ts';
import type { ResolvedFleet, ResolvedHost } from '../fleet/model.ts';
import { selectHosts } from '../fleet/select.ts';
import type { CommandOptions } from './command.ts';
import { readFleet } from './load-fleet.ts';
import { flagList, flagText } from './read-options.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';

/** `fleet inventory`. */
export async function runFleetInventory(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const fleet = await readFleet(services, options);
  for (const warning of fleet.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const name = flagText(options, 'host');
  const selection = { limit: flagList(options, 'limit'), groups: flagList(options, 'group') };
  const hosts = name !== undefined ? [hostNamed(fleet, name)] : fleet.hosts.length === 0 ? [] : selectHosts(fleet.hosts, selection);
  const format = flagText(options, 'output') ?? 'table';
  if (format === 'json' || format === 'yaml')
    services.output.stdout(renderDocument(inventoryDocument(fleet, hosts, name !== undefined), format));
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
