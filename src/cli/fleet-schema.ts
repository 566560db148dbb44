import type { ExitCode } from '../core/errors.ts';
import { fleetJsonSchema } from '../core/fleet/json-schema.ts';
import { loadCatalogue, NEWEST_MINOR } from '../core/kubelet/catalogue.ts';
import { printableJson } from '../core/text/printable.ts';
import type { Services } from '../ports/services.ts';

/** `fleet schema`. */
export async function runFleetSchema({ output }: Services): Promise<ExitCode> {
  output.stdout(`${printableJson(fleetJsonSchema(await loadCatalogue(), NEWEST_MINOR), 2)}\n`);
  return 0;
}
