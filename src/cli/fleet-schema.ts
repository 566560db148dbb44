import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { fleetJsonSchema } from '../fleet/json-schema.ts';
import { NEWEST_MINOR } from '../kubelet/catalogue.ts';
import { loadCatalogue } from '../kubelet/load-catalogue.ts';
import type { Services } from './services.ts';

/** `fleet schema`. */
export async function runFleetSchema({ output }: Services): Promise<ExitCode> {
  output.stdout(`${printableJson(fleetJsonSchema(await loadCatalogue(), NEWEST_MINOR), 2)}\n`);
  return 0;
}
