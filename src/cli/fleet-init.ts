import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { AppError, type ExitCode, formatProblem, type Problem } from '../base/errors.ts';
import { parseJsonObject } from '../base/json.ts';
import { FLEET_SCHEMA_TITLE } from '../fleet/file/json-schema.ts';
import { validateFleet } from '../fleet/file/validate.ts';
import { oncePerMachine } from '../fleet/imports/filter-import.ts';
import { doubtfulRoles } from '../fleet/imports/group-roles.ts';
import { importSshConfig } from '../fleet/imports/import-ssh-config.ts';
import { ignoredSettingsText, importedSettings, type StarterImport, type StarterMachine, starterFile } from '../fleet/imports/starter.ts';
import { readVagrantMachines } from '../fleet/imports/vagrant.ts';
import { checkFleet, fleetFileOf, readAnsible, resolveFleetPath } from '../fleet/use-cases/load-fleet.ts';
import { DEFAULT_MINOR, formatMinor, parseMinor } from '../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import { fleetSchemaText } from './fleet-validate.ts';
import type { Services } from './output/services.ts';

/** Read without an option, as by ssh. */
const USER_SSH_CONFIG = '~/.ssh/config';

export interface FleetInitRequest {
  /** Undefined: the default; `-`: standard output. */
  readonly file: string | undefined;
  /** An Ansible inventory. */
  readonly ansible: string | undefined;
  /** An ssh_config file. */
  readonly sshConfig: string | undefined;
  /** A file with the output of `vagrant ssh-config`; null: the command is run. */
  readonly vagrant: string | null | undefined;
  /** A configuration of k0sctl. */
  readonly k0sctl: string | undefined;
  /** The subnet of the node IPs. */
  readonly nodeIP: string | undefined;
}

/**
 * `fleet init`: writes a start file, or prints it with `-f -`. Exit code 1 when the file was written and must be corrected; with
 * errors in imported files only, nothing is written.
 */
export async function runFleetInit(services: Services, request: FleetInitRequest): Promise<ExitCode> {
  const file = fleetFileOf(request.file);
  if (file !== '-' && (await services.input.exists(file)))
    throw new AppError(
      { code: 'FLEET_FILE_EXISTS', message: `${file} already exists`, hint: 'Pass another file with -f, or remove the existing file' },
      { exitCode: 2 },
    );
  const imports = [...(await fromAnsible(services, request.ansible, file)), ...(await fromSshConfig(services, request.sshConfig, file))];
  for (const names of imports.map((one) => ignoredSettingsText(importedSettings(one))).filter(Boolean))
    services.output.stderr(
      `not imported from the inventory: ${names}. Declare kubelet settings in ${file === '-' ? 'the fleet file' : file}.\n`,
    );
  const machines = [...(await fromVagrant(services, request.vagrant, file)), ...(await fromK0sctl(services, request.k0sctl, file))];
  const kubeconfig = await kubeconfigInForce(services, file);
  const sshConfig = imports.find(({ source, path }) => source === 'sshConfig' && path !== USER_SSH_CONFIG)?.path;
  const text = starterFile(formatMinor(DEFAULT_MINOR), { imports, machines, kubeconfig, sshConfig, nodeIP: request.nodeIP });
  const problems = await checkText(services, { file, text, isImport: imports.length + machines.length > 0 });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  for (const problem of problems) if (!errors.includes(problem)) services.output.stderr(`warning: ${formatProblem(problem)}\n`);
  if (file === '-') services.output.document(text);
  else if (errors.length === 0 || errors.some(({ position }) => position?.file === file)) {
    const written = await writeWithSchema(services, file, text);
    const next =
      errors.length > 0
        ? `Correct the errors in ${file}, then run kubeletadm fleet validate -f ${file}`
        : `Show the hosts: kubeletadm fleet inventory -f ${file}`;
    services.output.stdout(`${written.join(' and ')} written. ${next}\n`);
    if (errors.length > 0) throw new AppError(errors, { exitCode: 1 });
  }
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return 0;
}

/** The problems of `fleet validate`, and imported hosts whose role is doubtful. */
async function checkText(
  services: Services,
  { file, text, isImport }: { readonly file: string; readonly text: string; readonly isImport: boolean },
): Promise<readonly Problem[]> {
  const { fleet, problems } = await checkFleet(services, file, text);
  if (problems.some(({ severity }) => severity !== 'warning')) return problems;
  const minor = parseMinor(fleet.kubernetesVersion ?? '') ?? DEFAULT_MINOR;
  const { problems: invalid } = validateFleet(fleet, { minor, catalogue: await loadCatalogue() });
  return [...problems, ...invalid, ...(isImport ? doubtfulRoles(fleet) : [])];
}

