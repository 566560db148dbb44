import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { Selection } from '../fleet/file/select.ts';
import { isNodeIp, NODE_IP_FORM } from '../kubelet/flags/node-ip.ts';
import type { CommandOptions, On } from './command.ts';
import type { FleetCommitRequest } from './fleet-commit.ts';
import type { FleetHistoryRequest } from './fleet-history.ts';
import type { FleetInitRequest } from './fleet-init.ts';
import type { FleetInventoryRequest } from './fleet-inventory.ts';
import { addFleetHostOptions, defineFleetRun } from './fleet-run-command.ts';
import type { FleetTrustRequest } from './fleet-trust.ts';
import type { FleetValidateRequest } from './fleet-validate.ts';
import { addSections } from './help-layout.ts';
import { DEFAULT_KUBERNETES_MINOR } from './kubelet-config-commands.ts';
import {
  addFleetFileOption,
  addFleetSelectionOptions,
  addSshOptions,
  addTableOptions,
  FLEET_COMMAND_TIMEOUT,
  outputOption,
} from './options.ts';
import {
  connectionRequest,
  flagChoice,
  flagText,
  fleetRequest,
  hostAddress,
  outputRequest,
  tableRequest,
  verbosityOf,
} from './request-parts.ts';
import { defineFleetReset } from './reset-command.ts';
import { parallelOf } from './rollout-options.ts';

/** `fleet`: commands for the hosts of a fleet file. */
export function defineFleet(fleet: Command, on: On): void {
  initCommand(fleet, on);
  inventoryCommand(fleet, on);
  validateCommand(fleet, on);
  trustCommand(fleet, on);
  addCommitCommands(fleet, on);
  historyCommand(fleet, on);
  defineFleetRun(fleet, on);
  defineFleetReset(fleet.command('reset').description('Revert the changes made to hosts of a fleet file by init, join or apply'), on);
  const schema = fleet.command('schema').description('Print the JSON Schema of fleet files, for editors');
  on(
    schema,
    () => null,
    async (services) => (await import('./fleet-validate.ts')).runFleetSchema(services),
  );
  addSections(schema, {
    examples: '  # file that the first line of a file of fleet init refers to\n  kubeletadm fleet schema > fleet.schema.json',
  });
}

function initCommand(fleet: Command, on: On): void {
  const init = addFleetFileOption(
    fleet.command('init').description('Create a fleet file to start from; an existing file is not overwritten'),
    "fleet file to create; '-' for standard output (default: fleet.yaml)",
  )
    .option('--from-ansible <path>', 'Ansible inventory to import hosts from')
    .option('--from-ssh-config [file]', 'ssh_config file to import hosts from (without a value: ~/.ssh/config)')
    .option(
      '--from-vagrant [file]',
      "saved output of vagrant ssh-config to import hosts from, or '-' for standard input (without a value: runs vagrant ssh-config)",
    )
    .option('--from-k0sctl <file>', 'k0sctl.yaml to import hosts from: role, name, address, user, port, key and bastion')
    .option('--node-ip <subnet>', 'subnet of the node IPs, for hosts with several addresses');
  on(init, initRequest, async (...args) => (await import('./fleet-init.ts')).runFleetInit(...args));
  addSections(init, {
    examples: `  kubeletadm fleet init
  kubeletadm fleet init -f edge.yaml --from-ansible inventory/hosts.ini
  kubeletadm fleet init --from-k0sctl k0sctl.yaml
  vagrant ssh-config | kubeletadm fleet init --from-vagrant - --node-ip 192.168.56.0/24`,
  });
}

function inventoryCommand(fleet: Command, on: On): void {
  const inventory = addFleetSelectionOptions(
    addFleetFileOption(fleet.command('inventory').description('Print the resolved inventory of a fleet file')),
  ).option('--host <name>', 'print only the host or Node with this name in the fleet file, and the source (file:line) of each setting');
  addTableOptions(inventory);
  on(
    inventory,
    (_, options): FleetInventoryRequest => ({
      ...fleetRequest(options),
      host: inventoryHost(options),
      output: tableRequest(options),
    }),
    async (...args) => (await import('./fleet-inventory.ts')).runFleetInventory(...args),
  );
  addSections(inventory, { examples: '  kubeletadm fleet inventory -f fleet.yaml\n  kubeletadm fleet inventory --host edge-017' });
}

const HOST_NAMES = 'names of hosts or Nodes in the fleet file, or [user@]address[:port]';

