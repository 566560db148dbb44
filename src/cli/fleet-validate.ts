import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { fleetJsonSchema } from '../fleet/file/json-schema.ts';
import { validateFleet } from '../fleet/file/validate.ts';
import { checkFleet, findDuplicateMachines, fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { DEFAULT_MINOR, type Minor, NEWEST_MINOR, OLDEST_MINOR, parseMinor } from '../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import { VERSION } from '../version.ts';
import { nameFileKinds } from './file-kind.ts';
import type { FileVerdict } from './output/file-verdict.ts';
import type { Services } from './output/services.ts';
import { isFileValid, type ReportFormat, showVerdicts } from './validate-report.ts';

export interface FleetValidateRequest {
  /** Undefined: the default. */
  readonly file: string | undefined;
  /** Undefined: that of the fleet file, else `DEFAULT_MINOR`. */
  readonly kubernetesVersion: string | undefined;
  readonly format: ReportFormat;
}

/** `fleet validate`: exit code 2 when the file, or a configuration in it, is invalid. */
export async function runFleetValidate(services: Services, request: FleetValidateRequest): Promise<ExitCode> {
  const version = request.kubernetesVersion;
  const chosen = version === undefined ? null : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const verdict = await validateFleetFile(services, fleetFileOf(request.file), chosen);
  showVerdicts([verdict], request.format, services.output, VERSION);
  return isFileValid(verdict) ? 0 : 2;
}

/**
 * Validates a fleet file and the configurations in it.
 * @param chosen the kubelet version; null: that of the file, else the default
 */
export async function validateFleetFile(services: Services, file: string, chosen: Minor | null): Promise<FileVerdict> {
  const text = await services.input.readText(file);
  const { fleet, problems: found } = await checkFleet(services, file, text);
  const named = nameFileKinds(found, () => text);
  const duplicates = isFileValid({ file, problems: named }) ? await findDuplicateMachines(services, fleet) : [];
  const problems = [...named, ...duplicates];
  const minor = chosen ?? parseMinor(fleet.kubernetesVersion ?? '') ?? DEFAULT_MINOR;
  // Unreadable files cannot be validated.
  const validated = isFileValid({ file, problems }) ? validateFleet(fleet, { minor, catalogue: await loadCatalogue() }).problems : [];
  return { file, problems: [...problems, ...validated] };
}

/** `fleet schema`. */
export async function runFleetSchema({ output }: Services): Promise<ExitCode> {
  output.stdout(await fleetSchemaText());
  return 0;
}

/** The JSON Schema of fleet files with the fields of the newest kubelet. */
export async function fleetSchemaText(): Promise<string> {
  return `${printableJson(fleetJsonSchema(await loadCatalogue(), NEWEST_MINOR), 2)}\n`;
}
