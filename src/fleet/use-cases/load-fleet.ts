import { dirname, isAbsolute, join } from 'node:path';
import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { PreparedRollout } from '../../maintenance/gates/rollout-settings.ts';
import type { ImportedInventory } from '../file/entries.ts';
import { ansibleWarning, importInvalid } from '../file/fleet-problems.ts';
import { fileLayer } from '../file/layer.ts';
import { type LoadedFleet, loadFleet, loadRollout } from '../file/load.ts';
import type { ResolvedFleet } from '../file/model.ts';
import type { SettingLocation } from '../file/problem-collector.ts';
import { resolveFleet } from '../file/resolve.ts';
import type { FleetFile } from '../file/schema.ts';
import type { Selection } from '../file/select.ts';
import { validateValues } from '../file/validate.ts';
import { filterImport } from '../imports/filter-import.ts';
import { isK0sctl } from '../imports/import-k0sctl.ts';
import type { FleetFilePorts } from '../ports.ts';
import { prepareRollout } from './prepare-rollout.ts';

export const DEFAULT_FLEET_FILE = 'fleet.yaml';

export interface FleetRequest {
  /** Undefined: `fleet.yaml`. */
  readonly file?: string | undefined;
  readonly selection: Selection;
}

/**
 * Reads the fleet file of `-f` and its imports.
 * @throws AppError with exit code 2 and all errors; warnings are in the fleet
 */
export async function readFleet(services: FleetFilePorts, { file }: Pick<FleetRequest, 'file'>): Promise<ResolvedFleet> {
  const { fleet, problems } = await checkFleet(services, fleetFileOf(file));
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return fleet;
}

/**
 * As `readFleet`, for commands that change hosts: the values of all hosts are validated, whichever are selected, as far
 * as they can be before a host is contacted.
 * @throws AppError with exit code 2 and all errors
 */
export async function readValidFleet(
  services: FleetFilePorts,
  request: Pick<FleetRequest, 'file'> & { readonly connection: { readonly configFile?: string | undefined } },
): Promise<ResolvedFleet> {
  const fleet = await readFleet(services, request);
  const duplicates = await findDuplicateMachines(services, fleet, request.connection.configFile);
  const errors = [...duplicates, ...validateValues(fleet, await loadCatalogue())];
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return fleet;
}

/**
 * Hosts that are one machine by ssh_config, see `duplicateMachines`. An unreadable ssh_config is reported when a host is connected.
 * @param configFile default: that of the fleet file, otherwise those of the user and the system
 */
export async function findDuplicateMachines(
  services: FleetFilePorts,
  fleet: ResolvedFleet,
  configFile?: string,
): Promise<readonly Problem[]> {
  const own = fleet.hosts[0]?.ssh.configFile;
  const declared = own === undefined ? undefined : resolveFleetPath(own, fleet.file, services.homeDirectory);
  const [{ duplicateMachines }, config] = await Promise.all([
    import('../imports/import-ssh-config.ts'),
    services.readSshConfig(configFile ?? declared).catch((error: unknown) => {
      if (isAppError(error)) return null;
      throw error;
    }),
  ]);
  return config === null ? [] : duplicateMachines(fleet.hosts, config);
}

/**
 * Refuses a run over hosts that are one machine by ssh_config.
 * @param fleet with the selected hosts alone
 * @throws AppError with exit code 2
 */
export async function refuseDuplicateMachines(services: FleetFilePorts, fleet: ResolvedFleet, configFile?: string): Promise<void> {
  const duplicates = await findDuplicateMachines(services, fleet, configFile);
  if (duplicates.length > 0) throw new AppError(duplicates, { exitCode: 2 });
}

/** The path of the fleet file: that of `-f`, otherwise the default. */
export function fleetFileOf(file: string | undefined): string {
  return file ?? DEFAULT_FLEET_FILE;
}

/**
 * As `readFleet`, but returns the errors.
 * @param text default: the content of the file
 */
export async function checkFleet(
  services: FleetFilePorts,
  file: string,
  text?: string,
): Promise<{ readonly fleet: ResolvedFleet; readonly problems: readonly Problem[] }> {
  const loaded = loadFleet(text ?? (await services.input.readText(file)), file);
  const imports: ImportedInventory[] = [];
  const problems: Problem[] = [];
  for (const [index, entry] of (loaded.fleet.imports ?? []).entries()) {
    const read = await readImport(services, loaded, entry).catch((error: unknown) => placeFailure(error, loaded, index));
    const kept = filterImport(read.inventory, entry.hosts);
    imports.push(kept.inventory);
    problems.push(...read.problems, ...kept.problems.map((problem) => ({ ...problem, ...placeInImport(loaded, index, 'hosts') })));
  }
  const { fleet: written, document } = loaded;
  const rollout =
    written.rollout === undefined || document === null || loaded.problems.some(({ severity }) => severity !== 'warning')
      ? null
      : await prepareRollout(services, written.rollout, { document, path: ['rollout'], paths: pathsOf(services, file) });
  const all = [...loaded.problems, ...problems, ...(rollout?.problems ?? [])];
  const resolved = resolveFleet({ ...loaded, problems: all }, imports);
  return { ...resolved, fleet: { ...resolved.fleet, rollout: rollout?.rollout ?? null } };
}

/**
 * Reads the file of `--gates` and the files that it names.
 * @throws AppError with exit code 2 and all problems
 */