/** `--host`, as NAME or host/NAME. */
function inventoryHost(options: CommandOptions): string | undefined {
  return flagText(options, 'host')?.replace(/^hosts?\//, '');
}

function validateCommand(fleet: Command, on: On): void {
  const validate = addFleetFileOption(
    fleet
      .command('validate')
      .description('Validate a fleet file and each configuration in the file; the exit code is 2 if something is invalid'),
  )
    .option(
      '--kubernetes-version <version>',
      `kubelet version to validate for (default: kubernetesVersion of the fleet file, otherwise ${DEFAULT_KUBERNETES_MINOR})`,
    )
    .addOption(outputOption(['text', 'json', 'sarif']));
  on(
    validate,
    (_, options): FleetValidateRequest => ({
      file: flagText(options, 'file'),
      kubernetesVersion: flagText(options, 'kubernetesVersion'),
      format: flagChoice(options, 'output', ['text', 'json', 'sarif']),
    }),
    async (...args) => (await import('./fleet-validate.ts')).runFleetValidate(...args),
  );
  addSections(validate, {
    examples: `  kubeletadm fleet validate -f fleet.yaml
  # before an upgrade
  kubeletadm fleet validate --kubernetes-version 1.35`,
  });
}

/**
 * `fleet confirm` and `fleet revert`: finish changes of a run that stopped, or lost its host, before it
 * confirmed them.
 */
function addCommitCommands(fleet: Command, on: On): void {
  const options = (command: Command): Command =>
    addSshOptions(addFleetSelectionOptions(addFleetFileOption(command.argument('[host...]', HOST_NAMES))), FLEET_COMMAND_TIMEOUT);
  const confirm = options(fleet.command('confirm').description('Confirm a pending change before the host rolls it back'));
  on(confirm, commitRequest, async (...args) => (await import('./fleet-commit.ts')).runFleetConfirm(...args));
  const revert = options(fleet.command('revert').description('Roll back a pending change immediately'));
  on(revert, commitRequest, async (...args) => (await import('./fleet-commit.ts')).runFleetRevert(...args));
  for (const [command, verb] of [
    [confirm, 'confirm'],
    [revert, 'revert'],
  ] as const)
    addSections(command, {
      examples: `  kubeletadm fleet ${verb} worker-7\n  # all hosts of the group with a pending change\n  kubeletadm fleet ${verb} --group edge`,
    });
}

/** `fleet history`. */
function historyCommand(fleet: Command, on: On): void {
  const history = addSshOptions(
    addFleetSelectionOptions(
      addFleetFileOption(
        fleet
          .command('history')
          .description('Show the recorded changes of hosts: time, operator, reason and changed fields')
          .argument('[host...]', `${HOST_NAMES} (default: all hosts of the fleet file)`),
      ),
    ).addOption(outputOption(['text', 'json', 'yaml'])),
    FLEET_COMMAND_TIMEOUT,
  );
  on(
    history,
    (hosts, options): FleetHistoryRequest => ({
      ...fleetRequest(options),
      hosts: namedHostsOf(hosts, options),
      connection: connectionRequest(options),
      output: outputRequest(options),
    }),
    async (...args) => (await import('./fleet-history.ts')).runFleetHistory(...args),
  );
  addSections(history, { examples: '  kubeletadm fleet history -f fleet.yaml\n  kubeletadm fleet history worker-7 -o json' });
}

/**
 * The hosts given by name.
 * @throws AppError USAGE (exit code 2) if a selection is given too
 */
function namedHostsOf(hosts: readonly string[], options: CommandOptions): readonly string[] {
  if (hosts.length > 0 && isSelection(fleetRequest(options).selection))
    throw usageError(
      'host names cannot be combined with --limit, --group or --selector',
      'Pass host names, or select hosts with --limit, --group and --selector',
    );
  return hosts.map(hostAddress);
}

function isSelection({ limit, groups, selector }: Selection): boolean {
  return limit.length + groups.length > 0 || selector !== undefined;
}

function trustCommand(fleet: Command, on: On): void {
  const trust = addFleetHostOptions(fleet.command('trust').description('Show unknown SSH host keys and record them in known_hosts'))
    .option('-y, --yes', 'record the keys without asking')
    .option('--dry-run', 'only show the keys; exit code 6 if a key is unknown')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(
    trust,
    (_, options): FleetTrustRequest => ({
      ...fleetRequest(options),
      connection: connectionRequest(options),
      parallel: parallelOf(options),
      yes: options.yes === true,
      dryRun: options.dryRun === true,
      format: outputRequest(options).format,
    }),
    async (...args) => (await import('./fleet-trust.ts')).runFleetTrust(...args),
  );
  addSections(trust, { examples: '  kubeletadm fleet trust -f fleet.yaml\n  kubeletadm fleet trust --group edge --dry-run' });
}

function initRequest(_: readonly string[], options: CommandOptions): FleetInitRequest {
  const { fromSshConfig, fromVagrant } = options;
  return {
    file: flagText(options, 'file'),
    ansible: flagText(options, 'fromAnsible'),
    sshConfig: fromSshConfig === true ? '~/.ssh/config' : flagText(options, 'fromSshConfig'),
    k0sctl: flagText(options, 'fromK0sctl'),
    vagrant: fromVagrant === true ? null : flagText(options, 'fromVagrant'),
    nodeIP: readNodeIp(options),
  };
}

function readNodeIp(options: CommandOptions): string | undefined {
  const nodeIP = flagText(options, 'nodeIp');
  if (nodeIP !== undefined && !isNodeIp(nodeIP)) throw usageError(`--node-ip: ${nodeIP} is not the IP of a node`, NODE_IP_FORM);
  return nodeIP;
}

function commitRequest(hosts: readonly string[], options: CommandOptions): FleetCommitRequest {
  const { file, selection } = fleetRequest(options);
  if (namedHostsOf(hosts, options).length === 0 && !isSelection(selection))
    throw usageError('no host was given', 'Pass names in the fleet file or addresses, or select hosts with --limit, --group or --selector');
  return { file, selection, hosts: namedHostsOf(hosts, options), connection: connectionRequest(options), verbosity: verbosityOf(options) };
}