async function fromAnsible(services: Services, path: string | undefined, file: string): Promise<readonly StarterImport[]> {
  if (path === undefined) return [];
  const { inventory, problems } = await readAnsible(services, path);
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) {
    for (const problem of problems) if (!errors.includes(problem)) services.output.stderr(`warning: ${formatProblem(problem)}\n`);
    throw new AppError(errors, { exitCode: 2 });
  }
  return [{ source: 'ansibleInventory', path: fromDirectoryOf(file, path), inventory }];
}

async function fromSshConfig(services: Services, path: string | undefined, file: string): Promise<readonly StarterImport[]> {
  if (path === undefined) return [];
  const { inventory, gitServers } = importSshConfig(await services.readSshConfig(resolveFleetPath(path, '-', services.homeDirectory)));
  const { hosts, others } = oncePerMachine(inventory.hosts);
  const notImported = [
    ...[...others].map(([name, first]) => `${name} (the same machine as ${first})`),
    ...gitServers.map((name) => `${name} (a Git server)`),
  ];
  if (notImported.length > 0) services.output.stderr(`not imported from ${path}: ${notImported.join(', ')}\n`);
  return [{ source: 'sshConfig', path: fromDirectoryOf(file, path), inventory: { ...inventory, hosts } }];
}

/** A path of the command line as the fleet file names it. */
function fromDirectoryOf(file: string, path: string): string {
  return /^[/~]/.test(path) || file === '-' ? path : relative(dirname(file), path);
}

/** The kubeconfig that commands without `--kubeconfig` use; null: none, or several files that only KUBECONFIG can name. */
async function kubeconfigInForce({ env, input, homeDirectory, absolutePath }: Services, file: string): Promise<string | null> {
  const named = env.KUBECONFIG?.split(':').filter(Boolean) ?? [];
  const [path, ...more] = named;
  if (path === undefined) return (await input.exists(`${homeDirectory}/.kube/config`)) ? '~/.kube/config' : null;
  if (more.length > 0) return null;
  const route = relative(dirname(absolutePath(file)), absolutePath(path));
  return file === '-' || route.startsWith('..') ? absolutePath(path) : route;
}

/**
 * Writes the file, and next to it the schema that its first line names. An older schema of kubeletadm is replaced, any other
 * file is kept.
 * @returns the written paths
 */
async function writeWithSchema({ input, writeLocalFile }: Services, file: string, text: string): Promise<readonly string[]> {
  const [path, schema] = [join(dirname(file), 'fleet.schema.json'), await fleetSchemaText()];
  const found = (await input.exists(path)) ? await input.readText(path) : null;
  const isWritten = found === null || (found !== schema && parseJsonObject(found)?.title === FLEET_SCHEMA_TITLE);
  // Last, because the command refuses to run again when this file exists.
  for (const [name, content] of [...(isWritten ? [[path, schema] as const] : []), [file, text] as const])
    await writeLocalFile(name, content);
  return isWritten ? [file, path] : [file];
}

/** Hosts of `vagrant ssh-config`, or of its saved output. */
async function fromVagrant(services: Services, given: string | null | undefined, file: string): Promise<readonly StarterMachine[]> {
  if (given === undefined) return [];
  const [name, text] =
    given !== null
      ? [given, await services.input.readText(given)]
      : ['vagrant ssh-config', await services.runLocal(['vagrant', 'ssh-config'])];
  return readVagrantMachines(text, name).map((machine) => withKeysBelow(machine, file));
}

async function fromK0sctl(services: Services, path: string | undefined, file: string): Promise<readonly StarterMachine[]> {
  if (path === undefined) return [];
  const { readK0sctl } = await import('../fleet/imports/import-k0sctl.ts');
  const { machines, ignored } = readK0sctl(await services.input.readText(path), path);
  if (ignored.length > 0) services.output.stderr(`not imported from ${path}: ${ignored.join(', ')}\n`);
  const absolute = (key: string): string => (/^[~/]/.test(key) ? key : resolve(dirname(path), key));
  return machines.map((machine) => withKeysBelow({ ...machine, identityFiles: machine.identityFiles.map(absolute) }, file));
}

/** Key files below the directory of the fleet file become relative to that directory. */
function withKeysBelow(machine: StarterMachine, file: string): StarterMachine {
  const relativeToFleet = (path: string): string => {
    const route = relative(dirname(resolve(file)), path);
    return file === '-' || !isAbsolute(path) || route.startsWith('..') ? path : route;
  };
  return { ...machine, identityFiles: machine.identityFiles.map(relativeToFleet) };
}