export async function readRollout(services: LocalFiles, file: string): Promise<PreparedRollout> {
  const { settings, document, problems: own } = loadRollout(await services.input.readText(file), file);
  const isValid = document !== null && own.length === 0;
  const prepared = isValid ? await prepareRollout(services, settings, { document, path: [], paths: pathsOf(services, file) }) : null;
  const problems = [...own, ...(prepared?.problems ?? [])];
  if (prepared === null || problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return prepared.rollout;
}

function pathsOf(services: LocalFiles, file: string) {
  return {
    directory: directoryOf(services, file),
    absolute: (path: string): string => services.absolutePath(resolveFleetPath(path, file, services.homeDirectory)),
  };
}

/** The directory that relative paths of a fleet file are resolved against. */
export function directoryOf({ absolutePath }: Pick<LocalFiles, 'absolutePath'>, file: string): string {
  return file === '-' ? absolutePath('.') : dirname(absolutePath(file));
}

/**
 * A path of a fleet file: `~` is the home directory; relative paths are resolved against the directory of the
 * file.
 */
export function resolveFleetPath(path: string, fleetFile: string, homeDirectory: string): string {
  if (path === '~' || path.startsWith('~/')) return join(homeDirectory, path.slice(1));
  return isAbsolute(path) || fleetFile === '-' ? path : join(dirname(fleetFile), path);
}

interface ReadImport {
  readonly inventory: ImportedInventory;
  readonly problems: readonly Problem[];
}

const NOTHING: ReadImport = { inventory: { hosts: [], groups: [] }, problems: [] };

/** Reports an unreadable import at the line that names it. */
function placeFailure(error: unknown, loaded: LoadedFleet, index: number): ReadImport {
  if (!isAppError(error)) throw error;
  const member = loaded.fleet.imports?.[index]?.ansibleInventory === undefined ? 'sshConfig' : 'ansibleInventory';
  const place = placeInImport(loaded, index, member);
  const problems = error.problems.map((problem) => ({
    ...problem,
    position: problem.position ?? place?.position,
    path: problem.path ?? place?.path,
  }));
  return { ...NOTHING, problems };
}

function placeInImport({ document }: LoadedFleet, index: number, member: string): SettingLocation | undefined {
  if (document === null) return undefined;
  const { position, path } = fileLayer('import', {}, document, ['imports', index]).place([member]);
  return { position, path };
}

async function readImport(
  services: FleetFilePorts,
  { file }: LoadedFleet,
  { ansibleInventory, sshConfig }: NonNullable<FleetFile['imports']>[number],
): Promise<ReadImport> {
  if (ansibleInventory !== undefined) return readAnsible(services, resolveFleetPath(ansibleInventory, file, services.homeDirectory));
  if (sshConfig === undefined) return NOTHING;
  const { importSshConfig } = await import('../imports/import-ssh-config.ts');
  const config = await services.readSshConfig(resolveFleetPath(sshConfig, file, services.homeDirectory));
  return { inventory: importSshConfig(config).inventory, problems: [] };
}

/**
 * Reads an Ansible inventory: the saved output of `ansible-inventory --list`, or any format that this program
 * reads.
 * @throws AppError FLEET_IMPORT_INVALID if Ansible is not installed; LOCAL_COMMAND_FAILED with its first
 * message if Ansible rejects the inventory
 */
export async function readAnsible(services: FleetFilePorts, path: string): Promise<ReadImport> {
  const [{ importAnsible }, { readInventoryList }] = await Promise.all([
    import('../imports/ansible/import.ts'),
    import('../imports/ansible/inventory.ts'),
  ]);
  const text = (await services.input.isDirectory(path)) ? '' : await services.input.readText(path);
  if (isK0sctl(text))
    throw new AppError(importInvalid(`${path} is a file of k0sctl`, `Run kubeletadm fleet init --from-k0sctl ${path}`), { exitCode: 2 });
  const recorded = readInventoryList(text);
  if (recorded !== null) return importAnsible(recorded, path);
  const stderr: string[] = [];
  const command = [...INVENTORY_COMMAND, '-i', services.absolutePath(path), '--list'];
  const onStderr = (text: string): void => void stderr.push(text);
  const printed = readInventoryList(await services.runLocal(command, { onStderr }).catch(withoutAnsible));
  if (printed === null)
    throw new AppError(
      importInvalid(`${path}: ansible-inventory --list printed no inventory`, `Check the output of ansible-inventory -i ${path} --list`),
      { exitCode: 2 },
    );
  const { inventory, problems } = importAnsible(printed, path);
  const position = { file: path, line: 1, column: 1 };
  return { inventory, problems: [...ansibleWarnings(stderr.join('')).map((text) => ({ ...ansibleWarning(text), position })), ...problems] };
}

/**
 * The warnings of Ansible, whose lines are wrapped, except the one about names of groups with characters that are
 * invalid only for Ansible.
 * @see ansible utils/display.py Display.warning
 */
function ansibleWarnings(stderr: string): readonly string[] {
  return stderr
    .split(/^(?=\[)/m)
    .filter((text) => text.startsWith(WARNING))
    .map((text) =>
      text
        .slice(WARNING.length)
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean)
        .join(' '),
    )
    .filter((text) => !text.startsWith('Invalid characters were found in group names'));
}

const WARNING = '[WARNING]:';

/** By default Ansible prints an empty inventory for an unreadable one. @see ansible config/base.yml */
const INVENTORY_COMMAND = [
  'env',
  'ANSIBLE_INVENTORY_UNPARSED_FAILED=True',
  'ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=True',
  'ansible-inventory',
];
function withoutAnsible(error: unknown): never {
  if (!isAppError(error, 'HOST_COMMAND_NOT_FOUND')) throw error;
  const hint =
    'Install Ansible (package ansible-core). Or save the inventory on a host with Ansible, and import the saved file: ansible-inventory -i FILE --list > inventory.json';
  throw new AppError(
    importInvalid('only Ansible can read this inventory, and ansible-inventory is not installed on the local host', hint),
    {
      exitCode: 2,
      cause: error,
    },
  );
}
