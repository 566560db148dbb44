import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import { environmentFilesOf, type FoundText, type UnitTexts } from '../../host/systemd/exec-start.ts';

/** The unit files that systemd loaded (unit and drop-ins), and their environment files; null without a unit. */
export async function observeUnitTexts(host: Host, unit: UnitState | null, signal?: AbortSignal): Promise<UnitTexts | null> {
  const unitPaths = unit === null ? [] : [unit.fragmentPath, ...unit.dropInPaths].filter((path) => path !== null);
  if (unitPaths.length === 0) return null;
  const unitFiles = foundTexts(unitPaths, await observe(host, fileFacts(unitPaths), signal));
  const environmentPaths = environmentFilesOf(unitFiles);
  return { unitFiles, environmentFiles: foundTexts(environmentPaths, await observe(host, fileFacts(environmentPaths), signal)) };
}

function foundTexts(paths: readonly string[], files: ReadonlyMap<string, FileFact | null>): readonly FoundText[] {
  return paths.map((path) => ({ path, text: files.get(path)?.content ?? null }));
}
