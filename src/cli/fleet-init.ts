import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { AppError, type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { importSshConfig } from '../fleet/import-ssh-config.ts';
import { importedSettings, notTakenText, type StarterImport, starterFile } from '../fleet/starter.ts';
import { readVagrantMachines, type VagrantMachine } from '../fleet/vagrant.ts';
import { formatMinor, NEWEST_MINOR } from '../kubelet/catalogue.ts';
import { isNodeIp, NODE_IP_FORM } from '../kubelet/node-ip.ts';
import type { CommandOptions } from './command.ts';
import { besideFleet, fleetFileOf, readAnsible } from './load-fleet.ts';
import { flagText } from './read-options.ts';
import type { Services } from './services.ts';

/** `fleet init`: writes a start file, or prints it with `-f -`. */
export async function runFleetInit(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const file = fleetFileOf(options);
  if (file !== '-' && (await services.input.exists(file)))
    throw new AppError(
      { code: 'FLEET_FILE_EXISTS', message: `${file} already exists`, hint: 'Name another file with -f, or remove this one' },
      { exitCode: 2 },
    );
  const imports = [...(await fromAnsible(services, options, file)), ...(await fromSshConfig(services, options))];
  for (const names of imports.map((one) => notTakenText(importedSettings(one))).filter(Boolean))
    services.output.stderr(
      `not taken from the inventory: ${names}. Declare in ${file === '-' ? 'the fleet file' : file} what of them holds for the kubelets.\n`,
    );
  const machines = await fromVagrant(services, options, file);
  const nodeIP = readNodeIp(options);
  const text = starterFile(formatMinor(NEWEST_MINOR), { imports, machines, ...(nodeIP === undefined ? {} : { nodeIP }) });
  if (file === '-') {
    services.output.document(text);
    return 0;
  }
  await services.writeLocalFile(file, text);
  services.output.stdout(`${file} is written. Look at it with kubeletadm fleet inventory -f ${file}\n`);
  return 0;
}

async function fromAnsible(services: Services, options: CommandOptions, file: string): Promise<readonly StarterImport[]> {
  const path = flagText(options, 'fromAnsible');
  if (path === undefined) return [];
  const { inventory, problems } = await readAnsible(services, path);
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  for (const problem of problems) services.output.stderr(`warning: ${formatProblem(problem)}\n`);
  return [{ source: 'ansibleInventory', path: isAbsolute(path) || file === '-' ? path : relative(dirname(file), path), inventory }];
}

async function fromSshConfig(services: Services, options: CommandOptions): Promise<readonly StarterImport[]> {
  const given = options.fromSshConfig;
  if (given === undefined || given === false) return [];
  const path = typeof given === 'string' ? given : '~/.ssh/config';
  const inventory = importSshConfig(await services.readSshConfig(besideFleet(path, '-', services.homeDirectory)));
  return [{ source: 'sshConfig', path, inventory }];
}

/** Machines of `vagrant ssh-config`, or of a recording of it; key files below the directory of the fleet file by their way from there. */
async function fromVagrant(services: Services, options: CommandOptions, file: string): Promise<readonly VagrantMachine[]> {
  const given = options.fromVagrant;
  if (given === undefined || given === false) return [];
  const [name, text] =
    typeof given === 'string'
      ? [given, await services.input.readText(given)]
      : ['vagrant ssh-config', await services.runLocal(['vagrant', 'ssh-config'])];
  const beside = (path: string): string => {
    const route = relative(dirname(resolve(file)), path);
    return file === '-' || !isAbsolute(path) || route.startsWith('..') ? path : route;
  };
  return readVagrantMachines(text, name).map((machine) => ({ ...machine, identityFiles: machine.identityFiles.map(beside) }));
}

function readNodeIp(options: CommandOptions): string | undefined {
  const nodeIP = flagText(options, 'nodeIp');
  if (nodeIP !== undefined && !isNodeIp(nodeIP)) throw usageError(`--node-ip: ${nodeIP} is not the IP of a node`, NODE_IP_FORM);
  return nodeIP;
}
