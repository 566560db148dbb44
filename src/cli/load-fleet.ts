import { dirname, isAbsolute, join, resolve } from 'node:path';
import { AppError, isAppError, type Problem } from '../base/errors.ts';
import type { InventoryFile, VariablesFile } from '../fleet/ansible/import.ts';
import type { ImportedInventory } from '../fleet/entries.ts';
import { filterImport } from '../fleet/filter-import.ts';
import type { Place } from '../fleet/findings.ts';
import { fileLayer } from '../fleet/layer.ts';
import { type LoadedFleet, loadFleet } from '../fleet/load.ts';
import type { ResolvedFleet } from '../fleet/model.ts';
import { resolveFleet } from '../fleet/resolve.ts';
import type { FleetImport } from '../fleet/schema.ts';
import type { Selection } from '../fleet/select.ts';
import type { Services } from './services.ts';

/** Where a fleet file is looked for when none is named. */
const DEFAULT_FLEET_FILE = 'fleet.yaml';

/** A fleet file, and which of its hosts. */
export interface FleetRequest {
  /** Undefined: `fleet.yaml`. */
  readonly file?: string | undefined;
  readonly selection: Selection;
}

/**
 * Reads the fleet file of `-f` and all it imports.
 * @throws AppError with exit code 2 and all errors; warnings are in the fleet
 */
export async function readFleet(services: Services, { file }: Pick<FleetRequest, 'file'>): Promise<ResolvedFleet> {
  const { fleet, problems } = await examineFleet(services, fleetFileOf(file));
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return fleet;
}

/** The path of the fleet file: that of `-f`, otherwise the default. */
export function fleetFileOf(file: string | undefined): string {
  return file ?? DEFAULT_FLEET_FILE;
}

/** The same, the errors not thrown. */
export async function examineFleet(
  services: Services,
  file: string,
): Promise<{ readonly fleet: ResolvedFleet; readonly problems: readonly Problem[] }> {
  const loaded = loadFleet(await services.input.readText(file), file);
  const imports: ImportedInventory[] = [];
  const problems: Problem[] = [];
  for (const [index, entry] of (loaded.fleet.imports ?? []).entries()) {
    const read = await readImport(services, loaded, entry).catch((error: unknown) => placeFailure(error, loaded, index));
    const kept = filterImport(read.inventory, entry.hosts);
    imports.push(kept.inventory);
    problems.push(...read.problems, ...kept.problems.map((problem) => ({ ...problem, ...placeInImport(loaded, index, 'hosts') })));
  }
  return resolveFleet({ ...loaded, problems: [...loaded.problems, ...problems] }, imports);
}

/** The directory that relative paths of a fleet file count from. */
export function directoryOf(file: string): string {
  return file === '-' ? resolve('.') : dirname(resolve(file));
}

/** A path of a fleet file: `~` is the home directory, relative ones count from the directory of the file. */
export function besideFleet(path: string, fleetFile: string, homeDirectory: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homeDirectory, path.slice(1));
  return isAbsolute(path) || fleetFile === '-' ? path : join(dirname(fleetFile), path);
}

interface ReadImport {
  readonly inventory: ImportedInventory;
  readonly problems: readonly Problem[];
}

const NOTHING: ReadImport = { inventory: { hosts: [], groups: [] }, problems: [] };

/** What cannot be read is a problem of the line that names it. */
function placeFailure(error: unknown, loaded: LoadedFleet, index: number): ReadImport {
  if (!isAppError(error)) throw error;
  const member = loaded.fleet.imports?.[index]?.ansibleInventory === undefined ? 'sshConfig' : 'ansibleInventory';
  const place = placeInImport(loaded, index, member);
  return { ...NOTHING, problems: error.problems.map((problem) => ({ ...place, ...problem })) };
}

function placeInImport({ document }: LoadedFleet, index: number, member: string): Place | undefined {
  if (document === null) return undefined;
  const { position, path } = fileLayer('import', {}, document, ['imports', index]).place([member]);
  return { position, path };
}

async function readImport(services: Services, { file }: LoadedFleet, { ansibleInventory, sshConfig }: FleetImport): Promise<ReadImport> {
  if (ansibleInventory !== undefined) return readAnsible(services, besideFleet(ansibleInventory, file, services.homeDirectory));
  if (sshConfig === undefined) return NOTHING;
  const { importSshConfig } = await import('../fleet/import-ssh-config.ts');
  const files = await services.readSshConfig(besideFleet(sshConfig, file, services.homeDirectory));
  return { inventory: importSshConfig(files), problems: [] };
}

/** Reads an inventory of Ansible: a file, or a directory of them, with `group_vars` and `host_vars` beside it. */
export async function readAnsible(services: Services, path: string): Promise<ReadImport> {
  const [{ importAnsible }, files] = await Promise.all([import('../fleet/ansible/import.ts'), inventoryFiles(services, path)]);
  const directory = files.directory;
  const variables = [...(await variablesFiles(services, directory, 'group')), ...(await variablesFiles(services, directory, 'host'))];
  return importAnsible(files.files, variables);
}

/** What Ansible passes over in a directory of inventories. */
const NOT_INVENTORY = /(?:~|\.(?:pyc|pyo|swp|bak|rpm|md|txt|rst|orig|ini|cfg|retry))$/;

async function inventoryFiles(services: Services, path: string): Promise<{ files: readonly InventoryFile[]; directory: string }> {
  if (!(await services.input.isDirectory(path)))
    return { files: [{ path, text: await services.input.readText(path) }], directory: dirname(path) };
  const isInventory = (name: string): boolean => !name.includes('/') && !name.startsWith('.') && !NOT_INVENTORY.test(name);
  const tree = await services.input.readTree(path, isInventory);
  return {
    files: tree.filter((each) => isInventory(each.path)).map((each) => ({ path: join(path, each.path), text: each.text })),
    directory: path,
  };
}

/** `group_vars/NAME`, `NAME.yml`, `NAME.yaml`, `NAME.json`, or all files below the directory NAME: the first of these that is there. */
async function variablesFiles(services: Services, directory: string, of: 'group' | 'host'): Promise<readonly VariablesFile[]> {
  const folder = join(directory, `${of}_vars`);
  if (!(await services.input.isDirectory(folder))) return [];
  const isDesired = (path: string): boolean =>
    !/(?:^|\/)\.|~$/.test(path) && (!path.includes('/') || /\/[^/.]*$|\.(?:ya?ml|json)$/.test(path));
  const byName = new Map<string, { rank: number; files: VariablesFile[] }>();
  for (const { path, text } of (await services.input.readTree(folder, isDesired)).filter((file) => isDesired(file.path))) {
    for (const { name, rank } of namesOf(path)) {
      const known = byName.get(name);
      const file: VariablesFile = { path: join(folder, path), text, of, name };
      if (known === undefined || rank < known.rank) byName.set(name, { rank, files: [file] });
      else if (rank === known.rank) known.files.push(file);
    }
  }
  return [...byName.values()].flatMap(({ files }) => files);
}

const ENDINGS = ['.yml', '.yaml', '.json'];

/** Whom a file of variables may be for; of several files for one the lowest rank counts. A name may have a dot in it. */
function namesOf(path: string): readonly { readonly name: string; readonly rank: number }[] {
  const [first = '', ...below] = path.split('/');
  const rank = ENDINGS.findIndex((ending) => first.endsWith(ending)) + 1;
  if (below.length > 0 || rank === 0) return [{ name: first, rank: 0 }];
  return [
    { name: first, rank: 0 },
    { name: first.slice(0, -(ENDINGS[rank - 1] as string).length), rank },
  ];
}
